"""Rewards from sufficient statistics that are updated word by word, so that no prefix is counted from the start.

Such a reward defines how the statistics of a prefix change when a word is added or removed (`PrefixStatistics`), and
the potentials of prefixes given their statistics (`potentials`). Everything else is done here.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from pysimt_sac.core.options import option
from pysimt_sac.rewards.base import Floats, Translations
from pysimt_sac.rewards.lookahead import Lookahead
from pysimt_sac.rewards.units import Prefix

Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclasses.dataclass(frozen=True)
class ShapingOptions:
    """The `[model]` key that says when a score is earned."""

    shaping: str = option(
        "padded",
        "what steps before the last one earn: growth of the score as if the reference's length were reached, until "
        "it is, of the score of the prefix itself with its brevity penalty, or nothing; other rewards than `bleu` know "
        "no difference between the first two",
        choices=("padded", "bp", "final"),
    )


class PrefixStatistics(ABC):
    """Sufficient statistics of one prefix against one reference."""

    @abstractmethod
    def push(self, word: str) -> None:
        """Add a word to the prefix."""

    @abstractmethod
    def pop(self) -> None:
        """Remove the last word of the prefix."""

    @abstractmethod
    def values(self, terminal: bool) -> Sequence[float]:
        """Return the current statistics, always the same number of them."""


class IncrementalReward(ABC):
    """A reward whose potentials are computed from `PrefixStatistics`.

    final_only: nothing is earned before the last step.
    """

    options_class: ClassVar[type] = ShapingOptions
    final_only = False

    def __init__(self, options: ShapingOptions) -> None:
        self.final_only = options.shaping == "final"

    @abstractmethod
    def statistics(self, reference: Sequence[str]) -> PrefixStatistics:
        """Return the statistics of the empty prefix."""

    @abstractmethod
    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return R of N prefixes from their statistics."""

    def __call__(self, translations: Translations) -> list[Floats]:
        """Return R_1 ... R_T of every sentence."""
        prefixes = [
            [Prefix(words[:time], time == n_steps) for time in range(1, n_steps + 1)]
            for words, n_steps in zip(translations.hypotheses, translations.steps, strict=True)
        ]
        potentials_N = self.evaluate(translations.references, prefixes)
        return np.split(potentials_N, np.cumsum(translations.steps)[:-1])

    def final(self, references: Sequence[list[str]], hypotheses: Sequence[list[str]]) -> Floats:
        """Return R_T of whole hypotheses, without scoring the steps before."""
        return self.evaluate(references, [[Prefix(words, True)] for words in hypotheses])

    def next_growth(self, lookahead: Lookahead) -> Floats:
        """Return R(prefix + word) - R(prefix) of every candidate, (T, B, K)."""
        return lookahead.growth(self.evaluate(lookahead.references, lookahead.prefixes))

    def evaluate(self, references: Iterable[Sequence[str]], prefixes: Iterable[Sequence[Prefix]]) -> Floats:
        """Return R of prefixes, listed per reference, in order; cheap if each is similar to the previous one."""
        statistics, counts, terminal = [], [], []
        of_reference: Sequence[str] | None = None
        for reference, some in zip(references, prefixes, strict=True):
            if reference != of_reference:  # hypotheses of the same sentence are adjacent
                of_reference, growing, current = reference, self.statistics(reference), list[str]()
            for prefix in some:
                move(growing, current, prefix.words)
                current = prefix.words
                statistics.append(growing.values(prefix.terminal))
                counts.append(len(current))
                terminal.append(prefix.terminal)
        terminal_N = np.array(terminal, dtype=np.bool_)
        potentials_N = self.potentials(np.array(statistics, dtype=np.float64), terminal_N)
        # R_0 = 0, whatever the formula gives for the empty prefix.
        counted_N = terminal_N if self.final_only else terminal_N | (np.array(counts) > 0)
        return np.where(counted_N, potentials_N, 0.0)


def move(statistics: PrefixStatistics, current: list[str], wanted: list[str]) -> None:
    """Update the statistics of one prefix to those of another."""
    kept = min(len(current), len(wanted))
    while current[:kept] != wanted[:kept]:
        kept -= 1
    for _ in range(len(current) - kept):
        statistics.pop()
    for word in wanted[kept:]:
        statistics.push(word)
