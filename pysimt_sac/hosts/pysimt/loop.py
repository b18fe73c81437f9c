"""pysimt's training loop, extended by training recipes and exact resuming at epoch boundaries."""

import contextlib
import logging
from pathlib import Path
from typing import Any

from pysimt import mainloop, metrics, monitor
from pysimt.utils.data import make_dataloader

from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.checkpointing import find_preparation
from pysimt_sac.hosts.engine.training.runs import Run
from pysimt_sac.hosts.engine.training.schedule import plan_schedule, resume_schedule
from pysimt_sac.hosts.pysimt import resume as pysimt_resume

log = logging.getLogger("pysimt")


class AveragingMonitor(monitor.Monitor):  # type: ignore[misc]
    """pysimt's monitor; its checkpoints hold the weight average, if there is one."""

    average: WeightAverage
    preparation: dict[str, Any]  # how the training text was prepared, if known

    def state_dict(self) -> dict[str, Any]:
        """Return the `history` entry of checkpoints."""
        return {**super().state_dict(), **self.preparation}

    def save_model(self, metric: Any = None, suffix: str = "", do_symlink: bool = False) -> Path:
        """Write a checkpoint of the average; with a metric, validation has swapped it in already."""
        with contextlib.nullcontext() if metric else self.average.in_place():
            return Path(super().save_model(metric, suffix, do_symlink))

    def reload_previous_best(self) -> None:
        """Reload the best weights during validation; restart the average from them."""
        super().reload_previous_best()
        self.average.restart()


class Loop(mainloop.MainLoop):  # type: ignore[misc]
    """pysimt's loop, which follows a training recipe and saves the training state after every epoch."""

    def __init__(
        self,
        model: Any,
        options: dict[str, Any],
        manager: Any,
        recipe: RecipeOptions,
        run: Run,
        config: dict[str, Any],
        journal: pysimt_resume.HostJournal,
    ) -> None:
        self.run, self.config, self.journal = run, config, journal
        mainloop.TensorBoard = lambda *_: journal
        # A resumed run gets its weights from the training state.
        super().__init__(model, {**options, "pretrained_file": ""} if run.state else options, manager)
        if self.eval_freq >= 0 and not hasattr(self, "vloss_iterator"):  # pysimt computes the loss in any case
            self.vloss_iterator = make_dataloader(model.load_data("val", self.batch_size, mode="eval"))
        self.monitor.preparation, notes = find_preparation(config["data"], (str(model.sl), str(model.tl)))
        for note in notes:
            log.info(note)
        self.follow(recipe)
        if run.state:
            pysimt_resume.restore(self, run.state, metrics.Metric)
        self.eval_zero: bool = options["eval_zero"] and self.eval_freq >= 0 and self.monitor.vctr == 0
        journal.open()

    def follow(self, recipe: RecipeOptions) -> None:
        """Apply the recipe to every optimiser step."""
        limits = TrainOptions(max_iterations=self.max_iterations, max_epochs=self.max_epochs)
        planned, state = plan_schedule(recipe, limits, len(self.train_iterator)), self.run.state
        self.schedule, notes = resume_schedule(planned, state["progress"].get("lr_total", 0) if state else None)
        for note in notes:
            log.info(note)
        self.average = self.monitor.average = WeightAverage(self.model, recipe.ema_decay)
        pysimt_resume.follow_lr_factor(self.optim.optim, self.lr_factor)
        pysimt_resume.decay_weights(self.optim.optim, self.model, recipe.weight_decay)
        self.optim.optim.register_step_post_hook(lambda *_: self.average.update())

    def lr_factor(self) -> float:
        """Return the current learning-rate factor: the model's times the schedule's."""
        update = self.monitor.uctr
        own = self.model.lr_factor(update) if hasattr(self.model, "lr_factor") else 1.0
        return float(own * self.schedule(update))

    def do_validation(self) -> None:
        """Validate, and save the best checkpoint, with the average in place of the weights."""
        with self.average.in_place():
            super().do_validation()

    def __call__(self) -> None:
        """Train; save an initial state first, so that a run can always be resumed."""
        if not self.run.state:
            pysimt_resume.save(self)
        super().__call__()

    def train_epoch(self) -> bool:
        """Train for an epoch, and save the state if it was completed."""
        goes_on = bool(super().train_epoch())
        if len(self.monitor.train_loss) == self.monitor.ectr - goes_on:
            pysimt_resume.save(self)
        else:  # ended within an epoch; if resumed, it continues from the end of the previous one
            pysimt_resume.note_end(self)
        return goes_on
