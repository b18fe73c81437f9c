"""Read a run's log: times, software, seed and warnings."""

import re
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.core.files import read_lines

STAMP = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d):\d\d (?P<message>.*)")
WARNING = "Warning: "


@dataclass(frozen=True)
class RunLog:
    """The content of a log; times are to the minute, empty if unknown."""

    started: str = ""
    ended: str = ""
    seed: str = ""
    software: str = ""
    warnings: tuple[str, ...] = ()


def read_log(path: Path) -> RunLog:
    """Read a log; all fields are empty if there is none."""
    lines = read_lines(path, "log") if path.is_file() else []
    entries = [(found["time"], found["message"]) for line in lines if (found := STAMP.fullmatch(line))]
    seed = software = ""
    warnings = []
    for time, message in entries:
        if message.startswith("Host: "):  # logged at each restart: the last one produced the final weights
            software = message.removeprefix("Host: ")
        elif begun := re.fullmatch(r"Run \S+ in .*; seed (\d+)", message):
            seed = begun[1]
        elif message.startswith(WARNING):
            warnings.append(f"{time}: {message.removeprefix(WARNING)}")
    times = [time for time, _ in entries]
    return RunLog(min(times, default=""), max(times, default=""), seed, software, tuple(warnings))
