"""Slow copies of networks, which change by a small part of the difference at every update."""

import copy
from collections.abc import Sequence
from typing import Generic, TypeVar

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
