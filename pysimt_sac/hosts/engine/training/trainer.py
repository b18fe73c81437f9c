"""The training loop: updates, validation, early stopping, checkpoints, and a state from which a run resumes exactly.

The loop knows a model only by its protocol (`load_data`, `forward`, `test_performance`, `training_state`, ...), so that
it trains whatever the registry offers. Its progress so far is a `Progress`.
"""

import math
import time
import zlib
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from pysimt_sac.core.distributed import seed_of_rank, world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import make_folder
from pysimt_sac.core.sections import TrainOptions
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
from pysimt_sac.hosts.engine.training.divergence import has_diverged, watch_training, watch_validation
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.interrupts import Interrupted, Interrupts
from pysimt_sac.hosts.engine.training.journal import Journal, NullJournal
from pysimt_sac.hosts.engine.training.optim import Optimizer
from pysimt_sac.hosts.engine.training.outcome import closing_lines, validation_details, validation_line
from pysimt_sac.hosts.engine.training.pace import Pace, Stopwatch, describe_time, time_left, updates_left
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.hosts.engine.training.randomness import draw_seed, fix_seeds, random_states, restore_random_states
from pysimt_sac.hosts.engine.training.runs import Run, files_of_run
from pysimt_sac.hosts.engine.training.schedule import plan_schedule, resume_schedule
from pysimt_sac.hosts.engine.training.startup import describe_host
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
            self.progress = (
                Progress.from_dict(state["progress"])
                if state
                else Progress(seed=options.seed or world.broadcast_from_main(draw_seed))
            )
        model.opts.train["seed"] = self.progress.seed  # batches depend on it, and checkpoints store it
        fix_seeds(self.progress.seed)
        self.corpus = model.load_data("train", options.batch_size)
        self.validator = Validator(model, options, device) if options.eval_freq >= 0 else None
        if state and state["corpus"] != self.fingerprint():
            what = "the text or a vocabulary has changed since this run began"
            raise UserError(what, run.folder, "undo that, or start over with --restart")
        self.files = files_of_run(model.opts.to_dict())
        build_layers(model)
        self.notes = prepare_weights(model, options, fresh=state is None)
        with out_of_memory_as_user_error(device, "use a smaller model or another device"):
            model.to(device)
        higher_better = self.validator.higher_better(options.eval_metrics[0]) if self.validator else True
        self.optimizer = Optimizer(model, options, higher_better, model.recipe.weight_decay)
        self.n_batches = len(self.corpus.batches(1))  # per epoch, to estimate the run's length
        planned = plan_schedule(model.recipe, options, -(-self.n_batches // model.recipe.accumulate))
        self.schedule, said = resume_schedule(planned, self.progress.lr_total if state else None)
        self.progress.lr_total = self.schedule.total
        self.average = WeightAverage(model, model.recipe.ema_decay)
        self.checkpointing = Checkpointing(run, model, options, self.progress, self.optimizer, self.average)
        self.interrupts = Interrupts()
        self.stopwatch = Stopwatch(self.progress)
        self.columns, self.learning = Columns(), ""
        # Kept on the device, so that no update has to wait for them:
        self.epoch_loss = torch.zeros((), dtype=torch.float64, device=device)
        self.unhealthy = torch.zeros((), dtype=torch.bool, device=device)
        self.last_loss = self.last_norm = torch.zeros((), device=device)
        if state:
            self.restore(state)
        # Everything that can be checked has been: from here on the run's folder is written to.
        board = Path(options.tensorboard_dir) / run.subfolder / run.exp_id if options.tensorboard_dir else None
        if board and world.is_main:
            make_folder(board)
        run.begin()
        position = state["journal"] if state else None
        self.journal = (
            Journal(run.folder, run.exp_id, board, position, self.progress.update) if world.is_main else NullJournal()
        )
        try:
            if state is None:
                self.journal.say(describe_host(device))
            model.register_tensorboard(self.journal)
            if world.rank:  # the weights are those of all ranks; from here on, every rank draws for itself
                fix_seeds(seed_of_rank(self.progress.seed))
            if state:
                self.restore_learner(state)
            for note in self.notes:
                self.journal.say(note)
            for note in (*said, *self.checkpointing.notes):
                self.journal.show(note)
        except BaseException:
            self.journal.close()
            raise

    # Saving and resuming

    def save(self) -> None:
        """Write everything that resuming needs, unless a weight is not finite."""
        self.check_health()
        self.check_weights()
        self.progress.epoch_loss = self.epoch_loss.item()
        self.stopwatch.read()
        config = self.model.opts.to_dict()
        config["train"]["seed"] = self.options.seed  # a drawn seed belongs to the progress, not to the configuration
        state = {
            "config": config,
            "exp_id": self.run.exp_id,
            "corpus": self.fingerprint(),
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
            self.average.load_state_dict(state.get("average", {}))  # states of earlier versions have none
            self.epoch_loss.fill_(self.progress.epoch_loss)

    def restore_learner(self, state: dict[str, Any]) -> None:
        """Restore the learner, and last, after everything that draws random numbers, the random states."""
        others = state.get("other_ranks", [])
        before = len(others) + 1
        if world.size != before:
            new = "a new process starts with its own random stream and an empty replay buffer"
            gone = "random streams and replay buffers of the others are lost"
            told = f"Number of processes: {before} until now, {world.size} from here on"
            self.journal.show(f"{told}; {new if world.size > before else gone}")
        with state_fits(self.run.folder):
            self.model.load_training_state(state["model"])
            restore_random_states(state["random"])
            if 0 < world.rank <= len(others):
                self.model.load_rank_state(others[world.rank - 1]["model"])
                restore_random_states(others[world.rank - 1]["random"])
            elif world.rank:
                self.model.load_rank_state(None)
                fix_seeds(seed_of_rank(self.progress.seed))

    def fingerprint(self) -> int:
        """Return a checksum of the text, to detect a change before a run is resumed."""
        corpora = [self.corpus, self.validator.loss_corpus] if self.validator else [self.corpus]
        checksum = 0
        for side in (side for corpus in corpora for side in corpus.sides.values()):
            checksum = zlib.crc32(side.ids.tobytes(), zlib.crc32(side.lengths.tobytes(), checksum))
        return checksum

    # Training

    def train(self) -> str:
        """Train until a stopping condition is met and return it, or raise `Interrupted` with the state saved."""
        self.model.train()
        with self.interrupts:  # until the very end: a signal must not interrupt saving
            try:
                if self.run.state is None:
                    self.progress.validation_due = self.options.eval_zero and self.validator is not None
                    self.save()
                if self.progress.validation_due:
                    self.validate()
                while not (reason := self.progress.stop_reason(self.options)):
                    self.progress.ended = False
                    self.train_epoch()
            except Interrupted:
                self.save()
                raise
            if not self.progress.best:
                self.checkpointing.save("final")
            self.journal.show(f"Training ended: {reason}", ALWAYS)
            for line in closing_lines(self.progress, self.options.eval_metrics[0].upper()):
                self.journal.show(line, ALWAYS + 5 * line.startswith("Warning"))
            self.progress.ended = True
            self.save()
        self.journal.close()
        return reason

    def train_epoch(self) -> None:
        """Train the rest of an epoch, up to a stopping condition."""
        progress, options = self.progress, self.options
        loader = self.corpus.loader(progress.epoch, progress.batch, options.num_workers, options.pin_memory)
        n_batches, name = len(self.corpus.batches(progress.epoch)), f"epoch {progress.epoch}/{options.max_epochs}"
        with progress_bar(total=n_batches, initial=progress.batch, desc=name, unit="batch") as self.bar:
            self.pace = Pace()
            while batches := list(islice(loader, self.model.recipe.accumulate)):
                self.train_update(batches)
                self.bar.update(len(batches))
                self.after_update()
                if progress.stop_reason(options) and progress.batch < n_batches:
                    return
        self.end_epoch()

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

    def display(self) -> None:
        """Write a log line, a shorter console line, and a point of each curve."""
        self.check_health()
        progress, loss, norm = self.progress, self.last_loss.item(), self.last_norm.item()
        line = f"Epoch {progress.epoch} - update {progress.update:7d} => "
        line += f"loss: {loss:7.3f}" if progress.first_update else f"learning: {self.model.learning}"
        for name, value in self.model.aux_loss.items():
            line += f" [{name}: {value.item():.3f}]"
            self.journal.log_scalar(f"train_{name.upper()}", value.item(), progress.update)
        self.journal.say(f"{line}  |gradient|: {norm:.2f}  lr: {self.optimizer.last_lr:.2g}  {self.pace}")
        for name, value in (("train_LOSS", loss), ("gradient_norm", norm), ("lr", self.optimizer.last_lr)):
            self.journal.log_scalar(name, value, progress.update)
        self.show_figures(loss, norm)

    def show_figures(self, loss: float, norm: float) -> None:
        """Show the key metrics: the algorithm's own, or those of maximum likelihood, watched for divergence."""
        progress, figures = self.progress, self.model.figures()
        if figures is None:
            perplexity = math.exp(min(loss, 99.0))
            figures = {"loss": loss, "perplexity": perplexity, "|gradient|": norm, "lr": self.optimizer.last_lr}
            figures["words/s"] = self.pace.words_per_second
            if warning := watch_training(progress, loss):
                self.journal.say(warning)
        if figures:
            self.columns.show(progress.epoch, progress.update, figures)
        self.bar.set_postfix_str(f"whole run: {self.time_left()}", refresh=False)

    def end_epoch(self) -> None:
        """Log the epoch's mean loss, and validate if that is due."""
        progress, epoch = self.progress, self.progress.epoch
        progress.epoch_loss = self.epoch_loss.item()
        mean = progress.end_epoch()
        self.epoch_loss.zero_()
        what = f"mean loss {mean:.4f}" if progress.first_update else f"learned: {self.model.learning}"
        self.journal.say(f"Epoch {epoch} done: {what} ({self.pace})")
        self.journal.log_scalar("epoch_LOSS", mean, progress.update)
        progress.validation_due = bool(
            self.validator and self.options.eval_freq == 0 and epoch >= self.options.eval_start
        )
        if progress.validation_due:
            self.validate()

    def validate(self) -> None:
        """Score the validation set, keep the best checkpoints, step the plateau schedule, save."""
        assert self.validator is not None
        progress, first = self.progress, self.options.eval_metrics[0].upper()
        started, before = time.time(), random_states()
        try:
            with (
                out_of_memory_as_user_error(
                    f"validation after update {progress.update}", "lower eval_batch_size or eval_beam"
                ),
                self.average.in_place(),
            ):
                results = self.validator(self.interrupts.interruptible)
        except Interrupted:
            restore_random_states(before)  # it will be repeated from the start
            raise
        n_words = len(self.model.trg_vocab)
        lost = has_diverged(results, progress, n_words)
        improved = progress.record(results, first, lost)
        progress.validation_due = False
        for line in validation_details(progress, results, improved):
            self.journal.say(line)
        left = self.options.patience - progress.bad_validations
        time_told = f"patience {left}, {self.time_left()} left"
        compact(f"{validation_line(progress, results, improved)}; {time_told}", ALWAYS)
        if warning := watch_validation(progress, n_words, lost):
            self.journal.say(warning)
        for metric in results:
            self.journal.log_scalar(f"val_{metric.name}", metric.score, progress.update)
        for metric in improved:
            if metric.name == first or self.options.save_best_metrics:
                self.checkpointing.save_best(metric)
        if self.optimizer.after_validation(next(metric.score for metric in results if metric.name == first)):
            self.journal.show(f"Learning rate reduced to {self.optimizer.lr:.2g}")
            if self.options.lr_decay_revert and first in progress.best:
                self.revert_to_best(first)
        self.journal.say(f"Validated in {time.time() - started:.0f} s; patience: {left}; {self.describe_time()}")
        self.save()

    def updates_left(self) -> int:
        """Return how many updates the run may still make."""
        return updates_left(self.progress, self.options, self.n_batches, self.model.recipe.accumulate)

    def time_left(self) -> str:
        """Describe how long the run may still take."""
        self.stopwatch.read()
        return time_left(self.progress, self.updates_left())

    def describe_time(self) -> str:
        """Describe how long the run has taken, and how long it may still take."""
        self.stopwatch.read()
        return describe_time(self.progress, self.updates_left())

    def revert_to_best(self, metric: str) -> None:
        """Continue from the weights of the best validation, which are averages if there is an average."""
        path = self.run.folder / self.progress.best[metric].file
        load_weights(self.model, world.broadcast_from_main(lambda: load_checkpoint(path).weights), path)
        self.average.restart()
        self.journal.show(f"Reverted to the weights of {path.name}")

    def check_health(self) -> None:
        """Stop if an update had a loss or a gradient that is not finite; what was saved before it stays."""
        if bool(self.unhealthy):
            seen = f"loss {self.last_loss.item():.3g}, gradient norm {self.last_norm.item():.3g}"
            raise UserError(f"not finite at update {self.progress.update}: {seen}", self.run.folder, UNHEALTHY)

    def check_weights(self) -> None:
        """Stop before weights that are not finite are saved over good ones."""
        for name, weight in self.model.named_parameters():
            if not bool(weight.isfinite().all()):
                what = f"not finite after update {self.progress.update}: the weight {name}"
                raise UserError(what, self.run.folder, UNHEALTHY)
