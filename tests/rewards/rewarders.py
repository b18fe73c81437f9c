"""Rewarders from options, as a model makes them from its configuration."""

from pysimt_sac.engine.config.options import read_section
from pysimt_sac.engine.data.filters import FilterChain
from pysimt_sac.rewards import Rewarder


def make_rewarder(filters=(), where="[model]", **values):
    return Rewarder(lambda cls: read_section(cls, values, where), FilterChain(filters), where)
