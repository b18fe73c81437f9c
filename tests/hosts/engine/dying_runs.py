"""Starting runs that die, and comparing what is left of them: shared by the tests of resuming and of stress."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import torch

# Validation inside epochs and numbered checkpoints, so that every kind of file is written and removed again.
BUSY = [
    "train.eval_freq:6",
    "train.checkpoint_freq:4",
    "train.n_checkpoints:2",
    "train.lr_decay:plateau",
    "train.lr_decay_patience:0",
    "train.lr_decay_revert:True",
    "train.eval_zero:True",
]
MOMENTS = ("fsync", "replace", "unlink", "symlink")  # of a save; each is killed before and after


def fork_training(words, prepare=None):
    """Train, or run another command, in a child process; its exit status, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(start_training(words, prepare), 0)[1])


def start_training(words, prepare=None):
    """Train in a child process; its id. prepare: is called there first."""
    child = os.fork()
    if child:
        return child
    try:
        from pysimt_sac.cli import main_sac

        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        if prepare:
            prepare()
        os._exit(main_sac([str(word) for word in words]))
    finally:
        os._exit(99)


def die_at(moment, names=MOMENTS):
    """Make this process kill itself at the n-th moment of its saves; returns how many there were."""
    count = 0

    def deadly(function):
        def wrapper(*args, **kwargs):
            nonlocal count
            for call in (lambda: None, lambda: function(*args, **kwargs)):
                result = call()
                count += 1
                if count == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapper

    for name in names:
        setattr(os, name, deadly(getattr(os, name)))


def die_in_update(number):
    """Make this process kill itself in the middle of its n-th update."""
    from pysimt_sac.hosts.engine.training.optim import Optimizer

    clip, count = Optimizer.clip, 0

    def deadly(self):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return clip(self)

    Optimizer.clip = deadly


# What is left of a run


def last_state(folder: Path) -> dict[str, Any]:
    """The training state a run ended with."""
    return torch.load(folder / "train_state.pt", weights_only=True)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two nested values differ, tensors to the last bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            text for key in {**one, **other} for text in differences(one.get(key), other.get(key), f"{where}.{key}")
        ]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [
            text for i, pair in enumerate(zip(one, other, strict=True)) for text in differences(*pair, f"{where}[{i}]")
        ]
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return [] if torch.equal(one, other) else [f"{where}: tensors differ"]
    same = one == other or (one != one and other != other)  # what is not a number is not even equal to itself
    return [] if same and type(one) is type(other) else [f"{where}: {one!r} is not {other!r}"]


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    """All of a state that must not depend on where and how often the run was stopped."""
    progress = {name: value for name, value in state["progress"].items() if name != "seconds"}
    exp_id = state["exp_id"]
    progress["best"] = {
        name: {**best, "file": best["file"].replace(exp_id, "ID")} for name, best in progress["best"].items()
    }
    progress["checkpoints"] = [name.replace(exp_id, "ID") for name in progress["checkpoints"]]
    parts = ("weights", "optimizer", "average", "model", "random")
    return {"progress": progress, **{part: state[part] for part in parts}}


def log_lines(folder: Path) -> list[str]:
    """The log without times and speeds, and without the lines that say that the run was resumed."""
    (path,) = folder.glob("*.log")
    exp_id = path.stem
    lines = [line[20:].replace(exp_id, "ID").replace(str(folder), "FOLDER") for line in path.read_text().splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("Training on"))  # before it: paths
    told = [line for line in lines[start:] if not line.startswith(("Resuming", "FOLDER"))]
    return [re.sub(r"\(?\d+ updates, \d+ words/s\)?|in \d+ s|time spent: .*", "", line) for line in told]


def scalars(folder: Path) -> list[dict[str, Any]]:
    """The points of all curves, in the order in which they were written."""
    (path,) = folder.glob("*.scalars.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def tensorboard_points(folder: Path) -> list[tuple[str, int, float]]:
    """The same, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return sorted(
        (name, point.step, point.value) for name in events.Tags()["scalars"] for point in events.Scalars(name)
    )


def files(folder: Path) -> list[str]:
    """What a run leaves behind, whatever its id."""
    (log,) = folder.glob("*.log")
    return sorted(path.name.replace(log.stem, "ID") for path in folder.iterdir())


def assert_same_run(one: Path, other: Path) -> None:
    """Two run folders hold the same outcome."""
    assert differences(comparable(last_state(one)), comparable(last_state(other))) == []
    assert scalars(one) == scalars(other)
    assert log_lines(one) == log_lines(other)
    assert files(one) == files(other)
