"""Split words into subword units with subword-nmt's BPE codes or a SentencePiece model, and join them again.

Codes are checked here because subword-nmt exits the program if they are invalid.
"""

import base64
import binascii
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines, require_file, why
from pysimt_sac.core.filters import FILTERS

KINDS = ("bpe", "sentencepiece")
JOINED_BY: dict[str, Callable[[str], str]] = {"bpe": FILTERS["de-bpe"], "sentencepiece": FILTERS["de-spm"]}
FILE_NAMES = {"bpe": "bpe", "sentencepiece": "spm"}
LONGEST_NUMBER = 18  # digits of a count

Segmenter = Callable[[Iterable[str]], list[str]]


@dataclass(frozen=True)
class Segmentation:
    """A subword segmentation, with everything needed to apply it.

    model: BPE codes as text, or a SentencePiece model in base64; units: subword-nmt's vocabulary as text; its units
    with fewer than `threshold` occurrences are split further. In a folder's record both are names of files below it.
    """

    kind: str
    model: str
    units: str = ""
    threshold: int = 0


def kind_of_model(path: Path) -> str:
    """Return `bpe` or `sentencepiece`, by the first byte: a SentencePiece model begins with the field of its pieces."""
    try:
        with open(require_file(path, "file of BPE codes"), "rb") as stream:
            return "sentencepiece" if stream.read(1) == b"\n" else "bpe"
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error


def read_model(path: Path, kind: str) -> str:
    """Return the content of a file of BPE codes or of a SentencePiece model, as `Segmentation` stores it."""
    if kind == "bpe":
        return "\n".join(read_lines(path, "file of BPE codes"))
    try:
        return base64.b64encode(require_file(path, "SentencePiece model").read_bytes()).decode()
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error


def read_segmentation(named: Segmentation, folder: Path, place: object) -> Segmentation:
    """Replace the names of files below a folder by their content, and check it: a record comes from anywhere."""
    path = file_below(folder, named.model, place)
    units = ""
    if named.units and named.threshold:
        units = "\n".join(read_lines(file_below(folder, named.units, place), "BPE vocabulary"))
    found = replace(named, model=read_model(path, named.kind), units=units)
    make_segmenter(found, path)
    return found


def file_below(folder: Path, name: str, place: object) -> Path:
    """Return the path of a file that a record names; refuse one outside the record's folder."""
    try:
        is_below = (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # an invalid name, or links in a circle
        is_below = False
    if not is_below:
        raise UserError(f"{name!r} is not a file below the record's folder", place, "copy it there, and name the copy")
    return folder / name


def make_segmenter(segmentation: Segmentation, where: object) -> Segmenter:
    """Make the function that segments tokenised lines. where: the subject of errors."""
    if segmentation.kind == "sentencepiece":
        return sentencepiece_segmenter(segmentation.model, where)
    from subword_nmt.apply_bpe import BPE

    codes, units = segmentation.model.split("\n"), None
    for number, line in enumerate(codes, start=1):
        if number == 1 and line.startswith("#version:"):
            is_valid = re.fullmatch(r"#version: \d{1,3}\.\d{1,3}", line) is not None
        else:
            is_valid = len(line.strip("\r ").split(" ")) == 2
        if not is_valid:
            raise UserError(f"line {number} is not a pair of units", where, "is it the output of learn-bpe?")
    if segmentation.threshold and segmentation.units:
        units = frequent_units(segmentation.units.split("\n"), segmentation.threshold, where)
    encoder: Any = BPE(io.StringIO("\n".join(codes) + "\n"), vocab=units)
    return lambda lines: [encoder.process_line(line) for line in lines]


def frequent_units(lines: Iterable[str], threshold: int, where: object) -> set[str]:
    """Return the units with at least `threshold` occurrences from lines of `unit count`, subword-nmt's vocabulary."""
    units = set()
    for number, line in enumerate(lines, start=1):
        unit, _, count = line.rpartition(" ")
        if not unit or not count.isdecimal() or len(count) > LONGEST_NUMBER:
            hint = "is it the output of subword-nmt's get-vocab?"
            raise UserError(f"line {number} is not a unit and its count", where, hint)
        if int(count) >= threshold:
            units.add(unit)
    return units


def sentencepiece_segmenter(model: str, where: object) -> Segmenter:
    """Make the segmenter of a SentencePiece model, given in base64."""
    require_sentencepiece(where)
    from sentencepiece import SentencePieceProcessor

    try:
        processor: Any = SentencePieceProcessor(model_proto=base64.b64decode(model, validate=True))
    except (RuntimeError, binascii.Error) as error:
        raise UserError("is not a SentencePiece model", where, "is it the output of spm_train?") from error
    return lambda lines: [" ".join(processor.encode(line, out_type=str)) for line in lines]


def require_sentencepiece(where: object) -> None:
    """Refuse to go on without the package. where: what needs it."""
    try:
        import sentencepiece  # noqa: F401
    except ImportError as error:
        hint = "pip install 'pysimt_sac[sentencepiece]'"
        raise UserError("needs the package sentencepiece, which is not installed", where, hint) from error
