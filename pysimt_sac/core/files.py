"""Read text with clear errors, and write files atomically.

Every file that this package writes goes through `atomic_write` or `atomic_folder`.
"""

import contextlib
import errno
import gzip
import json
import math
import os
import shlex
import shutil
import stat
import tomllib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pysimt_sac.core.errors import UserError

BOM = "\ufeff"
LONGEST_LINE = 1 << 26  # bytes: what is longer is no text, but would fill the memory, from a small .gz file too ...
MOST_UNPACKED = 30  # ... and so would more bytes than this for each one of the file; text is packed by 3 to 10
DEEPEST = 50  # levels of nested lists and tables
PARSERS: dict[str, Callable[..., Any]] = {"JSON": json.loads, "TOML": tomllib.loads}
Decode = Callable[[bytes, int, object, str], str]  # takes a line, its number, the subject of errors and the file's name


def why(error: OSError) -> str:
    """Return the operating system's reason, without Python's decoration."""
    if error.errno == errno.ELOOP:
        return "it is a symbolic link, which is not followed here"
    return (error.strerror or str(error)).lower()


def kind_of(path: Path) -> str:
    """Return what is at `path`: `file`, `folder`, `other` (a device, a pipe), or an empty string for nothing."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:  # an invalid name, or a folder without permission to enter
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise UserError(f"cannot be read: {reason}", path) from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def require_file(path: Path, what: str = "file") -> Path:
    """Return `path` if it is a regular file, else raise an error that says what is there instead."""
    kind = kind_of(path)
    if kind == "folder":
        raise UserError(f"is a folder, not a {what}", path, "give the path of a file")
    if kind == "other":
        raise UserError(f"is not a {what} but a device or a pipe", path, "give the path of a file")
    if not kind:
        raise UserError(f"no such {what}", path, "check the path")
    return path


def make_folder(path: Path) -> Path:
    """Create a folder and its parents; return its path."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create this folder: {why(error)}", path) from error
    return path


def require_writable(path: Path) -> None:
    """Check that a file can be written, now rather than after hours of work; create its folder."""
    if kind_of(path) == "folder":
        raise UserError("is a folder; a file was to be written here", path, "choose another name")
    if not os.access(make_folder(path.parent), os.W_OK | os.X_OK):
        raise UserError("cannot be written: permission denied", path, "choose another folder")


def open_in_folder(path: Path) -> IO[str]:
    """Open a file to be read and appended to, in its folder itself: a link, which may lead anywhere, is an OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(descriptor, "a+", buffering=1, encoding="utf-8", errors="surrogateescape")


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that a killed process left in its own folder."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            path.unlink()


def read_lines(path: Path, what: str = "text file") -> list[str]:
    """Return all lines of a text file, as `stream_lines` yields them."""
    return list(stream_lines(path, what))


def stream_lines(path: Path, what: str = "text file", decode: Decode | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, plain or `.gz`, without their line ends.

    Only newlines separate lines, so that line numbers agree with other tools. decode: converts a line to text
    (default: `decode_line`).
    """
    decode = decode or decode_line
    require_file(path, what)
    n_bytes, most = 0, max(1 << 24, MOST_UNPACKED * path.stat().st_size)
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            for number, raw in enumerate(raw_lines(stream, path), start=1):
                if (n_bytes := n_bytes + len(raw)) > most:
                    raise UserError(f"unpacks to more than {MOST_UNPACKED} times its size", path, "is it text?")
                yield decode(raw.removesuffix(b"\n"), number, path, path.name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError("broken gzip file", path, "fetch or compress it again") from error
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error


def raw_lines(stream: IO[bytes] | gzip.GzipFile, where: object) -> Iterator[bytes]:
    """Yield the lines of a stream, with their line ends."""
    number = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE:
            raise UserError(f"line {number} is longer than {LONGEST_LINE >> 20} MB", where, "is it text?")
        yield raw


def read_json(path: Path, what: str, hint: str = "", **options: Any) -> Any:
    """Return the content of a JSON file. what: a name for it in errors; options: those of `json.loads`."""
    return parse("JSON", "\n".join(read_lines(path, what)), path, hint, **options)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the content of a TOML file. what: a name for it in errors."""
    return dict(parse("TOML", "\n".join(read_lines(path, what)), path))


def parse(kind: str, text: str, where: object, hint: str = "", **options: Any) -> Any:
    """Return what JSON or TOML says; refuse also what none of our files has. where: the subject of errors."""
    try:
        value = PARSERS[kind](text, **options)
        check_plain(value)
    except (ValueError, RecursionError) as error:  # the errors of both parsers are ValueErrors
        raise UserError(f"is not {kind}: {error}", where, hint) from error
    return value


def check_plain(value: Any, depth: int = 0) -> None:
    """Refuse, by a ValueError, what breaks programs that use it: deep nesting, halves of characters, infinity."""
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    elif isinstance(value, dict | list | tuple):
        for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            check_plain(item, depth + 1)


def decode_line(raw: bytes, number: int, where: object, name: str) -> str:
    """Decode a line; refuse invisible characters, which would silently become part of a word.

    where: the subject of errors; name: the file's name in suggested commands.
    """
    line = decode_utf8(raw, number, where, name)
    if number == 1 and line.startswith(BOM):
        hint = f"remove it, e.g. sed -i '1s/^\\xEF\\xBB\\xBF//' {shlex.quote(name)}"
        raise UserError("begins with a byte-order mark", where, hint)
    for character, called, fix in (
        ("\0", "a NUL byte", "tr -d '\\000'"),
        ("\r", "a carriage return (Windows line ends?)", "tr -d '\\r'"),
    ):
        if character in line:
            hint = f"remove it, e.g. {fix} < {shlex.quote(name)} > fixed.txt"
            raise UserError(f"line {number} has {called}", where, hint)
    return line


def decode_plain_line(raw: bytes, number: int, where: object, name: str) -> str:
    """Decode a line of any UTF-8 text; remove or replace the characters that `decode_line` refuses."""
    line = decode_utf8(raw, number, where, name)
    line = line.removeprefix(BOM) if number == 1 else line
    return line.replace("\0", " ").replace("\r", " ")


def decode_utf8(raw: bytes, number: int, where: object, name: str) -> str:
    """Decode a line; raise an error that names the line if it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = f"convert it, e.g. iconv -f latin1 -t utf-8 {shlex.quote(name)}"
        raise UserError(f"line {number} is not valid UTF-8", where, hint) from error


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power cut."""
    with contextlib.suppress(OSError):  # some file systems do not support it, and lose nothing
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; it replaces `path`, flushed to disk, only if the block succeeds."""
    path = Path(path)
    require_writable(path)
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    text: dict[str, str] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        temporary.unlink(missing_ok=True)
        with open(temporary, mode.replace("w", "x"), **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", path) from error
    finally:
        with contextlib.suppress(OSError):  # already renamed, or its name is invalid
            temporary.unlink()


def write_lines(path: Path, lines: list[str]) -> None:
    """Write lines of text, atomically."""
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder beside `path`; its files move into `path` only if the block succeeds.

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
