"""The paper's tables with the user's own runs added.

The user's rows have the average over runs, the standard deviation over runs, and a star if the difference from the
user's baseline is significant, as computed by `compare` and `lexical`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import MetricComparison, System, compare_systems, pick
from pysimt_sac.evaluation.lexical import compare_lexical, read_cases
from pysimt_sac.evaluation.meteor import guess_language
from pysimt_sac.evaluation.report.paper import LOWER_IS_BETTER, Cell, PaperTable
from pysimt_sac.evaluation.report.runs_file import RunsFile, RunsSection, find_runs, for_set
from pysimt_sac.evaluation.scores import choose_metrics
from pysimt_sac.evaluation.significance import SIGNIFICANT, Resampling
from pysimt_sac.evaluation.tables import Table, best_cells
from pysimt_sac.evaluation.texts import NamedText, check_texts, read_text

Cells = dict[str, Cell]  # by metric
BASELINE = "MLE"
NEED_AMBIGUOUS = ("lexical-all", "lexical-rare", "ambiguous")
ALIASES = {"sacunsup": "sacunsuper", "sacunsupervised": "sacunsuper", "sacsup": "sacbleu", "sac": "sacbleu"}


@dataclass(frozen=True)
class TableRow:
    """A row of a filled table; `runs` is 0 for the paper's rows."""

    group: str
    system: str
    runs: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class FilledTable:
    """A table with the paper's rows and the user's own."""

    key: str
    title: str
    columns: tuple[str, ...]
    higher_is_better: tuple[bool, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


@dataclass
class Filler:
    """Fills tables with the runs of a runs file; `warnings` are for the user."""

    runs_file: RunsFile
    resampling: Resampling
    meteor_jar: Path | None = None
    warnings: list[str] = field(default_factory=list)
    used_metrics: set[str] = field(default_factory=set)

    def fill(self, table: PaperTable) -> FilledTable:
        """Add the user's rows to a table."""
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
        """Return a row for each of the user's systems in a group of a table."""
        runs = self.own_section(table, group)
        if runs is None:
            return []
        where = f"{self.runs_file.path}: [{'.'.join(section_of(table.key, group))}]"
        counts = {name: count_runs(name, patterns, table.sets, where) for name, patterns in runs.systems.items()}
        cells: dict[str, list[Cell | None]] = {name: [] for name in runs.systems}
        for test_set in table.sets:
            measured = self.measure(table.key, group, runs, test_set)
            for name in runs.systems:
                cells[name] += [measured.get(name, {}).get(metric) for metric in table.metrics]
        return [TableRow(group, name, counts[name], tuple(cells[name])) for name in runs.systems]

    def own_section(self, table: PaperTable, group: str) -> RunsSection | None:
        """Return the section of the runs file that fills a group of a table, if any."""
        runs = self.runs_file.sections.get(section_of(table.key, group))
        is_usable = runs and runs.systems and (runs.ambiguous or table.key not in NEED_AMBIGUOUS)
        return runs if is_usable else None

    def measure(self, key: str, group: str, runs: RunsSection, test_set: str) -> dict[str, Cells]:
        """Compute the cells of every system on one test set."""
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
        # Without the baseline's hypotheses there is no significance test.
        return cells_by_system(parts, tested=systems[0].name == baseline)

    def read_texts(self, runs: RunsSection, test_set: str) -> dict[str, list[NamedText]]:
        """Read the hypotheses of a test set; missing files are left out with a warning."""
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
        """Compare BLEU, METEOR and TER on the sentences `kept`."""
        language = guess_language(reference.path) if reference.path else None
        choice = choose_metrics(("bleu", "meteor", "ter"), language=language, meteor_jar=self.meteor_jar)
        self.warn(choice.missing)
        self.used_metrics |= {metric.name for metric in choice.metrics}
        parts = [System(system.name, tuple(pick(run, kept) for run in system.runs)) for system in systems]
        references = pick(reference.lines, kept)
        return compare_systems(references, parts[0], parts[1:], choice.metrics, self.resampling, no_unknown).metrics

    def warn(self, messages: Sequence[str]) -> None:
        """Add warnings that are new."""
        self.warnings += [message for message in messages if message not in self.warnings]

    def notes(self, table: PaperTable) -> list[str]:
        """Return the notes below a table."""
        own = {group: self.own_section(table, group) for group in table.groups}
        stars = own_stars({group: baseline_of(runs.systems) for group, runs in own.items() if runs})
        notes = [f"* p <= {SIGNIFICANT} against MLE{stars}; ± standard deviation of the runs."]
        if "METEOR (exact stem)" in self.used_metrics:
            notes.append("Own METEOR: exact words and stems only; it cannot be compared with the paper's.")
        if table.key == "lexical-all":
            notes.append("The paper's ALI for all cases is 2 LTA - 100. Own ALI: -1 for known wrong translations only.")
        if table.key == "lexical-rare":
            notes.append("Own rare cases are counted by inflected form, so there are more of them than in the paper.")
        return notes


def section_of(key: str, group: str) -> tuple[str, str]:
    """Return the section of the runs file for a group of a table."""
    if key.startswith("iwslt"):
        return key, "de-en"
    return "multi30k", group


def same_system(own: str, papers: str) -> bool:
    """Return whether a system's name is the paper's, in any spelling."""
    plain = ["".join(filter(str.isalnum, name.lower())) for name in (own, papers)]
    return ALIASES.get(plain[0], plain[0]) == plain[1]


def baseline_of(systems: Iterable[str]) -> str:
    """Return the baseline of significance tests: MLE, or else the first system."""
    return min(systems, key=lambda name: not same_system(name, BASELINE))


def own_stars(baselines: dict[str, str]) -> str:
    """Name the baselines behind the stars of the user's rows, given each group's baseline."""
    named = {group: BASELINE if same_system(name, BASELINE) else name for group, name in baselines.items()}
    against = [f"{group} against your {name}" for group, name in named.items()]
    if len(set(named.values())) == 1:
        against = [f"against your {next(iter(named.values()))}"]
    return f" (own rows: {', '.join(against)})" if against else ""


def count_runs(name: str, patterns: list[str], sets: Sequence[str], where: str) -> int:
    """Count a system's runs; all test sets must have the same number, except those without any output."""
    found = {for_set("{set}", test_set): len(find_runs(patterns, test_set)[0]) for test_set in sets}
    counts = set(found.values()) - {0}
    if not counts:
        raise UserError(f"no output of the system {name!r} exists, e.g. {for_set(patterns[0], sets[0])}", where)
    if len(counts) > 1:
        listed = ", ".join(f"{count} of {test_set}" for test_set, count in found.items())
        what = f"the system {name!r} has different numbers of outputs: {listed}"
        raise UserError(what, where, "translate the missing ones, or leave these runs out")
    return counts.pop()


def cells_by_system(parts: Sequence[MetricComparison], tested: bool) -> dict[str, Cells]:
    """Return the cells of a comparison by system and metric."""
    cells: dict[str, Cells] = defaultdict(dict)
    for part in parts:
        for system in part.systems:
            found = system.against_baseline
            significant = tested and found is not None and not found.identical and found.p <= SIGNIFICANT
            # METEOR (exact stem) goes into the METEOR column; a note explains the difference.
            cells[system.system][part.metric.split()[0]] = Cell(system.average, significant, system.s_test)
    for own in cells.values():
        if "LTA" in own:
            own["2 LTA - 100"] = Cell(2 * own["LTA"].value - 100)
    return cells


def show_cell(cell: Cell | None, decimals: int) -> str:
    """Format a cell: `38.1±0.2*`, or a dash."""
    if cell is None:
        return "-"
    spread = "" if cell.spread is None else f"±{cell.spread:.{decimals}f}"
    return f"{cell.value:.{decimals}f}{spread}{'*' if cell.significant else ''}"


def as_table(filled: FilledTable) -> Table:
    """Return the table to show, with the best numbers in bold, separately for the paper's and the user's rows."""
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
    """Round a number as shown, so that ties are all in bold."""
    return None if cell is None else round(cell.value, decimals)
