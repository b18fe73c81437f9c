"""What translations are worth: one file per reward, each found by its name. Importing this package registers ours."""

from pysimt_sac.rewards import bleu, chrf, discriminator, gleu, length, ter  # noqa: F401 - they register themselves
from pysimt_sac.rewards.base import Numbers, RewardOptions, Translations, by_step, reward
from pysimt_sac.rewards.mixture import Rewarder, Rewards, permute

__all__ = ["Numbers", "RewardOptions", "Rewarder", "Rewards", "Translations", "by_step", "permute", "reward"]
