"""The learning rate by update (`lr_schedule`, `lr_decay: noam`): warm-up, then constant or falling."""

import dataclasses
import math

from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.engine.config.recipe import FALLING


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The factor of the learning rate, as a pure function of the update's number.

    total: the update at which `cosine` and `linear` reach `final` and stay there; size: the model's, for `noam`.
    """

    kind: str | None = None
    warmup: int = 0
    total: int = 0
    final: float = 0.0
    size: int = 0

    def __call__(self, update: int) -> float:
        """Return the factor of an update; the first is number 1."""
        if self.kind is None:
            return 1.0
        if self.kind == "noam":
            return float(self.size**-0.5 * min(update**-0.5, update * self.warmup**-1.5))
        if update <= self.warmup:
            return update / self.warmup
        if self.kind == "constant":
            return 1.0
        if self.kind == "inverse_sqrt":
            return math.sqrt(max(1, self.warmup) / update)
        done = min(1.0, (update - self.warmup) / max(1, self.total - self.warmup))
        left = 1 - done if self.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.final + (1 - self.final) * left

    def __str__(self) -> str:
        parts = [f"Learning rate: {self.kind}"]
        if self.warmup:
            parts.append(f"after a warm-up of {self.warmup} updates")
        if self.kind in FALLING:
            parts.append(f"to {self.final:g} of lr at update {self.total}")
        return ", ".join(parts)


def plan_schedule(recipe: RecipeOptions, train: TrainOptions, updates_per_epoch: int) -> Schedule:
    """Return the schedule of a new run."""
    if train.lr_decay == "noam":
        return Schedule("noam", train.lr_warmup_steps, size=train.tf_model_dim or 1)
    if recipe.lr_schedule is None:
        return Schedule()
    if recipe.lr_schedule not in FALLING:
        return Schedule(recipe.lr_schedule, recipe.lr_warmup)
    total = recipe.lr_total or min(train.max_iterations, train.max_epochs * updates_per_epoch)
    return Schedule(recipe.lr_schedule, recipe.lr_warmup, total, recipe.lr_final)


def resume_schedule(planned: Schedule, began_with: int | None) -> tuple[Schedule, list[str]]:
    """Return the schedule with the length that a resumed run began with (None: a new run), and notes about it."""
    if began_with is None:
        return planned, [str(planned)] if planned.kind else []
    if began_with == planned.total:
        return planned, []
    note = f"The learning-rate schedule keeps the {began_with} updates that the run began with"
    return dataclasses.replace(planned, total=began_with), [f"{note}; a new run would have {planned.total}"]
