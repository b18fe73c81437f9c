"""The output layer, in full or in part, and dropout: the largest costs of an update outside the recurrence."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

CHUNK = 256  # positions at a time: their logits over a usual vocabulary fit into the CPU's cache


class LinearCrossEntropy(Function):
    """Summed cross-entropy of a linear layer's softmax; never holds more than a chunk of the logits.

    The gradient of each chunk is computed while its probabilities are in memory, so that backward only scales it. Words
    come first, positions second: MKL takes half as long for (V, E) times (E, N) as for (N, E) times (E, V).

    Label smoothing by s spreads the share s of each target evenly over all V outputs: it adds s (logit of the target -
    mean logit) to the loss. The mean of a linear layer's outputs is the output of its mean row, so that neither the
    loss nor the gradients need another pass over the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, targets_N: Tensor, smoothing: float
    ) -> Tensor:
        """Return the summed cross-entropy of the targets."""
        total = x_NE.new_zeros(())
        dx_NE, dweight_VE, dbias_V = torch.empty_like(x_NE), torch.zeros_like(weight_VE), torch.zeros_like(bias_V)
        for part, logits in logits_in_chunks(x_NE, weight_VE, bias_V):
            x, targets = x_NE[part], targets_N[part].unsqueeze(0)
            top = logits.amax(0)
            logits -= top
            chosen = logits.gather(0, targets)
            weights = logits.exp_()  # probabilities up to a factor per column, which is cheaper to apply elsewhere
            sums = weights.sum(0)
            total -= (chosen - sums.log()).sum()
            if smoothing:
                total += smoothing * (chosen + top).sum()
            weights.scatter_add_(0, targets, (smoothing - 1) * sums.unsqueeze(0))
            dx = torch.mm(weights.t(), weight_VE, out=dx_NE[part])
            dx /= sums.unsqueeze(1)
            dweight_VE.addmm_(weights, x / sums.unsqueeze(1))
            dbias_V.addmv_(weights, sums.reciprocal())
        if smoothing:
            mean_E, sum_E = weight_VE.mean(0), x_NE.sum(0)
            total -= smoothing * (sum_E @ mean_E + len(x_NE) * bias_V.mean())
            dx_NE -= smoothing * mean_E
            dweight_VE -= smoothing / len(weight_VE) * sum_E
            dbias_V -= smoothing / len(weight_VE) * len(x_NE)
        ctx.save_for_backward(dx_NE, dweight_VE, dbias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """Scale the gradients that `forward` has computed."""
        dx_NE, dweight_VE, dbias_V = ctx.saved_tensors
        return dx_NE * d_total, dweight_VE * d_total, dbias_V * d_total, None, None


def linear_cross_entropy(layer: nn.Linear, x_NE: Tensor, targets_N: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the summed cross-entropy of `layer(x)`'s softmax; label smoothing is torch's, over all outputs."""
    if not torch.is_grad_enabled():
        logits_NV = layer(x_NE)
        return nn.functional.cross_entropy(logits_NV, targets_N, reduction="sum", label_smoothing=label_smoothing)
    return LinearCrossEntropy.apply(x_NE, layer.weight, layer.bias, targets_N, label_smoothing)  # type: ignore[no-any-return, no-untyped-call]


class LinearLogProbs(Function):
    """Log-probabilities of given outputs of a linear layer's softmax, a chunk of the logits at a time.

    Backward recomputes the logits, so that they are never all in memory. Same layout as `LinearCrossEntropy`.
    """

    @staticmethod
    def forward(
        ctx: Any, x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, rows_N: Tensor, first: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities among the outputs from `first` on and among all, and the former's entropy (N)."""
        log_z_first_N, log_z_N, entropy_N, chosen_N = (x_NE.new_empty(len(x_NE)) for _ in range(4))
        for part, logits in logits_in_chunks(x_NE, weight_VE, bias_V):
            chosen_N[part] = logits.gather(0, rows_N[part].unsqueeze(0)).squeeze(0)
            others, logits = logits[:first].logsumexp(0), logits[first:]
            top = logits.amax(0)
            logits -= top
            weights = logits.exp()
            sums = weights.sum(0)
            log_z_first_N[part] = top + sums.log()
            log_z_N[part] = torch.logaddexp(log_z_first_N[part], others)
            entropy_N[part] = sums.log() - weights.mul_(logits).sum(0) / sums
        ctx.first = first
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x_NE, weight_VE, bias_V, rows_N, log_z_first_N, log_z_N, entropy_N)
        return chosen_N - log_z_first_N, chosen_N - log_z_N, entropy_N

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_among_first_N: Tensor | None, d_among_all_N: Tensor | None, d_entropy_N: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """Apply d log p_taken / d logit = 1[taken] - p, and d entropy / d logit = -p (log p + entropy)."""
        x_NE, weight_VE, bias_V, rows_N, log_z_first_N, log_z_N, entropy_N = ctx.saved_tensors
        first = ctx.first
        d_among_first_N, d_among_all_N = (
            torch.zeros_like(log_z_N) if d is None else d for d in (d_among_first_N, d_among_all_N)
        )
        dx_NE, dweight_VE, dbias_V = torch.empty_like(x_NE), torch.zeros_like(weight_VE), torch.zeros_like(bias_V)
        for part, logits in logits_in_chunks(x_NE, weight_VE, bias_V):
            among_first, among_all = d_among_first_N[part], d_among_all_N[part]
            log_p = logits  # outputs from `first` on: among themselves; the others: among all
            log_p[first:] -= log_z_first_N[part]
            log_p[:first] -= log_z_N[part]
            slope = among_first + among_all * (log_z_first_N[part] - log_z_N[part]).exp()
            if d_entropy_N is not None:
                slope = slope + d_entropy_N[part] * (log_p[first:] + entropy_N[part])
            d_logits = log_p.exp_()
            d_logits[first:] *= -slope
            d_logits[:first] *= -among_all
            d_logits.scatter_add_(0, rows_N[part].unsqueeze(0), (among_first + among_all).unsqueeze(0))
            torch.mm(d_logits.t(), weight_VE, out=dx_NE[part])
            dweight_VE.addmm_(d_logits, x_NE[part])
            dbias_V += d_logits.sum(1)
        return dx_NE, dweight_VE, dbias_V, None, None


def logits_in_chunks(x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield positions and their logits (V, n), always in the same buffer: allocation costs time too."""
    buffer = x_NE.new_empty(len(weight_VE) * min(CHUNK, len(x_NE)))
    for start in range(0, len(x_NE), CHUNK):
        x = x_NE[start : start + CHUNK]
        place = buffer[: len(weight_VE) * len(x)].view(-1, len(x))
        yield slice(start, start + len(x)), torch.addmm(bias_V.unsqueeze(1), weight_VE, x.t(), out=place)


def linear_log_probs(
    layer: nn.Linear, x_NE: Tensor, rows_N: Tensor, first: int, temperature: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log p (N) of one output per position among those from `first` on, among all, and the former's entropy.

    temperature: the divisor of the logits.
    """
    bias_V: Tensor = layer.bias
    if temperature != 1:
        x_NE, bias_V = x_NE / temperature, bias_V / temperature
    return LinearLogProbs.apply(x_NE, layer.weight, bias_V, rows_N, first)  # type: ignore[no-any-return, no-untyped-call]


def linear_rows(layer: nn.Linear, x_NE: Tensor, rows: Tensor) -> Tensor:
    """Compute some of a linear layer's outputs: one (N) or K (N, K) per position, by index.

    With 33 of 6,405 outputs it takes an eighth of the time of the full product.
    """
    weights = nn.functional.embedding(rows, layer.weight)
    biases = nn.functional.embedding(rows, layer.bias.unsqueeze(1)).squeeze(-1)
    if rows.dim() == 1:
        return (weights * x_NE).sum(-1) + biases
    return torch.bmm(weights, x_NE.unsqueeze(2)).squeeze(2) + biases


class Dropout(nn.Dropout):
    """torch's dropout with faster random masks on the CPU: one 64-bit number for four values.

    The probability is therefore a multiple of 1/65,536.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zero each value with probability p, and scale up the others."""
        if not self.training or self.p == 0:
            return input
        if input.is_cuda:
            return super().forward(input)
        return input * (self.keep_mask(input.shape) / (1 - self.p))

    def keep_mask(self, shape: Sequence[int]) -> Tensor:
        """Return a mask of the values to keep."""
        size = math.prod(shape)
        numbers = torch.empty((size + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        return numbers.view(torch.int16)[:size].view(shape) >= min(round(self.p * 2**16), 2**16 - 1) - 2**15
