"""Recurrences over known sequences, with gradients written out by hand.

Autograd would record some forty small operations per time step and multiply every weight's gradient together step by
step. Written out, the time loop holds nothing but the recurrence: everything that does not depend on the previous
step (projections of inputs, gradients of all weights) is one large product before or after it. The tests compare
both functions with autograd on the same mathematics.

A GRU cell, with input and state projections of three gates each (r, z, n side by side):
    r, z = sigmoid(input_rz + state_rz);  n = tanh(input_n + r * state_n);  h' = n + z * (h - n)
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def gru_gates(input_3H: Tensor, state_3H: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The new state of a GRU cell, and what its backward pass needs: the gates r and z side by side, and n."""
    size = h.size(-1)
    rz = (input_3H[..., : 2 * size] + state_3H[..., : 2 * size]).sigmoid_()
    n = torch.addcmul(input_3H[..., 2 * size :], rz[..., :size], state_3H[..., 2 * size :]).tanh_()
    return torch.addcmul(n, rz[..., size:], h - n), rz, n


def gru_gates_backward(
    dh_new: Tensor, rz: Tensor, n: Tensor, state_n: Tensor, h: Tensor, d_input: Tensor, d_state: Tensor
) -> Tensor:
    """Gradients of one cell: into `d_input` and `d_state` (three gates each), and returned, straight into h."""
    size = h.size(-1)
    r, z = rz[..., :size], rz[..., size:]
    dh = dh_new * z
    dn_pre = (dh_new - dh) * (1 - n * n)  # dh' / dn = 1 - z
    d_input[..., 2 * size :] = dn_pre
    torch.mul(dn_pre, r, out=d_state[..., 2 * size :])
    torch.mul(dn_pre * state_n, r * (1 - r), out=d_input[..., :size])
    torch.mul(dh * (h - n), 1 - z, out=d_input[..., size : 2 * size])  # dz * z (1 - z), with dh = dh' * z
    d_state[..., : 2 * size] = d_input[..., : 2 * size]
    return dh


class DecoderWeights(NamedTuple):
    """What the conditional GRU's recurrence multiplies by; see `layers.ConditionalGRUDecoder`."""

    hh0: Tensor  # first cell, state
    hh0_bias: Tensor
    query: Tensor  # attention
    energy: Tensor
    ih1: Tensor  # second cell, context
    ih1_bias: Tensor
    hh1: Tensor  # second cell, state
    hh1_bias: Tensor


class ConditionalGRU(Function):
    """All steps of the conditional GRU with mlp attention (tanh): first cell, attention, second cell."""

    @staticmethod
    def forward(
        ctx: Any, inputs_TB3H: Tensor, keys_BSM: Tensor, values_BSH: Tensor, bias_BS: Tensor | None, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """States and contexts, (T, B, H) both. inputs: the words' projections; bias: what to add to the scores."""
        w = DecoderWeights(*weights)
        steps, batch, size = len(inputs_TB3H), inputs_TB3H.size(1), values_BSH.size(-1)
        inner = keys_BSM.size(-1)
        new = inputs_TB3H.new_empty
        h_TBH, context_TBH = new(steps, batch, size), new(steps, batch, size)
        energies_TBSM = new(steps, *keys_BSM.shape)
        # The first cell's state is multiplied by the query and by the second cell's weights in one product.
        merged_weight = torch.cat((w.query, w.hh1))
        merged_bias = torch.cat((w.hh1_bias.new_zeros(inner), w.hh1_bias))
        hh0_t, ih1_t, merged_t = w.hh0.t(), w.ih1.t(), merged_weight.t()
        energy_M1 = w.energy.view(-1, 1)
        h = inputs_TB3H.new_zeros(batch, size)
        saved = []
        for step in range(steps):
            state0 = torch.addmm(w.hh0_bias, h, hh0_t)
            h1, rz0, n0 = gru_gates(inputs_TB3H[step], state0, h)
            merged = torch.addmm(merged_bias, h1, merged_t)
            u_BSM = torch.add(keys_BSM, merged[:, None, :inner], out=energies_TBSM[step]).tanh_()
            scores_BS = (u_BSM.view(-1, inner) @ energy_M1).view(batch, -1)
            if bias_BS is not None:
                scores_BS += bias_BS
            alpha_BS = scores_BS.softmax(-1)
            context = torch.bmm(alpha_BS.unsqueeze(1), values_BSH).squeeze(1)
            context_TBH[step] = context
            state1 = merged[:, inner:]
            h2, rz1, n1 = gru_gates(torch.addmm(w.ih1_bias, context, ih1_t), state1, h1)
            h_TBH[step] = h2
            saved.append((rz0, n0, state0[:, 2 * size :], h1, rz1, n1, state1[:, 2 * size :], alpha_BS))
            h = h2
        ctx.save_for_backward(h_TBH, context_TBH, energies_TBSM, values_BSH, *weights)
        ctx.saved_steps = saved  # intermediate results, not inputs or outputs: they need no version checks
        return h_TBH, context_TBH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_TBH: Tensor, dcontext_TBH: Tensor) -> tuple[Tensor | None, ...]:
        """The recurrence from its end to its beginning, then all weights' gradients at once."""
        h_TBH, context_TBH, energies_TBSM, values_BSH, *weights = ctx.saved_tensors
        w = DecoderWeights(*weights)
        steps, batch, size = h_TBH.shape
        inner = energies_TBSM.size(-1)
        new = h_TBH.new_empty
        d_input0, d_state0, d_input1 = (new(steps, batch, 3 * size) for _ in range(3))
        d_merged = new(steps, batch, inner + 3 * size)  # of query and second cell's state, side by side
        d_scores, d_context = new(steps, batch, values_BSH.size(1)), new(steps, batch, size)
        dkeys_BSM = torch.zeros_like(energies_TBSM[0])
        merged_weight = torch.cat((w.query, w.hh1))
        first = torch.zeros_like(h_TBH[0])
        dh = torch.zeros_like(first)
        for step in range(steps - 1, -1, -1):
            rz0, n0, state0_n, h1, rz1, n1, state1_n, alpha_BS = ctx.saved_steps[step]
            dh2 = dh + dh_TBH[step]
            dh1 = gru_gates_backward(dh2, rz1, n1, state1_n, h1, d_input1[step], d_merged[step, :, inner:])
            dc = torch.addmm(dcontext_TBH[step], d_input1[step], w.ih1, out=d_context[step])
            dalpha_BS = torch.bmm(values_BSH, dc.unsqueeze(-1)).squeeze(-1)
            weighted = alpha_BS * dalpha_BS
            torch.addcmul(weighted, alpha_BS, weighted.sum(-1, keepdim=True), value=-1, out=d_scores[step])
            u_BSM = energies_TBSM[step]
            du_BSM = (1 - u_BSM * u_BSM).mul_(w.energy.view(-1)).mul_(d_scores[step].unsqueeze(-1))
            dkeys_BSM += du_BSM
            torch.sum(du_BSM, 1, out=d_merged[step, :, :inner])
            dh1.addmm_(d_merged[step], merged_weight)
            h_before = h_TBH[step - 1] if step else first
            dh = gru_gates_backward(dh1, rz0, n0, state0_n, h_before, d_input0[step], d_state0[step])
            dh.addmm_(d_state0[step], w.hh0)
        h_before_TBH = torch.cat((first.unsqueeze(0), h_TBH[:-1]))
        h1_TBH = torch.stack([saved[3] for saved in ctx.saved_steps])
        alpha_BTS = torch.stack([saved[7] for saved in ctx.saved_steps], 1)
        d_merged_weight = product(d_merged, h1_TBH)
        return (
            d_input0,
            dkeys_BSM,
            torch.bmm(alpha_BTS.transpose(1, 2), d_context.transpose(0, 1)),
            None,
            product(d_state0, h_before_TBH),
            d_state0.sum((0, 1)),
            d_merged_weight[:inner],
            (d_scores.view(1, -1) @ energies_TBSM.view(-1, inner)).view_as(w.energy),
            product(d_input1, context_TBH),
            d_input1.sum((0, 1)),
            d_merged_weight[inner:],
            d_merged[..., inner:].sum((0, 1)),
        )


def product(left_TBX: Tensor, right_TBY: Tensor) -> Tensor:
    """Sum over time and batch of outer products: a weight's gradient, (X, Y)."""
    return left_TBX.flatten(0, 1).t() @ right_TBY.flatten(0, 1)


class GRULayer(Function):
    """A GRU layer in one or two directions over sequences of equal length; D directions share the time loop."""

    @staticmethod
    def forward(ctx: Any, inputs_DTB3H: Tensor, hh_D3HH: Tensor, hh_bias_D13H: Tensor) -> Tensor:
        """States (D, T, B, H); the second direction's inputs come in reversed order, and its states leave in it."""
        directions, steps, batch, size = *inputs_DTB3H.shape[:3], hh_D3HH.size(-1)
        h_DTBH = inputs_DTB3H.new_empty(directions, steps, batch, size)
        h, hh_t, saved = inputs_DTB3H.new_zeros(directions, batch, size), hh_D3HH.transpose(1, 2), []
        for step in range(steps):
            state = torch.baddbmm(hh_bias_D13H, h, hh_t)
            h, rz, n = gru_gates(inputs_DTB3H[:, step], state, h)
            h_DTBH[:, step] = h
            saved.append((rz, n, state[..., 2 * size :]))
        ctx.save_for_backward(h_DTBH, hh_D3HH)
        ctx.saved_steps = saved
        return h_DTBH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_DTBH: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The recurrence from its end to its beginning, then the weights' gradients at once."""
        h_DTBH, hh_D3HH = ctx.saved_tensors
        directions, steps, batch, size = h_DTBH.shape
        d_input, d_state = (h_DTBH.new_empty(directions, steps, batch, 3 * size) for _ in range(2))
        first = h_DTBH.new_zeros(directions, 1, batch, size)
        dh = torch.zeros_like(first[:, 0])
        for step in range(steps - 1, -1, -1):
            rz, n, state_n = ctx.saved_steps[step]
            h_before = h_DTBH[:, step - 1] if step else first[:, 0]
            dh_new = dh + dh_DTBH[:, step]
            dh = gru_gates_backward(dh_new, rz, n, state_n, h_before, d_input[:, step], d_state[:, step])
            dh.baddbmm_(d_state[:, step], hh_D3HH)
        h_before_DTBH = torch.cat((first, h_DTBH[:, :-1]), 1)
        d_hh = d_state.flatten(1, 2).transpose(1, 2) @ h_before_DTBH.flatten(1, 2)
        return d_input, d_hh, d_state.sum((1, 2)).unsqueeze(1)


def run_gru_layer(inputs_TBE: Tensor, weights: list[list[Tensor]]) -> Tensor:
    """States (T, B, D * H) of a layer; weights: those of `nn.GRU` for each of its directions."""
    ih_D3HE, hh_D3HH, ih_bias_D3H, hh_bias_D3H = (torch.stack(group) for group in zip(*weights, strict=True))
    orders = [inputs_TBE, inputs_TBE.flip(0)][: len(weights)]
    inputs_DNE = torch.stack(orders).flatten(1, 2)
    projected = torch.baddbmm(ih_bias_D3H.unsqueeze(1), inputs_DNE, ih_D3HE.transpose(1, 2))
    inputs_DTB3H = projected.unflatten(1, inputs_TBE.shape[:2])
    h_DTBH = GRULayer.apply(inputs_DTB3H, hh_D3HH, hh_bias_D3H.unsqueeze(1))  # type: ignore[no-untyped-call]
    return torch.cat([h_DTBH[0], *(h.flip(0) for h in h_DTBH[1:])], -1)
