"""A run's output: console, log file, a file of scalars, TensorBoard.

A resumed run truncates its files to where the saved state left them, so that nothing is logged twice. All are written
line by line, so that they can be followed during the run.
"""

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pysimt_sac.core.curves import Point, read_points
from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import make_folder, open_in_folder, why
from pysimt_sac.hosts.engine.training.console import DETAIL, logger
from pysimt_sac.hosts.engine.training.runs import Run
from pysimt_sac.hosts.engine.training.tracking import WandbTracker


@contextlib.contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Turn a failure to write in the block into a `UserError`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", path) from error


class Journal:
    """The log and the curves of one run.

    position: where the saved state of a resumed run left the files, else None.
    """

    def __init__(
        self, folder: Path, exp_id: str, tensorboard_dir: Path | None = None, position: dict[str, int] | None = None
    ) -> None:
        self.paths = {"log": folder / f"{exp_id}.log", "scalars": folder / f"{exp_id}.scalars.jsonl"}
        self.streams: dict[str, IO[str]] = {}
        self.listeners: list[Callable[[str, float, int], None]] = []  # called with every point of every curve
        self.tensorboard_dir, self.writer = tensorboard_dir, None
        self.tracker: WandbTracker | None = None
        try:
            for name, path in self.paths.items():
                with writing(path):
                    if position is None:
                        path.unlink(missing_ok=True)
                    stream = self.streams[name] = open_in_folder(path)
                    os.ftruncate(stream.fileno(), min(os.fstat(stream.fileno()).st_size, (position or {}).get(name, 0)))
            if tensorboard_dir:
                with writing(tensorboard_dir):
                    self.writer = open_tensorboard(tensorboard_dir)
                self._draw_earlier_points()
        except ImportError:
            self.say("Warning: TensorBoard is not installed and gets no curves: pip install 'pysimt_sac[tensorboard]'")
        except BaseException:
            self.close()
            raise

    def track(self, tracker: WandbTracker) -> None:
        """Send every new point of the curves to a tracker as well."""
        self.tracker = tracker
        self.listeners.append(tracker)

    def say(self, message: str) -> None:
        """Write a line to the log; on the console it is a detail, unless it is a warning."""
        self.show(message, logging.WARNING if message.startswith("Warning: ") else DETAIL)

    def show(self, message: str, level: int = logging.INFO) -> None:
        """Write a line to the log and the console."""
        logger.log(level, message)
        self.note(message)

    def note(self, message: str) -> None:
        """Write a line to the log only."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        for line in message.splitlines():
            self._write("log", f"{stamp} {line}\n")

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Write a point of a curve."""
        value = float(value)
        self._write("scalars", Point(step, name, value if math.isfinite(value) else None).line())
        self._draw(name, value, step)
        for listener in self.listeners:
            listener(name, value, step)

    def _write(self, name: str, text: str) -> None:
        if name in self.streams:
            with writing(self.paths[name]):
                self.streams[name].write(text)

    def _draw(self, name: str, value: float, step: int) -> None:
        if self.writer:
            with writing(self.tensorboard_dir):
                self.writer.add_scalar(name, value, global_step=step)

    def _draw_earlier_points(self) -> None:
        for point in read_points(self.paths["scalars"]):
            self._draw(point.name, math.nan if point.value is None else point.value, point.step)

    def position(self) -> dict[str, int]:
        """Flush the files and return their sizes, for the training state; write again what has been deleted."""
        if self.writer:
            with writing(self.tensorboard_dir):
                self.writer.flush()
        for name, path in self.paths.items():
            if not self.is_there(name):
                with writing(path), self.streams[name] as old:
                    old.seek(0)
                    written = old.read()
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.unlink(missing_ok=True)
                    self.streams[name] = open_in_folder(path)
                self._write(name, written)
                self.say(f"Warning: {path} has been deleted or replaced during the run; it is written again")
        for name, stream in self.streams.items():
            with writing(self.paths[name]):
                stream.flush()
        return {name: os.fstat(stream.fileno()).st_size for name, stream in self.streams.items()}

    def is_there(self, name: str) -> bool:
        """Return whether the file that is written to is still the one in the folder."""
        try:
            return os.path.samestat(os.fstat(self.streams[name].fileno()), self.paths[name].lstat())
        except OSError:
            return False

    def close(self) -> None:
        """Close all files; a full disk has already been reported."""
        for file in (*self.streams.values(), self.writer, self.tracker):
            with contextlib.suppress(OSError):
                if file:
                    file.close()


class NullJournal(Journal):
    """The journal of all ranks but 0: it has no files, and their console is silent."""

    def __init__(self) -> None:
        self.paths, self.streams, self.listeners, self.writer, self.tracker = {}, {}, [], None, None


def open_journal(run: Run, tensorboard_dir: str | Path | None) -> Journal:
    """Begin the run and open its log and curves; other ranks than 0 write nothing."""
    if not world.is_main:
        return NullJournal()
    board = make_folder(Path(tensorboard_dir) / run.subfolder / run.exp_id) if tensorboard_dir else None
    run.begin()
    return Journal(run.folder, run.exp_id, board, run.state["journal"] if run.state else None)


def open_tensorboard(folder: Path) -> Any:
    """Open a writer for all curves of a run; those of an earlier start are drawn again from its scalars."""
    from torch.utils.tensorboard import SummaryWriter  # heavy, and rarely needed

    earlier = list(folder.glob("events.out.tfevents.*"))
    for path in earlier:
        path.unlink()
    # Makes a running TensorBoard forget the points that it has read.
    return SummaryWriter(str(folder), purge_step=0 if earlier else None)
