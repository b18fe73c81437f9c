"""The record of a prepared corpus, `corpus.json`, and its statistics.

The record has no dates or paths, so equal data have equal records.
"""

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pysimt_sac import __version__
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, read_lines
from pysimt_sac.core.records import read_record
from pysimt_sac.corpora.vocabulary_builder import count_words
from pysimt_sac.text.preparation import KEY, RECORD_NAME, SidePreparation, plain_side


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of a text file. unknown: out-of-vocabulary rate, if there is a vocabulary."""

    file: str
    sentences: int
    tokens: int
    types: int
    unknown: float | None


def text_statistics(path: Path, vocabulary: Iterable[str] | None) -> TextStatistics:
    """Count the sentences, tokens, types and unknown tokens of a text file."""
    lines = read_lines(path)
    counts = count_words(lines)
    tokens = counts.total()
    unknown = None
    if vocabulary is not None:
        known = set(vocabulary)
        unknown = sum(count for word, count in counts.items() if word not in known) / max(tokens, 1)
    return TextStatistics(path.name, len(lines), tokens, len(counts), unknown)


def summary_table(statistics: Sequence[TextStatistics]) -> list[str]:
    """Format the statistics as lines of a table."""
    width = max([len("file"), *(len(row.file) for row in statistics)])
    lines = [f"{'file':{width}}  sentences     tokens    types  unknown"]
    for row in statistics:
        unknown = "-" if row.unknown is None else f"{100 * row.unknown:.2f}%"
        lines.append(f"{row.file:{width}}  {row.sentences:9,}  {row.tokens:9,}  {row.types:7,}  {unknown:>7}")
    return lines


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions(packages: Sequence[str] = ("sacremoses", "subword-nmt")) -> dict[str, str]:
    """Return the versions of pysimt_sac, Python and packages, by default those that determine the prepared text."""
    found = {"pysimt_sac": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def require_own_folder(folder: Path, corpus: str) -> None:
    """Reject a folder that contains another corpus."""
    path = folder / RECORD_NAME
    if not path.is_file():
        return
    try:
        other = read_record(dict[str, Any], path, "record of a corpus").get("corpus")
    except UserError:
        other = "something else"
    if other != corpus:
        raise UserError(f"contains another corpus ({other})", folder, "choose another --out")


def write_record(
    folder: Path,
    corpus: str,
    settings: Mapping[str, object],
    inputs: Mapping[str, str],
    statistics: Sequence[TextStatistics],
    preparation: Mapping[str, SidePreparation] | None = None,
) -> None:
    """Write the record of a prepared folder.

    inputs: names and checksums of the raw files; preparation: how each training text was prepared, by its name.
    """
    files = {path.name: checksum(path) for path in sorted(folder.iterdir()) if path.name != RECORD_NAME}
    prepared = {KEY: {name: plain_side(side) for name, side in preparation.items()}} if preparation else {}
    record = {
        "corpus": corpus,
        "settings": dict(settings),
        **prepared,
        "versions": versions(),
        "inputs": dict(inputs),
        "files": files,
        "statistics": [asdict(row) for row in statistics],
    }
    with atomic_write(folder / RECORD_NAME) as stream:
        json.dump(record, stream, ensure_ascii=False, indent=2)
        stream.write("\n")
