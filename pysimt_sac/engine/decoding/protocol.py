"""A `Stepper` for decoders that speak pysimt's protocol (`f_init`, `get_emb`, `f_next`) and no more: pysimt's own.

The searches and the rollouts get one from `search.stepper_for`, and do not know the difference.
"""

import math
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.data.vocabulary import BOS, PAD, UNK


class ProtocolStepper:
    """`search.Stepper`'s interface. The decoder sees K hypotheses of B sentences as B times K sentences."""

    def __init__(self, dec: Any, states: Any, suppress_unk: bool = False) -> None:
        self.dec, self.states = dec, states
        self.forbidden = [PAD, BOS, UNK] if suppress_unk else [PAD, BOS]
        self.h_NH: Tensor | None = dec.f_init(states)
        self.tiled, self.tiles = states, 1

    def logits(self, words_BK: Tensor) -> Tensor:
        """Log-probabilities (B, K, V) of the next words; forbidden ones are minus infinity."""
        log_p_NV, self.h_NH = self.dec.f_next(self.tiled, self.dec.get_emb(words_BK.flatten()), self.h_NH)
        logits_BKV: Tensor = log_p_NV.unflatten(0, words_BK.shape).clone()
        logits_BKV[..., self.forbidden] = -math.inf
        return logits_BKV

    def likeliest(self, words_B: Tensor) -> Tensor:
        """The likeliest next word of one hypothesis per sentence."""
        return self.logits(words_B.unsqueeze(1)).squeeze(1).argmax(-1)

    def keep_sentences(self, indices: Tensor) -> None:
        """Go on with these sentences only."""
        self.states = select_states(self.states, indices)
        rows_N = (indices.unsqueeze(1) * self.tiles + torch.arange(self.tiles, device=indices.device)).flatten()
        self.tiled = select_states(self.tiled, rows_N) if self.tiles > 1 else self.states
        if self.h_NH is not None:
            self.h_NH = self.h_NH.index_select(0, rows_N)

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Go on with these hypotheses of each sentence; one may be taken several times."""
        first_B1 = torch.arange(len(parents_BK), device=parents_BK.device).unsqueeze(1) * self.tiles
        if self.h_NH is not None:
            self.h_NH = self.h_NH.index_select(0, (first_B1 + parents_BK).flatten())
        if parents_BK.size(1) != self.tiles:
            every_N = torch.arange(len(parents_BK), device=parents_BK.device).repeat_interleave(parents_BK.size(1))
            self.tiled, self.tiles = select_states(self.states, every_N), parents_BK.size(1)


def select_states(states: Any, indices: Tensor) -> Any:
    """Some sentences' states and masks, or several times the same; pysimt gives no mask where there is no padding."""
    return {
        name: tuple(part if part is None else part.index_select(1, indices) for part in parts)
        for name, parts in states.items()
    }
