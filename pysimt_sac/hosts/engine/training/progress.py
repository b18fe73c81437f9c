"""The progress of a run: counters, scores, best checkpoints. Plain values only, so that it can be saved as is."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from pysimt_sac.core.metrics import Metric
from pysimt_sac.core.records import restore
from pysimt_sac.core.sections import TrainOptions


@dataclass
class Best:
    """The best score of a metric, the validation that gave it, its checkpoint, and the update it was made after."""

    score: float
    validation: int
    file: str = ""
    update: int = 0


@dataclass
class Progress:
    """The counters and scores of a run."""

    seed: int = 0
    epoch: int = 1
    batch: int = 0  # batches of this epoch that are done
    update: int = 0
    validation: int = 0
    bad_validations: int = 0  # in a row, by the first metric
    validation_due: bool = False
    epoch_loss: float = 0.0  # summed over the epoch's words so far
    epoch_items: int = 0
    train_loss: list[float] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=dict)
    best: dict[str, Best] = field(default_factory=dict)
    first_samples: list[str] = field(default_factory=list)  # translations of some sentences in the first validation
    checkpoints: list[str] = field(default_factory=list)
    ended: bool = False
    lr_total: int = 0  # length of the learning-rate schedule, kept from the run's first start
    first_update: int = 0  # the first that changed the model; before it only others, such as critics, learn
    recent_losses: list[float] = field(default_factory=list)  # of the last reports, with ...
    lowest_loss: float = math.inf  # ... their lowest mean so far, and ...
    diverges: bool = False  # ... whether their mean is far above it
    diverged: bool = False  # whether the last validation showed that the model has
    seconds: float = 0.0  # the run has taken, validations included ...
    timed_updates: int = 0  # ... and the updates made in them

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Progress":
        """Restore the output of `to_dict`; raise a TypeError or ValueError if this is something else."""
        progress: Progress = restore(cls, stored, "progress")
        counters = (progress.batch, progress.update, progress.validation, progress.epoch_items, progress.timed_updates)
        if min(*counters, progress.epoch - 1, progress.seed) < 0 or not 0 <= progress.seconds < math.inf:
            raise ValueError("a counter is out of range")
        return progress

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def history(self) -> dict[str, Any]:
        """Return what a checkpoint stores about its run, under pysimt's names and, if true, under two of ours.

        starting_point: no update has changed the model yet; diverged: its loss is that of a diverged model.
        """
        remarks = {"starting_point": not self.first_update, "diverged": self.diverged or self.diverges}
        return {
            **{name: True for name, holds in remarks.items() if holds},
            "uctr": self.update,
            "ectr": self.epoch,
            "vctr": self.validation,
            "early_bad": self.bad_validations,
            "train_loss": list(self.train_loss),
            "val_scores": {name: list(scores) for name, scores in self.scores.items()},
        }

    def end_epoch(self) -> float:
        """Move on to the next epoch; return the mean loss per word of this one."""
        mean = self.epoch_loss / max(1, self.epoch_items)
        self.train_loss.append(mean)
        self.epoch, self.batch, self.epoch_loss, self.epoch_items = self.epoch + 1, 0, 0.0, 0
        return mean

    def record(self, results: list[Metric], first: str, diverged: bool = False) -> list[Metric]:
        """Record a validation's scores; return those that are the best so far. first: the metric for early stopping.

        diverged: none of them counts as best. A validation before the first update of the model uses up no patience.
        """
        self.validation += 1
        self.validation_due, self.diverged = False, diverged
        improved = []
        for metric in results:
            self.scores.setdefault(metric.name, []).append(metric.score)
            best = self.best.get(metric.name)
            before = Metric(metric.name, best.score, higher_better=metric.higher_better) if best else None
            if not diverged and (before is None or metric.better_than(before)):
                self.best[metric.name] = Best(metric.score, self.validation, best.file if best else "", self.update)
                improved.append(metric)
        gained = any(metric.name == first.upper() for metric in improved)
        self.bad_validations = 0 if gained else self.bad_validations + bool(self.first_update)
        return improved

    def stop_reason(self, options: TrainOptions) -> str:
        """Return why training ends here, or an empty string."""
        if self.bad_validations >= options.patience:
            return f"no gain in {options.patience} validations"
        if self.update >= options.max_iterations:
            return f"{options.max_iterations} updates done"
        if self.epoch > options.max_epochs:
            return f"{options.max_epochs} epochs done"
        return ""
