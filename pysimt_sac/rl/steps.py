"""The layout of everything that is computed per step: real steps only, N of them, by time and then by sentence.

It is the order in which `RLModel.log_probs` answers. Nothing in it is padding, so that a mean is a mean and no loss
needs a mask. What a flat array does not show is which step follows which in a sentence: `Steps` knows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """The real steps of a batch of sequences `<bos> ... <eos>`; T steps of the longest, B sentences.

    positions_N: where each step is in a flattened (T, B) array. next_N: where in the flat order the same sentence's
    next step is, or N if it has none. ends_N: whether it has none. times_N: 0 for a sentence's first step.
    sentences_N: whose step it is.
    """

    shape: tuple[int, int]
    positions_N: Tensor
    next_N: Tensor
    ends_N: Tensor
    times_N: Tensor
    sentences_N: Tensor

    @classmethod
    def of(cls, lengths_B: Tensor, device: torch.device | str = "cpu") -> "Steps":
        """From the sequences' lengths, `<bos>` counted, in host memory, where all of it is computed."""
        n_steps_B = lengths_B - 1
        longest = int(n_steps_B.max())
        real_TB = torch.arange(longest + 1).unsqueeze(1) < n_steps_B  # one row more, so that there is always a next
        positions_N = real_TB.flatten().nonzero().squeeze(1)
        number_TB = real_TB.flatten().cumsum(0).view_as(real_TB) - 1
        number_TB[~real_TB] = len(positions_N)
        next_N = number_TB.flatten()[positions_N + len(lengths_B)]
        parts = (positions_N, next_N, next_N == len(positions_N), positions_N // len(lengths_B))
        moved = (part.to(device, non_blocking=True) for part in (*parts, positions_N % len(lengths_B)))
        return cls((longest, len(lengths_B)), *moved)

    def __len__(self) -> int:
        return len(self.positions_N)

    def flatten(self, values_TB: Tensor) -> Tensor:
        """The real steps of a padded array."""
        return values_TB.flatten(0, 1).index_select(0, self.positions_N)

    def pad(self, values_N: Tensor) -> Tensor:
        """The padded array (T, B) of some values, zero where there is no step."""
        padded = values_N.new_zeros(self.shape[0] * self.shape[1])
        return padded.index_copy(0, self.positions_N, values_N).view(self.shape)

    def following(self, values_N: Tensor) -> Tensor:
        """At every step the value at the same sentence's next one; zero after the last."""
        return torch.cat((values_N, values_N.new_zeros(1))).index_select(0, self.next_N)

    def of_sentences(self, values_B: Tensor) -> Tensor:
        """At every step the value of its sentence."""
        return values_B.index_select(0, self.sentences_N)
