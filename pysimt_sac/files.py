"""Reading text so that surprises are named, and writing so that nothing is ever half-written.

Every file that this package writes goes through `atomic_write` or `atomic_folder`.
"""

import contextlib
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pysimt_sac.errors import UserError

BOM = "\ufeff"


def why(error: OSError) -> str:
    """The operating system's reason, without Python's decoration."""
    return (error.strerror or str(error)).lower()


def require_file(path: Path, what: str = "file") -> Path:
    """Return `path` if it is a readable file, else say what is there instead."""
    if path.is_dir():
        raise UserError(f"is a folder, not a {what}", path, "give the path of a file")
    if not path.is_file():
        raise UserError(f"no such {what}", path, "check the path")
    return path


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, or say why that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create this folder: {why(error)}", path) from error
    return path


def read_lines(path: Path, what: str = "text file") -> list[str]:
    """All lines of a text file, as `stream_lines` gives them."""
    return list(stream_lines(path, what))


def stream_lines(path: Path, what: str = "text file") -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or `.gz`, one after the other, without their line ends.

    Only the newline separates lines, so that line numbers agree with every other tool's.
    """
    require_file(path, what)
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            for number, raw in enumerate(stream, start=1):
                yield decode_line(raw.removesuffix(b"\n"), number, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError("broken gzip file", path, "fetch or compress it again") from error
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error


def decode_line(raw: bytes, number: int, path: Path) -> str:
    """A line as text, or the reason why it is none; invisible characters would silently become part of a word."""
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = f"convert it, e.g. iconv -f latin1 -t utf-8 {path.name}"
        raise UserError(f"line {number} is not valid UTF-8", path, hint) from error
    if number == 1 and line.startswith(BOM):
        hint = f"remove it, e.g. sed -i '1s/^\\xEF\\xBB\\xBF//' {path.name}"
        raise UserError("begins with a byte-order mark", path, hint)
    for character, name, fix in (
        ("\0", "a NUL byte", "tr -d '\\000'"),
        ("\r", "a carriage return (Windows line ends?)", "tr -d '\\r'"),
    ):
        if character in line:
            hint = f"remove it, e.g. {fix} < {path.name} > fixed.txt"
            raise UserError(f"line {number} has {name}", path, hint)
    return line


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power cut."""
    with contextlib.suppress(OSError):  # some file systems cannot, and lose nothing by it
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file beside `path`; it takes `path`'s place, flushed to disk, only if the block succeeds."""
    path = Path(path)
    if path.is_dir():
        raise UserError("is a folder; a file was to be written here", path, "choose another name")
    make_folder(path.parent)
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    text: dict[str, str] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", path) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_lines(path: Path, lines: list[str]) -> None:
    """Write lines of text, atomically."""
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path`; its files move into `path` only if the block succeeds.

    Files already in `path` are replaced by new ones of the same name; others are left alone.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise UserError("is a file; a folder was to be written here", path, "choose another name")
    make_folder(path.parent)
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        path.mkdir(exist_ok=True)
        for item in sorted(temporary.rglob("*")):
            place = path / item.relative_to(temporary)
            if item.is_dir():
                place.mkdir(exist_ok=True)
            else:
                os.replace(item, place)
        sync_folder(path)
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
