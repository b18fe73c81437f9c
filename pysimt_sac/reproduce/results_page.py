"""RESULTS.md: the tables of all archived reproductions, and their discussion."""

from collections.abc import Mapping

from pysimt_sac.evaluation.significance import PAIRED
from pysimt_sac.evaluation.tables import Table, as_markdown
from pysimt_sac.reproduce.quoting import fill_in
from pysimt_sac.reproduce.results import Results
from pysimt_sac.reproduce.tables import (
    STARS,
    bleu_of,
    compared,
    score_cell,
    search_name,
    sections,
    set_name,
    title_of,
)


def results_page(found: Mapping[str, Results], discussion: str, source: str) -> str:
    """Return the page: BLEU of all systems, the discussion, which may quote the results by name, and all tables.

    source: what the page was generated from.
    """
    parts = ["# Results", source, "## In short", "".join(map(titled_summary, found.values())).strip("\n")]
    parts += filter(None, [fill_in(discussion, found).strip("\n")])
    for results in found.values():
        parts += [f"## {title_of(results)}", *sections(results, "###")]
    return "\n\n".join(parts) + "\n"


def titled_summary(results: Results) -> str:
    """Return the BLEU table under its title."""
    return f"{title_of(results)}:\n\n{as_markdown(summary_table(results))}\n\n"


def summary_table(results: Results) -> Table:
    """Return BLEU by the first search, pooled and on each test set, with stars against the last baseline available."""
    search = results["searches"][0]
    there = {part["baseline"] for part in results["comparisons"] if part["search"] == search}
    if not there:
        return Table(("system",), tuple((system["name"],) for system in results["systems"]))
    baseline = [name for name in results["baselines"] if name in there][-1]
    parts = [part for part in compared(results, search, baseline) if part["variant"] != "noUNK"]
    columns = [bleu_of(part) for part in parts]
    rows = [
        (system["system"], str(len(system["runs"])), *(score_cell(column[number]) for column in columns))
        for number, system in enumerate(columns[0])
    ]
    header = ("system", "runs", *(set_name(part) for part in parts))
    notes = [f"BLEU, {search_name(search)}; {STARS}, {baseline}"]
    if (rule := parts[0]["resampling"]["shuffling"]) != PAIRED:
        notes.append(f"p-values of this comparison: {rule}")
    return Table(header, tuple(rows), left=1, notes=tuple(notes))
