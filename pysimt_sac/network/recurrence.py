"""Recurrences over known sequences, with handwritten gradients.

Autograd would record some forty small operations per time step and accumulate every weight's gradient step by step.
Written out, the time loop holds nothing but the recurrence: everything that does not depend on the previous step
(projections of inputs, derivatives of gates, gradients of all weights) is computed for all steps at once, before or
after it. The tests compare both functions with autograd on the same mathematics.

A GRU cell, with input and state projections of three gates each (r, z, n side by side):
    r, z = sigmoid(input_rz + state_rz);  n = tanh(input_n + r * state_n);  h' = n + z * (h - n)

Two choices are for speed on a CPU. A state is multiplied by *blocks* of a weight's columns in one batched product:
with the few rows of a batch, threads that each take some blocks are up to twice as fast as threads that share one
product. Shape suffixes: P blocks of a gate, X columns of a block. And the attention's tanh(x) is computed as
2 sigmoid(2x) - 1, in a quarter of the time; the -1 adds the same to all scores, which the softmax ignores.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def n_blocks(size: int, device: torch.device, most: int = 2) -> int:
    """Return the number of blocks for the columns of one gate; always 1 on a GPU."""
    if device.type != "cpu":
        return 1
    return next(blocks for blocks in range(most, 0, -1) if size % blocks == 0)


def in_blocks(weight_NK: Tensor, blocks: int) -> Tensor:
    """Return a view of a weight, (blocks, K, N / blocks), to multiply `x_BK.expand(blocks, -1, -1)` by."""
    return weight_NK.view(blocks, -1, weight_NK.size(1)).transpose(1, 2)


def rows_in_blocks(rows_BN: Tensor, blocks: int) -> Tensor:
    """Return a view of (..., B, N) in the layout of such a product: (..., blocks, B, N / blocks)."""
    return rows_BN.view(*rows_BN.shape[:-1], blocks, -1).transpose(-3, -2)


def gru_cell(inputs_3PBX: Tensor, gates_3PBX: Tensor, h_PBX: Tensor, n_PBX: Tensor, out_PBX: Tensor) -> None:
    """Write n and the new state. gates: the state's projections, which become r, z, and the state's part of n."""
    blocks = n_PBX.size(-3)
    rz = gates_3PBX.narrow(-3, 0, 2 * blocks)
    rz.add_(inputs_3PBX.narrow(-3, 0, 2 * blocks)).sigmoid_()
    state_n, input_n = (part.narrow(-3, 2 * blocks, blocks) for part in (gates_3PBX, inputs_3PBX))
    torch.addcmul(input_n, rz.narrow(-3, 0, blocks), state_n, out=n_PBX).tanh_()
    torch.lerp(n_PBX, h_PBX, rz.narrow(-3, blocks, blocks), out=out_PBX)


def cell_derivatives(gates_3PBX: Tensor, n_PBX: Tensor, h_BH: Tensor, out_B5H: Tensor) -> None:
    """Write the derivatives of a cell's new state by state n, r, z (all before activation), input n, and h.

    The first three are the gradient of the state's projections, the middle three that of the input's.
    """
    blocks = n_PBX.size(-3)
    r, z, state_n = gates_3PBX.unflatten(-3, (3, blocks)).unbind(-4)
    by_state_n, by_r, by_z, by_input_n, by_h = (rows_in_blocks(part, blocks) for part in out_B5H.unbind(-2))
    rest = 1 - z
    torch.mul(rest, torch.addcmul(n_PBX.new_ones(()), n_PBX, n_PBX, value=-1), out=by_input_n)
    torch.mul(by_input_n, r, out=by_state_n)
    torch.mul(by_state_n, torch.addcmul(state_n, state_n, r, value=-1), out=by_r)
    torch.mul((rows_in_blocks(h_BH, blocks) - n_PBX).mul_(z), rest, out=by_z)
    by_h.copy_(z)


class DecoderWeights(NamedTuple):
    """The weights of the conditional GRU's recurrence; see `layers.ConditionalGRUDecoder`."""

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
        ctx: Any, inputs_TB3H: Tensor, keys_BSM: Tensor, values_BSH: Tensor, bias_TBS: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return states and contexts, both (T, B, H). inputs: the words' projections; bias: added to the scores."""
        w = DecoderWeights(*weights)
        (steps, batch), size, inner = inputs_TB3H.shape[:2], values_BSH.size(-1), keys_BSM.size(-1)
        blocks, new = n_blocks(size, inputs_TB3H.device), inputs_TB3H.new_empty
        h_TBH, h1_TBH, context_TBH = new(steps + 1, batch, size), new(steps, batch, size), new(steps, batch, size)
        gates0, gates1 = (new(steps, 3 * blocks, batch, size // blocks) for _ in range(2))
        n0, n1 = (new(steps, blocks, batch, size // blocks) for _ in range(2))
        sigmoid_TBSM, alpha_TBS = new(steps, *keys_BSM.shape), new(bias_TBS.shape)
        hh0, ih1, hh1 = (in_blocks(weight, 3 * blocks) for weight in (w.hh0, w.ih1, w.hh1))
        hh0_bias, ih1_bias, hh1_bias = (bias.view(3 * blocks, 1, -1) for bias in (w.hh0_bias, w.ih1_bias, w.hh1_bias))
        keys_BSM, query_t, energy_M = 2 * keys_BSM, 2 * w.query.t(), 2 * w.energy.view(-1)
        inputs_T3PBX = rows_in_blocks(inputs_TB3H, 3 * blocks)
        h_TPBX, h1_TPBX = rows_in_blocks(h_TBH, blocks), rows_in_blocks(h1_TBH, blocks)
        h_TBH[0] = 0
        for step in range(steps):
            if step:
                torch.baddbmm(hh0_bias, h_TBH[step].expand(3 * blocks, -1, -1), hh0, out=gates0[step])
            else:
                gates0[0] = hh0_bias
            gru_cell(inputs_T3PBX[step], gates0[step], h_TPBX[step], n0[step], h1_TPBX[step])
            h1_BH = h1_TBH[step]
            sigmoid_BSM = torch.add(keys_BSM, (h1_BH @ query_t).unsqueeze(1), out=sigmoid_TBSM[step]).sigmoid_()
            scores_BS = torch.addmv(bias_TBS[step].flatten(), sigmoid_BSM.view(-1, inner), energy_M).view(batch, -1)
            alpha_BS = torch.softmax(scores_BS, -1, out=alpha_TBS[step])
            context_BH = context_TBH[step]
            torch.bmm(alpha_BS.unsqueeze(1), values_BSH, out=context_BH.unsqueeze(1))
            torch.baddbmm(hh1_bias, h1_BH.expand(3 * blocks, -1, -1), hh1, out=gates1[step])
            inputs1_3PBX = torch.baddbmm(ih1_bias, context_BH.expand(3 * blocks, -1, -1), ih1)
            gru_cell(inputs1_3PBX, gates1[step], h1_TPBX[step], n1[step], h_TPBX[step + 1])
        ctx.save_for_backward(
            h_TBH, h1_TBH, context_TBH, gates0, n0, gates1, n1, sigmoid_TBSM, alpha_TBS, values_BSH, *weights
        )
        return h_TBH[1:], context_TBH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_TBH: Tensor, dcontext_TBH: Tensor) -> tuple[Tensor | None, ...]:
        """Run the recurrence backwards, then compute all weights' gradients at once."""
        h_TBH, h1_TBH, context_TBH, gates0, n0, gates1, n1, sigmoid_TBSM, alpha_TBS, values_BSH, *weights = (
            ctx.saved_tensors
        )
        w = DecoderWeights(*weights)
        steps, batch, size = context_TBH.shape
        inner = sigmoid_TBSM.size(-1)
        # Derivatives of both cells, which the loop turns into gradients. The second holds the query beside the state's
        # projections, so that one product leads from both to the first cell's state.
        d0, d1 = h_TBH.new_empty(steps, batch, 5 * size), h_TBH.new_empty(steps, batch, inner + 5 * size)
        cell0, cell1 = d0.unflatten(-1, (5, size)), d1[..., inner:].unflatten(-1, (5, size))
        cell_derivatives(gates0, n0, h_TBH[:-1], cell0)
        cell_derivatives(gates1, n1, h1_TBH, cell1)
        d_state0, d_input0, d_query = d0[..., : 3 * size], d0[..., size : 4 * size], d1[..., :inner]
        d_merged, d_input1 = d1[..., : inner + 3 * size], d1[..., inner + size : inner + 4 * size]
        hh0, merged_weight = w.hh0.roll(size, 0), torch.cat((w.query, w.hh1.roll(size, 0)))  # state n comes first
        energy_M = 4 * w.energy.view(-1)  # tanh'(x) = 4 s (1 - s), with s = sigmoid(2x)
        d_scores_TBS, d_context_TBH = torch.empty_like(alpha_TBS), torch.empty_like(context_TBH)
        dkeys_BSM, slope_BSM = torch.zeros_like(sigmoid_TBSM[0]), torch.empty_like(sigmoid_TBSM[0])
        dh, dh1 = torch.zeros_like(h_TBH[0]), torch.empty_like(h_TBH[0])
        for step in range(steps - 1, -1, -1):
            cell1[step].mul_(dh.add_(dh_TBH[step]).unsqueeze(1))
            dc = torch.addmm(dcontext_TBH[step], d_input1[step], w.ih1, out=d_context_TBH[step])
            weighted_BS = alpha_TBS[step] * torch.bmm(values_BSH, dc.unsqueeze(-1)).squeeze(-1)
            d_scores_BS = torch.addcmul(
                weighted_BS, alpha_TBS[step], weighted_BS.sum(-1, keepdim=True), value=-1, out=d_scores_TBS[step]
            )
            torch.addcmul(sigmoid_TBSM[step], sigmoid_TBSM[step], sigmoid_TBSM[step], value=-1, out=slope_BSM)
            dkeys_BSM.addcmul_(slope_BSM, d_scores_BS.unsqueeze(-1))
            torch.mul(torch.bmm(d_scores_BS.unsqueeze(1), slope_BSM).squeeze(1), energy_M, out=d_query[step])
            torch.addmm(cell1[step, :, 4], d_merged[step], merged_weight, out=dh1)
            cell0[step].mul_(dh1.unsqueeze(1))
            if step:
                torch.addmm(cell0[step, :, 4], d_state0[step], hh0, out=dh)
        d_merged_weight = product(d_merged, h1_TBH)
        return (
            d_input0,
            dkeys_BSM.mul_(energy_M),
            torch.bmm(alpha_TBS.permute(1, 2, 0), d_context_TBH.transpose(0, 1)),
            None,
            product(d_state0, h_TBH[:-1]).roll(-size, 0),
            d_state0.sum((0, 1)).roll(-size),
            d_merged_weight[:inner],
            # The -1 of tanh = 2 s - 1 drops out here too: the gradients of a sentence's scores add up to zero.
            2 * (d_scores_TBS.view(1, -1) @ sigmoid_TBSM.view(-1, inner)).view_as(w.energy),
            product(d_input1, context_TBH),
            d_input1.sum((0, 1)),
            d_merged_weight[inner:].roll(-size, 0),
            d_merged[..., inner:].sum((0, 1)).roll(-size),
        )


def product(left_TBX: Tensor, right_TBY: Tensor) -> Tensor:
    """Sum over time and batch of outer products: a weight's gradient, (X, Y)."""
    return left_TBX.flatten(0, 1).t() @ right_TBY.flatten(0, 1)


class GRULayer(Function):
    """A GRU layer in one or two directions over sequences of equal length; D directions share the time loop."""

    @staticmethod
    def forward(ctx: Any, inputs_DTB3H: Tensor, hh_D3HH: Tensor, hh_bias_D3H: Tensor) -> Tensor:
        """Return states (D, T, B, H); the second direction's inputs and states are in reversed order."""
        directions, steps, batch, size = *inputs_DTB3H.shape[:3], hh_D3HH.size(-1)
        blocks, new = n_blocks(size, inputs_DTB3H.device), inputs_DTB3H.new_empty
        h_DTBH = new(directions, steps + 1, batch, size)
        gates = new(steps, directions, 3 * blocks, batch, size // blocks)
        n = new(steps, directions, blocks, batch, size // blocks)
        hh = [in_blocks(weight, 3 * blocks) for weight in hh_D3HH]
        bias = hh_bias_D3H.view(directions, 3 * blocks, 1, -1)
        inputs_DT3PBX, h_DTPBX = rows_in_blocks(inputs_DTB3H, 3 * blocks), rows_in_blocks(h_DTBH, blocks)
        h_DTBH[:, 0] = 0
        gates[0] = bias
        for step in range(steps):
            for direction in range(directions if step else 0):
                h_BH = h_DTBH[direction, step]
                torch.baddbmm(
                    bias[direction], h_BH.expand(3 * blocks, -1, -1), hh[direction], out=gates[step, direction]
                )
            gru_cell(inputs_DT3PBX[:, step], gates[step], h_DTPBX[:, step], n[step], h_DTPBX[:, step + 1])
        ctx.save_for_backward(h_DTBH, gates, n, hh_D3HH)
        return h_DTBH[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_DTBH: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run the recurrence backwards, then compute the weights' gradients at once."""
        h_DTBH, gates, n, hh_D3HH = ctx.saved_tensors
        directions, steps, batch, size = dh_DTBH.shape
        d = h_DTBH.new_empty(directions, steps, batch, 5 * size)
        cell = d.unflatten(-1, (5, size))
        cell_derivatives(gates.transpose(0, 1), n.transpose(0, 1), h_DTBH[:, :-1], cell)
        d_state, d_input = d[..., : 3 * size], d[..., size : 4 * size]
        hh = hh_D3HH.roll(size, 1)  # state n comes first
        dh_DBH = dh_DTBH[:, -1]
        for step in range(steps - 1, -1, -1):
            cell[:, step].mul_(dh_DBH.unsqueeze(2))
            if step:
                dh_DBH = torch.baddbmm(cell[:, step, :, 4], d_state[:, step], hh).add_(dh_DTBH[:, step - 1])
        d_hh = d_state.flatten(1, 2).transpose(1, 2) @ h_DTBH[:, :-1].flatten(1, 2)
        return d_input, d_hh.roll(-size, 1), d_state.sum((1, 2)).roll(-size, 1)


def in_float32(function: type[Function], *inputs: Tensor) -> Any:
    """Apply a function with a handwritten gradient in float32, even if the layers around it are not."""
    device = inputs[0].device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return function.apply(*inputs)  # type: ignore[no-untyped-call]
    with torch.autocast(device, enabled=False):
        return function.apply(*(part.float() for part in inputs))  # type: ignore[no-untyped-call]


def run_gru_layer(
    inputs_TBE: Tensor, weights: list[list[Tensor]], reverse: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Return states (T, B, D * H) of a layer; weights: those of `nn.GRU` for each of its directions.

    reverse: reverses every sequence within its own length; without it, all are as long as the longest.
    """
    if reverse is None:
        reverse = partial(torch.flip, dims=(0,))
    ih_D3HE, hh_D3HH, ih_bias_D3H, hh_bias_D3H = (torch.stack(group) for group in zip(*weights, strict=True))
    inputs_DNE = torch.stack([inputs_TBE, reverse(inputs_TBE)][: len(weights)]).flatten(1, 2)
    projected = torch.baddbmm(ih_bias_D3H.unsqueeze(1), inputs_DNE, ih_D3HE.transpose(1, 2))
    inputs_DTB3H = projected.unflatten(1, inputs_TBE.shape[:2])
    h_DTBH = in_float32(GRULayer, inputs_DTB3H, hh_D3HH, hh_bias_D3H)
    return torch.cat([h_DTBH[0], *(reverse(h) for h in h_DTBH[1:])], -1)
