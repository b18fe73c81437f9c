"""The decoder's recurrence over a known sequence."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pysimt_sac.engine.layers import ConditionalGRUDecoder, Memory


def unroll_decoder(decoder: "ConditionalGRUDecoder", memory: "Memory", emb_TBE: Tensor) -> tuple[Tensor, Tensor]:
    """States and contexts of all steps, (T, B, H) both."""
    h, hs, cs = None, [], []
    for emb_BE in emb_TBE:
        h, c = decoder.step(memory, emb_BE.unsqueeze(1), h)
        hs.append(h)
        cs.append(c)
    return torch.stack(hs).squeeze(2), torch.stack(cs).squeeze(2)
