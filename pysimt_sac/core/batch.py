"""A batch of sentences."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pysimt_sac.core.vocabulary import PAD


class Batch(dict[str, Tensor]):
    """Sentences of each side as indices (time, batch), padded with 0; and what else the host's encoders read.

    Only the host knows what such inputs (place, batch, feature) are. indices: the sentences' positions in the corpus.
    lengths: their lengths, always in host memory, so that reading them never waits for a GPU.
    """

    def __init__(self, sides: dict[str, Tensor], indices: Sequence[int] = ()) -> None:
        super().__init__(sides)
        self.size = next(iter(sides.values())).size(1)
        self.indices = indices
        self.lengths = {name: ids.ne(PAD).sum(0).cpu() for name, ids in sides.items() if ids.dim() == 2}

    def shard(self, rank: int, n_shards: int) -> "Batch":
        """Return one of `n_shards` contiguous parts; the whole batch if it has fewer sentences than parts."""
        if not 1 < n_shards <= self.size:
            return self
        own = slice(self.size * rank // n_shards, self.size * (rank + 1) // n_shards)
        return Batch({name: ids[:, own] for name, ids in self.items()}, self.indices[own])

    def device(self, device: torch.device) -> None:
        """Move to a device without waiting for the copy."""
        self.update({name: ids.to(device, non_blocking=True) for name, ids in self.items()})
