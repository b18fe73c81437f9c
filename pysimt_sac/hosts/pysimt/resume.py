"""The parts that `pysimt_loop.Loop` adds to pysimt's loop: resuming, training recipe, journal, orderly stop.

This module uses the attributes of pysimt's loop and does not import it. The state has the engine's format and location.
"""

import contextlib
import logging
import re
import signal
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import make_folder
from pysimt_sac.hosts.engine.checkpoint import load_state, load_weights, save_state, state_fits
from pysimt_sac.hosts.engine.training.interrupts import Interrupted
from pysimt_sac.hosts.engine.training.journal import Journal
from pysimt_sac.hosts.engine.training.optim import parameter_groups
from pysimt_sac.hosts.engine.training.randomness import pack, random_states, restore_random_states, unpack
from pysimt_sac.hosts.engine.training.runs import Run

log = logging.getLogger("pysimt")
ITERATORS = ("train_iterator", "vloss_iterator", "beam_iterator")
COUNTERS = ("uctr", "vctr", "early_bad", "train_loss")


# Saving and resuming


def save(loop: Any) -> None:
    """Save the training state; only between epochs, since pysimt's batch order cannot be restored within one."""
    monitor, optim = loop.monitor, loop.optim
    scores = {name: [vars(metric) for metric in found] for name, found in monitor.val_scores.items()}
    progress = {
        **{name: getattr(monitor, name) for name in COUNTERS},
        "val_scores": scores,
        "checkpoints": [path.name for path in monitor.checkpoints.elems],
        "seed": loop.seed,
        "reached": monitor.uctr,
        "lr_total": loop.schedule.total,
    }
    state = {
        "host": "pysimt",
        "config": loop.config,
        "exp_id": loop.exp_id,
        "corpus": fingerprint(loop),
        "progress": progress,
        "weights": loop.model.state_dict(),
        "optimizer": {"optimizer": optim.state_dict(), "rate": optim.cur_lr, "schedule": schedule_state(optim)},
        "average": loop.average.state_dict(),
        "model": loop.model.training_state() if hasattr(loop.model, "training_state") else {},
        "random": {**random_states(), "samplers": [pack(rng.get_state()) for rng in sampler_generators(loop)]},
        "journal": loop.journal.position(),
    }
    save_state(loop.run.folder, state)


def note_end(loop: Any) -> None:
    """Record in the last state how far a run got that ended within an epoch, so that it counts as finished."""
    state, _ = load_state(loop.run.folder)
    if state:
        state["progress"]["reached"] = loop.monitor.uctr
        save_state(loop.run.folder, state)


def finished(state: dict[str, Any] | None, options: dict[str, Any]) -> str:
    """Return why a run is finished; empty if it is not."""
    if not state:
        return ""
    progress = state["progress"]
    if len(progress["train_loss"]) >= options["max_epochs"]:
        return f"{len(progress['train_loss'])} epochs"
    if progress["reached"] >= options["max_iterations"]:
        return f"{progress['reached']} updates"
    return "patience is exhausted" if progress["early_bad"] >= options["patience"] else ""


def describe_resuming(run: Run) -> str:
    """Describe a resumed run, for the log."""
    epochs = len(run.state["progress"]["train_loss"]) if run.state else 0
    return "\n".join(filter(None, [run.remark, f"Resuming {run.exp_id} after {epochs} complete epochs"]))


def restore(loop: Any, state: dict[str, Any], make_metric: Callable[..., Any]) -> None:
    """Restore the state written by `save`, random states last."""
    if state["corpus"] != fingerprint(loop):
        what = "the text or a vocabulary has changed since this run began"
        raise UserError(what, loop.run.folder, "undo that, or start over with --restart")
    with state_fits(loop.run.folder):
        progress, monitor, optim = state["progress"], loop.monitor, loop.optim
        load_weights(loop.model, state["weights"], loop.run.folder)
        optim.load_state_dict(state["optimizer"]["optimizer"])
        optim.cur_lr = state["optimizer"]["rate"]
        loop.average.load_state_dict(state.get("average", {}))  # states of earlier versions have no average
        if optim.scheduler:
            vars(optim.scheduler).update(state["optimizer"]["schedule"])
        for name in COUNTERS:
            setattr(monitor, name, progress[name])
        monitor.ectr = len(monitor.train_loss) + 1
        monitor.val_scores = defaultdict(list)
        for name, scores in progress["val_scores"].items():
            monitor.val_scores[name] = [make_metric(**score) for score in scores]
            monitor.cur_bests[name] = monitor.best_score(monitor.val_scores[name])
        monitor.checkpoints.elems.extend(loop.run.folder / name for name in progress["checkpoints"])
        remove_later_links(loop.run.folder, loop.exp_id, monitor.vctr)
        if state["model"]:
            loop.model.load_training_state(state["model"])
        restore_random_states(state["random"])
        for rng, packed in zip(sampler_generators(loop), state["random"]["samplers"], strict=True):
            rng.set_state(unpack(packed))


def remove_later_links(folder: Path, exp_id: str, last_validation: int) -> None:
    """Remove links to best checkpoints of validations that will be repeated.

    On a new best, pysimt deletes the old link's target, which here would be the new checkpoint itself.
    """
    for link in folder.glob(f"{exp_id}.best.*.ckpt"):
        number = re.search(r"-val(\d+)\.best", str(link.readlink())) if link.is_symlink() else None
        if number and int(number[1]) > last_validation:
            link.unlink()


def fingerprint(loop: Any) -> int:
    """Return a checksum of the text, to detect changes since the run began."""
    checksum = 0
    for name in ITERATORS[:2]:
        for side in getattr(loop, name).dataset.datasets.values() if hasattr(loop, name) else ():
            checksum = zlib.crc32(repr(getattr(side, "data", len(side))).encode(), checksum)
    return checksum


def sampler_generators(loop: Any) -> list[Any]:
    """Return the random generators of pysimt's samplers, which persist across epochs."""
    samplers = [getattr(loop, name).batch_sampler for name in ITERATORS if hasattr(loop, name)]
    return [sampler._rng for sampler in samplers if hasattr(sampler, "_rng")]


def schedule_state(optim: Any) -> dict[str, Any]:
    """Return the state of torch's plateau schedule, or of pysimt's own noam."""
    return (
        {name: value for name, value in vars(optim.scheduler).items() if name != "optimizer"} if optim.scheduler else {}
    )


# During training


def follow_lr_factor(optimizer: torch.optim.Optimizer, factor: Callable[[], float]) -> None:
    """Multiply the learning rate by the current factor during every step, and restore it afterwards."""
    rates: list[float] = []

    def before(*_: Any) -> None:
        rates[:] = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] *= factor()

    def after(*_: Any) -> None:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def decay_weights(optimizer: torch.optim.Optimizer, model: nn.Module, decay: float) -> None:
    """Add decoupled weight decay as in AdamW, at the learning rate of each step; call it after `follow_lr_factor`."""
    groups = parameter_groups(model.named_parameters(), decay)
    weights = [weight for group in groups if group.get("weight_decay") for weight in group["params"]]

    @torch.no_grad()
    def before(*_: Any) -> None:
        rate = optimizer.param_groups[0]["lr"]
        for weight in weights:
            if weight.grad is not None:
                weight.mul_(1 - rate * decay)

    optimizer.register_step_pre_hook(before)


class HostJournal(Journal, logging.Handler):
    """Our journal, which replaces pysimt's TensorBoard handle and, as a logging handler, its log file.

    Messages before `open` are buffered, so that a failed start leaves no files behind.
    """

    def __init__(self, run: Run, tensorboard_dir: str) -> None:
        logging.Handler.__init__(self)
        self.run, self.kept = run, list[tuple[str, str]]()
        self.streams, self.writer, self.listeners = {}, None, []
        self.board = Path(tensorboard_dir) / run.subfolder / run.exp_id if tensorboard_dir else None

    def open(self) -> None:
        """Start the run; from here on, its folder is written to."""
        if self.board:
            make_folder(self.board)
        run = self.run
        run.begin()
        Journal.__init__(self, run.folder, run.exp_id, self.board, run.state["journal"] if run.state else None)
        for name, text in self.kept:
            self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        if self.run.begun:
            Journal._write(self, name, text)
        else:
            self.kept.append((name, text))

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message of pysimt's logger."""
        self.note(record.getMessage())

    def say(self, message: str) -> None:
        """Write a line to console and log."""
        log.info(message)

    def log_metrics(self, results: list[Any], step: int, suffix: str = "") -> None:
        """Log the scores of a validation; pysimt's `suffix` is a prefix of their names."""
        for metric in results:
            self.log_scalar(suffix + metric.name, metric.score, step)

    def __enter__(self) -> "HostJournal":
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal; called by pysimt's loop when it has finished."""
        log.removeHandler(self)
        Journal.close(self)

    def __repr__(self) -> str:
        return f"Curves: {self.run.exp_id}.scalars.jsonl"


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
