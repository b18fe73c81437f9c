"""Rewards: one file each, registered by name. Importing this package registers the built-in ones."""

from pysimt_sac.rewards import chrf, gleu, length, ter  # noqa: F401 - registers them
from pysimt_sac.rewards.base import (
    ReadOptions,
    RewardOptions,
    RolloutTensors,
    SourceTexts,
    Translations,
    by_step,
    reward,
)
from pysimt_sac.rewards.bleu import BleuOptions
from pysimt_sac.rewards.discriminator import UnsupervisedOptions
from pysimt_sac.rewards.mixture import Rewarder, Rewards, permute

# Every key of the built-in rewards once; `BleuOptions` includes the shaping that other rewards share.
REWARD_OPTIONS: tuple[type, ...] = (RewardOptions, BleuOptions, UnsupervisedOptions)

__all__ = [
    "REWARD_OPTIONS",
    "ReadOptions",
    "RewardOptions",
    "Rewarder",
    "Rewards",
    "RolloutTensors",
    "SourceTexts",
    "Translations",
    "by_step",
    "permute",
    "reward",
]
