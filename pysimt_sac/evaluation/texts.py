"""Read hypotheses and references, and detect mistakes that make scores meaningless.

Texts that cannot be scored raise a `UserError`. Texts that can be scored but are probably a mistake cause a warning, a
line for the caller to print.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines

UNKNOWN = "<unk>"
FEW_LINES, HARDLY_MORE = 20, 1.15  # of the words shared with other lines; translations share far more with their own
TRANSLATED_NAME = re.compile(r"\.(gs|beam\d+)(\.raw)?$")  # file names written by `pysimt translate`


@dataclass(frozen=True)
class NamedText:
    """Sentences, and their name in messages and tables."""

    name: str
    lines: tuple[str, ...]
    path: Path | None = None

    @classmethod
    def concatenate(cls, texts: "Sequence[NamedText]") -> "NamedText":
        """Concatenate texts."""
        return cls(" + ".join(text.name for text in texts), tuple(line for text in texts for line in text.lines))


# Marks of preprocessing that hypothesis and reference must both have or both lack: pattern, name, what to do.
PREPROCESSING_MARKS = (
    (r"@@( |$)", "BPE units ('@@ ')", "undo BPE: sed -E 's/@@( |$)//g'"),
    ("▁", "SentencePiece units ('▁')", "undo it"),
    (r"(^| )@-@( |$)", "split hyphens (' @-@ ')", "join them: sed 's/ @-@ /-/g'"),
    (r"&(apos|quot|amp|lt|gt|#\d+);", "escaped characters ('&apos;')", "unescape them"),
    (r"[A-ZÄÖÜÀÂÇÉÈÊËÎÏÔÙÛŒ]", "capital letters", "lowercase both or neither"),
)


def read_text(path: Path, what: str = "hypothesis") -> NamedText:
    """Read a file with one sentence per line; reject a file without words."""
    lines = read_lines(path, f"{what} file")
    if not any(line.strip() for line in lines):
        raise UserError(f"this {what} is empty", path, "did the translation fail?" if what == "hypothesis" else "")
    return NamedText(str(path), tuple(lines), path)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return names for tables: file names if they are unique, else paths."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def check_lengths(name: object, lines: Sequence[str], other: str, other_lines: Sequence[str]) -> None:
    """Reject texts with different numbers of lines."""
    if len(lines) != len(other_lines):
        hint = "line N of both must be the same sentence"
        raise UserError(f"has {len(lines)} lines, but {other} has {len(other_lines)}", name, hint)


def check_pair(reference: NamedText, hypothesis: NamedText) -> list[str]:
    """Reject texts that cannot belong together; warn about those that probably do not."""
    if hypothesis.path and reference.path and hypothesis.path.resolve() == reference.path.resolve():
        raise UserError("is given both as reference and as hypothesis", hypothesis.path, "name the hypothesis")
    check_lengths(hypothesis.name, hypothesis.lines, f"the reference {reference.name}", reference.lines)
    warnings = [*empty_lines(hypothesis, "hypothesis"), *preprocessing_differences(reference, hypothesis)]
    if hypothesis.lines == reference.lines:
        warnings.append(f"{hypothesis.name}: is identical to the reference {reference.name}; is it a system's output?")
    elif has_unknown(reference) and not has_unknown(hypothesis):
        hint = f"are {reference.name} and {hypothesis.name} swapped?"
        warnings.append(f"the reference has {UNKNOWN}, the hypothesis has none; {hint}")
    if is_of_another_text(reference.lines, hypothesis.lines):
        what = f"is no closer to the lines of {reference.name} than to their neighbours"
        warnings.append(f"{hypothesis.name}: {what}; is it a translation of another test set?")
    return warnings


def is_of_another_text(references: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether lines share hardly more words with their own references than with those of other lines."""
    if len(lines) < FEW_LINES:
        return False
    half = len(lines) // 2

    def shared(texts: Sequence[str]) -> int:
        """Count the words that lines share with texts."""
        return sum(len(set(line.split()) & set(text.split())) for line, text in zip(lines, texts, strict=True))

    return shared(references) < HARDLY_MORE * shared([*references[half:], *references[:half]])


def check_texts(reference: NamedText, hypotheses: Iterable[NamedText]) -> list[str]:
    """Return all warnings about a reference and its hypotheses, without duplicates."""
    warnings = empty_lines(reference, "reference")
    if reference.path and TRANSLATED_NAME.search(reference.path.name):
        warnings.append(f"{reference.name}: is given as reference, but has the name of a system's output")
    for hypothesis in hypotheses:
        warnings.extend(check_pair(reference, hypothesis))
    return list(dict.fromkeys(warnings))


def check_runs(name: str, runs: Sequence[NamedText]) -> list[str]:
    """Warn about identical runs of a system, which make s_test too small."""
    first: dict[tuple[str, ...], NamedText] = {}
    warnings = []
    for run in runs:
        other = first.setdefault(run.lines, run)
        if other is not run:
            warnings.append(f"{run.name}: is identical to {other.name}, another run of {name!r}")
    return warnings


def empty_lines(text: NamedText, what: str) -> list[str]:
    """Warn about empty lines."""
    empty = [number for number, line in enumerate(text.lines, 1) if not line.strip()]
    if not empty:
        return []
    lines = "line is" if len(empty) == 1 else "lines are"
    return [f"{text.name}: {len(empty)} {lines} empty in this {what}, first line {empty[0]}"]


def preprocessing_differences(reference: NamedText, hypothesis: NamedText) -> list[str]:
    """Warn about BPE units, split hyphens, entities or capitals that occur in only one of the two texts."""
    warnings = []
    for pattern, mark, hint in PREPROCESSING_MARKS:
        here, there = (sum(bool(re.search(pattern, line)) for line in text.lines) for text in (hypothesis, reference))
        if bool(here) != bool(there):
            has, lacks, count = (hypothesis, reference, here) if here else (reference, hypothesis, there)
            lines = "line has" if count == 1 else "lines have"
            what = f"{count} {lines} {mark}, {lacks.name} has none"
            warnings.append(f"{has.name}: {what}; these words cannot match ({hint})")
    return warnings


def has_unknown(text: NamedText) -> bool:
    """Return whether any line contains `<unk>`, alone or, after filters, as part of a word."""
    return any(UNKNOWN in line for line in text.lines)


def without_unknown(runs: Iterable[Sequence[str]], sentences: int) -> list[int]:
    """Return the numbers, from 0, of the sentences in which no run has `<unk>`."""
    excluded = {number for run in runs for number, line in enumerate(run) if UNKNOWN in line}
    kept = [number for number in range(sentences) if number not in excluded]
    if not kept:
        raise UserError(f"every sentence has {UNKNOWN} in some run", "--no-unk", "leave --no-unk out")
    return kept
