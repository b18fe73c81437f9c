"""pysimt's training loop with what it lacks: our training recipes, and exact resuming at the ends of epochs."""

import contextlib
import logging
from pathlib import Path
from typing import Any

from pysimt import mainloop, metrics, monitor
from pysimt.utils.data import make_dataloader

from pysimt_sac.engine.config.options import RecipeOptions, TrainOptions
from pysimt_sac.engine.training.average import WeightAverage
from pysimt_sac.engine.training.keeper import find_preparation
from pysimt_sac.engine.training.runs import Run
from pysimt_sac.engine.training.schedule import plan_schedule, resume_schedule
from pysimt_sac.hosts import pysimt_resume

log = logging.getLogger("pysimt")


class AveragingMonitor(monitor.Monitor):  # type: ignore[misc]
    """pysimt's monitor, whose checkpoints hold the average of the weights, if there is one."""

    average: WeightAverage
    preparation: dict[str, Any]  # how the training text was prepared, if that is known

    def state_dict(self) -> dict[str, Any]:
        """What checkpoints call the history."""
        return {**super().state_dict(), **self.preparation}

    def save_model(self, metric: Any = None, suffix: str = "", do_symlink: bool = False) -> Path:
        """Write a checkpoint; by a metric it is written in validation, which has the average in place already."""
        with contextlib.nullcontext() if metric else self.average.in_place():
            return Path(super().save_model(metric, suffix, do_symlink))

    def reload_previous_best(self) -> None:
        """Go back to the best weights, in validation; the average, too, begins again from them."""
        super().reload_previous_best()
        self.average.restart()


class Loop(mainloop.MainLoop):  # type: ignore[misc]
    """pysimt's loop, which follows a training recipe, and keeps what resuming needs at the end of every epoch."""

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
        # A resumed run gets its weights from its state.
        super().__init__(model, {**options, "pretrained_file": ""} if run.state else options, manager)
        if self.eval_freq >= 0 and not hasattr(self, "vloss_iterator"):  # pysimt computes the loss, asked or not
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
        """Let every step of the optimiser follow the recipe."""
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
        """The present update's factor of the learning rate: the model's and the schedule's."""
        update = self.monitor.uctr
        own = self.model.lr_factor(update) if hasattr(self.model, "lr_factor") else 1.0
        return float(own * self.schedule(update))

    def do_validation(self) -> None:
        """Validate, and save the best, with the average in the place of the weights."""
        with self.average.in_place():
            super().do_validation()

    def __call__(self) -> None:
        """Train; from the very first, there is a state to go on from."""
        if not self.run.state:
            pysimt_resume.save(self)
        super().__call__()

    def train_epoch(self) -> bool:
        """An epoch, and a new state when it is complete."""
        goes_on = bool(super().train_epoch())
        if len(self.monitor.train_loss) == self.monitor.ectr - goes_on:
            pysimt_resume.save(self)
        else:  # it ended within an epoch; should it ever go on, then from the one before
            pysimt_resume.note_end(self)
        return goes_on
