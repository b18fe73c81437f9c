"""The gradients of one update, gathered over one or several batches."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Gathered:
    """What the batches of an update told: the summed loss, all that was minimised, and the number of words."""

    loss: Tensor
    minimised: Tensor
    n_items: int


def gather_gradients(model: Any, batches: list[Any], device: torch.device, update: int, epoch: int) -> Gathered:
    """Leave in the weights the gradients of the mean loss per word of all batches, as if they were one.

    How many words there are is known in the end only, so that all are weighted by the first batch's until then. With
    one batch that changes nothing, to the last bit.
    """
    first, n_items, loss, minimised = 0, 0, torch.zeros((), device=device), torch.zeros((), device=device)
    for batch in batches:
        batch.device(device)
        model.aux_loss.clear()
        out = model(batch, uctr=update, ectr=epoch)
        mean = out["loss"] / out["n_items"] + sum(model.aux_loss.values())
        first = first or out["n_items"]
        (mean * (out["n_items"] / first)).backward()
        loss, minimised, n_items = loss + out["loss"].detach(), minimised + mean.detach(), n_items + out["n_items"]
    if len(batches) > 1:
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        torch._foreach_mul_(gradients, first / n_items)
    return Gathered(loss, minimised, n_items)
