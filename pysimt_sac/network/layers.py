"""The network's layers: recurrent encoder, attention, conditional GRU decoder.

Parameter names are pysimt's, so that weights load in both directions. Shape suffixes: S source length, T target length,
B batch, E embedding, H decoder state, C encoder state, M attention's inner size, V vocabulary, N real target positions.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.sections import ModelOptions
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.network.output import Dropout
from pysimt_sac.network.recurrence import ConditionalGRU, DecoderWeights, in_float32, run_gru_layer

MASKED = -1e8  # the attention score of a padded position, as in pysimt


def activation(name: str | None) -> Callable[[Tensor], Tensor]:
    """Return an activation by its name in the configuration."""
    if name in (None, "linear"):
        return nn.Identity()
    return getattr(torch, name) if name in ("tanh", "sigmoid", "relu") else getattr(F, str(name))  # type: ignore[no-any-return]


class Projection(nn.Linear):
    """A linear layer with an activation; its bias is initialised to zero."""

    def __init__(self, input_size: int, output_size: int, activ: str | None = None) -> None:
        super().__init__(input_size, output_size)
        nn.init.zeros_(self.bias)
        self.activ = activation(activ)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of W x + b."""
        return self.activ(super().forward(input))


class LowerPrecision:
    """A mixin for layers that may compute in a lower `precision` during training."""

    precision = "float32"

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """Compute matrix products in `precision` inside the block, if gradients are enabled."""
        if self.precision == "float32" or not torch.is_grad_enabled():
            return nullcontext()
        return torch.autocast(device.type, getattr(torch, self.precision))


def set_precision(model: nn.Module, precision: str) -> None:
    """Set the training precision of all encoders and decoders in a model."""
    for module in model.modules():
        if isinstance(module, LowerPrecision):
            module.precision = precision


class RecurrentEncoder(LowerPrecision, nn.Module):
    """Stacked GRU or LSTM over source embeddings."""

    def __init__(self, options: ModelOptions, n_vocab: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(n_vocab, options.emb_dim, padding_idx=PAD)
        self.do_emb = Dropout(options.dropout_emb)
        cell = {"gru": nn.GRU, "lstm": nn.LSTM}[options.enc_type]
        self.enc = cell(
            options.emb_dim,
            options.enc_dim,
            options.n_encoders,
            dropout=options.dropout_enc if options.n_encoders > 1 else 0.0,
            bidirectional=options.enc_bidirectional,
        )
        self.ctx_size = options.enc_dim * (2 if options.enc_bidirectional else 1)
        layers: list[nn.Module] = []
        if options.enc_proj_dim:
            layers.append(Projection(self.ctx_size, options.enc_proj_dim, options.enc_proj_activ))
            self.ctx_size = options.enc_proj_dim
        if options.enc_lnorm:
            layers.append(nn.LayerNorm(self.ctx_size))
        if options.dropout_ctx > 0:
            layers.append(Dropout(options.dropout_ctx))
        self.output = nn.Sequential(*layers)

    def forward(self, ids_SB: Tensor, lengths_B: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return states (S, B, C) and the mask of real positions (S, B); lengths, if given, are in host memory."""
        with self.autocast(ids_SB.device):
            states_SBC, mask_SB = self.run(ids_SB, lengths_B)
        return states_SBC.to(self.emb.weight.dtype), mask_SB

    def run(self, ids_SB: Tensor, lengths_B: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run `forward` in the current number type."""
        mask_SB = ids_SB.ne(PAD)
        embedded = self.do_emb(self.emb(ids_SB))
        lengths = mask_SB.sum(0).cpu() if lengths_B is None else lengths_B
        padded = not bool((lengths == len(ids_SB)).all())
        if isinstance(self.enc, nn.GRU) and not embedded.is_cuda:
            hidden = self.run_layers(embedded, reversal(lengths, len(ids_SB)) if padded else None)
            hidden = hidden * mask_SB.unsqueeze(-1) if padded else hidden
        elif padded:
            packed = pack_padded_sequence(embedded, lengths, enforce_sorted=False)
            hidden = pad_packed_sequence(self.enc(packed)[0], total_length=len(ids_SB))[0]
        else:
            hidden = self.enc(embedded)[0]
        return self.output(hidden), mask_SB.long()

    def run_layers(self, inputs_SBE: Tensor, reverse: Callable[[Tensor], Tensor] | None) -> Tensor:
        """Run all layers with our own GRU. Padding, if any, comes last in both directions, so it changes nothing."""
        directions = 2 if self.enc.bidirectional else 1
        states_SBC = inputs_SBE
        for layer in range(self.enc.num_layers):
            if layer:
                states_SBC = F.dropout(states_SBC, self.enc.dropout, self.training)
            weights = self.enc.all_weights[layer * directions : (layer + 1) * directions]
            states_SBC = run_gru_layer(states_SBC, weights, reverse)
        return states_SBC


def reversal(lengths_B: Tensor, longest: int) -> Callable[[Tensor], Tensor]:
    """Return a function that reverses each padded sequence (S, B, ...) and leaves its padding in place."""
    place_S1 = torch.arange(longest).unsqueeze(1)
    source_SB = torch.where(place_S1 < lengths_B, lengths_B - 1 - place_S1, place_S1)
    rows_N = (source_SB * len(lengths_B) + torch.arange(len(lengths_B))).flatten()
    return lambda sequences_SBE: sequences_SBE.flatten(0, 1).index_select(0, rows_N).view_as(sequences_SBE)


class Memory(NamedTuple):
    """A source as the decoder attends to it, projected once for all target steps."""

    keys_BSM: Tensor
    values_BSH: Tensor
    mask_BS: Tensor

    def first(self, read: int | Tensor) -> "Memory":
        """Return the memory of those who have read so many words only; (B, 1), or (T, 1, 1) for a mask per step."""
        return self._replace(
            mask_BS=self.mask_BS * (torch.arange(self.mask_BS.size(1), device=self.mask_BS.device) < read)
        )

    def select(self, indices: Tensor) -> "Memory":
        """Return the memory of some sentences, which may be repeated."""
        return Memory(*(part.index_select(0, indices) for part in self))

    def join(self, other: "Memory") -> "Memory":
        """Concatenate the sentences of both memories, padded to the longest."""
        longest = max(self.mask_BS.size(1), other.mask_BS.size(1))

        def padded(part: Tensor) -> Tensor:
            sides = (0, 0) * (part.dim() - 2) + (0, longest - part.size(1))
            return F.pad(part, sides) if part.size(1) < longest else part

        return Memory(*(torch.cat((padded(mine), padded(theirs))) for mine, theirs in zip(self, other, strict=True)))


class Attention(nn.Module):
    """`mlp` (Bahdanau et al.) or `dot` attention."""

    def __init__(self, options: ModelOptions, ctx_size: int) -> None:
        super().__init__()
        sizes = {"ctx": ctx_size, "hid": options.dec_dim}
        bottleneck = options.att_bottleneck
        inner = sizes[bottleneck] if isinstance(bottleneck, str) else bottleneck
        self.temperature = options.att_temp
        self.hid2ctx = nn.Linear(options.dec_dim, inner, bias=False)
        self.ctx2ctx = nn.Linear(ctx_size, inner, bias=False)
        self.ctx2hid = nn.Linear(ctx_size, options.dec_dim, bias=False)
        self.activ = activation(options.att_activ)
        self.mlp = nn.Linear(inner, 1, bias=False) if options.att_type == "mlp" else None

    def project_source(self, states_SBC: Tensor, mask_SB: Tensor) -> Memory:
        """Project a source once. The values' projection is linear, so it may precede the weighted sum."""
        states_BSC = states_SBC.transpose(0, 1).contiguous()
        return Memory(self.ctx2ctx(states_BSC), self.ctx2hid(states_BSC), mask_SB.t())

    def weights(self, hidden_BKH: Tensor, memory: Memory) -> Tensor:
        """Return the attention (B, K, S) of K decoder states per sentence to the source."""
        query_BKM = self.hid2ctx(hidden_BKH)
        if self.mlp is None:
            scores_BKS = query_BKM @ memory.keys_BSM.transpose(1, 2)
        else:
            scores_BKS = self.mlp(self.activ(memory.keys_BSM.unsqueeze(1) + query_BKM.unsqueeze(2))).squeeze(-1)
        scores_BKS = (scores_BKS / self.temperature).masked_fill(memory.mask_BS.unsqueeze(1) == 0, MASKED)
        attention_BKS: Tensor = scores_BKS.softmax(-1)
        return attention_BKS

    def forward(self, hidden_BKH: Tensor, memory: Memory) -> Tensor:
        """Return the contexts (B, K, H) of K decoder states per sentence."""
        context_BKH: Tensor = self.weights(hidden_BKH, memory) @ memory.values_BSH
        return context_BKH


class ConditionalGRUDecoder(LowerPrecision, nn.Module):
    """Conditional GRU: a cell over the words, attention with its state as the query, a cell over the context.

    wait: the k of a wait-k policy, which attends at step t to the first k + t source words; None: to all.
    """

    wait: int | None = None

    def __init__(self, options: ModelOptions, n_vocab: int, ctx_sizes: dict[str, int]) -> None:
        super().__init__()
        self.emb = nn.Embedding(n_vocab, options.emb_dim, padding_idx=PAD)
        self.att = nn.ModuleDict({name: Attention(options, size) for name, size in ctx_sizes.items()})
        self.dec0 = nn.GRUCell(options.emb_dim, options.dec_dim)
        self.dec1 = nn.GRUCell(options.dec_dim, options.dec_dim)
        self.dec_inp_activ = activation(options.dec_inp_activ)
        self.deep = options.out_logic == "deep"
        readout_size = options.dec_dim * 2 + options.emb_dim if self.deep else options.dec_dim
        self.hid2out = Projection(readout_size, options.emb_dim, "tanh")
        self.do_out = Dropout(options.dropout_out)
        self.out2prob = Projection(options.emb_dim, n_vocab)
        if options.tied_emb:
            self.out2prob.weight = self.emb.weight
        self.has_fast_path = (
            options.att_type == "mlp" and options.att_activ == "tanh" and options.dec_inp_activ in (None, "linear")
        )

    @property
    def attention(self) -> Attention:
        """The attention over the source; pysimt has one per modality, we have only one."""
        return next(iter(self.att.values()))  # type: ignore[return-value]

    def project_source(self, states: Encoded) -> Memory:
        """Project what the decoder needs of the source, once."""
        (states_SBC, mask_SB) = next(iter(states.values()))
        assert mask_SB is not None
        return self.attention.project_source(states_SBC, mask_SB)

    def step(self, memory: Memory, emb_BKE: Tensor, h_BKH: Tensor | None) -> tuple[Tensor, Tensor]:
        """Advance K hypotheses per sentence by one step; return their new states and contexts."""
        shape = emb_BKE.shape[:2]
        h = None if h_BKH is None else h_BKH.flatten(0, 1)
        h1 = self.dec0(emb_BKE.flatten(0, 1), h)
        context_BKH = self.attention(h1.unflatten(0, shape), memory)
        h2 = self.dec1(self.dec_inp_activ(context_BKH).flatten(0, 1), h1)
        return h2.unflatten(0, shape), context_BKH

    def unroll(self, memory: Memory, emb_TBE: Tensor) -> tuple[Tensor, Tensor]:
        """Run all steps of a known sequence; return states and contexts, both (T, B, H)."""
        if not self.has_fast_path:
            return self.unroll_step_by_step(memory, emb_TBE)
        attention, cell0, cell1 = self.attention, self.dec0, self.dec1
        assert attention.mlp is not None
        weights = DecoderWeights(
            cell0.weight_hh, cell0.bias_hh, attention.hid2ctx.weight, attention.mlp.weight / attention.temperature,
            cell1.weight_ih, cell1.bias_ih, cell1.weight_hh, cell1.bias_hh,
        )  # fmt: skip
        inputs_TB3H = F.linear(emb_TBE, cell0.weight_ih, cell0.bias_ih)
        if self.wait is not None:
            memory = memory.first(self.wait + torch.arange(len(emb_TBE), device=emb_TBE.device).view(-1, 1, 1))
        bias_TBS = ((memory.mask_BS == 0).to(memory.keys_BSM.dtype) * MASKED).expand(len(emb_TBE), -1, -1)
        return in_float32(ConditionalGRU, inputs_TB3H, memory.keys_BSM, memory.values_BSH, bias_TBS, *weights)  # type: ignore[no-any-return]

    def unroll_step_by_step(self, memory: Memory, emb_TBE: Tensor) -> tuple[Tensor, Tensor]:
        """Unroll with autograd, for attentions and activations without a handwritten gradient."""
        h_B1H, states, contexts = None, [], []
        for step, emb_BE in enumerate(emb_TBE):
            seen = memory if self.wait is None else memory.first(self.wait + step)
            h_B1H, context_B1H = self.step(seen, emb_BE.unsqueeze(1), h_B1H)
            states.append(h_B1H)
            contexts.append(context_B1H)
        return torch.stack(states).squeeze(2), torch.stack(contexts).squeeze(2)

    def readout(self, h_NH: Tensor, emb_NE: Tensor, context_NH: Tensor) -> Tensor:
        """Return the output layer's input: tanh(W h), or tanh(W [h; emb; context]) if `deep`; dropout applied."""
        merged = torch.cat((h_NH, emb_NE, context_NH), dim=-1) if self.deep else h_NH
        return self.do_out(self.hid2out(merged))  # type: ignore[no-any-return]

    def readouts(self, states: Encoded, ids_TB: Tensor, positions_N: Tensor) -> Tensor:
        """Return the output layer's input (N, E) after some positions of known sequences, flattened (T, B)."""
        with self.autocast(ids_TB.device):
            emb_TBE = self.get_emb(ids_TB)
            h_TBH, context_TBH = self.unroll(self.project_source(states), emb_TBE)
            parts = (part.flatten(0, 1).index_select(0, positions_N) for part in (h_TBH, emb_TBE, context_TBH))
            h_NH, emb_NE, context_NH = parts
            return self.readout(h_NH, emb_NE, context_NH).to(self.emb.weight.dtype)

    def attended(self, states: Encoded, ids_TB: Tensor) -> Tensor:
        """Return the source position (T, B) that each step of known sequences attends to most."""
        memory, emb_TBE = self.project_source(states), self.get_emb(ids_TB)
        h_TBH, _ = self.unroll(memory, emb_TBE)
        before_TBH = torch.cat((torch.zeros_like(h_TBH[:1]), h_TBH[:-1]))
        query_TBH = self.dec0(emb_TBE.flatten(0, 1), before_TBH.flatten(0, 1)).unflatten(0, ids_TB.shape)
        weights_BTS = self.attention.weights(query_TBH.transpose(0, 1), memory)
        if self.wait is not None:
            steps_T, places_S = (torch.arange(size, device=ids_TB.device) for size in weights_BTS.shape[1:])
            weights_BTS = weights_BTS * (places_S < self.wait + steps_T.unsqueeze(1))
        return weights_BTS.argmax(-1).t()

    # Called by pysimt's models, loops and searches

    def get_emb(self, ids: Tensor) -> Tensor:
        """Return target embeddings."""
        return self.emb(ids)  # type: ignore[no-any-return]

    def f_init(self, states: Encoded | None = None) -> None:
        """Return None: the first state is zero."""

    def f_next(
        self, states: Encoded, emb_BE: Tensor, h_BH: Tensor | None, hypothesis: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of the next word, and the new state."""
        h_B1H = None if h_BH is None else h_BH.unsqueeze(1)
        h_B1H, context_B1H = self.step(self.project_source(states), emb_BE.unsqueeze(1), h_B1H)
        logits_BV = self.out2prob(self.readout(h_B1H, emb_BE.unsqueeze(1), context_B1H)).squeeze(1)
        return logits_BV.log_softmax(-1), h_B1H.squeeze(1)
