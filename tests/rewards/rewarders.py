"""Rewarders from options, as a model makes them from its configuration."""

import numpy as np

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.options import read_section
from pysimt_sac.rewards import Rewarder


def make_rewarder(filters=(), where="[model]", **values):
    return Rewarder(lambda cls: read_section(cls, values, where), FilterChain(filters), where)


def rewards_of(found):
    """r_t = c (R_t - R_{t-1}) at every step, (T, B)."""
    return found.scale_B * np.diff(found.potentials_TB, axis=0, prepend=0.0)
