"""The tables of a reproduction in Markdown, from `results.json` alone."""

import statistics
from collections.abc import Iterable, Sequence

from pysimt_sac.evaluation.report.paper import Cell, paper_tables
from pysimt_sac.evaluation.report.paper_tables import FilledTable, TableRow, as_table
from pysimt_sac.evaluation.significance import SIGNIFICANT
from pysimt_sac.evaluation.tables import Table, as_markdown
from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.results import Results

ABSENT = "-"
SHORT_NAMES = {"test_2016_flickr": "2016", "test_2017_flickr": "2017", "test_2017_mscoco": "COCO"}
OTHER_CORPUS = ("iwslt-multi30k", "iwslt14")
STARS = f"± standard deviation over runs; * p <= {SIGNIFICANT} against the baseline"


def title_of(results: Results) -> str:
    """Return a title such as `Multi30K, EN-DE`, with a note if there is only one seed."""
    pair = f", {results['pair'].upper()}" if "-" in results["pair"] else ""
    single = ", one seed" if has_one_seed(results) else ""
    return f"{results['title']}{pair}{single}" + (", short runs" if results["short"] else "")


def has_one_seed(results: Results) -> bool:
    """Return whether there is only one run of each system, so that nothing is known about other seeds."""
    return all(len(system["runs"]) == 1 for system in results["systems"])


def tables_page(results: Results) -> str:
    """Return a page of all tables, each with a heading."""
    parts = [f"# {title_of(results)}", *sections(results, "##")]
    return "\n\n".join(parts) + "\n"


def sections(results: Results, level: str) -> list[str]:
    """Return headings and tables."""
    parts = [f"{level} Runs", as_markdown(runs_table(results)), curves_text(results)]
    papers = [as_markdown(paper_table(table)) for table in results["paper_tables"]]
    if papers:
        parts += [f"{level} The paper's tables, with our rows", *papers]
    first, *others = results["baselines"]
    for baseline in (*others, first):
        for search in results["searches"]:
            found = [part for part in compared(results, search, baseline) if part["variant"] != "noUNK"]
            if found:
                parts.append(f"{level} Against {baseline}, {search_name(search)}")
                parts += [as_markdown(comparison_table(found, baseline))]
    for baseline in (*others, first):
        if own := [part for part in results["lexical"] if part["baseline"] == baseline]:
            parts += [f"{level} Ambiguous words, against {baseline}", as_markdown(lexical_table(own))]
    unknown = [part for part in results["comparisons"] if part["variant"] == "noUNK" and part["baseline"] == first]
    if unknown:
        parts += [
            f"{level} With and without sentences that contain unknown words",
            as_markdown(unknown_table(results, unknown)),
        ]
    if missing := missing_lines(results):
        parts += [f"{level} What is missing", "\n".join(f"- {line}" for line in missing)]
    return [part for part in parts if part]


def search_name(search: str) -> str:
    """Return `beam 6` or `greedy search`."""
    return "greedy search" if search == "gs" else search.replace("beam", "beam ")


def spread(values: Sequence[float], decimals: int = 1) -> str:
    """Format mean and standard deviation."""
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return f"{mean}±{statistics.stdev(values):.{decimals}f}" if len(values) > 1 else mean


def runs_table(results: Results) -> Table:
    """Return the table of runs: updates, best validation, time, commit."""
    rows, metric = [], validation_metric(results)
    for system in results["systems"]:
        runs = system["runs"]
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
    seconds = results["seconds"]
    notes = () if seconds is None else (f"Total time of all steps: {in_words(seconds)}.",)
    return Table(header, tuple(rows), left=3, notes=notes)


def validation_metric(results: Results) -> str:
    """Return the first validation metric that all runs have: their first ones may differ."""
    measured = [list(run["best"]) for system in results["systems"] for run in system["runs"]]
    return next((name for name in measured[0] if all(name in names for names in measured)), "score")


def commit_name(run: Results) -> str:
    """Return the commit of a run; a + marks uncommitted changes."""
    name = run["commit"][:8] + "+" * run["commit"].endswith("+") if run["commit"] else "unknown"
    return f"{name} (taken over)" if run["taken_over"] else name


def curves_text(results: Results) -> str:
    """Return the validation curves of all runs."""
    rows: list[tuple[str, ...]] = []
    metric = validation_metric(results)
    for system in results["systems"]:
        for number, run in enumerate(system["runs"]):
            points = run["validation"].get(metric, [])
            shown = ", ".join(f"{value:.1f} ({update:.0f})" for update, value in points)
            rows.append(("" if number else system["name"], f"seed {run['seed']}", shown or ABSENT))
    table = Table(("system", "run", f"validation {metric} (after update)"), tuple(rows), left=3)
    return as_markdown(table)


def paper_table(table: Results) -> Table:
    """Return one of the paper's tables."""
    rows = tuple(
        TableRow(row["group"], row["system"], row["runs"],
                 tuple(Cell(**cell) if cell else None for cell in row["cells"]))
        for row in table["rows"]
    )  # fmt: skip
    parts = {**table, "rows": rows, **{name: tuple(table[name]) for name in ("columns", "higher_is_better", "notes")}}
    return as_table(FilledTable(**parts))


def compared(results: Results, search: str, baseline: str) -> list[Results]:
    """Return the comparisons with a baseline, the pooled one first if there are several test sets."""
    own = [part for part in results["comparisons"] if (part["search"], part["baseline"]) == (search, baseline)]
    apart = [part for part in own if part["variant"] != "pooled"]
    if len({part["test_set"] for part in apart}) == 1:
        return apart
    return sorted(own, key=lambda part: part["variant"] != "pooled")


def short_name(test_set: str) -> str:
    """Return a test set's name as in the paper, if it has one."""
    return SHORT_NAMES.get(test_set, test_set)


def set_name(part: Results) -> str:
    """Return the short name of a comparison's test set."""
    return "pooled" if part["variant"] == "pooled" else short_name(part["test_set"])


def star(system: Results) -> str:
    """Return a star if the difference from the baseline is significant."""
    found = system["against_baseline"]
    return "*" if found and not found["identical"] and found["p"] <= SIGNIFICANT else ""


def score_cell(system: Results, decimals: int = 1) -> str:
    """Format a score as `38.1±0.2*`."""
    deviation = "" if system["s_test"] is None else f"±{system['s_test']:.{decimals}f}"
    return f"{system['average']:.{decimals}f}{deviation}{star(system)}"


def comparison_table(parts: Sequence[Results], baseline: str) -> Table:
    """Return a row for each test set and system: all metrics, and BLEU's difference from the baseline with its p."""
    metrics = [metric for metric in parts[0]["metrics"] if metric["metric"] != "length"]
    rows: list[tuple[str, ...]] = []
    rules = set()
    for part in parts:
        rules.add(len(rows))
        by_name = {metric["metric"]: metric["systems"] for metric in part["metrics"]}
        for number, system in enumerate(by_name["BLEU"]):
            label = f"{set_name(part)} ({part['sentences']})" if number == 0 else ""
            scores = [score_cell(by_name[metric["metric"]][number]) for metric in metrics]
            ratio = by_name["length"][number]["average"] / 100 if "length" in by_name else None
            rows.append((label, system["system"], str(len(system["runs"])), *scores,
                         ABSENT if ratio is None else f"{ratio:.3f}", *difference_cells(system, baseline)))  # fmt: skip
    arrows = (f"{metric['metric']} {'↑' if metric['higher_is_better'] else '↓'}" for metric in metrics)
    header = ("test set", "system", "runs", *arrows, "length", "BLEU diff.", "95%", "p", "won")
    notes = [
        STARS,
        "p and 95%: over test sentences, not over seeds",
        "won: pairs of runs in which the system beats the baseline",
    ]
    if any(metric["metric"] == "METEOR (exact stem)" for metric in metrics):
        notes.append("METEOR: our implementation, exact and stem matches only; not comparable with the paper's")
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=tuple(notes))


def difference_cells(system: Results, baseline: str) -> tuple[str, str, str, str]:
    """Return the difference from the baseline, its interval, p, and the pairs of runs won."""
    found = system["against_baseline"]
    if found is None:
        return (ABSENT,) * 4
    if found["identical"]:
        return (f"identical to {baseline}", ABSENT, ABSENT, ABSENT)
    interval = f"{found['interval']['low']:+.2f}..{found['interval']['high']:+.2f}"
    return f"{found['difference']:+.2f}", interval, f"{found['p']:.4f}", f"{found['runs_won']}/{found['run_pairs']}"


def lexical_table(parts: Sequence[Results]) -> Table:
    """Return LTA and ALI on all and on rare cases, with p."""
    rows: list[tuple[str, ...]] = []
    rules = set()
    for part in parts:
        for kind in ("all", "rare"):
            rules.add(len(rows))
            name = short_name(part["test_set"])
            if not part[kind]:
                rows.append((name, f"{kind}: no cases", *[ABSENT] * 6))
                continue
            lta, ali = (metric["systems"] for metric in part[kind])
            for number, (first, second) in enumerate(zip(lta, ali, strict=True)):
                label = (f"{name}, {kind} ({part['cases'][kind]})" if number == 0 else "", first["system"])
                cells = [cell for own in (first, second) for cell in (score_cell(own, 2), p_of(own))]
                rows.append((*label, str(len(first["runs"])), cells[0], cells[1], cells[2], cells[3],
                             f"{2 * first['average'] - 100:.2f}"))  # fmt: skip
    header = ("test set", "system", "runs", "LTA", "p", "ALI", "p", "2 LTA - 100")
    notes = (STARS, "The paper's ALI on all cases is 2 LTA - 100; ours is -1 only for known wrong translations.")
    return Table(header, tuple(rows), left=2, rules=frozenset(rules), notes=notes)


def p_of(system: Results) -> str:
    """Format the p of a comparison."""
    found = system["against_baseline"]
    return ABSENT if found is None or found["identical"] else f"{found['p']:.4f}"


def unknown_table(results: Results, parts: Sequence[Results]) -> Table:
    """Return BLEU on all sentences, and on those in which no run of any system has `<unk>`."""
    rows = []
    whole = {part["test_set"]: part for part in results["comparisons"] if part["variant"] == ""
             and (part["search"], part["baseline"]) == (parts[0]["search"], parts[0]["baseline"])}  # fmt: skip
    for part in parts:
        everything = bleu_of(whole[part["test_set"]])
        for number, system in enumerate(bleu_of(part)):
            label = f"{set_name(part)} ({part['left_out']} left out)" if number == 0 else ""
            rows.append((label, system["system"], score_cell(everything[number]), score_cell(system)))
    return Table(("test set", "system", "BLEU, UNK", "BLEU, noUNK"), tuple(rows), left=2, notes=(STARS,))


def bleu_of(part: Results) -> list[Results]:
    """Return the systems' BLEU in a comparison."""
    found: list[Results] = next(metric["systems"] for metric in part["metrics"] if metric["metric"] == "BLEU")
    return found


def missing_lines(results: Results) -> Iterable[str]:
    """Return what the tables lack."""
    lines = list(results["missing"])
    if results["paper_tables"]:
        there = {table["key"] for table in results["paper_tables"]}
        titles = [table.title for key, table in paper_tables().items() if key not in there and key in OTHER_CORPUS]
        lines += [f"The paper's table *{title}*: it needs IWSLT14's training text." for title in titles]
    return lines
