"""The exponential moving average of a model's weights (`ema_decay`), which is validated and saved in their place."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class WeightAverage:
    """An average of the weights that are trained; with a decay of 0 there is none, and nothing is done.

    In its first updates it forgets faster, so that it does not begin with random weights: an update keeps
    min(decay, (1 + n) / (10 + n)) of it, n being how many were averaged before.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.n_averaged = decay, 0
        self.named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad and decay > 0}
        self.average = {name: weight.detach().clone() for name, weight in self.named.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the weights; not after an update without gradients, which has not changed them."""
        if all(weight.grad is None for weight in self.named.values()):
            return
        kept = min(self.decay, (1 + self.n_averaged) / (10 + self.n_averaged))
        self.n_averaged += 1
        torch._foreach_lerp_(list(self.average.values()), list(self.named.values()), 1 - kept)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within a `with` block, the model has the average for its weights."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    @torch.no_grad()
    def exchange(self) -> None:
        """Put the average where the weights are and the weights where the average is, bit by bit."""
        for name, weight in self.named.items():
            kept = weight.clone()
            weight.copy_(self.average[name])
            self.average[name].copy_(kept)

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again from the model's present weights."""
        for name, weight in self.named.items():
            self.average[name].copy_(weight)

    def state_dict(self) -> dict[str, Any]:
        """The average, and how many updates are in it."""
        return {"n_averaged": self.n_averaged, "average": self.average} if self.decay > 0 else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        if self.decay > 0:
            self.n_averaged = state["n_averaged"]
            for name, average in self.average.items():
                average.copy_(state["average"][name])
