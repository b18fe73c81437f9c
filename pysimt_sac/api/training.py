"""Training from Python: `pysimt train` with callbacks and access to the curves."""

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysimt_sac.hosts.huggingface.network
import pysimt_sac.models  # noqa: F401 - registers our models
from pysimt_sac.api.model import Model, load
from pysimt_sac.core.curves import read_points
from pysimt_sac.core.errors import UserError, error_in_own_file
from pysimt_sac.hosts.engine.config.values import write_value
from pysimt_sac.hosts.engine.decoding.translation import checkpoint_to_use
from pysimt_sac.hosts.engine.device import choose_device
from pysimt_sac.hosts.engine.shell import read_training
from pysimt_sac.hosts.engine.training.console import NORMAL, QUIET, VERBOSE, log_to_console
from pysimt_sac.hosts.engine.training.interrupts import Interrupted
from pysimt_sac.hosts.engine.training.runs import open_run
from pysimt_sac.hosts.engine.training.startup import describe_finished
from pysimt_sac.hosts.engine.training.trainer import Trainer

Callback = Callable[[str, float, int], object]


@dataclass(frozen=True)
class Run:
    """A run, finished or stopped.

    outcome: why it ended; finished: if False, the same call resumes it.
    """

    folder: Path
    exp_id: str
    outcome: str
    finished: bool

    @property
    def checkpoint(self) -> Path:
        """The best checkpoint by the first of the run's eval_metrics, else the last one."""
        return checkpoint_to_use(self.folder)

    @property
    def curves(self) -> dict[str, list[tuple[int, float | None]]]:
        """All curves by name, as points (update, value); the value is None if it was not finite."""
        found: dict[str, list[tuple[int, float | None]]] = {}
        for point in read_points(self.folder / f"{self.exp_id}.scalars.jsonl"):
            found.setdefault(point.name, []).append((point.step, point.value))
        return found

    def load(self, device: str = "auto") -> Model:
        """Load the best model."""
        return load(self.checkpoint, device=device)


def train(
    config: str | Path,
    *,
    suffix: str = "",
    device: str = "auto",
    restart: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    **overrides: Any,
) -> Run:
    """Train from a configuration file, or resume a run that was stopped.

    overrides: values that replace the configuration's, by section, `train={"seed": 2}, model={"lambda_rl": 0.5}`, or by
    key, `**{"train.seed": 2}`. callbacks: called with the name, value and update of every point of every curve; if one
    returns True, the run is saved and stops. The other arguments are those of `pysimt train`.
    """
    if threading.current_thread() is not threading.main_thread():
        raise UserError("needs the main thread: it handles signals", "train", "start a process instead")
    log_to_console(VERBOSE if verbose else QUIET if quiet else NORMAL)
    chosen = choose_device(device)
    options, train_options, model = read_training(Path(config), override_words(overrides))
    with open_run(options, suffix, restart) as opened:
        if finished := describe_finished(opened, train_options):
            return Run(opened.folder, opened.exp_id, finished, finished=True)
        trainer = Trainer(model, train_options, opened, chosen)
        trainer.journal.listeners.extend(stopping(callback, trainer) for callback in callbacks)
        try:
            return Run(opened.folder, opened.exp_id, trainer.train(), finished=True)
        except Interrupted as interruption:
            return Run(opened.folder, opened.exp_id, f"stopped by {interruption}", finished=False)
        except SystemExit as error:  # of a reward or a model of the user's own: it must not end the calling program
            raise error_in_own_file(error) or error from error
        finally:
            trainer.journal.close()


def stopping(callback: Callback, trainer: Trainer) -> Callable[[str, float, int], None]:
    """Wrap a callback: when it returns True, the trainer stops as soon as it can."""

    def listen(name: str, value: float, update: int) -> None:
        if callback(name, value, update) is True:
            trainer.interrupts.received = signal.SIGINT

    return listen


def override_words(overrides: dict[str, Any]) -> list[str]:
    """Return overrides as on the command line: `section.key:value`."""
    words = []
    for name, value in overrides.items():
        if "." in name:
            words.append(f"{name}:{write_value(value)}")
        elif isinstance(value, dict):
            words += [f"{name}.{key}:{write_value(item)}" for key, item in value.items()]
        else:
            hint = "give a section with its keys, e.g. train={'seed': 2}, or **{'train.seed': 2}"
            raise UserError(f"{value!r} is not a dictionary of keys and values", name, hint)
    return words
