"""Files that have moved since a configuration was written: comparing them by content, and finding them again."""

import zlib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import kind_of, why
from pysimt_sac.hosts.engine.data.corpus import find_files

BLOCK = 1 << 20


def is_path(value: Any) -> bool:
    """Return whether a configuration value, stored as plain text, is a path: those are absolute."""
    return isinstance(value, str) and value.startswith("/")


def files_at(path: str | Path) -> list[Path]:
    """Return the file itself, or those that match a pattern; an empty list if there are none."""
    try:
        return [file for file in find_files(path) if kind_of(file) == "file"]
    except UserError:
        return []


def content_crc(path: str) -> int | None:
    """Return the checksum of a file, or of all files that match a pattern; None if there are none."""
    found, total = files_at(path), 0
    for file in found:
        try:
            with open(file, "rb") as stream:
                while block := stream.read(BLOCK):
                    total = zlib.crc32(block, total)
        except OSError as error:
            raise UserError(f"cannot be read: {why(error)}", file) from error
    return total if found else None


def checksums(value: Any) -> dict[str, int]:
    """Return the checksum of every file that a configuration names, by path."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return {path: found for item in items for path, found in checksums(item).items()}
    found = content_crc(value) if is_path(value) else None
    return {} if found is None else {value: found}


def same_value(old: Any, new: Any, known: Mapping[str, int]) -> bool:
    """Return whether two configuration values mean the same; files are compared by content, wherever they are.

    known: checksums of the old files. What has none, such as a folder, is compared by name.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return set(old) == set(new) and all(same_value(old[key], new[key], known) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same_value(*pair, known) for pair in zip(old, new, strict=True))
    if not (is_path(old) and is_path(new)):
        return bool(old == new)
    before, now = known.get(old), content_crc(new)
    return before == now if before is not None and now is not None else Path(old).name == Path(new).name


def find_under(folder: Path, path: str | PurePath) -> Path | None:
    """Return the file below a folder that shares the longest tail of a path, such as FOLDER/demo/test.en."""
    parts = [part for part in Path(path).parts if part != "/"]
    for start in range(len(parts)):
        place = folder.joinpath(*parts[start:])
        if files_at(place):
            return place
    return None


def relocated(options: Mapping[str, Any], folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the files of `[data]` and `[vocabulary]` found below a folder, by section, key and side, if any."""
    if kind_of(folder) != "folder":
        raise UserError("no such folder", folder, "name the folder that the data is in now")
    found: dict[str, dict[str, dict[str, str]]] = {"data": {}, "vocabulary": {}}
    for section, places in found.items():
        for key, value in options[section].items():
            named = value if isinstance(value, dict) else {"": value}
            files = {side: find_under(folder, path) for side, path in named.items() if isinstance(path, str | PurePath)}
            places[key] = {side: str(path) for side, path in files.items() if path}
    return found


def as_overrides(found: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[str]:
    """Return what `relocated` found as `section.key:value` words."""
    return [
        f"{section}.{key}{f'.{side}' if side else ''}:{path}"
        for section, places in found.items()
        for key, files in places.items()
        for side, path in files.items()
    ]
