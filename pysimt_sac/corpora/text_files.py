"""Find raw text files, check them up front, and rewrite them, in several processes if wanted."""

import contextlib
import hashlib
import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, stream_lines

LINES_PER_CHUNK = 1000

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


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
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def scan_text(path: Path) -> RawFile:
    """Read a whole text file to count and check its lines."""
    digest = hashlib.sha256()
    lines = 0
    for lines, line in enumerate(stream_lines(path), start=1):  # noqa: B007 - the last number is used below
        digest.update(line.encode("utf-8") + b"\n")
    return RawFile(path, lines, digest.hexdigest())


def scan_sides(paths: Iterable[Path]) -> list[RawFile]:
    """Scan both sides of a split; refuse empty files and sides with different numbers of lines."""
    files = [scan_text(path) for path in paths]
    for other in files:
        if other.lines == 0:
            raise UserError("is empty", other.path, "download it again")
        if other.lines != files[0].lines:
            hint = f"{files[0].path.name} has {files[0].lines:,}; line N of each must be the same sentence"
            raise UserError(f"has {other.lines:,} lines", other.path, hint)
    return files


def find_splits(
    folder: Path, pair: str, names: Mapping[str, str], required: Sequence[str] = ()
) -> dict[str, list[RawFile]]:
    """Find both sides of all splits that exist; `names`: their names in the folder."""
    splits = {}
    for split, name in names.items():
        found = {f"{name}.{language}": find_text(folder, f"{name}.{language}") for language in pair.split("-")}
        missing = [f"{file}[.gz]" for file, path in found.items() if path is None]
        if missing and (split in required or len(missing) < len(found)):
            raise UserError(f"{' and '.join(missing)} missing here", folder, "both languages of a split are needed")
        if not missing:
            splits[split] = scan_sides(path for path in found.values() if path)
    return splits


@contextlib.contextmanager
def map_in_processes(jobs: int) -> Iterator[Map]:
    """Yield a function like `map` that works in `jobs` processes; a single job runs in this process."""
    if jobs == 1:
        yield map
        return
    # Not fork: the parent may have threads, and a fork would inherit their locks.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool.map


def in_chunks(lines: Iterable[str], size: int = LINES_PER_CHUNK) -> Iterator[list[str]]:
    """Split lines into lists of at most `size`."""
    iterator = iter(lines)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def rewrite_file(
    source: Path, target: Path, function: Callable[[Sequence[str]], list[str]], map_chunks: Map = map
) -> None:
    """Apply a function to the chunks of a text file, by default in this process."""
    with atomic_write(target) as stream:
        for chunk in map_chunks(function, in_chunks(stream_lines(source))):
            stream.writelines(f"{line}\n" for line in chunk)
