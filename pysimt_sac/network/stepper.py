"""One decoder step at a time, without gradient: the basis of searches and rollouts.

With the few rows of a batch, overheads dominate a step, so the usual decoder has a fast path, `QuickStep`; all others
use `dec.step`. A stepper belongs to one search: it keeps a snapshot of the weights.
"""

import copy
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.vocabulary import BOS, PAD, UNK
from pysimt_sac.network.layers import MASKED, Memory
from pysimt_sac.network.recurrence import gru_cell, in_blocks, n_blocks, rows_in_blocks

GATE_BLOCKS = 4  # at most, per gate, on a CPU
READ_SCALE = 1 / 64  # of the number of words read, in the state of a wait-k policy; exact in floating point
OUTPUT_BLOCKS = range(24, 11, -1)  # of the vocabulary: the first number that divides it, or else the last


def join_state(h_NH: Tensor, read_N: Tensor) -> Tensor:
    """Return the state of a wait-k policy: the decoder's, and how many source words have been read."""
    return torch.cat((h_NH, (read_N * READ_SCALE).to(h_NH.dtype).unsqueeze(1)), 1)


def split_state(states_NH: Tensor) -> tuple[Tensor, Tensor]:
    """Return what `join_state` has joined."""
    return states_NH[:, :-1], (states_NH[:, -1] / READ_SCALE).round().long()


class Blocks:
    """A linear layer, multiplied in blocks of its outputs; `recurrence` says why. The last one may be padded."""

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None, blocks: int) -> None:
        self.blocks, self.size, lacking = blocks, len(weight_NK), -len(weight_NK) % blocks
        bias_N = weight_NK.new_zeros(self.size) if bias_N is None else bias_N
        if lacking:
            weight_NK, bias_N = F.pad(weight_NK, (0, 0, 0, lacking)), F.pad(bias_N, (0, lacking), value=-math.inf)
        self.weight, self.bias = in_blocks(weight_NK, blocks), bias_N.view(blocks, 1, -1)

    def __call__(self, rows_BK: Tensor) -> Tensor:
        """Return the product as computed, (P, B, X)."""
        return torch.baddbmm(self.bias, rows_BK.expand(self.blocks, -1, -1), self.weight)

    def filled_up(self, rows_BK: Tensor) -> Tensor:
        """Return the product as usual, (B, N), followed by the last block's padding of -inf."""
        return self(rows_BK).transpose(0, 1).flatten(1)

    def flat(self, rows_BK: Tensor) -> Tensor:
        """Return the product as usual, (B, N)."""
        return self.filled_up(rows_BK)[:, : self.size]


class RecurrentStepper:
    """`Stepper` for the engine's decoder. A wait-k policy knows how many words of each source it has read."""

    can_join = True

    def __init__(
        self, dec: Any, states: Encoded, suppress_unk: bool = False, normalise: bool = True, wait: int | None = None
    ) -> None:
        """normalise: True for `log_probs`, False for `likeliest`. wait: the k of a wait-k policy."""
        self.dec, self.normalise = dec, normalise
        self.memory: Memory = dec.project_source(states)
        self.whole_memory = self.memory  # `memory` shrinks as sentences are dropped
        self.quick = QuickStep(dec, self.memory) if getattr(dec, "has_fast_path", False) else None
        self.h_BKH: Tensor | None = None
        device = self.device = self.memory.mask_BS.device
        self.read_B = None if wait is None else torch.full((len(self.memory.mask_BS),), wait, device=device)
        self.forbidden = torch.tensor([PAD, BOS, UNK] if suppress_unk else [PAD, BOS], device=device)
        bias_V = dec.out2prob.bias.detach()
        if not normalise:
            bias_V = bias_V.index_fill(0, self.forbidden, -math.inf)
        even = (blocks for blocks in OUTPUT_BLOCKS if len(bias_V) % blocks == 0)
        blocks = next(even, OUTPUT_BLOCKS[-1]) if device.type == "cpu" else 1
        self.output = Blocks(dec.out2prob.weight.detach(), bias_V, blocks)

    def readout(self, tokens_BK: Tensor) -> Tensor:
        """Take a step with these words; return the output layer's input, (N, E) for all hypotheses."""
        memory = self.memory
        if self.read_B is not None:
            memory, self.read_B = memory.first(self.read_B.unsqueeze(1)), self.read_B + 1
        if self.quick is not None:
            if self.read_B is not None:
                self.quick.hide(memory)
            self.h_BKH, readout_NE = self.quick(memory, tokens_BK, self.h_BKH)
            return self.dec.do_out(readout_NE)  # type: ignore[no-any-return]
        emb_BKE = self.dec.get_emb(tokens_BK)
        self.h_BKH, context_BKH = self.dec.step(memory, emb_BKE, self.h_BKH)
        return self.dec.readout(self.h_BKH, emb_BKE, context_BKH).flatten(0, 1)  # type: ignore[no-any-return]

    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return log-probabilities (B, K, V) of the next words; forbidden ones are -inf."""
        assert self.normalise
        # As in pysimt, the probability of forbidden words is not redistributed: normalise first.
        log_p_NV = self.output.filled_up(self.readout(tokens_BK)).log_softmax(-1)
        log_p_BKV: Tensor = log_p_NV.index_fill_(-1, self.forbidden, -math.inf).unflatten(0, tokens_BK.shape)
        return log_p_BKV[..., : self.output.size]

    def likeliest(self, tokens_B: Tensor) -> Tensor:
        """Return the likeliest next word of one hypothesis per sentence, the first if tied. Needs `normalise=False`."""
        assert not self.normalise
        logits_PBX = self.output(self.readout(tokens_B.unsqueeze(1)))
        if logits_PBX.is_cuda:
            return logits_PBX.squeeze(0).argmax(-1)
        # numpy takes a tenth of torch's time: the best of each block, then the best of these
        logits = logits_PBX.numpy()
        place_PB = logits.argmax(-1)
        block_1B = np.take_along_axis(logits, place_PB[..., None], -1).argmax(0).T
        place_B = np.take_along_axis(place_PB, block_1B, 0)[0]
        return torch.from_numpy(block_1B[0] * logits.shape[-1] + place_B)

    def keep_sentences(self, indices: Tensor) -> None:
        """Keep only these sentences."""
        self.memory = self.memory.select(indices)
        if self.quick is not None:
            self.quick.attend_to(self.memory)
        if self.h_BKH is not None:
            self.h_BKH = self.h_BKH.index_select(0, indices)
        self.read_B = None if self.read_B is None else self.read_B.index_select(0, indices)

    def join(self, other: "RecurrentStepper") -> None:
        """Append the sentences of another stepper, which has not started, to these, which have."""
        assert self.h_BKH is not None
        self.memory = self.memory.join(other.memory)
        if self.quick is not None:
            self.quick.attend_to(self.memory)
        zeros_BKH = self.h_BKH.new_zeros(len(other.memory.mask_BS), *self.h_BKH.shape[1:])
        self.h_BKH = torch.cat((self.h_BKH, zeros_BKH))
        if self.read_B is not None and other.read_B is not None:
            self.read_B = torch.cat((self.read_B, other.read_B))

    def decoder_states(self) -> Tensor:
        """Return the states (B, H) of one hypothesis per sentence after the last step."""
        assert self.h_BKH is not None
        h_BH = self.h_BKH.squeeze(1)
        return h_BH if self.read_B is None else join_state(h_BH, self.read_B)

    def fork(self, sentences_C: Tensor, states_CH: Tensor) -> "RecurrentStepper":
        """Return a new stepper in given decoder states, for sentences as numbered at the start."""
        forked = copy.copy(self)
        forked.memory = forked.whole_memory = self.whole_memory.select(sentences_C)
        if self.quick is not None:
            forked.quick = copy.copy(self.quick)
            forked.quick.attend_to(forked.memory)
        if self.read_B is not None:
            states_CH, forked.read_B = split_state(states_CH)
        forked.h_BKH = states_CH.unsqueeze(1)
        return forked

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Keep these hypotheses of each sentence; one may be repeated."""
        if self.h_BKH is not None:
            size = self.h_BKH.size(-1)
            self.h_BKH = self.h_BKH.gather(1, parents_BK.unsqueeze(-1).expand(-1, -1, size))


class QuickStep:
    """A fast `ConditionalGRUDecoder.step` and `readout` for the decoders that `recurrence` supports, by the same means.

    The attention's tanh(x) is 2 sigmoid(2x) - 1, where the softmax drops the -1; the factors are in the weights.
    """

    def __init__(self, dec: Any, memory: Memory) -> None:
        cell0, cell1, attention = dec.dec0, dec.dec1, dec.attention
        self.emb_VE, self.deep, self.activ = dec.emb.weight, dec.deep, dec.hid2out.activ
        self.blocks = n_blocks(cell0.hidden_size, cell0.weight_hh.device, GATE_BLOCKS)
        gates = 3 * self.blocks
        self.ih0 = Blocks(cell0.weight_ih, cell0.bias_ih, gates)
        self.hh0 = Blocks(cell0.weight_hh, cell0.bias_hh, gates)
        self.ih1 = Blocks(cell1.weight_ih, cell1.bias_ih, gates)
        self.hh1 = Blocks(cell1.weight_hh, cell1.bias_hh, gates)
        self.query = Blocks(2 * attention.hid2ctx.weight, None, self.blocks)
        self.hid2out = Blocks(dec.hid2out.weight, dec.hid2out.bias, self.blocks)
        self.energy_M = 2 * attention.mlp.weight.view(-1) / attention.temperature
        self.attend_to(memory)

    def attend_to(self, memory: Memory) -> None:
        """Precompute the source's side of the attention."""
        self.keys_B1SM = 2 * memory.keys_BSM.unsqueeze(1)
        self.hide(memory)

    def hide(self, memory: Memory) -> None:
        """Hide the padding of sources, and what a wait-k policy has not read of them."""
        self.bias_B1S = (memory.mask_BS == 0).to(self.keys_B1SM.dtype).mul_(MASKED).unsqueeze(1)

    def cell(self, x_NE: Tensor, h_NH: Tensor, of_input: Blocks, of_state: Blocks) -> Tensor:
        """Return the new state of a GRU cell."""
        inputs_3PNX, gates_3PNX = of_input(x_NE), of_state(h_NH)
        new_NH = torch.empty_like(h_NH)
        n_PNX = gates_3PNX.new_empty(self.blocks, *gates_3PNX.shape[1:])
        gru_cell(inputs_3PNX, gates_3PNX, rows_in_blocks(h_NH, self.blocks), n_PNX, rows_in_blocks(new_NH, self.blocks))
        return new_NH

    def __call__(self, memory: Memory, tokens_BK: Tensor, h_BKH: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the new states of K hypotheses per sentence, and their inputs to the output layer, (N, E)."""
        shape, emb_NE = tokens_BK.shape, self.emb_VE.index_select(0, tokens_BK.flatten())
        h_NH = emb_NE.new_zeros(len(emb_NE), memory.values_BSH.size(-1)) if h_BKH is None else h_BKH.flatten(0, 1)
        h1_NH = self.cell(emb_NE, h_NH, self.ih0, self.hh0)
        query_BK1M = self.query.flat(h1_NH).unflatten(0, shape).unsqueeze(2)
        sigmoid_BKSM = (self.keys_B1SM + query_BK1M).sigmoid_()
        scores_BKS = torch.mv(sigmoid_BKSM.view(-1, len(self.energy_M)), self.energy_M).view(sigmoid_BKSM.shape[:-1])
        context_NH = torch.bmm(scores_BKS.add_(self.bias_B1S).softmax(-1), memory.values_BSH).flatten(0, 1)
        h_NH = self.cell(context_NH, h1_NH, self.ih1, self.hh1)
        merged = torch.cat((h_NH, emb_NE, context_NH), -1) if self.deep else h_NH
        return h_NH.unflatten(0, shape), self.activ(self.hid2out.flat(merged))
