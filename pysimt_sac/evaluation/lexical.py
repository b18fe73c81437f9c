"""Translation of ambiguous words: Lexical Translation Accuracy (LTA) and Ambiguous Lexical Index (ALI).

The input is the list that `pysimt-sac prepare mlt` writes: a tab-separated file with the columns `word`, `correct`
(forms separated by `|`), `candidates` (`form:count` in the training text, separated by `|`), `line` (of the test set,
from 0) and `rare` (1 if the correct translation is not the most frequent one).

A case is *correct* if the hypothesis contains a correct form, in whole words; else *wrong* if it contains another
candidate; else *missing*. Inflected forms count only if they are in the list, as correct or as candidates. Matching
ignores case unless the list is read with `case_sensitive`: MLT's own scorer is case-sensitive (and matches substrings
in French).
- LTA: the share of correct cases.
- ALI: the mean of +1 for correct, -1 for wrong and 0 for missing cases.
- ALI as in the paper's figures for all cases: 2 LTA - 100, that is, -1 for every case that is not correct.
"""

import html
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.evaluation.comparison import MetricComparison, System, compare_statistics, difference_cells
from pysimt_sac.evaluation.metrics import FloatArray, Hypotheses, ratio
from pysimt_sac.evaluation.significance import SIGNIFICANT, Resampling
from pysimt_sac.evaluation.tables import Table

COLUMNS = ("word", "correct", "candidates", "line", "rare")
CORRECT, MISSING, WRONG = 1, 0, -1
PARTS = ("all", "rare", "common")
ACCURACY_HEADER = (
    "cases", "system", "runs", "number", "LTA", "ALI", "ALI (paper)", "LTA diff.", "p", "ALI diff.", "p",
)  # fmt: skip
ACCURACY_NOTES = (
    "LTA: a correct form is in the hypothesis; ALI: +1 for a correct form, -1 for a known wrong one, 0 for neither",
    "ALI (paper): 2 LTA - 100, as in the paper's figures for all cases",
    f"rare: the correct translation is not the most frequent one in training, common: it is; * p <= {SIGNIFICANT}",
)


@dataclass(frozen=True)
class Case:
    """An ambiguous word in a sentence of the test set, with its candidate translations."""

    word: str
    correct: tuple[str, ...]
    candidates: tuple[tuple[str, int], ...]
    line: int
    rare: bool
    case_sensitive: bool = False

    def wrong_forms(self) -> list[str]:
        """Return the candidates that are not correct."""
        return [form for form, _ in self.candidates if form not in self.correct]


@dataclass(frozen=True)
class Accuracy:
    """Counts of cases, averaged over runs."""

    cases: int
    correct: float
    wrong: float

    @property
    def lta(self) -> float:
        """Lexical Translation Accuracy, in percent."""
        return 100 * self.correct / self.cases if self.cases else float("nan")

    @property
    def ali(self) -> float:
        """Ambiguous Lexical Index, in percent."""
        return 100 * (self.correct - self.wrong) / self.cases if self.cases else float("nan")

    @property
    def ali_paper(self) -> float:
        """Ambiguous Lexical Index as in the paper's figures for all cases."""
        return 2 * self.lta - 100


@dataclass(frozen=True)
class LexicalAccuracy:
    """A system's accuracy on all cases, on rare and on common ones, and on each ambiguous word."""

    system: str
    runs: int
    all: Accuracy
    rare: Accuracy
    common: Accuracy
    words: dict[str, Accuracy]


@dataclass(frozen=True)
class LexicalComparison:
    """All systems, and significance tests of LTA and ALI against the first, on all cases, rare and common ones."""

    systems: tuple[LexicalAccuracy, ...]
    resampling: Resampling
    all: tuple[MetricComparison, ...]
    rare: tuple[MetricComparison, ...]
    common: tuple[MetricComparison, ...]


def read_cases(path: Path, case_sensitive: bool = False) -> list[Case]:
    """Read a list of ambiguous words."""
    lines = read_lines(path, "list of ambiguous words")
    header = lines[0].split("\t") if lines else []
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise UserError(
            f"the first line lacks the column {missing[0]!r}", path, "make the list with pysimt-sac prepare mlt"
        )
    if len(lines) == 1:
        raise UserError("the list has no cases", path)
    rows = enumerate(lines[1:], 2)
    return [parse_case(header, line.split("\t"), number, path, case_sensitive) for number, line in rows]


def parse_case(header: list[str], fields: list[str], number: int, path: Path, case_sensitive: bool) -> Case:
    """Parse a row of the list."""
    try:
        named = dict(zip(header, fields, strict=True))
        word, correct, candidates, line, rare = (named[column] for column in COLUMNS)
        counted = [candidate.rpartition(":") for candidate in candidates.split("|") if candidate]
        case = Case(
            word=word,
            correct=tuple(normalise(form, case_sensitive) for form in correct.split("|") if form.strip()),
            candidates=tuple((normalise(form, case_sensitive), int(count)) for form, _, count in counted),
            line=int(line),
            rare={"0": False, "1": True}[rare],
            case_sensitive=case_sensitive,
        )
    except (KeyError, ValueError):
        raise UserError(f"line {number} is not a row of {' '.join(COLUMNS)}", path) from None
    if not case.correct or case.line < 0:
        raise UserError(f"line {number} has no correct form or no line number", path)
    return case


def normalise(text: str, case_sensitive: bool = False) -> str:
    """Unescape entities (`&apos;`), collapse white space and, unless `case_sensitive`, lowercase."""
    words = " ".join(html.unescape(text).split())
    return words if case_sensitive else words.lower()


def label_case(case: Case, hypothesis: str) -> int:
    """Return CORRECT, WRONG or MISSING."""
    padded = f" {normalise(hypothesis, case.case_sensitive)} "
    if any(f" {form} " in padded for form in case.correct):
        return CORRECT
    return WRONG if any(f" {form} " in padded for form in case.wrong_forms()) else MISSING


def label_runs(cases: Sequence[Case], runs: Hypotheses) -> FloatArray:
    """Label each case in each run: (runs, cases)."""
    for run in runs:
        last = max(case.line for case in cases)
        if last >= len(run):
            raise UserError(
                f"a hypothesis has {len(run)} lines, but the list of ambiguous words goes to line {last + 1}",
                hint="is it the list of another test set?",
            )
    return np.array([[label_case(case, run[case.line]) for case in cases] for run in runs], dtype=np.float64)


def count_labels(labels: FloatArray) -> Accuracy:
    """Count labels (runs, cases), averaged over runs."""
    correct, wrong = (float((labels == kind).sum()) / len(labels) for kind in (CORRECT, WRONG))
    return Accuracy(labels.shape[1], correct, wrong)


def accuracy_of(name: str, cases: Sequence[Case], labels: FloatArray) -> LexicalAccuracy:
    """Compute a system's accuracy from the labels of its runs."""
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        by_word[case.word].append(number)
    words = {word: count_labels(labels[:, numbers]) for word, numbers in sorted(by_word.items())}
    every, rare, common = (count_labels(labels[:, numbers]) for numbers in by_frequency(cases))
    return LexicalAccuracy(name, len(labels), every, rare, common, words)


def by_frequency(cases: Sequence[Case]) -> tuple[list[int], list[int], list[int]]:
    """Return the numbers of all cases, of rare and of common ones."""
    rare = [number for number, case in enumerate(cases) if case.rare]
    common = [number for number, case in enumerate(cases) if not case.rare]
    return list(range(len(cases))), rare, common


def lexical_accuracy(cases: Sequence[Case], hypothesis: Sequence[str], name: str = "system") -> LexicalAccuracy:
    """Compute the accuracy of one hypothesis file."""
    return accuracy_of(name, cases, label_runs(cases, [hypothesis]))


class LexicalMetric:
    """LTA or ALI. Statistics: numbers of correct, wrong and all cases."""

    higher_is_better = True

    def __init__(self, name: str, wrong_weight: float) -> None:
        self.name = name
        self.signature = f"{name}: correct {wrong_weight:+g} wrong, per case, in percent"
        self.weights = np.array([1.0, wrong_weight])

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute points per case, in percent."""
        return 100 * ratio(sums[..., :2] @ self.weights, sums[..., 2])


METRICS = (LexicalMetric("LTA", 0.0), LexicalMetric("ALI", -1.0))


def sentence_statistics(cases: Sequence[Case], labels: FloatArray) -> FloatArray:
    """Count correct, wrong and all cases of each sentence that has any: (runs, sentences, 3).

    The tests shuffle sentences, not cases: the words of a sentence are not independent.
    """
    lines = sorted({case.line for case in cases})
    places = {line: place for place, line in enumerate(lines)}
    statistics = np.zeros((len(labels), len(lines), 3))
    for number, case in enumerate(cases):
        own = statistics[:, places[case.line]]
        own[:, 0] += labels[:, number] == CORRECT
        own[:, 1] += labels[:, number] == WRONG
        own[:, 2] += 1
    return statistics


def compare_lexical(
    cases: Sequence[Case], systems: Sequence[System], resampling: Resampling | None = None
) -> LexicalComparison:
    """Compute the accuracy of all systems, and test them against the first by approximate randomisation."""
    resampling = resampling or Resampling()
    per_system = [label_runs(cases, system.runs) for system in systems]
    accuracies = tuple(accuracy_of(system.name, cases, own) for system, own in zip(systems, per_system, strict=True))
    labels = np.concatenate(per_system)

    def test(numbers: list[int]) -> tuple[MetricComparison, ...]:
        if not numbers:
            return ()
        statistics = sentence_statistics([cases[number] for number in numbers], labels[:, numbers])
        return compare_statistics([statistics] * len(METRICS), METRICS, systems, resampling)

    return LexicalComparison(accuracies, resampling, *map(test, by_frequency(cases)))


def accuracy_table(comparison: LexicalComparison) -> Table:
    """Make a table of each system's LTA and ALI, on all cases, on rare and on common ones."""
    rows: list[tuple[str, ...]] = []
    for kind in PARTS:
        tests: tuple[MetricComparison, ...] = getattr(comparison, kind)
        for number, system in enumerate(comparison.systems):
            accuracy: Accuracy = getattr(system, kind)
            rows.append(
                (
                    kind if number == 0 else "",
                    system.system,
                    str(system.runs),
                    str(accuracy.cases),
                    *((f"{accuracy.lta:.2f}", f"{accuracy.ali:.2f}", f"{accuracy.ali_paper:.2f}") if tests else "---"),
                    *(cell for test in tests for cell in difference_cells(test, number)),
                    *([] if tests else "----"),
                )
            )
    resampling = comparison.resampling
    shuffles = f"{resampling.shuffles} shuffles"
    return Table(
        header=ACCURACY_HEADER,
        rows=tuple(rows),
        left=2,
        rules=frozenset(range(0, len(rows), len(comparison.systems))),
        notes=(*ACCURACY_NOTES, f"p: approximate randomisation over sentences, {shuffles}, seed {resampling.seed}"),
    )


def word_table(comparison: LexicalComparison, wanted: int | None = None) -> Table:
    """Make a table of LTA and ALI for the `wanted` most frequent words, by default all."""
    first = comparison.systems[0].words
    words = sorted(first, key=lambda word: (-first[word].cases, word))[:wanted]
    names = [system.system for system in comparison.systems]
    rows = []
    for word in words:
        accuracies = [system.words[word] for system in comparison.systems]
        values = [value for accuracy in accuracies for value in (accuracy.lta, accuracy.ali)]
        rows.append((word, str(first[word].cases), *(f"{value:.1f}" for value in values)))
    return Table(
        title=f"{len(words)} of {len(first)} words, the most frequent first",
        header=("word", "cases", *(f"{measure} {name}" for name in names for measure in ("LTA", "ALI"))),
        rows=tuple(rows),
    )
