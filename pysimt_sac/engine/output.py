"""The output layer, in full or in part, and dropout: the largest costs of an update outside the recurrence."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

CHUNK = 256  # positions at a time: their logits over a usual vocabulary stay within a processor's cache


class LinearCrossEntropy(Function):
    """Cross-entropy of a linear layer's softmax, summed; never holds more than a chunk of the logits.

    The gradient of each chunk is computed while its probabilities are at hand, so that backward only scales it. Words
    come first, positions second: MKL takes half as long for (V, E) times (E, N) as for (N, E) times (E, V).
    """

    @staticmethod
    def forward(ctx: Any, x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, targets_N: Tensor) -> Tensor:
        """Minus the summed log-probability of the targets."""
        total = x_NE.new_zeros(())
        dx_NE, dweight_VE, dbias_V = torch.empty_like(x_NE), torch.zeros_like(weight_VE), torch.zeros_like(bias_V)
        buffer = x_NE.new_empty(len(weight_VE) * min(CHUNK, len(x_NE)))  # used again: new memory costs time, too
        for start in range(0, len(x_NE), CHUNK):
            x, targets = x_NE[start : start + CHUNK], targets_N[start : start + CHUNK].unsqueeze(0)
            place = buffer[: len(weight_VE) * len(x)].view(-1, len(x))
            logits = torch.addmm(bias_V.unsqueeze(1), weight_VE, x.t(), out=place)
            logits -= logits.amax(0)
            chosen = logits.gather(0, targets)
            weights = logits.exp_()  # probabilities, but for a factor per column, which is cheaper to apply elsewhere
            sums = weights.sum(0)
            total -= (chosen - sums.log()).sum()
            weights.scatter_add_(0, targets, -sums.unsqueeze(0))
            dx = torch.mm(weights.t(), weight_VE, out=dx_NE[start : start + CHUNK])
            dx /= sums.unsqueeze(1)
            dweight_VE.addmm_(weights, x / sums.unsqueeze(1))
            dbias_V.addmv_(weights, sums.reciprocal())
        ctx.save_for_backward(dx_NE, dweight_VE, dbias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Scale the gradients that forward has computed."""
        dx_NE, dweight_VE, dbias_V = ctx.saved_tensors
        return dx_NE * d_total, dweight_VE * d_total, dbias_V * d_total, None


def linear_cross_entropy(layer: nn.Linear, x_NE: Tensor, targets_N: Tensor) -> Tensor:
    """The summed cross-entropy of `layer(x)`'s softmax."""
    if not torch.is_grad_enabled():
        return nn.functional.cross_entropy(layer(x_NE), targets_N, reduction="sum")
    return LinearCrossEntropy.apply(x_NE, layer.weight, layer.bias, targets_N)  # type: ignore[no-any-return, no-untyped-call]


def linear_rows(layer: nn.Linear, x_NE: Tensor, rows: Tensor) -> Tensor:
    """Some of a linear layer's outputs: one (N) or K (N, K) per position, by their numbers.

    With 33 of 6,405 outputs it takes an eighth of the time of the full product.
    """
    weights = nn.functional.embedding(rows, layer.weight)
    biases = nn.functional.embedding(rows, layer.bias.unsqueeze(1)).squeeze(-1)
    if rows.dim() == 1:
        return (weights * x_NE).sum(-1) + biases
    return torch.bmm(weights, x_NE.unsqueeze(2)).squeeze(2) + biases


class Dropout(nn.Dropout):
    """torch's dropout, by a quicker way to random masks on the CPU: one 64-bit number for four values.

    So the probability is a multiple of 1/65,536.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zero each value with probability p, and scale the others up."""
        if not self.training or self.p == 0 or input.is_cuda:
            return super().forward(input)
        size = input.numel()
        numbers = torch.empty((size + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        keep = numbers.view(torch.int16)[:size].view(input.shape) >= min(round(self.p * 2**16), 2**16 - 1) - 2**15
        return input * (keep / (1 - self.p))
