"""One decoder step at a time, without gradient: what the searches and the rollouts are made of.

With the few rows of a batch a step costs time in small things, so the usual decoder has a way of its own through it,
`QuickStep`; all others go by `dec.step`. A stepper belongs to one search: what it prepares is the weights as they were.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pysimt_sac.engine.layers import MASKED, Memory, States
from pysimt_sac.engine.recurrence import gru_cell, in_blocks, n_blocks, rows_in_blocks
from pysimt_sac.engine.vocabulary import BOS, PAD, UNK


class Stepper:
    """Steps of K hypotheses of each of B sentences."""

    def __init__(self, dec: Any, states: States, suppress_unk: bool = False, normalise: bool = True) -> None:
        """normalise: answer with log-probabilities; without it, with what they are before the softmax."""
        self.dec, self.normalise = dec, normalise
        self.memory: Memory = dec.remember(states)
        self.step = QuickStep(dec) if getattr(dec, "usual_form", False) else dec.step
        self.h_BKH: Tensor | None = None
        never = [PAD, BOS, UNK] if suppress_unk else [PAD, BOS]
        self.forbidden = torch.tensor(never, device=self.memory.mask_BS.device)
        self.bias_V = dec.out2prob.bias.detach().index_fill(0, self.forbidden, -math.inf)

    def logits(self, words_BK: Tensor) -> Tensor:
        """Log-probabilities (B, K, V) of the next words; forbidden ones are minus infinity."""
        emb_BKE = self.dec.get_emb(words_BK)
        self.h_BKH, context_BKH = self.step(self.memory, emb_BKE, self.h_BKH)
        readout_BKE = self.dec.readout(self.h_BKH, emb_BKE, context_BKH)
        if not self.normalise:
            return F.linear(readout_BKE, self.dec.out2prob.weight, self.bias_V)
        # The probabilities of forbidden words are not handed to the others, as in pysimt: normalise first.
        log_p_BKV: Tensor = self.dec.out2prob(readout_BKE).log_softmax(-1)
        return log_p_BKV.index_fill_(-1, self.forbidden, -math.inf)

    def keep_sentences(self, indices: Tensor) -> None:
        """Go on with these sentences only."""
        self.memory = self.memory.select(indices)
        if self.h_BKH is not None:
            self.h_BKH = self.h_BKH.index_select(0, indices)

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Go on with these hypotheses of each sentence; one may be taken several times."""
        if self.h_BKH is not None:
            size = self.h_BKH.size(-1)
            self.h_BKH = self.h_BKH.gather(1, parents_BK.unsqueeze(-1).expand(-1, -1, size))


class QuickStep:
    """`ConditionalGRUDecoder.step` for the decoders whose recurrence is written out, by the same means."""

    def __init__(self, dec: Any) -> None:
        cell0, cell1, attention = dec.dec0, dec.dec1, dec.attention
        self.blocks = n_blocks(cell0.hidden_size)
        self.ih0, self.hh0 = self.prepare(cell0.weight_ih, cell0.bias_ih), self.prepare(cell0.weight_hh, cell0.bias_hh)
        self.ih1, self.hh1 = self.prepare(cell1.weight_ih, cell1.bias_ih), self.prepare(cell1.weight_hh, cell1.bias_hh)
        self.query = attention.hid2ctx.weight.t()
        self.energy_M = 2 * attention.mlp.weight.view(-1) / attention.temperature

    def prepare(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """A cell's weight and bias, in blocks."""
        return in_blocks(weight, 3 * self.blocks), bias.view(3 * self.blocks, 1, -1)

    def cell(
        self, x_NE: Tensor, h_NH: Tensor, of_input: tuple[Tensor, Tensor], of_state: tuple[Tensor, Tensor]
    ) -> Tensor:
        """The new state of a GRU cell."""
        inputs_3PNX, gates_3PNX = (
            torch.baddbmm(bias, rows.expand(3 * self.blocks, -1, -1), weight)
            for rows, (weight, bias) in ((x_NE, of_input), (h_NH, of_state))
        )
        new_NH = torch.empty_like(h_NH)
        n_PNX = gates_3PNX.new_empty(self.blocks, *gates_3PNX.shape[1:])
        gru_cell(inputs_3PNX, gates_3PNX, rows_in_blocks(h_NH, self.blocks), n_PNX, rows_in_blocks(new_NH, self.blocks))
        return new_NH

    def __call__(self, memory: Memory, emb_BKE: Tensor, h_BKH: Tensor | None) -> tuple[Tensor, Tensor]:
        """The new states of K hypotheses per sentence, and the contexts they attended to."""
        shape, emb_NE = emb_BKE.shape[:2], emb_BKE.flatten(0, 1)
        h_NH = emb_NE.new_zeros(len(emb_NE), memory.values_BSH.size(-1)) if h_BKH is None else h_BKH.flatten(0, 1)
        h1_NH = self.cell(emb_NE, h_NH, self.ih0, self.hh0)
        query_BK1M = (h1_NH @ self.query).unflatten(0, shape).unsqueeze(2)
        # tanh(x) = 2 sigmoid(2x) - 1, of which the softmax drops the -1; see `recurrence`
        sigmoid_BKSM = torch.add(memory.keys_BSM.unsqueeze(1), query_BK1M).mul_(2).sigmoid_()
        scores_BKS = (sigmoid_BKSM @ self.energy_M).masked_fill_(memory.mask_BS.unsqueeze(1) == 0, MASKED)
        context_BKH = scores_BKS.softmax(-1) @ memory.values_BSH
        h_NH = self.cell(context_BKH.flatten(0, 1), h1_NH, self.ih1, self.hh1)
        return h_NH.unflatten(0, shape), context_BKH
