"""What a run tells: console, log file, a file of scalars, TensorBoard.

A resumed run cuts its files back to where the saved state left them, so that nothing is told twice.
"""

import contextlib
import json
import logging
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pysimt_sac.errors import UserError
from pysimt_sac.files import why

logger = logging.getLogger("pysimt_sac")


class ConsoleHandler(logging.Handler):
    """Writes to standard error without tearing a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        tqdm.write(self.format(record), file=sys.stderr)


def log_to_console() -> None:
    """Show the log's messages on standard error."""
    if not any(isinstance(handler, ConsoleHandler) for handler in logger.handlers):
        logger.addHandler(ConsoleHandler())
    logger.setLevel(logging.INFO)
    logger.propagate = False


class Journal:
    """The log and the curves of one run."""

    def __init__(
        self, folder: Path, exp_id: str, tensorboard_dir: Path | None, position: dict[str, int] | None, step: int
    ):
        self.paths = {"log": folder / f"{exp_id}.log", "scalars": folder / f"{exp_id}.scalars.jsonl"}
        self.streams = {}
        for name, path in self.paths.items():
            try:
                if position is None:
                    path.unlink(missing_ok=True)
                elif path.exists():
                    os.truncate(path, min(position[name], path.stat().st_size))
                self.streams[name] = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open for the whole run
            except OSError as error:
                raise UserError(f"cannot be written: {why(error)}", path) from error
        self.writer: Any = None
        if tensorboard_dir:
            from torch.utils.tensorboard import SummaryWriter  # heavy, and seldom needed

            # What came after the saved state is purged: TensorBoard shows no point twice.
            self.writer = SummaryWriter(str(tensorboard_dir), purge_step=step + 1 if position else None)

    def say(self, message: str) -> None:
        """A line for the log and the console."""
        logger.info(message)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        for line in message.splitlines():
            self._write("log", f"{stamp} {line}\n")

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """A point of a curve."""
        value = float(value)
        stored = value if math.isfinite(value) else None
        self._write("scalars", json.dumps({"step": step, "name": name, "value": stored}) + "\n")
        if self.writer:
            self.writer.add_scalar(name, value, global_step=step)

    def _write(self, name: str, text: str) -> None:
        try:
            self.streams[name].write(text)
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", self.paths[name]) from error

    def position(self) -> dict[str, int]:
        """How far the files go, everything flushed; stored with the training state."""
        try:
            for stream in self.streams.values():
                stream.flush()
            if self.writer:
                self.writer.flush()
        except OSError as error:
            raise UserError(f"cannot be written: {why(error)}", self.paths["log"]) from error
        return {name: path.stat().st_size for name, path in self.paths.items()}

    def close(self) -> None:
        """Close all files; a full disk has been reported before."""
        for stream in self.streams.values():
            with contextlib.suppress(OSError):
                stream.close()
        if self.writer:
            self.writer.close()
