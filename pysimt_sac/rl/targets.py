"""Slow copies of networks, which change by a small part of the difference at every update."""

import copy
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


@torch.no_grad()
def move_towards(slow: Sequence[Tensor], fast: Sequence[Tensor], tau: float) -> None:
    """slow <- slow + tau (fast - slow), for all tensors in one operation, in place."""
    torch._foreach_lerp_(tuple(slow), tuple(fast), tau)


class SlowCopy(Generic[M]):
    """A network's copy that follows it. It is never trained and never in training mode."""

    def __init__(self, network: M) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.slow, self.fast = list(self.network.parameters()), list(network.parameters())

    def follow(self, tau: float) -> None:
        """Move by the part tau of what is between the two."""
        move_towards(self.slow, self.fast, tau)


class SlowActor:
    """A model's slow copy that plays as the model does. Only the networks are copied; all else is the model's own."""

    def __init__(self, model: Any) -> None:
        networks = nn.ModuleDict({"encoders": model.encoders, "dec": model.dec})  # together: they may share weights
        self.copy = SlowCopy(networks)
        self.model = copy.copy(model)
        self.model._modules = {**model._modules, **self.copy.network._modules}

    def follow(self, tau: float) -> None:
        """Move by the part tau of what is between the two."""
        self.copy.follow(tau)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return self.copy.network.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.copy.network.load_state_dict(state)
