"""Which checkpoints of a run are kept: the best by each metric, the last numbered ones, and at the end the last."""

import contextlib
from typing import Any

from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import why
from pysimt_sac.core.metrics import Metric
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import PREPARATION, Checkpoint, save_checkpoint
from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.optim import Optimizer
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.hosts.engine.training.runs import Run
from pysimt_sac.text.preparation import preparation_of_training


def find_preparation(data: dict[str, Any], sides: tuple[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the text preparation for checkpoints to store, and a warning if its record is damaged."""
    try:
        found = preparation_of_training(data.get("train_set"), sides)
    except UserError as error:  # training does not need it
        return {}, [f"Warning: checkpoints will not know how to prepare plain text: {error}"]
    return ({PREPARATION: found.state()} if found else {}), []


class Checkpointing:
    """Writes a run's checkpoints, with averaged weights if there are any, and removes old ones.

    Only rank 0 writes; the others record the same progress.
    """

    def __init__(
        self,
        run: Run,
        model: Any,
        options: TrainOptions,
        progress: Progress,
        optimizer: Optimizer,
        average: WeightAverage,
    ) -> None:
        self.run, self.model, self.options = run, model, options
        self.progress, self.optimizer, self.average = progress, optimizer, average
        self.preparation, self.notes = find_preparation(model.opts.data, (model.sl, model.tl))

    def save(self, label: str) -> str:
        """Write `EXPID-LABEL.ckpt`; return its name."""
        name = f"{self.run.exp_id}-{label}.ckpt"
        if world.is_main:
            record = self.model.record()
            history = {**self.progress.history(), **self.preparation, **record}
            optimizer = self.optimizer.torch_optimizer.state_dict() if self.options.save_optim_state else None
            options, vocabularies = self.model.opts.to_dict(), {} if record else self.model.vocabs
            with self.average.in_place():
                weights = self.model.state_dict()
                save_checkpoint(Checkpoint(self.run.folder / name, options, weights, history, optimizer, vocabularies))
        return name

    def save_best(self, metric: Metric) -> None:
        """Write the new best checkpoint of a metric, point the link at it, and only then remove the old one."""
        label, best = metric.name.lower(), self.progress.best[metric.name]
        old, best.file = best.file, self.save(f"val{self.progress.validation:03d}.best.{label}_{metric.score:.3f}")
        if not world.is_main:
            return
        link = self.run.folder / f"{self.run.exp_id}.best.{label}.ckpt"
        fresh = link.with_suffix(".new")
        try:
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(best.file)
            fresh.replace(link)
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", link) from error
        if old != best.file:
            self.remove(old)

    def save_numbered(self) -> None:
        """Write `EXPID-updateN.ckpt` and remove the oldest beyond `n_checkpoints`."""
        kept = self.progress.checkpoints
        kept.append(self.save(f"update{self.progress.update}"))
        while len(kept) > self.options.n_checkpoints:
            self.remove(kept.pop(0))

    def remove(self, name: str) -> None:
        """Remove a checkpoint that a newer one has replaced."""
        if name and world.is_main:
            with contextlib.suppress(OSError):  # already gone
                (self.run.folder / name).unlink()
