"""The chrF reward: growth of the F-score of character n-grams.

At the end it is sacrebleu's sentence chrF (six characters, spaces left out, beta 2) between 0 and 1, except that an
`<unk>` of either side matches nothing. chrF weighs recall over precision, so that it grows from zero with every right
word: the prefix's own score is a good potential, and `shaping` only knows `final` and anything else.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics
from pysimt_sac.rewards.ngrams import NgramMatches, count_ngrams

LONGEST = 6  # characters
BETA_SQUARED = 4.0
HYPOTHESIS_UNKNOWN, REFERENCE_UNKNOWN = "\ue000", "\ue001"  # one character each, of those that no text has


class CharacterMatches(PrefixStatistics):
    """Matches of one to six characters, then the lengths of prefix and reference."""

    def __init__(self, reference: Sequence[str]) -> None:
        text = "".join(REFERENCE_UNKNOWN if word == UNKNOWN_WORD else word for word in reference)
        self.counts = NgramMatches("", count_ngrams(text, LONGEST), LONGEST)
        self.reference_length = len(text)
        self.word_lengths: list[int] = []

    def push(self, word: str) -> None:
        """Add a word's characters."""
        characters = HYPOTHESIS_UNKNOWN if word == UNKNOWN_WORD else word
        for character in characters:
            self.counts.push(character)
        self.word_lengths.append(len(characters))

    def pop(self) -> None:
        """Remove those of the last word."""
        for _ in range(self.word_lengths.pop()):
            self.counts.pop()

    def values(self, terminal: bool) -> Sequence[float]:
        """Eight numbers."""
        return [*self.counts.matches, len(self.counts.hypothesis), self.reference_length]


@reward("chrf")
class ChrfReward(IncrementalReward):
    """Potentials of sentence chrF; see the top of this file."""

    bounds = (0.0, 1.0)

    def statistics(self, reference: Sequence[str]) -> CharacterMatches:
        """Matches and lengths."""
        return CharacterMatches(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """chrF, whether at the end or before it."""
        rows = statistics_NS.astype(np.int64).tolist()
        return np.array([f_score(row[:LONGEST], row[-2], row[-1]) for row in rows])


def f_score(matches: Sequence[int], length: int, reference_length: int) -> float:
    """F-beta of the mean precision and the mean recall over those orders that both texts have."""
    orders = min(LONGEST, length, reference_length)
    if orders <= 0:
        return 0.0
    precision = sum(matches[order] / (length - order) for order in range(orders)) / orders
    recall = sum(matches[order] / (reference_length - order) for order in range(orders)) / orders
    if precision + recall == 0:
        return 0.0
    return (1 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
