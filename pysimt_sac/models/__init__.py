"""The algorithms, one file each. Importing this package registers each of them under its `model_type`."""

from pysimt_sac.models.actor_critic import ERAC, ActorCritic
from pysimt_sac.models.branched_sac import BranchedSAC
from pysimt_sac.models.grpo import GRPO
from pysimt_sac.models.mixer import MIXER
from pysimt_sac.models.mle import MLE
from pysimt_sac.models.mrt import MRT
from pysimt_sac.models.own_prefixes import OwnPrefixes
from pysimt_sac.models.reinforce import REINFORCE
from pysimt_sac.models.sac import SAC
from pysimt_sac.models.sac_unsup import SACUnsup
from pysimt_sac.models.vine import Vine

__all__ = [
    "ERAC", "GRPO", "MIXER", "MLE", "MRT", "REINFORCE", "SAC", "ActorCritic", "BranchedSAC", "OwnPrefixes", "SACUnsup",
    "Vine",
]  # fmt: skip
