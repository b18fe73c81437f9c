"""The ids of a tokenizer and those of this package, where `<pad>`, `<bos>`, `<eos>` and `<unk>` are 0 to 3.

Ours are a permutation of theirs, plus one: `<bos>` has no id there. It stands for the ids that the decoder starts with,
such as a language's code. All ids but a few keep their place, so that scores need not be sorted anew.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from pysimt_sac.core.policy import IMPOSSIBLE
from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK


class Ids:
    """A permutation of the ids of a model.

    pad: theirs. start: the decoder's first ids, the last of which `<bos>` becomes. moved: ours that are not theirs.
    """

    def __init__(self, n_theirs: int, pad: int, eos: int, unk: int, start: Sequence[int]) -> None:
        self.pad, self.start = pad, torch.tensor(start)
        theirs = [*range(n_theirs), -1]
        special = {PAD: pad, BOS: start[-1], EOS: eos, UNK: unk}
        displaced = [number for number in range(min(4, n_theirs)) if number not in (pad, eos, unk)]
        free = [place for place in (*sorted({pad, eos, unk}), n_theirs) if place > UNK]
        for place, number in {**special, **dict(zip(free, displaced, strict=True))}.items():
            theirs[place] = number
        self.to_theirs_V, self.theirs_by_ours = torch.tensor(theirs), theirs  # on the device, and in host memory
        self.moved = torch.tensor([place for place, number in enumerate(theirs) if place != number and place != BOS])
        self.to_ours = {number: place for place, number in enumerate(theirs) if place != BOS}

    def on(self, device: torch.device) -> "Ids":
        """Move to a device, once."""
        if self.start.device != device:
            for name, value in vars(self).items():
                setattr(self, name, value.to(device) if isinstance(value, Tensor) else value)
        return self

    def theirs(self, tokens: Tensor) -> Tensor:
        """Return a tokenizer's ids of ours."""
        return self.to_theirs_V[tokens]

    def scores(self, scores: Tensor) -> Tensor:
        """Return a model's scores (..., V) in our order; `<bos>` is impossible."""
        ours = torch.nn.functional.pad(scores, (0, 1))
        ours[..., self.moved] = scores[..., self.to_theirs_V[self.moved]]
        ours[..., BOS] = IMPOSSIBLE
        return ours
