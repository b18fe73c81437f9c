"""What is done: a stamp for every step that has ended, with the checksum of its inputs and of what it wrote.

A step's key is a checksum of all that its outcome depends on, and part of its name. So nothing is ever out of date: a
changed configuration gives other keys, and only the steps that depend on it have no stamps yet.
"""

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.corpora.record import checksum, versions
from pysimt_sac.errors import UserError
from pysimt_sac.files import atomic_write

KEY_LENGTH = 10  # hexadecimal digits
PACKAGES = ("torch", "numpy", "sacrebleu", "sacremoses", "subword-nmt")


@dataclass(frozen=True)
class Output:
    """A file that a step wrote, by its path in the working folder."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Stamp:
    """That a step is done, and by which code. seconds: that it took, in all its parts; details: a training's books."""

    id: str
    key: str
    command: tuple[str, ...]
    seconds: float
    commit: str
    versions: dict[str, str]
    outputs: tuple[Output, ...]
    details: dict[str, Any] = field(default_factory=dict)


def digest(value: Any) -> str:
    """A short checksum of plain values."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:KEY_LENGTH]


def commit() -> str:
    """The commit of this package's clone, with a + if files differ from it; empty for an installed package."""
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
    """What git says."""
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Stamps:
    """The stamps of a working folder."""

    root: Path

    def path(self, step_id: str) -> Path:
        """Where a step's stamp is."""
        return self.root / "steps" / f"{step_id}.json"

    def read(self, step_id: str) -> Stamp | None:
        """The stamp of a step whose outputs are as it left them; None: it is not done."""
        try:
            content = json.loads(self.path(step_id).read_text(encoding="utf-8"))
            outputs = tuple(Output(**output) for output in content.pop("outputs"))
            details = content.pop("details", None) or content.pop("told", {})  # `told`: of earlier versions
            stamp = Stamp(**content | {"command": tuple(content["command"]), "outputs": outputs, "details": details})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # damaged, or of another version: the step is done again
        return stamp if all(map(self.is_there, outputs)) else None

    def is_there(self, output: Output) -> bool:
        """Whether a file is as a step wrote it."""
        path = self.root / output.path
        try:
            return path.stat().st_size == output.size and checksum(path) == output.sha256
        except OSError:
            return False

    def output(self, path: Path) -> Output:
        """A file that a step has just written."""
        if not path.is_file():
            raise UserError("was not written", path)
        return Output(str(path.relative_to(self.root)), path.stat().st_size, checksum(path))

    def write(
        self,
        step_id: str,
        key: str,
        command: Sequence[str],
        seconds: float,
        outputs: Sequence[Path],
        details: Mapping[str, Any] | None = None,
        made_by: str | None = None,
    ) -> Stamp:
        """Stamp a step. made_by: the commit, if it is not this one. Versions are not known of runs from elsewhere."""
        stamp = Stamp(
            id=step_id,
            key=key,
            command=tuple(command),
            seconds=round(seconds, 3),
            commit=commit() if made_by is None else made_by,
            versions={} if details and "adopted" in details else versions(PACKAGES),
            outputs=tuple(map(self.output, outputs)),
            details=dict(details or {}),
        )
        with atomic_write(self.path(step_id)) as stream:
            json.dump(asdict(stamp), stream, ensure_ascii=False, indent=2)
            stream.write("\n")
        return stamp
