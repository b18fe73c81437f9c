"""The exponential moving average of a model's weights (`ema_decay`), validated and saved in their place."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from pysimt_sac.core.states import check_like


class WeightAverage:
    """An average of the trained weights; with a decay of 0 there is none, and nothing is done.

    In its first updates it forgets faster, so that it is not biased towards random weights: an update keeps
    min(decay, (1 + n) / (10 + n)) of it, where n is the number of earlier updates.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.n_averaged = decay, 0
        self.named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad and decay > 0}
        self.average = {name: weight.detach().clone() for name, weight in self.named.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the weights, except after an update without gradients, which has not changed them."""
        if all(weight.grad is None for weight in self.named.values()):
            return
        kept = min(self.decay, (1 + self.n_averaged) / (10 + self.n_averaged))
        self.n_averaged += 1
        torch._foreach_lerp_(list(self.average.values()), list(self.named.values()), 1 - kept)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model use the average as its weights inside the block."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    @torch.no_grad()
    def exchange(self) -> None:
        """Swap the average and the weights, bit for bit."""
        for name, weight in self.named.items():
            kept = weight.clone()
            weight.copy_(self.average[name])
            self.average[name].copy_(kept)

    @torch.no_grad()
    def restart(self) -> None:
        """Restart from the model's current weights."""
        for name, weight in self.named.items():
            self.average[name].copy_(weight)

    def state_dict(self) -> dict[str, Any]:
        """Return the average, and how many updates are in it."""
        return {"n_averaged": self.n_averaged, "average": self.average} if self.decay > 0 else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        if self.decay > 0:
            check_like(state, self.state_dict(), "average")
            self.n_averaged = state["n_averaged"]
            for name, average in self.average.items():
                average.copy_(state["average"][name])
