"""The training loop: updates, validation, early stopping, checkpoints, and a state from which a run resumes exactly.

The loop knows a model only by its protocol (`load_data`, `forward`, `test_performance`, `training_state`, ...), so that
it trains whatever the registry offers. Its progress so far is a `Progress`.
"""

import math
import time
from itertools import islice
from typing import Any

import torch

from pysimt_sac.core.distributed import seed_of_rank, world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.states import check_like, first_not_finite
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_weights, save_state, state_fits
from pysimt_sac.hosts.engine.preparation import (
    build_layers,
    is_out_of_memory,
    out_of_memory_as_user_error,
    prepare_weights,
)
from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.checkpointing import Checkpointing
from pysimt_sac.hosts.engine.training.console import ALWAYS, Columns, compact, progress_bar
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.interrupts import Interrupted, Interrupts
from pysimt_sac.hosts.engine.training.journal import open_journal
from pysimt_sac.hosts.engine.training.optim import Optimizer
from pysimt_sac.hosts.engine.training.outcome import (
    closing_lines,
    has_diverged,
    sample_lines,
    validation_lines,
    watch_training,
    watch_validation,
)
from pysimt_sac.hosts.engine.training.pace import Pace, Stopwatch
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.hosts.engine.training.randomness import draw_seed, fix_seeds, random_states, restore_random_states
from pysimt_sac.hosts.engine.training.runs import Run, files_of_run
from pysimt_sac.hosts.engine.training.schedule import plan_schedule, resume_schedule
from pysimt_sac.hosts.engine.training.startup import announce, describe_host
from pysimt_sac.hosts.engine.training.tracking import WandbTracker
from pysimt_sac.hosts.engine.training.validation import Validator

UNHEALTHY = (
    "the last saved state is good, but would fail here again; what usually helps: a lower lr or gclip, warm-up, clean "
    "text; start over with --restart, or from a good checkpoint with train.pretrained_file:FILE -s SUFFIX"
)


class Trainer:
    """Trains one model in one run folder."""

    def __init__(self, model: Any, options: TrainOptions, run: Run, device: torch.device) -> None:
        self.model, self.options, self.run, self.device = model, options, run, device
        state = run.state
        with state_fits(run.folder):
            self.progress = Progress.from_dict(state["progress"]) if state else Progress(seed=options.seed)
        self.progress.seed = self.progress.seed or world.broadcast_from_main(draw_seed)
        model.opts.train["seed"] = self.progress.seed  # batches depend on it, and checkpoints store it
        fix_seeds(self.progress.seed)
        self.corpus = model.load_data("train", options.batch_size)
        self.validator = Validator(model, options, device) if options.eval_freq >= 0 else None
        self.files = files_of_run(model.opts.to_dict())
        build_layers(model)
        self.notes = prepare_weights(model, options, fresh=state is None)
        with out_of_memory_as_user_error(device, "use a smaller model or another device"):
            model.to(device)
        higher_better = self.validator.higher_better(options.eval_metrics[0]) if self.validator else True
        self.optimizer = Optimizer(model, options, higher_better, model.recipe.weight_decay)
        n_batches, per_update = len(self.corpus.batches(1)), model.recipe.accumulate
        planned = plan_schedule(model.recipe, options, -(-n_batches // per_update))
        self.schedule, schedule_notes = resume_schedule(planned, self.progress.lr_total if state else None)
        self.progress.lr_total = self.schedule.total
        self.average = WeightAverage(model, model.recipe.ema_decay)
        self.checkpointing = Checkpointing(run, model, options, self.progress, self.optimizer, self.average)
        self.interrupts, self.columns, self.learning = Interrupts(), Columns(), ""
        self.pace, self.stopwatch = Pace(), Stopwatch(self.progress, options, n_batches, per_update)
        # Kept on the device, so that no update has to wait for them:
        self.epoch_loss = torch.tensor(self.progress.epoch_loss, dtype=torch.float64, device=device)
        self.unhealthy = torch.zeros((), dtype=torch.bool, device=device)
        self.last_loss = self.last_norm = torch.zeros((), device=device)
        if state:
            self.restore(state)
        # Everything that can be checked has been: from here on the run's folder is written to.
        self.journal = open_journal(run, options.tensorboard_dir)
        try:
            if model.recipe.wandb_project and world.is_main:
                config = model.opts.to_dict()
                self.journal.track(WandbTracker(model.recipe.wandb_project, run.folder, run.exp_id, config))
            if state is None:
                self.journal.say(describe_host(device))
            model.start_training(self.journal)
            if world.rank:  # the weights are those of all ranks; from here on, every rank draws for itself
                fix_seeds(seed_of_rank(self.progress.seed))
            if state:
                self.restore_learner(state)
            for note in self.notes:
                self.journal.say(note)
            for note in (*schedule_notes, *self.checkpointing.notes):
                self.journal.show(note)
        except BaseException:
            self.journal.close()
            raise

    # Training

    def train(self) -> str:
        """Train until a stopping condition is met and return it, or raise `Interrupted` with the state saved."""
        announce(self)
        self.model.train()
        with self.interrupts:  # until the very end: a signal must not interrupt saving
            try:
                if self.run.state is None:
                    self.progress.validation_due = self.options.eval_zero and self.validator is not None
                    self.save()
                reason = self.train_epochs()
            except Interrupted:
                self.save()
                raise
            self.checkpointing.save("final")
            self.journal.show(f"Training ended: {reason}", ALWAYS)
            for line in closing_lines(self.progress, self.options.eval_metrics[0].upper(), self.run.folder):
                self.journal.show(line, ALWAYS + 5 * line.startswith("Warning"))
            self.progress.ended = True
            self.save()
        self.journal.close()
        return reason

    def train_epochs(self) -> str:
        """Train until a stopping condition is met and return it.

        Whatever the last update has begun, an epoch's end or a validation, is finished before a condition may stop the
        run. So a resumed run, which enters here as well, does it even if the run was killed in between.
        """
        while True:
            if self.progress.validation_due and self.validator:
                self.validate()
            elif self.progress.batch >= len(self.corpus.batches(self.progress.epoch)):
                self.end_epoch()
            elif reason := self.progress.stop_reason(self.options):
                return reason
            else:
                self.progress.ended = False
                self.train_epoch()

    def train_epoch(self) -> None:
        """Train to the end of an epoch, or up to a stopping condition."""
        progress, options = self.progress, self.options
        loader = self.corpus.loader(progress.epoch, progress.batch, options.num_workers, options.pin_memory)
        n_batches, name = len(self.corpus.batches(progress.epoch)), f"epoch {progress.epoch}/{options.max_epochs}"
        with progress_bar(total=n_batches, initial=progress.batch, desc=name, unit="batch") as self.bar:
            self.pace = Pace()
            while batches := list(islice(loader, self.model.recipe.accumulate)):
                self.train_update(batches)
                self.bar.update(len(batches))
                self.after_update()
                if progress.stop_reason(options):
                    return

    def train_update(self, batches: list[Any]) -> None:
        """Make one update, from one batch or from several."""
        progress = self.progress
        self.optimizer.zero_grad()
        progress.update += 1
        progress.timed_updates += 1
        progress.batch += len(batches)
        try:
            found = gather_gradients(self.model, batches, self.device, progress.update, progress.epoch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if not self.options.handle_oom or world.size > 1:
                where = f"update {progress.update}"
                raise UserError("out of memory", where, "lower batch_size or max_len, or set handle_oom") from error
            self.journal.show(f"Update {progress.update} skipped: out of memory", ALWAYS)
            return
        if self.model.learning != self.learning:
            self.learning = self.model.learning
            compact(f"Now learning: {self.learning}")
        self.last_loss, self.last_norm = found.loss / found.n_items, self.optimizer.clip()
        self.unhealthy |= ~(found.minimised + self.last_norm).isfinite()
        if not progress.first_update and any(weight.grad is not None for weight in self.optimizer.parameters):
            progress.first_update = progress.update
        if self.device.type == "cpu":
            self.check_health()  # on a GPU this would wait for every update; there, `display` does it
        self.optimizer.step(self.model.lr_factor(progress.update) * self.schedule(progress.update))
        self.average.update()
        self.epoch_loss += found.loss
        progress.epoch_items += found.n_items
        self.pace.count(found.n_items)

    def after_update(self) -> None:
        """Log, validate, save or stop, as the options or the user request."""
        progress, options = self.progress, self.options
        if progress.update % options.disp_freq == 0:
            self.display()
        due = options.eval_freq > 0 and progress.update % options.eval_freq == 0
        progress.validation_due = bool(self.validator and due and progress.epoch >= options.eval_start)
        checkpoint_due = options.checkpoint_freq > 0 and progress.update % options.checkpoint_freq == 0
        if checkpoint_due and options.n_checkpoints:
            self.checkpointing.save_numbered()
        if progress.validation_due:
            self.validate()  # which saves the state as well
        elif checkpoint_due:
            self.save()
        self.interrupts.check()

    def end_epoch(self) -> None:
        """Log the epoch's mean loss, and note whether a validation is due."""
        progress, epoch = self.progress, self.progress.epoch
        progress.epoch_loss = self.epoch_loss.item()
        mean = progress.end_epoch()
        self.epoch_loss.zero_()
        what = f"mean loss {mean:.4f}" if progress.first_update else f"learned: {self.model.learning}"
        self.journal.say(f"Epoch {epoch} done: {what} ({self.pace})")
        self.journal.log_scalar("epoch_LOSS", mean, progress.update)
        due = self.options.eval_freq == 0 and epoch >= self.options.eval_start
        progress.validation_due = bool(self.validator and due)

    def display(self) -> None:
        """Write a log line, a shorter console line with the key metrics, and a point of each curve."""
        self.check_health()
        progress, lr = self.progress, self.optimizer.last_lr
        loss, norm = self.last_loss.item(), self.last_norm.item()
        line = f"Epoch {progress.epoch} - update {progress.update:7d} => "
        line += f"loss: {loss:7.3f}" if progress.first_update else f"learning: {self.model.learning}"
        for name, value in self.model.aux_loss.items():
            line += f" [{name}: {value.item():.3f}]"
            self.journal.log_scalar(f"train_{name.upper()}", value.item(), progress.update)
        self.journal.say(f"{line}  |gradient|: {norm:.2f}  lr: {lr:.2g}  {self.pace}")
        for name, value in (("train_LOSS", loss), ("gradient_norm", norm), ("lr", lr)):
            self.journal.log_scalar(name, value, progress.update)
        metrics = self.model.figures()
        if metrics is None:  # maximum likelihood
            metrics = {"loss": loss, "perplexity": math.exp(min(loss, 99.0)), "|gradient|": norm, "lr": lr}
            metrics["words/s"] = self.pace.words_per_second
            if warning := watch_training(progress, loss):
                self.journal.say(warning)
        if metrics:
            self.columns.show(progress.epoch, progress.update, metrics)
        self.bar.set_postfix_str(f"whole run: up to {self.stopwatch.time_left()}", refresh=False)

    # Validation

    def validate(self) -> None:
        """Score the validation set, keep the best checkpoints, step the plateau schedule, save."""
        progress, first = self.progress, self.options.eval_metrics[0].upper()
        started, n_words = time.monotonic(), len(self.model.trg_vocab)
        assert self.validator is not None
        with self.average.in_place():
            results = self.validator(self.interrupts.interruptible)
        improved = progress.record(results, first, has_diverged(results, progress, n_words))
        lines, summary = validation_lines(progress, results, improved)
        for line in [*lines, *sample_lines(progress, self.validator.samples())]:
            self.journal.say(line)
        left = self.options.patience - progress.bad_validations
        time_left = f"patience {left}, up to {self.stopwatch.time_left()} left"
        compact(f"{summary}; {time_left}", ALWAYS)
        if warning := watch_validation(progress, n_words):
            self.journal.say(warning)
        for metric in results:
            self.journal.log_scalar(f"val_{metric.name}", metric.score, progress.update)
        for metric in improved:
            if metric.name == first or self.options.save_best_metrics:
                self.checkpointing.save_best(metric)
        counts = progress.first_update or progress.validation == 1  # else the model has not changed since then
        score = next(metric.score for metric in results if metric.name == first)
        if counts and self.optimizer.after_validation(score):
            self.journal.show(f"Learning rate reduced to {self.optimizer.lr:.2g}")
            if self.options.lr_decay_revert and first in progress.best:
                self.revert_to_best(first)
        seconds = time.monotonic() - started
        self.journal.say(f"Validated in {seconds:.0f} s; patience: {left}; {self.stopwatch}")
        self.save()

    def revert_to_best(self, metric: str) -> None:
        """Continue from the weights of the best validation, which are averages if there is an average."""
        path = self.run.folder / self.progress.best[metric].file
        load_weights(self.model, world.broadcast_from_main(lambda: load_checkpoint(path).weights), path)
        self.average.restart()
        self.journal.show(f"Reverted to the weights of {path.name}")

    # Saving and resuming

    def save(self) -> None:
        """Write everything that resuming needs, unless a weight is not finite."""
        self.check_health()
        if name := first_not_finite(self.model.named_parameters()):
            what = f"not finite after update {self.progress.update}: the weight {name}"
            raise UserError(what, self.run.folder, UNHEALTHY)
        self.progress.epoch_loss = self.epoch_loss.item()
        self.stopwatch.read()
        config = self.model.opts.to_dict()
        config["train"]["seed"] = self.options.seed  # a drawn seed belongs to the progress, not to the configuration
        state = {
            "config": config,
            "exp_id": self.run.exp_id,
            "files": self.files,
            "progress": self.progress.to_dict(),
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict(),
            "model": self.model.training_state(),
            "random": random_states(),
            "journal": self.journal.position(),
        }
        own = {"random": state["random"], "model": self.model.rank_state()}
        state["other_ranks"] = world.gather_on_main(own)[1:]
        if world.is_main:
            save_state(self.run.folder, state)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore weights, optimiser and average."""
        with state_fits(self.run.folder):
            load_weights(self.model, state["weights"], self.run.folder)
            self.optimizer.load_state_dict(state["optimizer"])
            self.average.load_state_dict(state["average"])

    def restore_learner(self, state: dict[str, Any]) -> None:
        """Restore the learner, and last, after everything that draws random numbers, the random states."""
        others = state.get("other_ranks", [])
        before = len(others) + 1
        if world.size != before:
            new = "a new process starts with its own random stream and an empty replay buffer"
            gone = "random streams and replay buffers of the others are lost"
            line = f"Number of processes: {before} until now, {world.size} from here on"
            self.journal.show(f"{line}; {new if world.size > before else gone}")
        with state_fits(self.run.folder):
            check_like(state["model"], self.model.training_state(), "model")
            check_like([rank["model"] for rank in others], [self.model.rank_state()], "other_ranks")
            self.model.load_training_state(state["model"])
            restore_random_states(state["random"])
            if 0 < world.rank <= len(others):
                self.model.load_rank_state(others[world.rank - 1]["model"])
                restore_random_states(others[world.rank - 1]["random"])
            elif world.rank:
                self.model.load_rank_state(None)
                fix_seeds(seed_of_rank(self.progress.seed))

    def check_health(self) -> None:
        """Stop if an update had a loss or a gradient that is not finite; what was saved before it stays."""
        if bool(self.unhealthy):
            seen = f"loss {self.last_loss.item():.3g}, gradient norm {self.last_norm.item():.3g}"
            raise UserError(f"not finite at update {self.progress.update}: {seen}", self.run.folder, UNHEALTHY)
