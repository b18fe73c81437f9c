"""The length reward: minus the difference in length, in parts of the reference's length; for mixtures.

A word beyond the reference's length costs 1/L at its own step; words that are missing can only be charged at the end.
"""

import math
from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import Floats, RewardOptions, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics


class Lengths(PrefixStatistics):
    """The lengths of prefix and reference."""

    def __init__(self, reference: Sequence[str]) -> None:
        self.length, self.reference_length = 0, len(reference)

    def push(self, word: str) -> None:
        """One more."""
        self.length += 1

    def pop(self) -> None:
        """One less."""
        self.length -= 1

    def values(self, terminal: bool) -> Sequence[float]:
        """Two numbers."""
        return [self.length, self.reference_length]


@reward("length")
class LengthReward(IncrementalReward):
    """-max(0, t - L) / L on the way, -|y - L| / L at the end, whatever the `shaping`."""

    options_class = RewardOptions
    bounds = (-math.inf, 0.0)

    def __init__(self, options: RewardOptions) -> None:
        pass

    def statistics(self, reference: Sequence[str]) -> Lengths:
        """Both lengths."""
        return Lengths(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Minus the difference, or before the end what is too much."""
        length_N, reference_N = statistics_NS.T
        surplus_N = length_N - reference_N
        charged_N = np.where(terminal_N, np.abs(surplus_N), np.maximum(0, surplus_N))
        return np.asarray(-charged_N / np.maximum(1, reference_N))
