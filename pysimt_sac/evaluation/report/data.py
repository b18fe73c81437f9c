"""The numbers, figures and sentences of a report, and where its runs come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pysimt_sac.evaluation.comparison import Comparison, MetricComparison, System, SystemScore, compare_systems
from pysimt_sac.evaluation.frequency import (
    PERCENTILES,
    REFERENCE,
    FrequencyAnalysis,
    SentenceGroup,
    analyse_frequency,
)
from pysimt_sac.evaluation.latency import Latency, find_latencies
from pysimt_sac.evaluation.lexical import LexicalComparison, compare_lexical, label_case
from pysimt_sac.evaluation.metrics import CorpusMetric, sentence_scores
from pysimt_sac.evaluation.report.charts import (
    REFERENCE_STYLE,
    Effect,
    Figure,
    Forest,
    Series,
    file_name,
    system_style,
)
from pysimt_sac.evaluation.report.curves import curve_figures
from pysimt_sac.evaluation.report.input import ReportInput, ReportSet
from pysimt_sac.evaluation.report.runs import Provenance, find_provenance
from pysimt_sac.evaluation.significance import SIGNIFICANT, Resampling


@dataclass(frozen=True)
class SetReport:
    """The analyses of one test set; `browser` is the data of the browser of translations."""

    comparison: Comparison
    lexical: LexicalComparison | None
    frequency: FrequencyAnalysis | None
    figures: tuple[Figure, ...]
    browser: dict[str, Any]
    latencies: dict[str, Latency]  # of simultaneous systems

    @property
    def name(self) -> str:
        """The name of the test set."""
        return self.comparison.test_set


@dataclass(frozen=True)
class ReportData:
    """The content of the page. pooled: the comparison on all test sets together, if there are several."""

    systems: tuple[str, ...]
    runs: tuple[int, ...]
    measure: str
    sets: tuple[SetReport, ...]
    curves: tuple[Figure, ...]
    provenance: Provenance | None = None
    pooled: Comparison | None = None

    @property
    def comparisons(self) -> list[Comparison]:
        """All comparisons, the pooled one first."""
        return [*([self.pooled] if self.pooled else []), *(test_set.comparison for test_set in self.sets)]

    @property
    def forests(self) -> list[Forest]:
        """The plots of differences."""
        return forests(self.comparisons, self.systems)

    def is_identical(self, number: int) -> bool:
        """Return whether a system has the baseline's hypotheses on every test set."""
        name = self.systems[number]
        found = [
            system.against_baseline
            for test_set in self.sets
            for system in test_set.comparison.metrics[0].systems
            if system.system == name
        ]
        return number > 0 and bool(found) and all(against and against.identical for against in found)

    def figures(self) -> list[Figure | Forest]:
        """Return all figures of the report."""
        return [*self.forests, *self.curves, *(figure for test_set in self.sets for figure in test_set.figures)]


def analyse(
    given: ReportInput, metrics: Sequence[CorpusMetric], resampling: Resampling | None = None, measure: str = "bleu"
) -> ReportData:
    """Analyse all test sets and curves."""
    names = tuple(system.name for system in given.systems)
    resampling = resampling or Resampling()
    return ReportData(
        systems=names,
        runs=tuple(max(len(test_set.outputs.get(name, ())) for test_set in given.sets) for name in names),
        measure=measure,
        sets=tuple(analyse_set(test_set, given, metrics, resampling, measure) for test_set in given.sets),
        curves=tuple(curve_figures(given.systems)),
        provenance=find_provenance(given.systems),
        pooled=compare_pooled(given, metrics, resampling),
    )


def compare_pooled(given: ReportInput, metrics: Sequence[CorpusMetric], resampling: Resampling) -> Comparison | None:
    """Compare the systems on all test sets together; None if there is only one, or not all systems have all of them."""
    shapes = [{name: len(texts) for name, texts in test_set.outputs.items()} for test_set in given.sets]
    if len(shapes) < 2 or any(shape != shapes[0] for shape in shapes):
        return None
    systems = [
        System(
            name,
            tuple(
                tuple(line for test_set in given.sets for line in test_set.outputs[name][run].lines)
                for run in range(n_runs)
            ),
        )
        for name, n_runs in shapes[0].items()
    ]
    references = [line for test_set in given.sets for line in test_set.reference.lines]
    return compare_systems(references, systems[0], systems[1:], metrics, resampling, test_set="all test sets")


def analyse_set(
    test_set: ReportSet, given: ReportInput, metrics: Sequence[CorpusMetric], resampling: Resampling, measure: str
) -> SetReport:
    """Analyse one test set."""
    systems = [System(name, tuple(text.lines for text in texts)) for name, texts in test_set.outputs.items()]
    references = test_set.reference.lines
    comparison = compare_systems(references, systems[0], systems[1:], metrics, resampling, test_set=test_set.name)
    lexical = compare_lexical(test_set.cases, systems, resampling) if test_set.cases else None
    frequency = None
    figures: list[Figure] = []
    if given.training:
        names = [system.name for system in given.systems]
        first_runs = [(system.name, system.runs[0]) for system in systems]
        frequency = analyse_frequency(given.training, references, first_runs, measure=measure)
        figures = [
            frequency_figure(
                frequency, group, names, f"frequency-{file_name(test_set.name)}" + f"-{number}" * (number > 0)
            )
            for number, group in enumerate(frequency.groups())
        ]
    return SetReport(
        comparison=comparison,
        lexical=lexical,
        frequency=frequency,
        figures=tuple(figures),
        browser=browser_data(test_set, systems, measure, run_names(given, test_set)),
        latencies=find_latencies({name: [text.path for text in texts] for name, texts in test_set.outputs.items()}),
    )


def browser_data(test_set: ReportSet, systems: Sequence[System], measure: str, runs: Sequence[str]) -> dict[str, Any]:
    """Return all runs of the systems with sentence scores and labels of ambiguous words. runs: their names."""
    first = systems[0].runs
    scores = [sentence_scores(system.runs, test_set.reference.lines, measure) for system in systems]
    return {
        "name": test_set.name,
        "systems": [system.name for system in systems],
        "runs": list(runs),
        "identical": [number > 0 and system.runs == first for number, system in enumerate(systems)],
        "source": list(test_set.source),
        "reference": list(test_set.reference.lines),
        "outputs": [[list(lines) for lines in system.runs] for system in systems],
        "scores": [np.round(np.nan_to_num(own), 2).tolist() for own in scores],
        "cases": [
            {
                "line": case.line,
                "word": case.word,
                "correct": list(case.correct),
                "wrong": case.wrong_forms(),
                "rare": case.rare,
                "labels": [[label_case(case, lines[case.line]) for lines in system.runs] for system in systems],
            }
            for case in test_set.cases
        ],
    }


def run_names(given: ReportInput, test_set: ReportSet) -> list[str]:
    """Name the runs of a test set by their seeds if the systems agree in them, else by their numbers."""
    names = []
    for number in range(max(map(len, test_set.outputs.values()))):
        seeds = {system.runs[number].seed for system in given.systems if number < len(system.runs)}
        names.append(f"seed {seeds.pop()}" if len(seeds) == 1 and "" not in seeds else f"run {number + 1}")
    return names


def frequency_figure(
    analysis: FrequencyAnalysis, group: SentenceGroup, systems: Sequence[str] = (), file: str = ""
) -> Figure:
    """Make the paper's figure for one group of sentences.

    systems: all systems of the report, so that each has the same style in all figures.
    """
    names = systems or [text.name for text in analysis.all.texts[1:]]
    styles = {name: system_style(number) for number, name in enumerate(names)} | {REFERENCE: REFERENCE_STYLE}
    return Figure(
        title=f"Training frequency of words: {group.title}",
        x_label="percentile of words",
        y_label="training frequency",
        series=tuple(
            Series(text.name, tuple(zip(PERCENTILES, text.percentiles, strict=True)), styles[text.name])
            for text in group.texts
            if text.percentiles
        ),
        log_y=True,
        caption=group.title[0].upper() + group.title[1:],
        file=file,
    )


def verdicts(comparison: Comparison) -> list[str]:
    """Return a sentence for each system but the baseline, by the first metric of quality."""
    part = next((metric for metric in comparison.metrics if metric.metric != "length"), comparison.metrics[0])
    return [verdict(part, system) for system in part.systems[1:]]


def verdict(part: MetricComparison, system: SystemScore) -> str:
    """Say whether a system is better than the baseline, as far as seeds or sentences show it."""
    name, first, found = system.system, part.systems[0], system.against_baseline
    assert found is not None
    if found.identical:
        return f"{name} translates exactly like {first.system}."
    is_better = (found.difference > 0) == part.higher_is_better
    amount = f"{'better' if is_better else 'worse'} than {first.system} by {abs(found.difference):.2f} {part.metric}"
    sign = 1 if found.difference > 0 else -1
    over = found.seeds or found.interval
    low, high = sorted((sign * over.low, sign * over.high))
    seeds = f"95% over {found.seeds.seeds} seeds" if found.seeds else "95% over test sentences"
    where = f"{seeds} {low:.2f} to {high:.2f}"
    if low <= 0:
        gain = f"{found.difference:+.2f} {part.metric}, {seeds} {over.low:+.2f} to {over.high:+.2f}"
        runs = (
            f" (these runs do: p {found.p:.2g} over test sentences)" if found.seeds and found.p <= SIGNIFICANT else ""
        )
        return f"{name} is not shown to differ from {first.system}: {gain}{runs}."
    if found.seeds:
        beyond = found.interval.low <= 0 <= found.interval.high
        other = (
            f"; over test sentences {found.interval.low:+.2f} to {found.interval.high:+.2f}, so others may not show it"
        )
        return f"{name} is {amount}, {where}{other if beyond else ''}."
    single = 1 in (len(system.runs), len(first.runs))
    why = "one run does not show what another seed would give" if single else "the runs are not paired by seed"
    return f"In these runs {name} is {amount}, {where}; {why}."


def forests(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[Forest]:
    """Return a plot for each metric, of all systems on all test sets. names: of the report's systems, in order."""
    plots: dict[str, list[Effect]] = {}
    directions = {}
    for comparison in comparisons:
        for part in comparison.metrics:
            directions[part.metric] = part.higher_is_better
            for system in part.systems:
                found = system.against_baseline
                if found and not found.identical and part.metric != "length":
                    seeds = (found.seeds.low, found.seeds.high) if found.seeds else None
                    interval = (found.interval.low, found.interval.high)
                    where = (system.system, system_style(names.index(system.system)), comparison.test_set)
                    plots.setdefault(part.metric, []).append(Effect(*where, found.difference, interval, seeds))
    return [
        Forest(f"Difference in {name}", tuple(effects), directions[name], f"differences-{file_name(name)}")
        for name, effects in plots.items()
    ]
