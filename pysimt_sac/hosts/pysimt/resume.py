"""The training state of runs in pysimt's loop: saved between epochs, and restored so that nothing shows.

This module uses the attributes of pysimt's loop and does not import it. The state has the engine's format and location.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysimt_sac.hosts.engine.checkpoint import load_state, load_weights, save_state, state_fits
from pysimt_sac.hosts.engine.training.randomness import pack, random_states, restore_random_states, unpack

COUNTERS = ("uctr", "vctr", "early_bad", "train_loss")


def save(loop: Any) -> None:
    """Save the training state; only between epochs, since pysimt's batch order cannot be restored within one."""
    monitor, optim = loop.monitor, loop.optim
    scheduler = vars(optim.scheduler) if optim.scheduler else {}
    state = {
        "host": "pysimt",
        "config": loop.config,
        "exp_id": loop.exp_id,
        "corpus": 0,  # `files` tells whether the text has changed
        "files": loop.files,
        "progress": {
            **{name: getattr(monitor, name) for name in COUNTERS},
            "val_scores": {name: [vars(metric) for metric in found] for name, found in monitor.val_scores.items()},
            "checkpoints": [path.name for path in monitor.checkpoints.elems],
            "seed": loop.seed,
            "reached": monitor.uctr,
            "lr_total": loop.schedule.total,
        },
        "weights": loop.model.state_dict(),
        "optimizer": {
            "optimizer": optim.state_dict(),
            "rate": optim.cur_lr,
            "schedule": {name: value for name, value in scheduler.items() if name != "optimizer"},
        },
        "average": loop.average.state_dict(),
        "model": loop.model.training_state() if hasattr(loop.model, "training_state") else {},
        "random": {**random_states(), "samplers": [pack(rng.get_state()) for rng in sampler_generators(loop)]},
        "journal": loop.journal.journal.position(),
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
    progress, epochs = state["progress"], len(state["progress"]["train_loss"])
    if epochs >= options["max_epochs"]:
        return f"{epochs} epochs"
    if progress["reached"] >= options["max_iterations"]:
        return f"{progress['reached']} updates"
    return "patience is exhausted" if progress["early_bad"] >= options["patience"] else ""


def restore(loop: Any, state: dict[str, Any], make_metric: Callable[..., Any]) -> None:
    """Restore the state written by `save`, random states last."""
    with state_fits(loop.run.folder):
        progress, monitor, optim = state["progress"], loop.monitor, loop.optim
        load_weights(loop.model, state["weights"], loop.run.folder)
        loop.average.load_state_dict(state["average"])
        optim.load_state_dict(state["optimizer"]["optimizer"])
        optim.cur_lr = state["optimizer"]["rate"]
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


def sampler_generators(loop: Any) -> list[Any]:
    """Return the random generators of pysimt's samplers, which persist across epochs."""
    loaders = ("train_iterator", "vloss_iterator", "beam_iterator")
    samplers = [getattr(loop, name).batch_sampler for name in loaders if hasattr(loop, name)]
    return [sampler._rng for sampler in samplers if hasattr(sampler, "_rng")]
