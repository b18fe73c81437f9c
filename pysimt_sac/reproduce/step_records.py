"""A record of every finished step, with checksums of its outputs.

A step's key is a checksum of everything its outcome depends on, and part of its name. So nothing is ever out of date: a
changed configuration gives different keys, and only the steps that depend on it lack records.
"""

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write
from pysimt_sac.corpora.record import checksum, versions

KEY_LENGTH = 10  # hexadecimal digits
PACKAGES = ("torch", "numpy", "sacrebleu", "sacremoses", "subword-nmt")


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
    details: dict[str, Any] = field(default_factory=dict)


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
            content = json.loads(self.path(step_id).read_text(encoding="utf-8"))
            outputs = tuple(Output(**output) for output in content.pop("outputs"))
            record = StepRecord(**content | {"command": tuple(content["command"]), "outputs": outputs})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # missing, damaged, or of another version: the step runs again
        return record if all(map(self.is_unchanged, outputs)) else None

    def is_unchanged(self, output: Output) -> bool:
        """Return whether a file is as a step wrote it."""
        path = self.root / output.path
        try:
            return path.stat().st_size == output.size and checksum(path) == output.sha256
        except OSError:
            return False

    def output(self, path: Path) -> Output:
        """Return the record of a file that a step has just written."""
        if not path.is_file():
            raise UserError("was not written", path)
        return Output(str(path.relative_to(self.root)), path.stat().st_size, checksum(path))

    def write(
        self,
        step_id: str,
        key: str,
        command: Sequence[str],
        seconds: float,
        made_by: str,
        outputs: Sequence[Path],
        details: Mapping[str, Any] | None = None,
    ) -> StepRecord:
        """Record a finished step. made_by: the commit of the code that ran it."""
        record = StepRecord(
            id=step_id,
            key=key,
            command=tuple(command),
            seconds=round(seconds, 3),
            commit=made_by,
            versions=versions(PACKAGES),
            outputs=tuple(map(self.output, outputs)),
            details=dict(details or {}),
        )
        with atomic_write(self.path(step_id)) as stream:
            json.dump(asdict(record), stream, ensure_ascii=False, indent=2)
            stream.write("\n")
        return record
