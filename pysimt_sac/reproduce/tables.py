"""The tables of a reproduction in Markdown, from `results.json` alone: our own, and the paper's with our rows.

The paper's numbers are in `paper_figures.json`: for each table its metrics and, for each group of rows and each system,
the numbers of a row from left to right, with the paper's star for a significant difference from MLE.
"""

import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.evaluation.significance import PAIRED, SIGNIFICANT
from pysimt_sac.evaluation.tables import Table, as_markdown, best_cells
from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.results import ABSENT, Json, Results, Score, spread
from pysimt_sac.reproduce.scoring import ALL, AMBIGUOUS, CASES, CASES_OF, NO_UNKNOWN, RARE

STARS = f"± standard deviation over runs; * p <= {SIGNIFICANT} against the baseline"
P_NOTE = "over sentences, whether these runs differ; corrected by Holm, but for the primary endpoint"
FIGURES = Path(__file__).with_name("paper_figures.json")
SETS = {"2016": "test_2016_flickr", "2017": "test_2017_flickr", "COCO": "test_2017_mscoco"}
PARTS = {"multi30k": ALL, "lexical-all": CASES, "lexical-rare": RARE, "ambiguous": AMBIGUOUS}  # the tables that we fill
TWICE_LTA = "2 LTA - 100"
LOWER_IS_BETTER = ("TER",)
NOTES = {
    "lexical-all": "The paper's ALI for all cases is 2 LTA - 100. Own ALI: -1 for known wrong translations only.",
    "lexical-rare": "Own rare cases are counted by inflected form, so there are more of them than in the paper.",
}
SEEDS = "95%, seeds"
STEMS = "METEOR (exact stem)"
NOTE_ON_STEMS = "Own METEOR: exact words and stems only; it cannot be compared with the paper's."
Row = tuple[str, ...]
EARLIER_RULE = "no p: it was computed by an earlier rule, which took runs as independent"


def title_of(results: Results) -> str:
    """Return a title such as `Multi30K, EN-DE`, with a note if there is only one seed."""
    pair = f", {results.pair.upper()}" if "-" in results.pair else ""
    single = ", one seed" if len(results.runs) == len(results.systems) else ""
    return f"{results.title}{pair}{single}" + (", short runs" if results.short else "")


def tables_page(results: Results) -> str:
    """Return a page of all tables, each with a heading."""
    parts = [f"# {title_of(results)}", *sections(results, "##")]
    return "\n\n".join(parts) + "\n"


def sections(results: Results, level: str) -> list[str]:
    """Return headings and tables."""
    gains = [gains_table(results, name) for name in reversed(results.baselines)]
    parts = [f"{level} Gains and costs", *(as_markdown(table) for table in gains if table.rows)]
    parts += [f"{level} Runs", as_markdown(runs_table(results)), as_markdown(curves_table(results))]
    if papers := filled_tables(results):
        parts += [f"{level} The paper's tables, with our rows", *map(as_markdown, papers)]
    first, *others = results.baselines
    for baseline in (*others, first):
        for search in results.searches:
            if any(results.compared(search, test_set, baseline) for test_set in results.test_sets()):
                parts.append(f"{level} Against {baseline}, {search_name(search)}")
                parts.append(as_markdown(comparison_table(results, search, baseline)))
    for baseline in (*others, first):
        if results.compared(results.searches[0], results.tests[0], baseline, CASES, "LTA"):
            parts += [f"{level} Ambiguous words, against {baseline}", as_markdown(lexical_table(results, baseline))]
    if any(score.part == NO_UNKNOWN for score in results.scores):
        parts.append(f"{level} With and without sentences that contain unknown words")
        parts.append(as_markdown(unknown_table(results)))
    if missing := missing_lines(results):
        parts += [f"{level} What is missing", "\n".join(f"- {line}" for line in missing)]
    return parts


def gains_table(results: Results, baseline: str) -> Table:
    """Return every system's difference from a baseline on the primary endpoint, over seeds and sentences, and cost."""
    rows, first = [], results.primary_score(baseline)
    if first is None:  # the baseline's comparison failed
        return Table((), ())
    for score in results.compared(first.search, first.test_set, baseline, metric=first.metric)[1:]:
        difference, _, p, interval, better = difference_cells(results, score, baseline)
        rows.append(
            (score.system, str(len(score.runs)), difference, interval, better, p, cost_cell(results, score.system))
        )
    where = f"{first.metric}, {short_name(first.test_set)}, {search_name(first.search)}"
    notes = [
        "difference: of the seeds that both have; 95%, seeds: its t-interval, whether the method helps",
        "better: seeds with which it does",
        "p, sentences: whether these runs differ; -: the baseline has other seeds",
        f"cost: time of a run, in updates of maximum likelihood; {baseline}'s is {cost_cell(results, baseline)}",
    ]
    header = ("system", "runs", "difference", SEEDS, "better", "p, sentences", "cost")
    return Table(header, tuple(rows), f"{where}: difference from {baseline}", notes=with_rule(results, notes))


def cost_cell(results: Results, system: str) -> str:
    """Format the cost of a system's runs."""
    cost = results.cost(system)
    return ABSENT if cost is None else f"{cost:,.0f}"


def with_rule(results: Results, notes: Sequence[str]) -> tuple[str, ...]:
    """Return notes, and one more if there is no p."""
    return (*notes, *[EARLIER_RULE] * (results.resampling.get("shuffling") != PAIRED))


def search_name(search: str) -> str:
    """Return `beam 6` or `greedy search`."""
    return "greedy search" if search == "gs" else search.replace("beam", "beam ")


def short_name(test_set: str) -> str:
    """Return a test set's name as in the paper, if it has one."""
    return next((short for short, name in SETS.items() if name == test_set), test_set)


def runs_table(results: Results) -> Table:
    """Return the table of runs: updates, best validation, time, commit."""
    rows, metric = [], validation_metric(results)
    for system in results.systems:
        runs = results.runs_of(system["name"])
        best = [run["best"][metric] for run in runs if metric in run["best"]]
        rows.append(
            (
                system["name"],
                system["config"],
                system["start"] or ABSENT,
                str(len(runs)),
                ", ".join(str(run["updates"]) for run in runs),
                spread([each["score"] for each in best], 2) if best else ABSENT,
                ", ".join(str(each["update"]) for each in best),
                ", ".join(str(run.get("lp_alpha", ABSENT)) for run in runs),
                in_words(statistics.fmean(run["seconds"] for run in runs)),
                ", ".join(dict.fromkeys(commit_name(run) for run in runs)),
            )
        )
    header = ("system", "config", "starts from", "runs", "updates", f"best validation {metric}", "at update",
              "length penalty", "time per run", "commit")  # fmt: skip
    notes = () if results.seconds is None else (f"Total time of all steps: {in_words(results.seconds)}.",)
    return Table(header, tuple(rows), left=3, notes=notes)


def validation_metric(results: Results) -> str:
    """Return the first validation metric that all runs have: their first ones may differ."""
    measured = [list(run["best"]) for run in results.runs]
    return next((name for name in measured[0] if all(name in names for names in measured)), "score")


def commit_name(run: Json) -> str:
    """Return the commit of a run; a + marks uncommitted changes."""
    return run["commit"][:8] + "+" * run["commit"].endswith("+") if run["commit"] else "unknown"


def curves_table(results: Results) -> Table:
    """Return the validation curves of all runs."""
    rows: list[tuple[str, ...]] = []
    metric = validation_metric(results)
    for system in results.systems:
        for number, run in enumerate(results.runs_of(system["name"])):
            points = run["validation"].get(metric, [])
            shown = ", ".join(f"{value:.1f} ({update})" for update, value in points)
            rows.append(("" if number else system["name"], f"seed {run['seed']}", shown or ABSENT))
    return Table(("system", "run", f"validation {metric} (after update)"), tuple(rows), left=3)


def comparison_table(results: Results, search: str, baseline: str) -> Table:
    """Return a row for each test set and system: all metrics, and BLEU's difference from the baseline."""
    metrics = [name for name in results.metrics if name not in ("length", "LTA", "ALI")]
    rows: list[tuple[str, ...]] = []
    rules = set()
    for test_set in results.test_sets():
        rules.add(len(rows))
        scores = {name: results.scored(search, test_set, metric=name) for name in (*metrics, "length")}
        for number, bleu in enumerate(results.compared(search, test_set, baseline)):
            label = f"{short_name(test_set)} ({bleu.size})" if number == 0 else ""
            cells = [results.show(scores[name][bleu.system], baseline) for name in metrics]
            length = scores["length"].get(bleu.system)
            ratio = f"{length.mean / 100:.3f}" if length else ABSENT
            difference = difference_cells(results, bleu, baseline)
            rows.append((label, bleu.system, str(len(bleu.runs)), *cells, ratio, *difference))
    arrows = (f"{name} {'↑' if results.metrics[name]['higher_is_better'] else '↓'}" for name in metrics)
    header = ("test set", "system", "runs", *arrows, "length", "BLEU diff.", "95%, sentences", "p, sentences",
              SEEDS, "better")  # fmt: skip
    notes = [STARS, f"p: {P_NOTE}", "over seeds, whether the method helps; better: seeds with which it does"]
    if STEMS in metrics:
        notes.append("METEOR: our implementation, exact and stem matches only; not comparable with the paper's")
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=with_rule(results, notes))


def difference_cells(results: Results, score: Score, baseline: str) -> tuple[str, ...]:
    """Return the difference from the baseline, its interval and p over sentences, and the interval over seeds."""
    found = score.against.get(baseline)
    if found is None:
        return (ABSENT,) * 5
    if found.p is None:
        return (f"identical to {baseline}", *[ABSENT] * 4)
    seeds, sentences = results.over_seeds(score, baseline), results.over_sentences(score, baseline)
    return (
        f"{results.difference(score, baseline):+.2f}",
        f"{sentences.low:+.2f}..{sentences.high:+.2f}" if sentences else ABSENT,
        p_cell(results, score, baseline),
        *((seeds.interval, seeds.wins) if seeds else (ABSENT, ABSENT)),
    )


def lexical_table(results: Results, baseline: str) -> Table:
    """Return LTA and ALI on all cases, on rare and on common ones, with p and with the difference over seeds."""
    rows: list[tuple[str, ...]] = []
    rules = set()
    search = results.searches[0]
    for test_set in results.test_sets():
        for kind, part in CASES_OF.items():
            rules.add(len(rows))
            ali = results.scored(search, test_set, part, "ALI")
            for number, lta in enumerate(results.compared(search, test_set, baseline, part, "LTA")):
                label = f"{short_name(test_set)}, {kind} ({lta.size})" if number == 0 else ""
                cells = [cell for own in (lta, ali[lta.system]) for cell in lexical_cells(results, own, baseline)]
                rows.append((label, lta.system, str(len(lta.runs)), *cells))
    header = ("test set", "system", "runs", *("LTA", "diff.", "p", SEEDS), *("ALI", "diff.", "p", SEEDS))
    notes = with_rule(results, (STARS, f"p: {P_NOTE}", "ALI: -1 for known wrong translations only"))
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=notes)


def lexical_cells(results: Results, score: Score, baseline: str) -> list[str]:
    """Return LTA or ALI, the difference from the baseline, its p, and its interval over seeds."""
    seeds = results.over_seeds(score, baseline) if score.system != baseline else None
    difference = f"{results.difference(score, baseline):+.2f}" if score.system != baseline else ABSENT
    interval = seeds.interval if seeds else ABSENT
    return [results.show(score, baseline, 2), difference, p_cell(results, score, baseline), interval]


def p_cell(results: Results, score: Score, baseline: str) -> str:
    """Format the p of a comparison."""
    p = results.p(score, baseline)
    return ABSENT if p is None else f"{p:.4f}"


def unknown_table(results: Results) -> Table:
    """Return BLEU on all sentences, and on those in which no run of any system has `<unk>`."""
    rows = []
    search, baseline = results.searches[0], results.baselines[0]
    for test_set in results.tests:
        everything = results.scored(search, test_set)
        for number, score in enumerate(results.compared(search, test_set, baseline, NO_UNKNOWN)):
            whole = everything[score.system]
            label = f"{short_name(test_set)} ({whole.size - score.size} left out)" if number == 0 else ""
            rows.append((label, score.system, results.show(whole, baseline), results.show(score, baseline)))
    return Table(("test set", "system", "BLEU, UNK", "BLEU, noUNK"), tuple(rows), left=2, notes=(STARS,))


def missing_lines(results: Results) -> list[str]:
    """Return what the tables lack."""
    papers = [table.title for key, table in paper_tables().items() if key not in PARTS]
    other_corpus = [f"The paper's table *{title}*: it needs IWSLT14's training text." for title in papers]
    return [*results.missing, *(other_corpus if filled_tables(results) else [])]


# The paper's tables


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables; `groups` has the cells of each group and system, such as `59.4*` or `-`."""

    key: str
    title: str
    metrics: tuple[str, ...]
    groups: dict[str, dict[str, Row]]

    def columns(self) -> list[tuple[str, str]]:
        """Return the test set and metric of each column."""
        n_cells = {len(cells) for systems in self.groups.values() for cells in systems.values()}
        sets = SETS if n_cells == {len(SETS) * len(self.metrics)} else ("test",)
        return [(test_set, metric) for test_set in sets for metric in self.metrics]


def paper_tables() -> dict[str, PaperTable]:
    """Return all tables by key."""
    tables = {}
    for key, table in json.loads(FIGURES.read_text(encoding="utf-8")).items():
        groups = {
            group: {system: tuple(line.split()) for system, line in systems.items()}
            for group, systems in table["groups"].items()
        }
        tables[key] = PaperTable(key, table["title"], tuple(table["metrics"]), groups)
    return tables


def filled_tables(results: Results) -> list[Table]:
    """Return the paper's tables for which there are results, with our rows beside the paper's."""
    found = []
    for key, table in paper_tables().items():
        own = own_rows(results, table) if key in PARTS and results.pair in table.groups else {}
        found += [filled_table(results, table, own)] if own else []
    return found


def own_rows(results: Results, table: PaperTable) -> dict[str, Row]:
    """Return our cells of each system, by the first search and against the first baseline; no systems without any."""
    rows = {}
    for system in results.systems:
        cells = tuple(own_cell(results, table.key, *column, system["name"]) for column in table.columns())
        if set(cells) != {ABSENT}:
            rows[system["name"]] = cells
    return rows


def own_cell(results: Results, key: str, test_set: str, metric: str, system: str) -> str:
    """Return our cell of a column; METEOR goes into its column whatever it matches."""
    name = "LTA" if metric == TWICE_LTA else results.metric_name(metric)
    score = results.scored(results.searches[0], SETS[test_set], PARTS[key], name).get(system)
    if score is None:
        return ABSENT
    if metric == TWICE_LTA:
        return f"{2 * score.mean - 100:.2f}"
    return results.show(score, results.baselines[0], 2 if key.startswith("lexical") else 1)


def number_in(cell: str) -> float | None:
    """Return the number that a cell shows, without deviation and star."""
    return None if cell == ABSENT else float(re.split("[±*]", cell)[0])


def filled_table(results: Results, table: PaperTable, own: dict[str, Row]) -> Table:
    """Return a table: each of the paper's rows, followed by ours of that name, then our others.

    The best numbers are in bold, separately for the paper's rows and ours.
    """
    papers = table.groups[results.pair]
    rows: list[tuple[str, str, Row]] = []
    for name in dict.fromkeys([*papers, *own]):
        rows += [(name, "paper", papers[name])] if name in papers else []
        rows += [(name, "own", own[name])] if name in own else []
    higher_is_better = [metric not in LOWER_IS_BETTER for _, metric in table.columns()]
    bold = set()
    for kind in ("paper", "own"):
        values = [[number_in(cell) if source == kind else None for cell in cells] for _, source, cells in rows]
        bold |= {(row, column + 3) for row, column in best_cells(values, higher_is_better)}
    shown = []
    for number, (name, source, cells) in enumerate(rows):
        n_runs = len(results.runs_of(name))
        label = source if source == "paper" else f"own, {n_runs} run{'s' if n_runs > 1 else ''}"
        shown.append(("" if number else results.pair, name, label, *cells))
    stars = f"* p <= {SIGNIFICANT} against MLE (own rows: against your {results.baselines[0]})"
    notes = [f"{stars}; ± standard deviation of the runs.", *([NOTES[table.key]] if table.key in NOTES else [])]
    if "METEOR" in table.metrics and STEMS in results.metrics:
        notes.append(NOTE_ON_STEMS)
    return Table(
        title=f"{table.key}: {table.title}",
        header=("", "model", "from", *(f"{test_set} {metric}" for test_set, metric in table.columns())),
        rows=tuple(shown),
        left=3,
        bold=frozenset(bold),
        notes=tuple(notes),
    )
