"""The numbers and figures of a report, computed from its input. `report_page` shows them; figures can be saved, too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pysimt_sac.evaluation.lexical.accuracy import LexicalComparison, compare_lexical, judge
from pysimt_sac.evaluation.lexical.frequency import (
    PERCENTILES,
    REFERENCE,
    FrequencyAnalysis,
    SentenceGroup,
    analyse_frequency,
)
from pysimt_sac.evaluation.report.figures import REFERENCE_STYLE, Figure, Series, system_style, thin_out
from pysimt_sac.evaluation.report.input import ReportInput, ReportSet, ReportSystem
from pysimt_sac.evaluation.scoring.comparison import Comparison, System, compare_systems
from pysimt_sac.evaluation.scoring.metrics import CorpusMetric
from pysimt_sac.evaluation.scoring.sentences import sentence_scores
from pysimt_sac.evaluation.scoring.significance import Resampling

# Curves that every run has, in the order in which one looks at them; all others are told by the model.
CURVES = {
    "epoch_LOSS": "Training loss, mean of each epoch",
    "train_LOSS": "Training loss",
    "gradient_norm": "Length of the gradient",
    "lr": "Learning rate",
}


@dataclass(frozen=True)
class NamedFigure:
    """A figure, the section it belongs to, the name of its file, and its caption where the section says the rest."""

    section: str
    file: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class SetReport:
    """Everything about one test set."""

    name: str
    sentences: int
    comparison: Comparison
    lexical: LexicalComparison | None
    frequency: FrequencyAnalysis | None
    figures: tuple[NamedFigure, ...]
    browser: dict[str, Any]


@dataclass(frozen=True)
class ReportData:
    """What the page shows."""

    systems: tuple[str, ...]
    runs: tuple[int, ...]
    measure: str
    sets: tuple[SetReport, ...]
    curves: tuple[NamedFigure, ...]

    def figures(self) -> list[NamedFigure]:
        """All figures of the report."""
        return [*self.curves, *(figure for one in self.sets for figure in one.figures)]


def analyse(
    given: ReportInput, metrics: Sequence[CorpusMetric], resampling: Resampling | None = None, measure: str = "bleu"
) -> ReportData:
    """Compute everything."""
    names = tuple(system.name for system in given.systems)
    sets = tuple(analyse_set(one, names, given, metrics, resampling or Resampling(), measure) for one in given.sets)
    return ReportData(
        systems=names,
        runs=tuple(max(len(one.outputs.get(name, ())) for one in given.sets) for name in names),
        measure=measure,
        sets=sets,
        curves=tuple(curve_figures(given.systems)),
    )


def analyse_set(
    one: ReportSet,
    names: Sequence[str],
    given: ReportInput,
    metrics: Sequence[CorpusMetric],
    resampling: Resampling,
    measure: str,
) -> SetReport:
    """Compute everything about one test set."""
    systems = [System(name, tuple(text.lines for text in one.outputs[name])) for name in names if name in one.outputs]
    references = one.reference.lines
    comparison = compare_systems(references, systems[0], systems[1:], metrics, resampling, test_set=one.name)
    lexical = compare_lexical(one.cases, systems, resampling) if one.cases else None
    frequency, figures = None, []
    if given.training:
        first_runs = [(system.name, system.runs[0]) for system in systems]
        frequency = analyse_frequency(given.training, references, first_runs, measure=measure)
        for number, group in enumerate(frequency.groups()):
            file = f"frequency-{file_name(one.name)}{f'-{number}' if number else ''}"
            caption = group.title[0].upper() + group.title[1:]
            figures.append(NamedFigure("frequency", file, frequency_figure(frequency, group, names), caption))
    return SetReport(
        name=one.name,
        sentences=len(references),
        comparison=comparison,
        lexical=lexical,
        frequency=frequency,
        figures=tuple(figures),
        browser=browser_data(one, systems, measure),
    )


def browser_data(one: ReportSet, systems: Sequence[System], measure: str) -> dict[str, Any]:
    """What the browser of translations needs: the systems' first runs, with scores and verdicts."""
    outputs = [system.runs[0] for system in systems]
    scores = sentence_scores(outputs, one.reference.lines, measure)
    return {
        "name": one.name,
        "systems": [system.name for system in systems],
        "source": list(one.source),
        "reference": list(one.reference.lines),
        "outputs": [list(lines) for lines in outputs],
        "scores": [[round(score, 2) for score in np.nan_to_num(row).tolist()] for row in scores],
        "cases": [
            {
                "line": case.line,
                "word": case.word,
                "correct": list(case.correct),
                "wrong": case.wrong_forms(),
                "rare": case.rare,
                "verdicts": [judge(case, lines[case.line]) for lines in outputs],
            }
            for case in one.cases
        ],
    }


def frequency_figure(analysis: FrequencyAnalysis, group: SentenceGroup, systems: Sequence[str] = ()) -> Figure:
    """The paper's figure for one group of sentences; a text looks the same in the figures of all groups.

    `systems` are all systems of a report in their order, where this analysis may lack some.
    """
    names = systems or [text.name for text in analysis.all.texts[1:]]
    styles = {name: system_style(number) for number, name in enumerate(names)}
    styles[REFERENCE] = REFERENCE_STYLE
    return Figure(
        title=f"Training frequency of produced words: {group.title}",
        x_label="percentile of the words",
        y_label="times seen in training",
        series=tuple(
            Series(text.name, tuple(zip(PERCENTILES, text.percentiles, strict=True)), styles[text.name])
            for text in group.texts
            if text.percentiles
        ),
        log_y=True,
    )


def curve_figures(systems: Sequence[ReportSystem]) -> list[NamedFigure]:
    """A figure for each curve that any run has: validation, training, and what the model tells of its learner."""
    names = dict.fromkeys(name for system in systems for run in system.runs for name in run.curves)
    validation = [name for name in names if name.startswith("val_")]
    training = [name for name in CURVES if name in names]
    own = [name for name in names if name not in validation and name not in training]
    figures = []
    for section, members in (("validation", validation), ("training", training), ("health", own)):
        for name in members:
            title = curve_title(name)
            figure = Figure(title, "updates", "", tuple(curve_series(systems, name)))
            figures.append(NamedFigure(section, f"curve-{file_name(name)}", figure, title))
    return figures


def curve_title(name: str) -> str:
    """A curve's name in words."""
    if name in CURVES:
        return CURVES[name]
    if name.startswith("val_"):
        return f"Validation {name.removeprefix('val_').replace('LOSS', 'loss')}"
    plain = name.removeprefix("rl_").removeprefix("train_").replace("_", " ")
    return plain[:1].upper() + plain[1:]


def curve_series(systems: Sequence[ReportSystem], name: str) -> list[Series]:
    """One line for each run that has the curve; runs of a system look alike."""
    return [
        Series(system.name, tuple(thin_out(run.curves[name])), system_style(number))
        for number, system in enumerate(systems)
        for run in system.runs
        if name in run.curves
    ]


def file_name(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w-]+", "-", name)
