"""Compare systems with several runs each against a baseline.

The columns are MultEval's (Clark et al. 2011):
- average: the mean of the runs' scores;
- s_sel: the bootstrap standard deviation over test sentences, averaged over the runs;
- s_test: the standard deviation of the runs' scores (MultEval prints it as s_opt);
- p: two-sided, by stratified approximate randomisation over test sentences (`significance`).
The intervals over sentences are 95% percentile intervals over bootstrap samples of the test set, the same samples for
all systems. They and p say whether these runs differ. Whether the method helps is for the interval over seeds to say
(`over_seeds`), which needs as many runs of the system as of the baseline, paired in their order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.metrics import CorpusMetric, FloatArray, Formula
from pysimt_sac.evaluation.scores import by_metric, choose_metrics, collect_statistics
from pysimt_sac.evaluation.significance import (
    SIGNIFICANT,
    OverSeeds,
    Resampling,
    bootstrap_scores,
    over_seeds,
    randomisation_p,
)
from pysimt_sac.evaluation.tables import Table, best_cells
from pysimt_sac.evaluation.texts import check_lengths, without_unknown

CONFIDENCE = 95.0
COMPARISON_HEADER = (
    "metric", "system", "runs", "average", "s_sel", "s_test", "95% interval", "diff.", "95%, sentences",
    "p, sentences", "95%, seeds", "better",
)  # fmt: skip
COMPARISON_COLUMNS = (
    "s_sel: bootstrap standard deviation over test sentences; s_test: standard deviation over runs; diff.: system "
    "minus baseline; over sentences, whether these runs differ: 95% by the bootstrap, p two-sided by stratified "
    "approximate randomisation; over seeds, whether the method helps: 95% by t, run N paired with the baseline's run "
    "N; better: seeds with which the system is better"
)
LENGTH_UNIT = ", % of reference"


@dataclass(frozen=True)
class System:
    """The hypotheses of all runs of a system on one test set."""

    name: str
    runs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Interval:
    """A 95% bootstrap interval."""

    low: float
    high: float


@dataclass(frozen=True)
class AgainstBaseline:
    """System minus baseline, even where lower is better; `interval` and `p` are over sentences."""

    difference: float
    interval: Interval
    p: float
    seeds: OverSeeds | None
    identical: bool  # same hypotheses as the baseline: nothing to test


@dataclass(frozen=True)
class SystemScore:
    """One system and metric; `s_test` needs two runs, `against_baseline` is None for the baseline."""

    system: str
    runs: tuple[float, ...]
    average: float
    s_sel: float
    s_test: float | None
    interval: Interval
    against_baseline: AgainstBaseline | None


@dataclass(frozen=True)
class MetricComparison:
    """All systems on one metric, the baseline first."""

    metric: str
    signature: str
    higher_is_better: bool
    systems: tuple[SystemScore, ...]


@dataclass(frozen=True)
class Comparison:
    """All metrics on one test set; `left_out` sentences were not scored because they contain `<unk>`."""

    test_set: str
    sentences: int
    left_out: int
    resampling: Resampling
    metrics: tuple[MetricComparison, ...]

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison on one metric, ignoring case: `comparison["BLEU"]`."""
        return by_metric(metric, {part.metric: part for part in self.metrics})


def compare_systems(
    references: Sequence[str],
    baseline: System,
    systems: Sequence[System],
    metrics: Sequence[CorpusMetric] | None = None,
    resampling: Resampling | None = None,
    no_unknown: bool = False,
    test_set: str = "",
) -> Comparison:
    """Compare systems with a baseline on one test set."""
    all_systems = [baseline, *systems]
    check_systems(references, all_systems)
    kept = list(range(len(references)))
    if no_unknown:
        kept = without_unknown([run for system in all_systems for run in system.runs], len(references))
        all_systems = [System(each.name, tuple(pick(run, kept) for run in each.runs)) for each in all_systems]
    chosen = choose_metrics().metrics if metrics is None else metrics
    runs = [run for system in all_systems for run in system.runs]
    statistics = collect_statistics(chosen, runs, pick(references, kept))
    resampling = resampling or Resampling()
    parts = compare_statistics(statistics, chosen, all_systems, resampling)
    return Comparison(test_set, len(kept), len(references) - len(kept), resampling, parts)


def pick(lines: Sequence[str], kept: Sequence[int]) -> tuple[str, ...]:
    """Select lines by number."""
    return tuple(lines[number] for number in kept)


def check_names(names: Sequence[str], hint: str = "give each its own name") -> None:
    """Reject two systems of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two systems are called {name!r}", hint=hint)


def check_systems(references: Sequence[str], systems: Sequence[System]) -> None:
    """Reject systems that cannot be compared."""
    check_names([system.name for system in systems])
    for system in systems:
        if not system.runs:
            raise UserError(f"the system {system.name!r} has no runs", hint="give at least one hypothesis file")
        for run in system.runs:
            check_lengths(f"a run of {system.name!r}", run, "the reference", references)


def compare_statistics(
    statistics: Sequence[FloatArray],
    metrics: Sequence[Formula],
    systems: Sequence[System],
    resampling: Resampling,
) -> tuple[MetricComparison, ...]:
    """Compare systems, the baseline first, on the sufficient statistics of all their runs."""
    columns = consecutive(part.shape[-1] for part in statistics)

    def score(sums: FloatArray) -> FloatArray:
        """Score all metrics; the last axis is the metric."""
        return np.stack([metric.score(sums[..., part]) for metric, part in zip(metrics, columns, strict=True)], axis=-1)

    joined = np.concatenate(statistics, axis=-1)
    groups = consecutive(len(system.runs) for system in systems)
    scores = score(joined.sum(axis=1))
    resampled = bootstrap_scores(joined, score, resampling.bootstrap, resampling.seed)
    baseline, *others = (joined[group] for group in groups)
    p_values = randomisation_p(baseline, others, score, resampling)

    parts = []
    for number, metric in enumerate(metrics):
        rows: list[SystemScore] = []
        run_scores = [scores[group, number] for group in groups]
        samples = [resampled[:, group, number] for group in groups]
        for place, (system, own, drawn) in enumerate(zip(systems, run_scores, samples, strict=True)):
            against = AgainstBaseline(
                difference=float(own.mean() - run_scores[0].mean()),
                interval=interval_of(drawn.mean(axis=1) - samples[0].mean(axis=1)),
                p=float(p_values[place - 1][number]) if place else 1.0,
                seeds=over_seeds(own.tolist(), run_scores[0].tolist(), metric.higher_is_better),
                identical=identical(systems[0], system),
            )
            rows.append(
                SystemScore(
                    system=system.name,
                    runs=tuple(map(float, own)),
                    average=float(own.mean()),
                    s_sel=float(drawn.std(axis=0, ddof=1).mean()),
                    s_test=float(own.std(ddof=1)) if len(own) > 1 else None,
                    interval=interval_of(drawn.mean(axis=1)),
                    against_baseline=against if place else None,
                )
            )
        parts.append(MetricComparison(metric.name, metric.signature, metric.higher_is_better, tuple(rows)))
    return tuple(parts)


def identical(baseline: System, system: System) -> bool:
    """Return whether a system has the baseline's hypotheses, in any order of runs."""
    return sorted(baseline.runs) == sorted(system.runs) or len({*baseline.runs, *system.runs}) == 1


def consecutive(sizes: Iterable[int]) -> list[slice]:
    """Return consecutive slices of the given sizes."""
    ends = list(accumulate(sizes, initial=0))
    return [slice(start, end) for start, end in pairwise(ends)]


def interval_of(samples: FloatArray) -> Interval:
    """Compute the percentile interval of bootstrap samples."""
    low, high = np.percentile(samples, [(100 - CONFIDENCE) / 2, (100 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def p_cell(p: float) -> str:
    """Format a p-value, with a star if significant."""
    return f"{p:.4f}{'*' if p <= SIGNIFICANT else ' '}"


def comparison_table(comparison: Comparison) -> Table:
    """Make a table with a row for each metric and system."""
    rows: list[tuple[str, ...]] = []
    rules, bold = set(), set()
    for part in comparison.metrics:
        rules.add(len(rows))
        if part.metric != "length":
            best = best_cells([[round(system.average, 2)] for system in part.systems], [part.higher_is_better])
            bold |= {(len(rows) + row, COMPARISON_HEADER.index("average")) for row, _ in best}
        rows += [system_row(part, number) for number in range(len(part.systems))]
    resampling = comparison.resampling
    left_out = f" ({comparison.left_out} left out for <unk>)" if comparison.left_out else ""
    notes = [
        f"{resampling.shuffles} shuffles, {resampling.bootstrap} bootstrap samples, seed {resampling.seed}; "
        f"* p <= {SIGNIFICANT}",
        *(f"{part.metric}: {part.signature}" for part in comparison.metrics),
    ]
    if any(len(system.runs) == 1 for system in comparison.metrics[0].systems):
        notes.append("Systems with one run: the results do not show whether another seed would give the same.")
    return Table(
        title=f"{comparison.test_set}: {comparison.sentences} sentences{left_out}",
        header=COMPARISON_HEADER,
        rows=tuple(rows),
        left=2,
        rules=frozenset(rules),
        bold=frozenset(bold),
        notes=tuple(notes),
    )


def system_row(part: MetricComparison, number: int) -> tuple[str, ...]:
    """Return one row; the metric's name is in the first row only."""
    system = part.systems[number]
    found = system.against_baseline
    arrow = LENGTH_UNIT if part.metric == "length" else " ↑" if part.higher_is_better else " ↓"
    difference, p = difference_cells(part, number)
    tested = found if found and not found.identical else None
    seeds = tested.seeds if tested else None
    return (
        part.metric + arrow if number == 0 else "",
        system.system,
        str(len(system.runs)),
        f"{system.average:.2f}",
        f"{system.s_sel:.2f}",
        "-" if system.s_test is None else f"{system.s_test:.2f}",
        f"{system.interval.low:.2f}..{system.interval.high:.2f}",
        difference,
        f"{tested.interval.low:+.2f}..{tested.interval.high:+.2f}" if tested else "-",
        p,
        seeds.interval if seeds else "-",
        seeds.wins if seeds and part.metric != "length" else "-",  # neither longer nor shorter is better
    )


def difference_cells(part: MetricComparison, number: int) -> tuple[str, str]:
    """Return the difference from the baseline and p, or state that the hypotheses are identical."""
    found = part.systems[number].against_baseline
    if found is None:
        return "-", "- "
    if found.identical:
        return f"identical to {part.systems[0].system}", "- "
    return f"{found.difference:+.2f}", p_cell(found.p)
