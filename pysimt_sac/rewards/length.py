"""The length reward: minus the length difference, relative to the reference's length L; for mixtures.

A word beyond the reference's length costs 1/L at its own step; missing words can only be penalised at the end.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import Floats, RewardOptions, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics


class Lengths(PrefixStatistics):
    """The lengths of prefix and reference."""

    def __init__(self, reference: Sequence[str]) -> None:
        self.length, self.reference_length = 0, len(reference)

    def push(self, word: str) -> None:
        """Add a word."""
        self.length += 1

    def pop(self) -> None:
        """Remove a word."""
        self.length -= 1

    def values(self, terminal: bool) -> Sequence[float]:
        """Return both lengths."""
        return [self.length, self.reference_length]


@reward("length")
class LengthReward(IncrementalReward):
    """-max(0, t - L) / L before the end, -abs(|y| - L) / L at the end, whatever the `shaping`."""

    options_class = RewardOptions

    def __init__(self, options: RewardOptions) -> None:
        pass

    def statistics(self, reference: Sequence[str]) -> Lengths:
        """Return the lengths of the empty prefix and the reference."""
        return Lengths(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return minus the relative difference at the end, minus the relative surplus before it."""
        length_N, reference_N = statistics_NS.T
        surplus_N = length_N - reference_N
        charged_N = np.where(terminal_N, np.abs(surplus_N), np.maximum(0, surplus_N))
        return np.asarray(-charged_N / np.maximum(1, reference_N))
