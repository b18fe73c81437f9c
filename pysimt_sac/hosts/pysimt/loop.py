"""pysimt's training loop, extended by training recipes, our journal, and exact resuming at epoch boundaries."""

import contextlib
import logging
import signal
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from pysimt import mainloop, metrics, monitor
from pysimt.utils.data import make_dataloader

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.files import make_folder
from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.choice import check_reads_alike
from pysimt_sac.hosts.engine.checkpoint import Checkpoint, keep_prefixes, load_checkpoint, load_weights
from pysimt_sac.hosts.engine.data.corpus import Indices, ParallelCorpus, Text, read_sentences
from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.checkpointing import find_preparation
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.interrupts import Interrupted
from pysimt_sac.hosts.engine.training.journal import Journal
from pysimt_sac.hosts.engine.training.runs import Run, files_of_run
from pysimt_sac.hosts.engine.training.schedule import plan_schedule, resume_schedule
from pysimt_sac.hosts.pysimt import resume
from pysimt_sac.hosts.pysimt.recipe import SmoothedLoss, follow_recipe

log = logging.getLogger("pysimt")


class HostJournal(logging.Handler):
    """Our journal in place of pysimt's TensorBoard handle and, as a logging handler, of its log file.

    Messages before `open` are kept in memory, so that a failed start leaves no files behind.
    """

    def __init__(self, run: Run, tensorboard_dir: str) -> None:
        super().__init__()
        self.run, self.kept = run, list[str]()
        self.board = Path(tensorboard_dir) / run.subfolder / run.exp_id if tensorboard_dir else None
        self.journal: Journal | None = None

    def open(self) -> None:
        """Start the run; from here on, its folder is written to."""
        if self.board:
            make_folder(self.board)
        run = self.run
        run.begin()
        self.journal = Journal(run.folder, run.exp_id, self.board, run.state["journal"] if run.state else None)
        for message in self.kept:
            self.journal.note(message)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message of pysimt's logger."""
        (self.journal.note if self.journal else self.kept.append)(record.getMessage())

    def say(self, message: str) -> None:
        """Write a line to console and log."""
        log.info(message)

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Write a point of a curve."""
        assert self.journal is not None
        self.journal.log_scalar(name, value, step)

    def log_metrics(self, results: list[Any], step: int, suffix: str = "") -> None:
        """Log the scores of a validation; pysimt's `suffix` is a prefix of their names."""
        for metric in results:
            self.log_scalar(suffix + metric.name, metric.score, step)

    def close(self) -> None:
        """Close the journal; also called by pysimt's loop when it has finished."""
        log.removeHandler(self)
        if self.journal:
            self.journal.close()
        super().close()

    def __repr__(self) -> str:
        return f"Curves: {self.run.exp_id}.scalars.jsonl"


def as_pysimt_loads(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint in the format of pysimt's loader, which unpickles anything; torch refuses that since 2.6.

    The optimiser is left out: with it, pysimt would give a fine-tuned model the learning rate of its pre-training.
    """
    return {"opts": checkpoint.options, "model": checkpoint.weights, "history": checkpoint.history}


class AveragingMonitor(monitor.Monitor):  # type: ignore[misc]
    """pysimt's monitor; its checkpoints hold the weight average, if there is one."""

    average: WeightAverage
    preparation: dict[str, Any]  # how the training text was prepared, if known

    def state_dict(self) -> dict[str, Any]:
        """Return the `history` entry of checkpoints, as plain values."""
        scores = {name: [metric.score for metric in found] for name, found in self.val_scores.items()}
        return {**super().state_dict(), "val_scores": scores, **self.preparation}

    def save_model(self, metric: Any = None, suffix: str = "", do_symlink: bool = False) -> Path:
        """Write a checkpoint of the average; with a metric, validation has swapped it in already."""
        with contextlib.nullcontext() if metric else self.average.in_place():
            return Path(super().save_model(metric, suffix, do_symlink))

    def reload_previous_best(self) -> None:
        """Reload the best weights during validation; restart the average from them."""
        super().reload_previous_best()
        self.average.restart()


class BatchesByWords:
    """The engine's batches of at most so many words, in place of those that pysimt's samplers draw."""

    def __init__(self, model: Any, dataset: Any, batch_tokens: int, seed: int, progress: monitor.Monitor) -> None:
        self.progress, options = progress, model.opts.model
        sides = {}
        for side in (model.sl, model.tl):
            path = dataset.datasets[side].fnames[0]
            sides[str(side)] = Text(read_sentences(path), model.vocabs[side], side.trg, path)
        drawn = {name: options[name] for name in ("bucket_by", "bucket_order", "sampler_type", "max_len")}
        self.corpus = ParallelCorpus(sides, 0, batch_tokens=batch_tokens, training=True, seed=seed, **drawn)

    def __iter__(self) -> Iterator[Indices]:
        return iter(self.corpus.batches(self.progress.ectr))

    def __len__(self) -> int:
        return len(self.corpus.batches(1))


class SeveralBatches(list[Batch]):
    """The batches of one update."""

    def device(self, device: Any) -> None:
        """Leave them where they are: each is moved when its turn comes."""


class AccumulatingLoader:
    """A loader of pysimt's, several batches at a time."""

    def __init__(self, loader: Any, several: int) -> None:
        self.loader, self.several = loader, several
        self.dataset, self.batch_sampler = loader.dataset, loader.batch_sampler

    def __iter__(self) -> Iterator[SeveralBatches]:
        batches = (Batch({str(side): ids for side, ids in batch.items()}) for batch in self.loader)
        while update := SeveralBatches(islice(batches, self.several)):
            yield update

    def __len__(self) -> int:
        return -(-len(self.loader) // self.several)


class Loop(mainloop.MainLoop):  # type: ignore[misc]
    """pysimt's loop, which follows a training recipe and saves the training state after every epoch."""

    train_iterator: Any

    def __init__(
        self,
        model: Any,
        options: dict[str, Any],
        manager: Any,
        recipe: RecipeOptions,
        config: dict[str, Any],
        journal: HostJournal,
    ) -> None:
        self.run, self.config, self.journal = journal.run, config, journal
        state, self.files = self.run.state, files_of_run(config)
        mainloop.TensorBoard = lambda *_: journal
        mainloop.load_pt_file = self.load_pretrained
        # A resumed run gets its weights from the training state.
        super().__init__(model, {**options, "pretrained_file": ""} if state else options, manager)
        if self.eval_freq >= 0 and not hasattr(self, "vloss_iterator"):  # pysimt computes the loss in any case
            self.vloss_iterator = make_dataloader(model.load_data("val", self.batch_size, mode="eval"))
        if recipe.batch_tokens:
            dataset = self.train_iterator.dataset
            dataset.sampler = BatchesByWords(model, dataset, recipe.batch_tokens, self.seed, self.monitor)
            self.train_iterator = make_dataloader(dataset, self.pin_memory, self.num_workers)
        if recipe.accumulate > 1:
            self.train_iterator = AccumulatingLoader(self.train_iterator, recipe.accumulate)
        self.monitor.preparation, notes = find_preparation(config["data"], (str(model.sl), str(model.tl)))
        for note in (*notes, *self.follow(recipe)):
            log.info(note)
        if state:
            resume.restore(self, state, metrics.Metric)
        self.eval_zero: bool = options["eval_zero"] and self.eval_freq >= 0 and self.monitor.vctr == 0
        journal.open()

    def load_pretrained(self, path: Path, device: str = "cpu") -> dict[str, Any]:
        """Return a checkpoint for pysimt to load; refuse one that does not fit in a line that says why."""
        checkpoint, layers = load_checkpoint(path), str(self.pretrained_layers or "")
        if hasattr(self.model, "wait"):  # in a shell of ours
            check_reads_alike(checkpoint.options, self.model.wait, path)
        weights = keep_prefixes(checkpoint.weights, layers.split(","), checkpoint.path)
        load_weights(self.model, weights, checkpoint.path, partial=True)
        return as_pysimt_loads(checkpoint)

    def follow(self, recipe: RecipeOptions) -> list[str]:
        """Apply the recipe to every optimiser step; return notes for the log."""
        limits = TrainOptions(max_iterations=self.max_iterations, max_epochs=self.max_epochs)
        planned, state = plan_schedule(recipe, limits, len(self.train_iterator)), self.run.state
        self.schedule, notes = resume_schedule(planned, state["progress"]["lr_total"] if state else None)
        self.average = self.monitor.average = WeightAverage(self.model, recipe.ema_decay)
        follow_recipe(self.optim.optim, self.model, self.lr_factor, recipe.weight_decay)
        self.optim.optim.register_step_post_hook(lambda *_: self.average.update())
        if recipe.label_smoothing:
            self.model.dec.nll_loss = SmoothedLoss(recipe.label_smoothing)
        return notes

    def lr_factor(self) -> float:
        """Return the current learning-rate factor: the model's times the schedule's."""
        update = self.monitor.uctr
        own = self.model.lr_factor(update) if hasattr(self.model, "lr_factor") else 1.0
        return float(own * self.schedule(update))

    def do_validation(self) -> None:
        """Validate, and save the best checkpoint, with the average in place of the weights.

        A validation before the model's first update, while only critics learn, uses up no patience.
        """
        bad_before, session = self.monitor.early_bad, getattr(self.model, "session", None)
        with self.average.in_place():
            super().do_validation()
        if session and not session.first_update:
            self.monitor.early_bad = bad_before

    def __call__(self) -> None:
        """Train; save an initial state first, so that a run can always be resumed."""
        if not self.run.state:
            resume.save(self)
        super().__call__()

    def train_batch(self, batch: Any) -> float:
        """Make one update, from one batch or from several; return the seconds it took."""
        if not isinstance(batch, SeveralBatches):
            return float(super().train_batch(batch))
        started = time.time()
        self.optim.zero_grad()
        found = gather_gradients(self.model, batch, self.dev_mgr.dev, self.monitor.uctr, self.monitor.ectr)
        self.loss_meter.update(found.loss, found.n_items)
        self.optim.step()
        return time.time() - started

    def train_epoch(self) -> bool:
        """Train for an epoch, and save the state if it was completed."""
        goes_on = bool(super().train_epoch())
        if len(self.monitor.train_loss) == self.monitor.ectr - goes_on:
            resume.save(self)
        else:  # ended within an epoch; if resumed, it continues from the end of the previous one
            resume.note_end(self)
        return goes_on


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `Interrupted` on SIGINT and SIGTERM; pysimt would exit with status 0, as if training had finished."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
