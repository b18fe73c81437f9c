"""A training recipe in pysimt's loop, by hooks around each step of its optimiser; without importing pysimt."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.hosts.engine.training.optim import parameter_groups


def follow_recipe(
    optimizer: torch.optim.Optimizer, model: nn.Module, lr_factor: Callable[[], float], decay: float
) -> None:
    """Scale the learning rate of every step by the current factor, and decay the weights by it as AdamW does."""
    groups = parameter_groups(model.named_parameters(), decay)
    decayed = [weight for group in groups if group.get("weight_decay") for weight in group["params"]]
    rates: list[float] = []

    @torch.no_grad()
    def before(*_: Any) -> None:
        rates[:] = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] *= lr_factor()
        for weight in decayed:
            if weight.grad is not None:
                weight.mul_(1 - optimizer.param_groups[0]["lr"] * decay)

    def after(*_: Any) -> None:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


class SmoothedLoss(nn.CrossEntropyLoss):
    """A decoder's loss with label smoothing in training, and without it in validation."""

    def __init__(self, label_smoothing: float) -> None:
        super().__init__(reduction="sum", ignore_index=PAD, label_smoothing=label_smoothing)

    def forward(self, log_p_BV: Tensor, target_B: Tensor) -> Tensor:
        """Return the summed loss; the softmax of log-probabilities is the one they come from."""
        if self.training:
            return super().forward(log_p_BV, target_B)
        return nn.functional.nll_loss(log_p_BV, target_B, reduction="sum", ignore_index=PAD)
