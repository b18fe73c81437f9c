"""Incremental n-gram matching of a hypothesis that grows and shrinks, for rewards of every prefix."""

from collections.abc import Sequence
from typing import Generic, TypeVar

S = TypeVar("S", str, tuple[str | None, ...])


def count_ngrams(sequence: S, longest: int) -> dict[S, int]:
    """Count the n-grams of one to `longest` items in a sequence."""
    counts: dict[S, int] = {}
    for order in range(1, longest + 1):
        for start in range(len(sequence) - order + 1):
            ngram = sequence[start : start + order]
            counts[ngram] = counts.get(ngram, 0) + 1
    return counts


class NgramMatches(Generic[S]):
    """Clipped matches, by order, between a hypothesis and the n-grams of its reference; see `count_ngrams`.

    The hypothesis is a string of characters or a tuple of words; items are pushed to and popped from its end.
    """

    def __init__(self, nothing: S, reference: dict[S, int], longest: int) -> None:
        self.hypothesis: S = nothing
        self.longest = longest
        self.matches = [0] * longest
        self._left: dict[S, int] = reference  # n-grams still to be matched
        self._matched: list[Sequence[S]] = []  # n-grams matched by each item of the hypothesis

    def push(self, item: S) -> None:
        """Append an item, a sequence of length one, to the hypothesis."""
        self.hypothesis += item
        matched = []
        for order in range(1, min(self.longest, len(self.hypothesis)) + 1):
            ngram = self.hypothesis[-order:]
            left = self._left.get(ngram)
            if left is None:
                break  # longer n-grams that end here are not in the reference either
            if left:
                self._left[ngram] = left - 1
                self.matches[order - 1] += 1
                matched.append(ngram)
        self._matched.append(matched)

    def pop(self) -> None:
        """Remove the last item."""
        self.hypothesis = self.hypothesis[:-1]
        for ngram in self._matched.pop():
            self._left[ngram] += 1
            self.matches[len(ngram) - 1] -= 1
