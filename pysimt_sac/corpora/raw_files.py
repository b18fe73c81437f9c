"""Find raw text files and check them up front."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import stream_lines


@dataclass(frozen=True)
class RawFile:
    """A text file and the SHA-256 of its uncompressed text."""

    path: Path
    lines: int
    checksum: str


def require_folder(path: Path) -> Path:
    """Return `path` if it is a folder."""
    if not path.is_dir():
        raise UserError("is not a folder" if path.exists() else "no such folder", path, "check the path")
    return path


def find_text(folder: Path, name: str) -> Path | None:
    """Return the file of this name, plain or compressed, or None."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def scan_text(path: Path) -> RawFile:
    """Read a whole text file to count and check its lines."""
    digest = hashlib.sha256()
    lines = 0
    for lines, line in enumerate(stream_lines(path), start=1):  # noqa: B007 - the last number is used below
        digest.update(line.encode("utf-8") + b"\n")
    return RawFile(path, lines, digest.hexdigest())


def require_equal_lengths(files: Sequence[RawFile]) -> None:
    """Reject empty files and sides with different numbers of lines."""
    first = files[0]
    for other in files:
        if other.lines == 0:
            raise UserError("is empty", other.path, "download it again")
        if other.lines != first.lines:
            hint = f"{first.path.name} has {first.lines:,}; line N of each must be the same sentence"
            raise UserError(f"has {other.lines:,} lines", other.path, hint)


def find_splits(
    folder: Path, pair: str, names: Mapping[str, str], required: Sequence[str] = ()
) -> dict[str, list[RawFile]]:
    """Find both sides of all splits that exist; `names`: their names in the folder."""
    found = {split: split_pair(name, pair.split("-"), folder, split in required) for split, name in names.items()}
    return {split: files for split, files in found.items() if files}


def split_pair(split: str, languages: Sequence[str], folder: Path, required: bool) -> list[RawFile] | None:
    """Find both sides of a split; None if neither exists and it is not required."""
    found = {language: find_text(folder, f"{split}.{language}") for language in languages}
    missing = [f"{split}.{language}[.gz]" for language, path in found.items() if path is None]
    if len(missing) == len(languages) and not required:
        return None
    if missing:
        raise UserError(f"{' and '.join(missing)} missing here", folder, "both languages of a split are needed")
    files = [scan_text(path) for path in found.values() if path is not None]
    require_equal_lengths(files)
    return files
