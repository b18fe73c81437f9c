"""The chrF reward: increments of the character n-gram F-score.

At the end it is sacrebleu's sentence chrF (order 6, no spaces, beta 2) between 0 and 1, except that `<unk>` on either
side matches nothing. chrF weights recall over precision, so it grows from zero with every correct word: the score of
the prefix is a good potential, and all values of `shaping` but `final` are the same.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics
from pysimt_sac.rewards.ngrams import NgramMatches, count_ngrams

LONGEST = 6  # characters
BETA_SQUARED = 4.0
HYPOTHESIS_UNKNOWN, REFERENCE_UNKNOWN = "\ue000", "\ue001"  # private-use characters, which no text has


class CharacterMatches(PrefixStatistics):
    """Character n-gram matches of order one to six, and the lengths of prefix and reference."""

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
        """Remove the characters of the last word."""
        for _ in range(self.word_lengths.pop()):
            self.counts.pop()

    def values(self, terminal: bool) -> Sequence[float]:
        """Return six match counts and two lengths."""
        return [*self.counts.matches, len(self.counts.hypothesis), self.reference_length]


@reward("chrf")
class ChrfReward(IncrementalReward):
    """Potentials of sentence chrF; see the module docstring."""

    def statistics(self, reference: Sequence[str]) -> CharacterMatches:
        """Return the matches and lengths of the empty prefix."""
        return CharacterMatches(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return chrF, at the end and before it alike."""
        rows = statistics_NS.astype(np.int64).tolist()
        return np.array([f_score(row[:LONGEST], row[-2], row[-1]) for row in rows])


def f_score(matches: Sequence[int], length: int, reference_length: int) -> float:
    """Return the F-beta of mean precision and mean recall over the orders that both texts have."""
    orders = min(LONGEST, length, reference_length)
    if orders <= 0:
        return 0.0
    precision = sum(matches[order] / (length - order) for order in range(orders)) / orders
    recall = sum(matches[order] / (reference_length - order) for order in range(orders)) / orders
    if precision + recall == 0:
        return 0.0
    return (1 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
