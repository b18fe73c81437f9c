"""Counts of the words chosen for each source, by label, for `rewards.discriminator`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

WORDS, SOURCES = 2**20, 2**43  # larger than any vocabulary; number of hash values of sources


class ChoiceCounts:
    """Counts of K labels for every pair of a source and a word; a source is identified by a hash of its words."""

    def __init__(self, n_labels: int) -> None:
        self.rows: dict[int, int] = {}  # row of each pair's key
        self.sources: set[int] = set()
        self.counts = np.zeros((1024, n_labels), dtype=np.int32)

    def add(self, source_SB: Tensor, columns_N: Tensor, tokens_N: Tensor, z_N: Tensor) -> None:
        """Count words and their labels, each for the source in its column of the batch."""
        keys, labels = self.keys(source_SB, columns_N, tokens_N), z_N.cpu().numpy().astype(np.int64)
        self.sources.update(key // WORDS for key in keys)
        places = np.array([self.rows.setdefault(key, len(self.rows)) for key in keys], dtype=np.int64)
        if len(self.rows) > len(self.counts):
            more = np.zeros((len(self.rows), self.counts.shape[1]), dtype=np.int32)
            self.counts = np.concatenate((self.counts, more))
        np.add.at(self.counts.reshape(-1), places * self.counts.shape[1] + labels, 1)

    def of(self, source_SB: Tensor, columns_N: Tensor, tokens_N: Tensor) -> Tensor:
        """Return the label counts (N, K); zero for pairs that were never chosen."""
        places = [self.rows.get(key, -1) for key in self.keys(source_SB, columns_N, tokens_N)]
        if not self.rows:
            return torch.zeros(len(places), self.counts.shape[1], dtype=torch.int32, device=tokens_N.device)
        found = np.where(np.array(places)[:, None] >= 0, self.counts[places], 0)
        return torch.from_numpy(found).to(tokens_N.device)

    def log_q(self, source_SB: Tensor, columns_N: Tensor, tokens_N: Tensor) -> Tensor:
        """Return log q(z|x,a) (N, K): relative label frequencies with add-1 smoothing."""
        counts_NK = self.of(source_SB, columns_N, tokens_N).float() + 1
        return (counts_NK / counts_NK.sum(1, keepdim=True)).log()

    def seen(self, source_SB: Tensor, columns_N: Tensor, tokens_N: Tensor) -> Tensor:
        """Return how often each word was chosen for its source, (N)."""
        return self.of(source_SB, columns_N, tokens_N).sum(1)

    @property
    def words_per_source(self) -> float:
        """The mean number of distinct words chosen per source."""
        return len(self.rows) / max(1, len(self.sources))

    def keys(self, source_SB: Tensor, columns_N: Tensor, tokens_N: Tensor) -> list[int]:
        """Return an integer key for every pair."""
        sources = [hash(tuple(word for word in row if word)) % SOURCES for row in source_SB.t().tolist()]
        pairs = zip(columns_N.tolist(), tokens_N.tolist(), strict=True)
        return [sources[column] * WORDS + word for column, word in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        keys = torch.tensor(list(self.rows), dtype=torch.int64)
        return {"keys": keys, "counts": torch.from_numpy(self.counts[: len(keys)].copy())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        keys = state["keys"].tolist()
        self.rows = {key: place for place, key in enumerate(keys)}
        self.sources = {key // WORDS for key in keys}
        self.counts = state["counts"].cpu().numpy().copy()
