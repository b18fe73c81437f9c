"""Tables shared by the commands and the report: comparisons, ambiguous words, word frequency."""

from pysimt_sac.evaluation.lexical.accuracy import Accuracy, LexicalComparison
from pysimt_sac.evaluation.lexical.frequency import FrequencyAnalysis, SentenceGroup, WordUse
from pysimt_sac.evaluation.report.layout import Table, best_cells
from pysimt_sac.evaluation.scoring.comparison import Comparison, MetricComparison
from pysimt_sac.evaluation.scoring.significance import SIGNIFICANT

COMPARISON_HEADER = (
    "metric", "system", "runs", "average", "s_sel", "s_test", "95% interval", "diff.", "95% of diff.", "p", "won",
)  # fmt: skip
COMPARISON_COLUMNS = (
    "s_sel: bootstrap standard deviation over test sentences; s_test: standard deviation over runs; diff.: system "
    "minus baseline; p: two-sided, by stratified approximate randomisation; won: pairs of runs that the system wins"
)
ACCURACY_HEADER = (
    "cases", "system", "runs", "number", "LTA", "ALI", "ALI (paper)", "LTA diff.", "p", "ALI diff.", "p",
)  # fmt: skip
ACCURACY_NOTES = (
    "LTA: a correct form is in the hypothesis; ALI: +1 for a correct form, -1 for a known wrong one, 0 for neither",
    "ALI (paper): 2 LTA - 100, as in the paper's figures for all cases",
    f"rare: the correct translation is not the most frequent one in training; * p <= {SIGNIFICANT}",
)
LENGTH_UNIT = ", % of reference"
SHOWN_PERCENTILES = (10, 25, 50, 75, 90)


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
        f"{resampling.shuffles} shuffles ({resampling.shuffling}), {resampling.bootstrap} bootstrap samples, "
        f"seed {resampling.seed}; * p <= {SIGNIFICANT}",
        *(f"{part.metric}: {part.signature}" for part in comparison.metrics),
    ]
    if any(len(system.runs) == 1 for system in comparison.metrics[0].systems):
        notes.append("Systems with one run: these results do not show how much the score depends on the seed.")
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
    has_winner = found and not found.identical and part.metric != "length"  # neither longer nor shorter is better
    return (
        part.metric + arrow if number == 0 else "",
        system.system,
        str(len(system.runs)),
        f"{system.average:.2f}",
        f"{system.s_sel:.2f}",
        "-" if system.s_test is None else f"{system.s_test:.2f}",
        f"{system.interval.low:.2f}..{system.interval.high:.2f}",
        difference,
        f"{found.interval.low:+.2f}..{found.interval.high:+.2f}" if found and not found.identical else "-",
        p,
        f"{found.runs_won}/{found.run_pairs}" if found and has_winner else "-",
    )


def difference_cells(part: MetricComparison, number: int) -> tuple[str, str]:
    """Return the difference from the baseline and p, or state that the hypotheses are identical."""
    found = part.systems[number].against_baseline
    if found is None:
        return "-", "- "
    if found.identical:
        return f"identical to {part.systems[0].system}", "- "
    return f"{found.difference:+.2f}", p_cell(found.p)


def accuracy_table(comparison: LexicalComparison) -> Table:
    """Make a table of each system's LTA and ALI, on all cases and on rare ones."""
    rows: list[tuple[str, ...]] = []
    for kind, tests in (("all", comparison.all), ("rare", comparison.rare)):
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
    shuffles = f"{resampling.shuffles} shuffles ({resampling.shuffling})"
    return Table(
        header=ACCURACY_HEADER,
        rows=tuple(rows),
        left=2,
        rules=frozenset({0, len(comparison.systems)}),
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


def frequency_table(analysis: FrequencyAnalysis, group: SentenceGroup) -> Table:
    """Make a table with a row for each text."""
    notes: tuple[str, ...] = ()
    if group is analysis.all:
        notes = (
            f"rare: seen at most {analysis.rare_limit} times in {analysis.training_words:,} words of training; "
            "unseen: never; TTR: type-token ratio",
            "distinct-n: types of n-grams per n-gram; mean, P10, ...: mean and percentiles of training frequencies",
            f"improved: sentence {analysis.measure.upper()} is higher than the first system's",
        )
    return Table(
        title=f"{group.title} ({group.texts[0].sentences})",
        header=("text", "words", "types", "TTR", "distinct-2", "distinct-3", "unseen", "rare", "mean",
                *(f"P{percent}" for percent in SHOWN_PERCENTILES)),
        rows=tuple(map(frequency_row, group.texts)),
        notes=notes,
    )  # fmt: skip


def frequency_row(text: WordUse) -> tuple[str, ...]:
    """Return one text's cells."""
    return (
        text.name,
        str(text.words),
        str(text.types),
        *(f"{value:.3f}" for value in (text.type_token_ratio, text.distinct_2, text.distinct_3)),
        *(f"{100 * value:.2f}%" for value in (text.unseen, text.rare)),
        f"{text.mean_frequency:.0f}",
        *(str(text.percentiles[percent]) if text.percentiles else "-" for percent in SHOWN_PERCENTILES),
    )
