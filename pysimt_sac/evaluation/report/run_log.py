"""What a run's log tells of its origin: when, with which software and seed, and what it warned of."""

import re
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.files import read_lines

STAMP = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d):\d\d (?P<message>.*)")
WARNING = "Warning: "


@dataclass(frozen=True)
class RunLog:
    """The facts of a log; times are to the minute, empty if unknown."""

    started: str = ""
    ended: str = ""
    seed: str = ""
    software: str = ""
    warnings: tuple[str, ...] = ()


def read_log(path: Path) -> RunLog:
    """Read a log; one that is not there tells nothing."""
    lines = read_lines(path, "log") if path.is_file() else []
    entries = [(found["time"], found["message"]) for line in lines if (found := STAMP.fullmatch(line))]
    seed = software = ""
    warnings = []
    for time, message in entries:
        if message.startswith("Host: "):  # again after each interruption: the last one made the last weights
            software = message.removeprefix("Host: ")
        elif begun := re.fullmatch(r"Run \S+ in .*; seed (\d+)", message):
            seed = begun[1]
        elif message.startswith(WARNING):
            warnings.append(f"{time}: {message.removeprefix(WARNING)}")
    times = [time for time, _ in entries]
    return RunLog(min(times, default=""), max(times, default=""), seed, software, tuple(warnings))
