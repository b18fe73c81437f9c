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
    one batch that changes nothing, to the last bit. Each rank computes its shard of every batch; the gradients of all
    ranks are summed last.
    """
    n_first, n_items, loss, minimised = 0, 0, torch.zeros((), device=device), torch.zeros((), device=device)
    for batch in batches:
        own = batch.local_shard()
        own.device(device)
        model.aux_loss.clear()
        out = model(own, uctr=update, ectr=epoch)
        n_words = world.global_count(out["n_items"])
        mean = out["loss"] / n_words + sum(model.aux_loss.values()) / (world.size if world.sharded else 1)
        n_first = n_first or n_words
        world.local_share(mean * (n_words / n_first)).backward()
        loss = loss + world.local_share(out["loss"].detach())
        minimised, n_items = minimised + world.local_share(mean.detach()), n_items + n_words
    world.all_reduce_gradients(model.parameters())
    loss, minimised = world.all_reduce([loss, minimised])
    if len(batches) > 1:
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        torch._foreach_mul_(gradients, n_first / n_items)
    return Gathered(loss, minimised, n_items)
