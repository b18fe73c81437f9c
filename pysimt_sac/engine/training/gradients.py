"""The gradients of one update, gathered over one or several batches."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.distributed import world


@dataclass(frozen=True)
class Gathered:
    """Sums over the batches of an update: the loss, all that was minimised, and the number of words."""

    loss: Tensor
    minimised: Tensor
    n_items: int


def gather_gradients(model: Any, batches: list[Any], device: torch.device, update: int, epoch: int) -> Gathered:
    """Leave in the weights the gradients of the mean loss per word of all batches, as if they were one.

    How many words there are is known in the end only, so that all are weighted by the first batch's until then. With
    one batch that changes nothing, to the last bit. Each rank computes its shard of every
    batch; the gradients of all ranks are added up in the end.
    """
    first, n_items, loss, minimised = 0, 0, torch.zeros((), device=device), torch.zeros((), device=device)
    for batch in batches:
        own = batch.local_shard()
        own.device(device)
        model.aux_loss.clear()
        out = model(own, uctr=update, ectr=epoch)
        n_words = world.global_count(out["n_items"])
        mean = out["loss"] / n_words + sum(model.aux_loss.values()) / (world.size if world.sharded else 1)
        first = first or n_words
        world.local_share(mean * (n_words / first)).backward()
        loss = loss + world.local_share(out["loss"].detach())
        minimised, n_items = minimised + world.local_share(mean.detach()), n_items + n_words
    world.all_reduce_gradients(model.parameters())
    loss, minimised = world.all_reduce([loss, minimised])
    if len(batches) > 1:
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        torch._foreach_mul_(gradients, first / n_items)
    return Gathered(loss, minimised, n_items)
