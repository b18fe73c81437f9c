"""Trainable models that run on either host; one file per algorithm. Importing this package registers them."""

from pysimt_sac.engine.network.nmt import SimultaneousNMT
from pysimt_sac.models.actor_critic import ACNMT
from pysimt_sac.models.base import RLModel
from pysimt_sac.models.erac import ERACNMT
from pysimt_sac.models.mixer import MIXERNMT
from pysimt_sac.models.mle import MLENMT
from pysimt_sac.models.mrt import MRTNMT
from pysimt_sac.models.reinforce import REINFORCENMT
from pysimt_sac.models.sac import SACNMT
from pysimt_sac.models.sac_unsup import SACUnsupNMT

__all__ = [
    "ACNMT",
    "ERACNMT",
    "MIXERNMT",
    "MLENMT",
    "MRTNMT",
    "REINFORCENMT",
    "SACNMT",
    "RLModel",
    "SACUnsupNMT",
    "SimultaneousNMT",
]
