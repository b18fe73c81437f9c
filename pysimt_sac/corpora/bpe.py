"""Byte-pair encoding with subword-nmt: learn codes, and apply them with a vocabulary threshold.

Codes are checked here because subword-nmt exits the program if they are invalid.
"""

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines, stream_lines, write_lines
from pysimt_sac.corpora.processes import in_chunks
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent

MIN_PAIR_FREQUENCY = 2


def learn_codes(texts: Sequence[Path], units: int, target: Path) -> None:
    """Learn codes jointly on several tokenised texts and write them.

    units: BPE units, characters included (subword-nmt's --symbols with --total-symbols), as in the paper.
    """
    from subword_nmt.learn_bpe import learn_bpe

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(count_words(stream_lines(text)))
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):  # subword-nmt prints every merge
        learn_bpe(
            [f"{word} {count}" for word, count in counts.items()],
            codes,
            units,
            MIN_PAIR_FREQUENCY,
            is_dict=True,
            total_symbols=True,
        )
    write_lines(target, codes.getvalue().removesuffix("\n").split("\n"))


def read_codes(path: Path) -> list[str]:
    """Read and check codes."""
    return check_codes(read_lines(path, "file of BPE codes"), path)


def check_codes(lines: list[str], where: object) -> list[str]:
    """Check codes: a version line, then a pair of units per line."""
    for number, line in enumerate(lines, start=1):
        if not (number == 1 and line.startswith("#version:")) and len(line.split(" ")) != 2:
            raise UserError(f"line {number} is not a pair of units", where, "is it the output of learn-bpe?")
    return lines


def read_units(path: Path, threshold: int) -> set[str]:
    """Return the units of a subword-nmt vocabulary with at least `threshold` occurrences."""
    return frequent_units(stream_lines(path, "BPE vocabulary"), threshold, path)


def frequent_units(lines: Iterable[str], threshold: int, where: object) -> set[str]:
    """Return the units with at least `threshold` occurrences from lines of `unit count`."""
    units = set()
    for number, line in enumerate(lines, start=1):
        unit, _, count = line.rpartition(" ")
        if not unit or not count.isdecimal():
            hint = "is it the output of subword-nmt's get-vocab?"
            raise UserError(f"line {number} is not a unit and its count", where, hint)
        if int(count) >= threshold:
            units.add(unit)
    return units


class Segmenter:
    """Segments tokenised lines; units below the vocabulary threshold are split further."""

    def __init__(self, codes: list[str], units: set[str] | None = None) -> None:
        from subword_nmt.apply_bpe import BPE

        self.encoder: Any = BPE(io.StringIO("\n".join(codes) + "\n"), vocab=units)

    @classmethod
    def read(cls, codes: Path, vocabulary: Path | None = None, threshold: int = 0) -> "Segmenter":
        """Read a segmenter from its files."""
        return cls(read_codes(codes), read_units(vocabulary, threshold) if vocabulary and threshold else None)

    def __call__(self, lines: Iterable[str]) -> list[str]:
        """Segment tokenised lines."""
        return [self.encoder.process_line(line) for line in lines]


def write_units(text: Path, codes: Path, target: Path) -> None:
    """Segment a training text without a threshold and write its subword-nmt vocabulary."""
    segment = Segmenter.read(codes)
    counts = count_words(line for chunk in in_chunks(stream_lines(text)) for line in segment(chunk))
    write_lines(target, [f"{unit} {count}" for unit, count in keep_frequent(counts).items()])
