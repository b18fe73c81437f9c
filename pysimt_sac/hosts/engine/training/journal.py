"""A run's output: console, log file, a file of scalars, TensorBoard.

A resumed run truncates its files to where the saved state left them, so that nothing is logged twice. All are written
line by line, so that they can be followed during the run.
"""

import contextlib
import json
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import why
from pysimt_sac.hosts.engine.training.console import DETAIL, logger


class Journal:
    """The log and the curves of one run.

    position: where the saved state of a resumed run left the files, else None; step: its last update.
    """

    def __init__(
        self, folder: Path, exp_id: str, tensorboard_dir: Path | None, position: dict[str, int] | None, step: int
    ) -> None:
        self.paths = {"log": folder / f"{exp_id}.log", "scalars": folder / f"{exp_id}.scalars.jsonl"}
        self.streams: dict[str, IO[str]] = {}
        self.listeners: list[Callable[[str, float, int], None]] = []  # called with every point of every curve
        self.tensorboard_dir, self.writer = tensorboard_dir, None
        for name, path in self.paths.items():
            try:
                if position is None:
                    path.unlink(missing_ok=True)
                elif path.exists():
                    os.truncate(path, min(position.get(name, 0), path.stat().st_size))
                self.streams[name] = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115 - for the whole run
            except OSError as error:
                self.close()
                raise UserError(f"cannot be written: {why(error)}", path) from error
        if tensorboard_dir:
            try:
                self.writer = open_tensorboard(tensorboard_dir, position, step)
            except OSError as error:
                self.close()
                raise UserError(f"cannot be written: {why(error)}", tensorboard_dir, "see tensorboard_dir") from error

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
        stored = value if math.isfinite(value) else None
        self._write("scalars", json.dumps({"step": step, "name": name, "value": stored}) + "\n")
        if self.writer:
            try:
                self.writer.add_scalar(name, value, global_step=step)
            except OSError as error:
                raise UserError(f"cannot be written: {why(error)}", self.tensorboard_dir) from error
        for listener in self.listeners:
            listener(name, value, step)

    def _write(self, name: str, text: str) -> None:
        try:
            self.streams[name].write(text)
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", self.paths[name]) from error

    def position(self) -> dict[str, int]:
        """Flush the files and return their sizes, for the training state."""
        try:
            for stream in self.streams.values():
                stream.flush()
            if self.writer:
                self.writer.flush()
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", self.paths["log"]) from error
        positions = {name: path.stat().st_size for name, path in self.paths.items() if path.exists()}
        if self.tensorboard_dir:
            positions.update({path.name: path.stat().st_size for path in event_files(self.tensorboard_dir)})
        return positions

    def close(self) -> None:
        """Close all files; a full disk has already been reported."""
        for stream in self.streams.values():
            with contextlib.suppress(OSError):
                stream.close()
        if self.writer:
            with contextlib.suppress(OSError):
                self.writer.close()


class NullJournal(Journal):
    """The journal of all ranks but 0: it writes nothing."""

    def __init__(self) -> None:
        self.streams, self.writer = {}, None

    def show(self, message: str, level: int = logging.INFO) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Do nothing."""

    def position(self) -> dict[str, int]:
        """Return no positions."""
        return {}


def event_files(folder: Path) -> list[Path]:
    """Return TensorBoard's files of a run: one for each start."""
    return sorted(folder.glob("events.out.tfevents.*"))


def open_tensorboard(folder: Path, position: dict[str, int] | None, step: int) -> Any:
    """Open a writer that continues the curves where the saved state left them."""
    from torch.utils.tensorboard import SummaryWriter  # heavy, and rarely needed

    for path in event_files(folder):
        size = (position or {}).get(path.name, 0)
        if size:
            os.truncate(path, min(size, path.stat().st_size))
        else:
            path.unlink()
    # Makes a running TensorBoard forget the points that were just cut off.
    return SummaryWriter(str(folder), purge_step=step + 1 if position else None)
