"""Counting n-grams as a translation grows, for rewards that look at every prefix of it."""

from collections.abc import MutableMapping
from typing import Any


def count_matches_at(
    sequence: str | tuple[Any, ...], end: int, longest: int, left: MutableMapping[Any, int], matches: list[int]
) -> None:
    """Add the n-grams that end at `end` to `matches`, by order, and take them from what the reference has `left`."""
    for order in range(min(longest, end)):
        ngram = sequence[end - order - 1 : end]
        available = left.get(ngram)
        if available is None:
            break  # longer n-grams that end here are not in the reference either
        if available:
            left[ngram] = available - 1
            matches[order] += 1
