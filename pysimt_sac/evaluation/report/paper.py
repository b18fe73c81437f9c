"""The results tables of the paper.

The numbers are in `paper_figures.json`: for each table its metrics and, for each group of rows and each system, the
numbers of a row from left to right, with the paper's star for a significant difference from MLE.
"""

import json
from dataclasses import dataclass
from importlib import resources

FIGURES = "paper_figures.json"
SETS = {"2016": "test_2016_flickr", "2017": "test_2017_flickr", "COCO": "test_2017_mscoco"}
LOWER_IS_BETTER = ("TER",)


@dataclass(frozen=True)
class Cell:
    """A number, whether it differs significantly from the baseline's, and its standard deviation over runs."""

    value: float
    significant: bool = False
    spread: float | None = None


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables; `groups` has the cells of each group and system."""

    key: str
    title: str
    metrics: tuple[str, ...]
    sets: tuple[str, ...]
    groups: dict[str, dict[str, tuple[Cell | None, ...]]]

    def columns(self) -> list[tuple[str, str]]:
        """Return the test set and metric of each column."""
        return [(test_set, metric) for test_set in self.sets for metric in self.metrics]


def parse_cell(text: str) -> Cell | None:
    """Parse `59.4*`, a significant 59.4, or `-`, no number."""
    return None if text == "-" else Cell(float(text.rstrip("*")), significant=text.endswith("*"))


def paper_tables() -> dict[str, PaperTable]:
    """Return all tables by key."""
    content = json.loads(resources.files("pysimt_sac.evaluation.report").joinpath(FIGURES).read_text(encoding="utf-8"))
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
