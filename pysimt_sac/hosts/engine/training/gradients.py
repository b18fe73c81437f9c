"""The gradients of one update, accumulated over one or several batches."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.distributed import world


@dataclass(frozen=True)
class Gathered:
    """Sums over the batches of an update: the loss, everything that was minimised, and the number of words."""

    loss: Tensor
    minimised: Tensor
    n_items: int


def gather_gradients(model: Any, batches: list[Any], device: torch.device, update: int, epoch: int) -> Gathered:
    """Accumulate the gradients of the mean loss per word of all batches, as if they were one.

    The total number of words, N, is known only at the end. So batch b, with n_b words and a mean loss of l_b, is
    weighted by n_b over the first one's n_1, and the sum by n_1 / N at the end: (n_1 / N) sum_b (n_b / n_1) l_b. With
    one batch that changes nothing, to the last bit. Each rank computes its shard of every batch; last, the gradients of
    all ranks are averaged, weighted by words. Of a batch that is too small to be divided, every rank has all words, and
    counts its part of them.
    """
    n_first, n_items, loss, minimised = 0.0, 0.0, torch.zeros((), device=device), torch.zeros((), device=device)
    for batch in batches:
        own = batch.shard(world.rank, world.size)
        own.device(device)
        model.aux_loss.clear()
        out = model(own, uctr=update, ectr=epoch)
        part = 1 / world.size if own is batch else 1.0
        n_words = part * out["n_items"]
        mean = out["loss"] / out["n_items"] + sum(model.aux_loss.values())
        n_first = n_first or n_words
        (mean * (n_words / n_first)).backward()
        loss, minimised, n_items = loss + part * out["loss"].detach(), minimised + mean.detach(), n_items + n_words
    if len(batches) > 1:
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        torch._foreach_mul_(gradients, n_first / n_items)
    world.average_gradients(model.parameters(), n_items)
    loss, minimised = world.all_reduce(torch.stack((loss, minimised)))
    return Gathered(loss, minimised, round(world.all_reduce(torch.tensor(n_items, dtype=torch.float64)).item()))
