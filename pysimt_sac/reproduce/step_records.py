"""Steps, and a record of every finished one, with checksums of its outputs.

A step's key is a checksum of everything its outcome depends on, and part of its name. So nothing is ever out of date: a
changed configuration gives different keys, and only the steps that depend on it lack records.
"""

import hashlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write
from pysimt_sac.core.records import read_record
from pysimt_sac.corpora.record import checksum, versions

KEY_LENGTH = 10  # hexadecimal digits
PACKAGES = ("torch", "numpy", "sacrebleu", "sacremoses", "subword-nmt")


@dataclass(frozen=True)
class Step:
    """A command of `pysimt-sac`. outputs: files that it must write; after: ids of the steps that it needs."""

    id: str
    title: str
    key: str
    words: tuple[str, ...] = ()
    outputs: tuple[Path, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """A file that a step wrote; the path is relative to the working folder."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StepRecord:
    """A record that a step is done, and by which code. seconds: total, also if resumed; details: a run's metadata."""

    id: str
    key: str
    command: tuple[str, ...]
    seconds: float
    commit: str
    versions: dict[str, str]
    outputs: tuple[Output, ...]
    details: dict[str, Any]


def digest(value: Any) -> str:
    """Return a short checksum of plain values."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:KEY_LENGTH]


def commit() -> str:
    """Return the commit of this package's clone, with a + if files differ from it; empty for an installed package."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""
    try:
        found = git(folder, "rev-parse", "--short=12", "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", "pysimt_sac", "experiments")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{found}+" if changed else found


def git(folder: Path, *words: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class StepRecords:
    """The records of a working folder."""

    root: Path

    def path(self, step_id: str) -> Path:
        """Return the path of a step's record."""
        return self.root / "steps" / f"{step_id}.json"

    def read(self, step_id: str) -> StepRecord | None:
        """Return the record of a step whose outputs are unchanged; None if the step is not done."""
        try:
            record = read_record(StepRecord, self.path(step_id), "record of a step")
        except UserError:
            return None  # missing, damaged, or of another version: the step runs again
        return record if all(map(self.is_unchanged, record.outputs)) else None

    def is_unchanged(self, output: Output) -> bool:
        """Return whether a file is as a step wrote it."""
        path = self.root / output.path
        try:
            return path.stat().st_size == output.size and checksum(path) == output.sha256
        except OSError:
            return False

    def write(
        self, step: Step, seconds: float, made_by: str, outputs: Sequence[Path], details: dict[str, Any]
    ) -> StepRecord:
        """Record a finished step. made_by: the commit of the code that ran it."""
        for path in outputs:
            if not path.is_file():
                raise UserError("was not written", path)
        files = [Output(str(path.relative_to(self.root)), path.stat().st_size, checksum(path)) for path in outputs]
        about = (step.id, step.key, step.words, round(seconds, 3), made_by, versions(PACKAGES))
        record = StepRecord(*about, tuple(files), details)
        with atomic_write(self.path(step.id)) as stream:
            json.dump(asdict(record), stream, ensure_ascii=False, indent=2)
            stream.write("\n")
        return record
