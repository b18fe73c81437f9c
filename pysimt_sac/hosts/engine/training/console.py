"""Console output of a run: few lines on standard error; everything else is in the log file.

Messages have a level of Python's logging: `DETAIL` is shown only with `--verbose`, `ALWAYS` even with `--quiet`. A
compact message summarises details; it is hidden where those are shown.
"""

import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

DETAIL, ALWAYS = 15, 25
VERBOSE, NORMAL, QUIET, SILENT = DETAIL, logging.INFO, ALWAYS, logging.CRITICAL
YELLOW, BOLD, PLAIN = "\033[33m", "\033[1m", "\033[0m"
HEADING_EVERY = 25  # lines of metrics

logger = logging.getLogger("pysimt_sac")


class ConsoleHandler(logging.Handler):
    """Writes to standard error without breaking a progress bar; coloured and wrapped on a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        if getattr(record, "compact", False) and logger.level <= DETAIL:
            return
        text = self.format(record)
        if sys.stderr.isatty():
            text = "\n".join(wrap(line, terminal_width()) for line in text.splitlines())
            if has_colours() and record.levelno >= ALWAYS:
                text = f"{YELLOW if record.levelno >= logging.WARNING else BOLD}{text}{PLAIN}"
        tqdm.write(text, file=sys.stderr)


def has_colours() -> bool:
    """Return whether standard error is a terminal and its user has not disabled colours."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the width of standard error's terminal in columns."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def wrap(line: str, width: int) -> str:
    """Wrap a long line; indent continuation lines, to the text if that follows a label."""
    if len(line) <= width:
        return line
    label = re.match(r"\w+:  +", line)
    indent = " " * (label.end() if label else 2)
    return textwrap.fill(line, max(20, width), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def log_to_console(level: int = NORMAL) -> None:
    """Show messages of a level and above."""
    if not any(isinstance(handler, ConsoleHandler) for handler in logger.handlers):
        logger.addHandler(ConsoleHandler())
    logger.setLevel(level)
    logger.propagate = False


def compact(message: str, level: int = logging.INFO) -> None:
    """Log a message that is hidden where details are shown."""
    logger.log(level, message, extra={"compact": True})


def progress_bar(iterable: Iterable[Any] | None = None, **options: Any) -> Any:
    """Return a progress bar with the time left; disabled without a terminal or with `--quiet`."""
    disable = True if logger.level >= ALWAYS else None
    return tqdm(iterable, leave=False, disable=disable, dynamic_ncols=True, **options)


class Columns:
    """A run's metrics in aligned columns; the heading is repeated when they change, and now and then."""

    def __init__(self) -> None:
        self.heading, self.n_lines = "", 0

    def show(self, epoch: int, update: int, figures: dict[str, float]) -> None:
        """Print one line, under a heading if due."""
        heading = f"{'epoch':>6} {'update':>8}" + "".join(f" {name:>12}" for name in figures)
        if heading != self.heading or self.n_lines == HEADING_EVERY:
            compact(heading)
            self.heading, self.n_lines = heading, 0
        compact(f"{epoch:6d} {update:8d}" + "".join(f" {shorten(value):>12}" for value in figures.values()))
        self.n_lines += 1


def shorten(value: float) -> str:
    """Format a number with its significant digits."""
    if abs(value) >= 1000:
        return f"{value:.0f}" if abs(value) < 1e7 else f"{value:.2e}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
