"""Greedy search over a stream of batches: the next one joins while the last sentences of earlier ones are open.

A step with few rows takes as long to read the weights as one with many, so it pays to keep it full. At most two
batches' worth of sentences are open: the next batch joins when no more are open than the last one had.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.actor import Stepper
from pysimt_sac.core.vocabulary import BOS, EOS
from pysimt_sac.hosts.engine.decoding.search import FULL_ENOUGH, Hypothesis, Searchable


@dataclass
class Row:
    """A sentence being translated: its words so far, and whether more may follow."""

    words: list[int]
    open: bool = True


class Rows:
    """The sentences that a stepper works on, some of which may be finished."""

    def __init__(self, stepper: Stepper, rows: list[Row]) -> None:
        self.stepper, self.rows = stepper, rows
        self.tokens_B: Tensor = torch.full((len(rows),), BOS, device=stepper.device)

    def join(self, other: "Rows") -> None:
        """Drop finished sentences and append others."""
        self.keep_open()
        self.stepper.join(other.stepper)
        self.rows, self.tokens_B = self.rows + other.rows, torch.cat((self.tokens_B, other.tokens_B))

    def keep_open(self) -> None:
        """Drop finished sentences."""
        places = [place for place, row in enumerate(self.rows) if row.open]
        indices = torch.tensor(places, device=self.tokens_B.device)
        self.stepper.keep_sentences(indices)
        self.rows, self.tokens_B = [self.rows[place] for place in places], self.tokens_B[indices]

    def step(self, max_len: int) -> int:
        """Add a word to every open sentence; return how many are still open."""
        self.tokens_B = self.stepper.likeliest(self.tokens_B)
        for row, word in zip(self.rows, self.tokens_B.tolist(), strict=True):
            if row.open and word != EOS:
                row.words.append(word)
            row.open = row.open and word != EOS and len(row.words) < max_len
        return sum(row.open for row in self.rows)


@torch.no_grad()
def greedy_stream(
    model: Searchable, batches: Iterable[Any], max_len: int = 100, suppress_unk: bool = False
) -> Iterator[tuple[Any, list[Hypothesis]]]:
    """Yield every batch with its translations, in order; scores, which would need a softmax, are nan."""
    batches = iter(batches)
    under_way: deque[tuple[Any, list[Row]]] = deque()
    rows: Rows | None = None
    n_open, n_last = 0, 0
    while True:
        may_join = rows is None or n_open == 0 or (rows.stepper.can_join and n_open <= n_last)
        if may_join and (batch := next(batches, None)) is not None:
            new = begin(model, batch, suppress_unk)
            under_way.append((batch, new.rows))
            if rows is not None and n_open:
                rows.join(new)
            else:
                rows = new
            n_open, n_last = n_open + batch.size, batch.size
        if rows is None or n_open == 0:
            return
        n_open = rows.step(max_len)
        while under_way and not any(row.open for row in under_way[0][1]):
            batch, done = under_way.popleft()
            yield batch, [Hypothesis(row.words, math.nan) for row in done]
        if 0 < n_open <= FULL_ENOUGH * len(rows.rows):
            rows.keep_open()


def begin(model: Searchable, batch: Any, suppress_unk: bool) -> Rows:
    """Return the rows of a batch before its first word."""
    stepper = model.stepper(model.encode(batch), suppress_unk, normalise=False)
    return Rows(stepper, [Row([]) for _ in range(batch.size)])


def greedy_search(model: Searchable, batch: Any, max_len: int = 100, suppress_unk: bool = False) -> list[Hypothesis]:
    """Translate one batch by the likeliest word at every step."""
    return next(greedy_stream(model, [batch], max_len, suppress_unk))[1]
