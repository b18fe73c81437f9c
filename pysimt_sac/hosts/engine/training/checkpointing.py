"""Which checkpoints of a run are kept: the best by each metric, and the last numbered ones."""

from pathlib import Path
from typing import Any

from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import why
from pysimt_sac.core.metrics import Metric
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import PREPARATION, save_checkpoint
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

    def save(self, label: str) -> Path:
        """Write `EXPID-LABEL.ckpt`."""
        path = self.run.folder / f"{self.run.exp_id}-{label}.ckpt"
        if not world.is_main:
            return path
        optimizer = self.optimizer.torch_optimizer.state_dict() if self.options.save_optim_state else None
        with self.average.in_place():
            save_checkpoint(path, self.model, {**self.progress.history(), **self.preparation}, optimizer)
        return path

    def save_best(self, metric: Metric) -> None:
        """Write the new best checkpoint of a metric, point the link at it, and only then remove the old one."""
        name = metric.name.lower()
        path = self.save(f"val{self.progress.validation:03d}.best.{name}_{metric.score:.3f}")
        link = self.run.folder / f"{self.run.exp_id}.best.{name}.ckpt"
        fresh = link.with_suffix(".new")
        best = self.progress.best[metric.name]
        if not world.is_main:
            best.file = path.name
            return
        try:
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(path.name)
            fresh.replace(link)
            if best.file and best.file != path.name:
                (self.run.folder / best.file).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", link) from error
        best.file = path.name

    def save_numbered(self) -> None:
        """Write `EXPID-updateN.ckpt` and remove the oldest beyond `n_checkpoints`."""
        path = self.save(f"update{self.progress.update}")
        self.progress.checkpoints.append(path.name)
        while len(self.progress.checkpoints) > self.options.n_checkpoints:
            oldest = self.run.folder / self.progress.checkpoints.pop(0)
            if world.is_main:
                oldest.unlink(missing_ok=True)
