"""The layout of per-step values: flat, the N real steps only, sorted by time, then by sentence.

So padding cannot enter a mean, and no loss needs a mask.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """The real steps of a batch of sequences `<bos> ... <eos>`; shape: T steps of the longest, B sentences.

    positions_N: position of each step in a flattened (T, B) array. times_N: time, 0 for the first step. sentences_N:
    sentence of the step.
    """

    shape: tuple[int, int]
    positions_N: Tensor
    times_N: Tensor
    sentences_N: Tensor

    @classmethod
    def of(cls, lengths_B: Tensor, device: torch.device | str = "cpu") -> "Steps":
        """Build from the sequences' lengths, including `<bos>`, in host memory; everything is computed there."""
        n_steps_B = lengths_B - 1
        longest = int(n_steps_B.max())
        real_TB = torch.arange(longest).unsqueeze(1) < n_steps_B
        positions_N = real_TB.flatten().nonzero().squeeze(1)
        parts = (positions_N, positions_N // len(lengths_B), positions_N % len(lengths_B))
        return cls((longest, len(lengths_B)), *(part.to(device, non_blocking=True) for part in parts))

    def __len__(self) -> int:
        return len(self.positions_N)

    def flatten(self, values_TB: Tensor) -> Tensor:
        """Return the real steps of a padded array."""
        return values_TB.flatten(0, 1).index_select(0, self.positions_N)

    def pad(self, values_N: Tensor) -> Tensor:
        """Return the padded array (T, B), zero where there is no step."""
        padded = values_N.new_zeros(self.shape[0] * self.shape[1])
        return padded.index_copy(0, self.positions_N, values_N).view(self.shape)

    def rows_of(self, positions_M: Tensor) -> Tensor:
        """Return the indices in the flat order of positions in a flattened (T, B) array."""
        return torch.searchsorted(self.positions_N, positions_M)

    def of_sentences(self, values_B: Tensor) -> Tensor:
        """Return, for every step, the value of its sentence."""
        return values_B.index_select(0, self.sentences_N)
