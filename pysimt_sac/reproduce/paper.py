"""The results tables of the paper, with our own rows.

The paper's numbers are in `paper_figures.json`: for each table its metrics and, for each group of rows and each system,
the numbers of a row from left to right, with the paper's star for a significant difference from MLE.
"""

import json
from dataclasses import dataclass
from importlib import resources

from pysimt_sac.evaluation.report.layout import Table, best_cells
from pysimt_sac.evaluation.scoring.significance import SIGNIFICANT
from pysimt_sac.reproduce.results import Results
from pysimt_sac.reproduce.scoring import ALL, AMBIGUOUS, CASES, RARE

FIGURES = "paper_figures.json"
SETS = {"2016": "test_2016_flickr", "2017": "test_2017_flickr", "COCO": "test_2017_mscoco"}
PARTS = {"multi30k": ALL, "lexical-all": CASES, "lexical-rare": RARE, "ambiguous": AMBIGUOUS}  # the tables that we fill
TWICE_LTA = "2 LTA - 100"
LOWER_IS_BETTER = ("TER",)
ALIASES = {"sacunsup": "sacunsuper", "sacunsupervised": "sacunsuper", "sacsup": "sacbleu", "sac": "sacbleu"}
NOTES = {
    "lexical-all": "The paper's ALI for all cases is 2 LTA - 100. Own ALI: -1 for known wrong translations only.",
    "lexical-rare": "Own rare cases are counted by inflected form, so there are more of them than in the paper.",
}
STEMS = "METEOR (exact stem)"
NOTE_ON_STEMS = "Own METEOR: exact words and stems only; it cannot be compared with the paper's."


@dataclass(frozen=True)
class Cell:
    """A number, whether it differs significantly from the baseline's, and its standard deviation over runs."""

    value: float
    significant: bool = False
    spread: float | None = None

    def show(self, decimals: int) -> str:
        """Format the cell: `38.1±0.2*`."""
        spread = "" if self.spread is None else f"±{self.spread:.{decimals}f}"
        return f"{self.value:.{decimals}f}{spread}{'*' if self.significant else ''}"


Row = tuple[Cell | None, ...]


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables; `groups` has the cells of each group and system."""

    key: str
    title: str
    metrics: tuple[str, ...]
    sets: tuple[str, ...]
    groups: dict[str, dict[str, Row]]

    def columns(self) -> list[tuple[str, str]]:
        """Return the test set and metric of each column."""
        return [(test_set, metric) for test_set in self.sets for metric in self.metrics]


def parse_cell(text: str) -> Cell | None:
    """Parse `59.4*`, a significant 59.4, or `-`, no number."""
    return None if text == "-" else Cell(float(text.rstrip("*")), significant=text.endswith("*"))


def paper_tables() -> dict[str, PaperTable]:
    """Return all tables by key."""
    content = json.loads(resources.files("pysimt_sac.reproduce").joinpath(FIGURES).read_text(encoding="utf-8"))
    tables = {}
    for key, table in content.items():
        groups = {
            group: {system: tuple(map(parse_cell, line.split())) for system, line in systems.items()}
            for group, systems in table["groups"].items()
        }
        width = len(next(iter(next(iter(groups.values())).values())))
        metrics = tuple(table["metrics"])
        sets = ("test",) if width == len(metrics) else tuple(SETS)
        tables[key] = PaperTable(key, table["title"], metrics, sets, groups)
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
        cells = tuple(own_cell(results, PARTS[table.key], *column, system["name"]) for column in table.columns())
        if any(cells):
            rows[system["name"]] = cells
    return rows


def own_cell(results: Results, part: str, test_set: str, metric: str, system: str) -> Cell | None:
    """Return our cell of a column; METEOR goes into its column whatever it matches."""
    if metric == TWICE_LTA:
        lta = own_cell(results, part, test_set, "LTA", system)
        return Cell(2 * lta.value - 100) if lta else None
    score = results.scored(results.searches[0], SETS[test_set], part, results.metric_name(metric)).get(system)
    return Cell(score.mean, score.is_significant(results.baselines[0]), score.deviation) if score else None


def same_system(own: str, papers: str) -> bool:
    """Return whether a system's name is the paper's, in any spelling."""
    plain = ["".join(filter(str.isalnum, name.lower())) for name in (own, papers)]
    return ALIASES.get(plain[0], plain[0]) == plain[1]


def filled_table(results: Results, table: PaperTable, own: dict[str, Row]) -> Table:
    """Return a table: each of the paper's rows, followed by ours of that name, then our others.

    The best numbers are in bold, separately for the paper's rows and ours.
    """
    decimals = 2 if table.key.startswith("lexical") else 1
    papers = table.groups[results.pair]
    rows: list[tuple[str, str, Row]] = []
    for name, cells in papers.items():
        rows.append((name, "paper", cells))
        rows += [(other, "own", found) for other, found in own.items() if same_system(other, name)]
    rows += [
        (other, "own", found) for other, found in own.items() if not any(same_system(other, name) for name in papers)
    ]
    higher_is_better = [metric not in LOWER_IS_BETTER for _, metric in table.columns()]
    bold = set()
    for kind in ("paper", "own"):
        values = [[round(cell.value, decimals) if cell and source == kind else None for cell in cells]
                  for _, source, cells in rows]  # fmt: skip
        bold |= {(row, column + 3) for row, column in best_cells(values, higher_is_better)}
    shown = []
    for number, (name, source, cells) in enumerate(rows):
        n_runs = len(results.runs_of(name))
        label = source if source == "paper" else f"own, {n_runs} run{'s' if n_runs > 1 else ''}"
        group = "" if number else results.pair
        shown.append((group, name, label, *("-" if cell is None else cell.show(decimals) for cell in cells)))
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
