"""Outputs and references as they come from files, and the mistakes that make scores meaningless.

What cannot be scored is a `UserError`; what can, but hardly means what the user thinks, is a warning: a line of text
that the caller passes on.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.errors import UserError
from pysimt_sac.files import read_lines

UNKNOWN = "<unk>"
MANY_MORE_TYPES = 1.25  # system output seldom has as many different words as a reference, let alone more
FEWEST_TYPES = 200  # fewer say nothing about vocabulary
TRANSLATED_NAME = re.compile(r"\.(gs|beam\d+)(\.raw)?$")  # as `pysimt translate` names its output


@dataclass(frozen=True)
class NamedText:
    """Lines of text with the name that messages and tables call them by."""

    name: str
    lines: tuple[str, ...]
    path: Path | None = None

    def types(self) -> int:
        """How many different words it has."""
        return len({word for line in self.lines for word in line.split()})


@dataclass(frozen=True)
class Trace:
    """Something that preparation leaves in text and that must be undone, or done, on both sides."""

    pattern: re.Pattern[str]
    what: str
    todo: str


TRACES = (
    Trace(re.compile(r"@@( |$)"), "BPE units ('@@ ')", "join them first: sed -E 's/@@( |$)//g'"),
    Trace(re.compile("▁"), "SentencePiece units ('▁')", "join them first"),
    Trace(re.compile(r"(^| )@-@( |$)"), "split hyphens (' @-@ ')", "join them first: sed 's/ @-@ /-/g'"),
    Trace(re.compile(r"&(apos|quot|amp|lt|gt|#\d+);"), "escaped characters ('&apos;')", "unescape them first"),
    Trace(re.compile(r"[A-ZÄÖÜÀÂÇÉÈÊËÎÏÔÙÛŒ]"), "capital letters", "lower-case both or neither"),
)


def read_text(path: Path, what: str = "hypothesis") -> NamedText:
    """Read a file of one sentence a line; a file without any word is refused."""
    lines = read_lines(path, f"{what} file")
    if not any(line.strip() for line in lines):
        raise UserError(f"this {what} is empty", path, "did the translation fail?" if what == "hypothesis" else "")
    return NamedText(str(path), tuple(lines), path)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Names for tables: the files' own names where these tell them apart, else the paths."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def check_lengths(name: object, lines: Sequence[str], other: str, other_lines: Sequence[str]) -> None:
    """Refuse two texts that do not have the same number of lines."""
    if len(lines) != len(other_lines):
        todo = "line N of the one must be the same sentence as line N of the other"
        raise UserError(f"has {len(lines)} lines, but {other} has {len(other_lines)}", name, todo)


def check_pair(reference: NamedText, hypothesis: NamedText) -> list[str]:
    """Refuse texts that cannot belong together; warn of those that probably do not."""
    if hypothesis.path and reference.path and hypothesis.path.resolve() == reference.path.resolve():
        raise UserError("is given both as reference and as hypothesis", hypothesis.path, "name the system's output")
    check_lengths(hypothesis.name, hypothesis.lines, f"the reference {reference.name}", reference.lines)
    warnings = [*empty_lines(hypothesis, "hypothesis"), *trace_differences(reference, hypothesis)]
    return [*warnings, *mixed_up(reference, hypothesis, comparable=not warnings)]


def check_texts(reference: NamedText, hypotheses: Iterable[NamedText]) -> list[str]:
    """All warnings about a reference and its hypotheses, each once."""
    warnings = empty_lines(reference, "reference")
    if reference.path and TRANSLATED_NAME.search(reference.path.name):
        warnings.append(f"{reference.name}: is given as reference, but is named like a system's output")
    for hypothesis in hypotheses:
        warnings.extend(check_pair(reference, hypothesis))
    return list(dict.fromkeys(warnings))


def check_runs(name: str, runs: Sequence[NamedText]) -> list[str]:
    """Warn when two runs of a system are the same output, which would make its runs look steadier than they are."""
    first: dict[tuple[str, ...], NamedText] = {}
    warnings = []
    for run in runs:
        other = first.setdefault(run.lines, run)
        if other is not run:
            warnings.append(f"{run.name}: is the same text as {other.name}, another run of {name!r}")
    return warnings


def empty_lines(text: NamedText, what: str) -> list[str]:
    """Warn of empty lines, naming the first."""
    empty = [number for number, line in enumerate(text.lines, 1) if not line.strip()]
    if not empty:
        return []
    lines = "line is" if len(empty) == 1 else "lines are"
    return [f"{text.name}: {len(empty)} {lines} empty in this {what}, the first is line {empty[0]}"]


def trace_differences(reference: NamedText, hypothesis: NamedText) -> list[str]:
    """Warn of what only one of the two has: BPE units, split hyphens, entities, capitals."""
    warnings = []
    for trace in TRACES:
        here, there = (sum(map(bool, map(trace.pattern.search, text.lines))) for text in (hypothesis, reference))
        if bool(here) != bool(there):
            has, lacks, count = (hypothesis, reference, here) if here else (reference, hypothesis, there)
            lines = "line has" if count == 1 else "lines have"
            warnings.append(
                f"{has.name}: {count} {lines} {trace.what}, {lacks.name} has none; "
                f"these words cannot match ({trace.todo})"
            )
    return warnings


def mixed_up(reference: NamedText, hypothesis: NamedText, comparable: bool) -> list[str]:
    """Warn when the two seem to have changed places."""
    if hypothesis.lines == reference.lines:
        return [f"{hypothesis.name}: is identical to the reference {reference.name}; is it really a system's output?"]
    hint = f"are {reference.name} and {hypothesis.name} mixed up?"
    if has_unknown(reference.lines) and not has_unknown(hypothesis.lines):
        return [f"the reference has {UNKNOWN}, the hypothesis has none; {hint}"]
    here, there = hypothesis.types(), reference.types()
    if comparable and there >= FEWEST_TYPES and here > MANY_MORE_TYPES * there:
        return [f"the hypothesis has more different words ({here}) than the reference ({there}); {hint}"]
    return []


def has_unknown(lines: Iterable[str]) -> bool:
    """Whether any line has an unknown word."""
    return any(UNKNOWN in line.split() for line in lines)


def without_unknown(runs: Iterable[Sequence[str]], sentences: int) -> list[int]:
    """The sentences, from 0, in which no run produced an unknown word."""
    spoilt = {number for run in runs for number, line in enumerate(run) if UNKNOWN in line.split()}
    kept = [number for number in range(sentences) if number not in spoilt]
    if not kept:
        raise UserError(f"every sentence has {UNKNOWN} in some system's output", "--no-unk", "nothing is left to score")
    return kept
