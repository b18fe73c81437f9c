"""The results tables of the paper, with our own rows.

The paper's numbers are in `paper_figures.json`: for each table its metrics and, for each group of rows and each system,
the numbers of a row from left to right, with the paper's star for a significant difference from MLE.
"""

import json
import re
from dataclasses import dataclass
from importlib import resources

from pysimt_sac.evaluation.significance import SIGNIFICANT
from pysimt_sac.evaluation.tables import Table, best_cells
from pysimt_sac.reproduce.results import ABSENT, Results
from pysimt_sac.reproduce.scoring import ALL, AMBIGUOUS, CASES, RARE

FIGURES = "paper_figures.json"
SETS = {"2016": "test_2016_flickr", "2017": "test_2017_flickr", "COCO": "test_2017_mscoco"}
PARTS = {"multi30k": ALL, "lexical-all": CASES, "lexical-rare": RARE, "ambiguous": AMBIGUOUS}  # the tables that we fill
TWICE_LTA = "2 LTA - 100"
LOWER_IS_BETTER = ("TER",)
NOTES = {
    "lexical-all": "The paper's ALI for all cases is 2 LTA - 100. Own ALI: -1 for known wrong translations only.",
    "lexical-rare": "Own rare cases are counted by inflected form, so there are more of them than in the paper.",
}
STEMS = "METEOR (exact stem)"
NOTE_ON_STEMS = "Own METEOR: exact words and stems only; it cannot be compared with the paper's."
Row = tuple[str, ...]


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
    content = json.loads(resources.files("pysimt_sac.reproduce").joinpath(FIGURES).read_text(encoding="utf-8"))
    tables = {}
    for key, table in content.items():
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
