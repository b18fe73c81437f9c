"""Trainable models that run on either host; one file per algorithm. Importing this package registers them."""

from pysimt_sac.engine.nmt import SimultaneousNMT
from pysimt_sac.models.base import RLModel
from pysimt_sac.models.mle import MLENMT
from pysimt_sac.models.sac import SACNMT

__all__ = ["MLENMT", "SACNMT", "RLModel", "SimultaneousNMT"]
