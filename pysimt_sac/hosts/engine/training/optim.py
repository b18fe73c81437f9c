"""The optimiser, gradient clipping, and a learning rate that falls when validation stalls."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import lr_scheduler

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.states import check_like, load_optimizer

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "adadelta": torch.optim.Adadelta,
    "adagrad": torch.optim.Adagrad,
    "asgd": torch.optim.ASGD,
    "rmsprop": torch.optim.RMSprop,
    "rprop": torch.optim.Rprop,
}
FUSED = ("adam", "sgd", "adagrad")


def parameter_groups(named: Iterable[tuple[str, nn.Parameter]], weight_decay: float) -> list[dict[str, Any]]:
    """Group parameters so that weight decay applies to all but biases."""
    trainable = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [parameter for name, parameter in trainable if "bias" not in name], "weight_decay": weight_decay},
        {"params": [parameter for name, parameter in trainable if "bias" in name], "weight_decay": 0.0},
    ]
    if weight_decay == 0:
        groups = [{"params": [parameter for _, parameter in trainable]}]
    return [group for group in groups if group["params"]]


class Optimizer:
    """A torch optimiser with pysimt's options; `weight_decay`, for adam alone, is decoupled from the gradient."""

    def __init__(self, model: nn.Module, options: TrainOptions, higher_better: bool, weight_decay: float = 0.0) -> None:
        groups = parameter_groups(model.named_parameters(), weight_decay or options.l2_reg)
        if not groups:
            raise UserError("all layers are frozen; there is nothing to train", "[train] freeze_layers")
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.gclip = options.gclip
        arguments: dict[str, Any] = {"fused": True} if options.optimizer in FUSED else {}
        if options.lr > 0:
            arguments["lr"] = options.lr
        if options.optimizer == "adam":
            arguments["betas"] = options.adam_betas
        if options.optimizer == "sgd":
            arguments.update(momentum=options.momentum, nesterov=options.nesterov)
        try:
            kind = torch.optim.AdamW if weight_decay else OPTIMIZERS[options.optimizer]
            self.torch_optimizer = kind(groups, **arguments)
        except ValueError as error:
            raise UserError(str(error), "[train] optimizer") from error
        self.plateau = None  # lowers the rate when validation stalls
        if options.lr_decay == "plateau":
            self.plateau = lr_scheduler.ReduceLROnPlateau(
                self.torch_optimizer,
                mode="max" if higher_better else "min",
                factor=options.lr_decay_factor,
                patience=options.lr_decay_patience,
                min_lr=options.lr_decay_min,
            )
        self.last_lr = self.lr  # of the last step

    @property
    def lr(self) -> float:
        """The current learning rate, before an update's factor."""
        return float(self.torch_optimizer.param_groups[0]["lr"])

    def zero_grad(self) -> None:
        """Clear the gradients; `step` skips parameters without one."""
        self.torch_optimizer.zero_grad(set_to_none=True)

    def clip(self) -> Tensor:
        """Clip the gradient; return its norm before clipping, which is not finite if any of it is not."""
        return clip_grad_norm_(self.parameters, self.gclip if self.gclip > 0 else float("inf"))

    def step(self, lr_factor: float = 1.0) -> None:
        """Update the weights; `lr_factor` scales the rate of this update only."""
        rates = [group["lr"] for group in self.torch_optimizer.param_groups]
        for group, rate in zip(self.torch_optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * lr_factor
        self.last_lr = self.lr
        self.torch_optimizer.step()
        for group, rate in zip(self.torch_optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def after_validation(self, score: float) -> bool:
        """Pass a validation score to the plateau schedule; return whether the rate fell."""
        before = self.lr
        if self.plateau:
            self.plateau.step(score)
        return self.lr < before

    def state_dict(self) -> dict[str, Any]:
        """Return the state of optimiser and schedule as plain values and tensors."""
        plateau = self.plateau.state_dict() if self.plateau else {}
        return {"optimizer": self.torch_optimizer.state_dict(), "schedule": plateau}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        load_optimizer(self.torch_optimizer, state["optimizer"])
        if self.plateau:
            own = self.plateau.state_dict()
            check_like(state["schedule"], own, "schedule")
            self.plateau.load_state_dict({name: state["schedule"].get(name, value) for name, value in own.items()})
