"""The tables of a reproduction in Markdown, from `results.json` alone."""

import statistics

from pysimt_sac.evaluation.significance import SIGNIFICANT
from pysimt_sac.evaluation.tables import Table, as_markdown
from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.paper import PARTS, SETS, STEMS, filled_tables, paper_tables
from pysimt_sac.reproduce.results import ABSENT, Json, Results, Score, spread
from pysimt_sac.reproduce.scoring import CASES, NO_UNKNOWN, RARE

STARS = f"± standard deviation over runs; * p <= {SIGNIFICANT} against the baseline"


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
    parts = [f"{level} Runs", as_markdown(runs_table(results)), as_markdown(curves_table(results))]
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
                in_words(statistics.fmean(run["seconds"] for run in runs)),
                ", ".join(dict.fromkeys(commit_name(run) for run in runs)),
            )
        )
    header = ("system", "config", "starts from", "runs", "updates", f"best validation {metric}", "at update",
              "time per run", "commit")  # fmt: skip
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
    """Return a row for each test set and system: all metrics, and BLEU's difference from the baseline with its p."""
    metrics = [name for name in results.metrics if name not in ("length", "LTA", "ALI")]
    rows: list[tuple[str, ...]] = []
    rules = set()
    for test_set in results.test_sets():
        rules.add(len(rows))
        scores = {name: results.scored(search, test_set, metric=name) for name in (*metrics, "length")}
        for number, bleu in enumerate(results.compared(search, test_set, baseline)):
            label = f"{short_name(test_set)} ({bleu.size})" if number == 0 else ""
            cells = [scores[name][bleu.system].show(baseline) for name in metrics]
            length = scores["length"].get(bleu.system)
            ratio = f"{length.mean / 100:.3f}" if length else ABSENT
            difference = difference_cells(results, bleu, baseline)
            rows.append((label, bleu.system, str(len(bleu.runs)), *cells, ratio, *difference))
    arrows = (f"{name} {'↑' if results.metrics[name]['higher_is_better'] else '↓'}" for name in metrics)
    header = ("test set", "system", "runs", *arrows, "length", "BLEU diff.", "95%", "p", "won")
    notes = [
        STARS,
        "p and 95%: over test sentences, not over seeds",
        "won: pairs of runs in which the system beats the baseline",
    ]
    if STEMS in metrics:
        notes.append("METEOR: our implementation, exact and stem matches only; not comparable with the paper's")
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=tuple(notes))


def difference_cells(results: Results, score: Score, baseline: str) -> tuple[str, str, str, str]:
    """Return the difference from the baseline, its interval, p, and the pairs of runs won."""
    found = score.against.get(baseline)
    if found is None:
        return (ABSENT,) * 4
    if found.p is None:
        return (f"identical to {baseline}", ABSENT, ABSENT, ABSENT)
    difference, won = statistics.fmean(results.differences(score, baseline)), results.pairs_won(score, baseline)
    return f"{difference:+.2f}", f"{found.low:+.2f}..{found.high:+.2f}", f"{found.p:.4f}", won


def lexical_table(results: Results, baseline: str) -> Table:
    """Return LTA and ALI on all and on rare cases, with p."""
    rows: list[tuple[str, ...]] = []
    rules = set()
    search = results.searches[0]
    for test_set in results.tests:
        for part, kind in ((CASES, "all"), (RARE, "rare")):
            rules.add(len(rows))
            name, ali = short_name(test_set), results.scored(search, test_set, part, "ALI")
            lta = results.compared(search, test_set, baseline, part, "LTA")
            if not lta:
                rows.append((name, f"{kind}: no cases", *[ABSENT] * 6))
            for number, first in enumerate(lta):
                label = (f"{name}, {kind} ({first.size})" if number == 0 else "", first.system)
                cells = [cell for own in (first, ali[first.system])
                         for cell in (own.show(baseline, 2), p_cell(own, baseline))]  # fmt: skip
                rows.append((*label, str(len(first.runs)), *cells, f"{2 * first.mean - 100:.2f}"))
    header = ("test set", "system", "runs", "LTA", "p", "ALI", "p", "2 LTA - 100")
    notes = (STARS, "The paper's ALI on all cases is 2 LTA - 100; ours is -1 only for known wrong translations.")
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=notes)


def p_cell(score: Score, baseline: str) -> str:
    """Format the p of a comparison."""
    found = score.against.get(baseline)
    return ABSENT if found is None or found.p is None else f"{found.p:.4f}"


def unknown_table(results: Results) -> Table:
    """Return BLEU on all sentences, and on those in which no run of any system has `<unk>`."""
    rows = []
    search, baseline = results.searches[0], results.baselines[0]
    for test_set in results.tests:
        everything = results.scored(search, test_set)
        for number, score in enumerate(results.compared(search, test_set, baseline, NO_UNKNOWN)):
            whole = everything[score.system]
            label = f"{short_name(test_set)} ({whole.size - score.size} left out)" if number == 0 else ""
            rows.append((label, score.system, whole.show(baseline), score.show(baseline)))
    return Table(("test set", "system", "BLEU, UNK", "BLEU, noUNK"), tuple(rows), left=2, notes=(STARS,))


def missing_lines(results: Results) -> list[str]:
    """Return what the tables lack."""
    papers = [table.title for key, table in paper_tables().items() if key not in PARTS]
    other_corpus = [f"The paper's table *{title}*: it needs IWSLT14's training text." for title in papers]
    return [*results.missing, *(other_corpus if filled_tables(results) else [])]
