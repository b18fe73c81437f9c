"""The paper's tables filled with one's own runs: what `pysimt-sac table` shows.

Averages over runs stand beside the paper's figures, with the standard deviation over runs and a star where the
difference from one's own baseline is significant, computed as by `compare` and `lexical`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.lexical.accuracy import compare_lexical, read_cases
from pysimt_sac.evaluation.report.layout import Table, best_cells
from pysimt_sac.evaluation.report.paper import LOWER_IS_BETTER, Cell, PaperTable
from pysimt_sac.evaluation.report.runs_file import RunsFile, RunsSection, find_runs, for_set
from pysimt_sac.evaluation.scoring.comparison import MetricComparison, System, compare_systems
from pysimt_sac.evaluation.scoring.meteor import guess_language
from pysimt_sac.evaluation.scoring.scores import choose_metrics
from pysimt_sac.evaluation.scoring.significance import SIGNIFICANT, Resampling
from pysimt_sac.evaluation.scoring.texts import NamedText, check_texts, read_text

Cells = dict[str, Cell]  # by metric
BASELINE = "MLE"
NEED_AMBIGUOUS = ("lexical-all", "lexical-rare", "ambiguous")
ALIASES = {"sacunsup": "sacunsuper", "sacunsupervised": "sacunsuper", "sacsup": "sacbleu", "sac": "sacbleu"}


@dataclass(frozen=True)
class TableRow:
    """A line of a filled table; `runs` is 0 in the paper's rows."""

    group: str
    system: str
    runs: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class FilledTable:
    """A table with the paper's rows and one's own."""

    key: str
    title: str
    columns: tuple[str, ...]
    higher_is_better: tuple[bool, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


@dataclass
class Filler:
    """Scores one's runs as tables ask for them; `warnings` collects what the user should hear."""

    runs_file: RunsFile
    resampling: Resampling
    meteor_jar: Path | None = None
    warnings: list[str] = field(default_factory=list)
    used_metrics: set[str] = field(default_factory=set)

    def fill(self, table: PaperTable) -> FilledTable:
        """Put one's own rows beside the paper's."""
        self.used_metrics.clear()
        rows: list[TableRow] = []
        for group, systems in table.groups.items():
            own = self.own_rows(table, group)
            for name, cells in systems.items():
                rows.append(TableRow(group, name, 0, cells))
                rows += [row for row in own if same_system(row.system, name)]
            rows += [row for row in own if not any(same_system(row.system, name) for name in systems)]
        columns = table.columns()
        return FilledTable(
            key=table.key,
            title=table.title,
            columns=tuple(metric if len(table.sets) == 1 else f"{test_set} {metric}" for test_set, metric in columns),
            higher_is_better=tuple(metric not in LOWER_IS_BETTER for _, metric in columns),
            rows=tuple(rows),
            notes=tuple(self.notes(table)),
        )

    def own_rows(self, table: PaperTable, group: str) -> list[TableRow]:
        """One row for each of one's own systems in a group of a table."""
        place = place_of(table.key, group)
        runs = self.runs_file.sections.get(place)
        if runs is None or (table.key in NEED_AMBIGUOUS and not runs.ambiguous):
            return []
        where = f"{self.runs_file.path}: [{'.'.join(place)}]"
        counts = {name: count_runs(name, patterns, table.sets, where) for name, patterns in runs.systems.items()}
        cells: dict[str, list[Cell | None]] = {name: [] for name in runs.systems}
        for test_set in table.sets:
            measured = self.measure(table.key, group, runs, test_set)
            for name in runs.systems:
                cells[name] += [measured.get(name, {}).get(metric) for metric in table.metrics]
        return [TableRow(group, name, counts[name], tuple(cells[name])) for name in runs.systems]

    def measure(self, key: str, group: str, runs: RunsSection, test_set: str) -> dict[str, Cells]:
        """The cells of every system on one test set."""
        texts = self.read_texts(runs, test_set)
        if not texts:
            return {}
        reference = read_text(Path(for_set(runs.reference, test_set)), "reference")
        self.warn(check_texts(reference, [text for outputs in texts.values() for text in outputs]))
        systems = [System(name, tuple(text.lines for text in outputs)) for name, outputs in texts.items()]
        baseline = baseline_of(runs.systems)
        systems.sort(key=lambda system: system.name != baseline)
        cases = read_cases(Path(for_set(runs.ambiguous, test_set))) if key in NEED_AMBIGUOUS else []
        if key.startswith("lexical"):
            compared = compare_lexical(cases, systems, self.resampling)
            parts = compared.all if key == "lexical-all" else compared.rare
        else:
            kept = sorted({case.line for case in cases}) or list(range(len(reference.lines)))
            parts = self.score(systems, reference, kept, no_unknown=group == "noUNK")
        # Where the baseline has no output, there is nothing to be significantly better than.
        return cells_by_system(parts, tested=systems[0].name == baseline)

    def read_texts(self, runs: RunsSection, test_set: str) -> dict[str, list[NamedText]]:
        """The outputs that exist for a test set; what does not exist leaves its cell empty."""
        texts = {}
        for name, patterns in runs.systems.items():
            files, missing = find_runs(patterns, test_set)
            self.warn([f"{path}: not found; left out of {name!r}" for path in missing])
            if files:
                texts[name] = [read_text(file) for file in files]
        return texts

    def score(
        self, systems: list[System], reference: NamedText, kept: list[int], no_unknown: bool
    ) -> tuple[MetricComparison, ...]:
        """BLEU, METEOR and TER, of some of the sentences."""
        language = guess_language(reference.path) if reference.path else None
        choice = choose_metrics(("bleu", "meteor", "ter"), language=language, meteor_jar=self.meteor_jar)
        self.warn(choice.missing)
        self.used_metrics |= {metric.name for metric in choice.metrics}
        parts = [System(system.name, tuple(pick(run, kept) for run in system.runs)) for system in systems]
        references = pick(reference.lines, kept)
        return compare_systems(references, parts[0], parts[1:], choice.metrics, self.resampling, no_unknown).metrics

    def warn(self, messages: Sequence[str]) -> None:
        """Keep a warning, once."""
        self.warnings += [message for message in messages if message not in self.warnings]

    def notes(self, table: PaperTable) -> list[str]:
        """What a reader of the table must know."""
        notes = [f"* p <= {SIGNIFICANT} against MLE (own rows: against one's own); ± standard deviation of the runs."]
        if "METEOR (exact stem)" in self.used_metrics:
            notes.append("Own METEOR: exact words and stems only, so that it cannot be compared with the paper's.")
        if table.key == "lexical-all":
            notes.append("The paper's ALI for all cases is 2 LTA - 100. ALI: -1 only for a known wrong translation.")
        return notes


def place_of(key: str, group: str) -> tuple[str, str]:
    """The section of the runs file that a group of a table is filled from."""
    if key.startswith("iwslt"):
        return key, "de-en"
    return "multi30k", group


def same_system(own: str, papers: str) -> bool:
    """Whether one's own name for a system is the paper's, however it is written."""
    plain = ["".join(filter(str.isalnum, name.lower())) for name in (own, papers)]
    return ALIASES.get(plain[0], plain[0]) == plain[1]


def baseline_of(systems: Iterable[str]) -> str:
    """What one's own systems are compared with: MLE, or else the first one named."""
    return min(systems, key=lambda name: not same_system(name, BASELINE))


def count_runs(name: str, patterns: list[str], sets: Sequence[str], where: str) -> int:
    """How many runs a system has; a system without any file is a mistake."""
    runs = max(len(find_runs(patterns, test_set)[0]) for test_set in sets)
    if not runs:
        raise UserError(f"no output of the system {name!r} exists, e.g. {for_set(patterns[0], sets[0])}", where)
    return runs


def pick(lines: Sequence[str], kept: Sequence[int]) -> tuple[str, ...]:
    """Some of the lines."""
    return tuple(lines[number] for number in kept)


def cells_by_system(parts: Sequence[MetricComparison], tested: bool) -> dict[str, Cells]:
    """Cells of a comparison: system, then metric."""
    cells: dict[str, Cells] = defaultdict(dict)
    for part in parts:
        for system in part.systems:
            found = system.against_baseline
            significant = tested and found is not None and found.p <= SIGNIFICANT
            # The label of METEOR (exact stem) is for the notes; the column is the paper's.
            cells[system.system][part.metric.split()[0]] = Cell(system.average, significant, system.s_test)
    for own in cells.values():
        if "LTA" in own:
            own["2 LTA - 100"] = Cell(2 * own["LTA"].value - 100)
    return cells


def show_cell(cell: Cell | None, decimals: int) -> str:
    """`38.1±0.2*`, or a dash."""
    if cell is None:
        return "-"
    spread = "" if cell.spread is None else f"±{cell.spread:.{decimals}f}"
    return f"{cell.value:.{decimals}f}{spread}{'*' if cell.significant else ''}"


def as_table(filled: FilledTable) -> Table:
    """A filled table, ready to be shown; best figures bold, of the paper's rows and of one's own apart."""
    decimals = 2 if filled.key.startswith("lexical") else 1
    rows: list[tuple[str, ...]] = []
    rules, bold = set(), set()
    for group in dict.fromkeys(row.group for row in filled.rows):
        members = [row for row in filled.rows if row.group == group]
        start = len(rows)
        rules.add(start)
        for number, row in enumerate(members):
            source = "paper" if not row.runs else f"own, {row.runs} run{'s' if row.runs > 1 else ''}"
            label = (group if number == 0 else "", row.system, source)
            rows.append((*label, *(show_cell(cell, decimals) for cell in row.cells)))
        for own in (False, True):
            values = [[shown_value(cell, decimals) if bool(row.runs) == own else None for cell in row.cells]
                      for row in members]  # fmt: skip
            bold |= {(start + row, column + 3) for row, column in best_cells(values, filled.higher_is_better)}
    return Table(
        title=f"{filled.key}: {filled.title}",
        header=("", "model", "from", *filled.columns),
        rows=tuple(rows),
        left=3,
        rules=frozenset(rules),
        bold=frozenset(bold),
        notes=filled.notes,
    )


def shown_value(cell: Cell | None, decimals: int) -> float | None:
    """A figure as it is shown, so that equal looking ones are both the best."""
    return None if cell is None else round(cell.value, decimals)
