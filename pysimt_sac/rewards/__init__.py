"""Rewards: one file each, registered by name. Importing this package registers the built-in ones."""

from pysimt_sac.rewards import chrf, gleu, length, remote, ter  # noqa: F401 - registers them
from pysimt_sac.rewards.base import (
    ReadOptions,
    RewardOptions,
    SourceTexts,
    Translations,
    by_step,
    reward,
)
from pysimt_sac.rewards.bleu import BleuOptions
from pysimt_sac.rewards.count_bonus import BonusOptions
from pysimt_sac.rewards.mixture import Rewarder, Rewards, permute
from pysimt_sac.rewards.remote import RemoteOptions

# Every key of the built-in rewards once; `BleuOptions` includes the shaping that other rewards share.
REWARD_OPTIONS: tuple[type, ...] = (RewardOptions, BleuOptions, BonusOptions, RemoteOptions)

__all__ = [
    "REWARD_OPTIONS",
    "ReadOptions",
    "RewardOptions",
    "Rewarder",
    "Rewards",
    "SourceTexts",
    "Translations",
    "by_step",
    "permute",
    "reward",
]
