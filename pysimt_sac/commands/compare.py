"""`pysimt-sac compare`: systems with several runs each against a baseline, and whether the difference is real."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.report.tables import COMPARISON_COLUMNS, comparison_table
from pysimt_sac.evaluation.scoring.comparison import System, compare_systems
from pysimt_sac.evaluation.scoring.texts import NamedText, check_runs, check_texts, read_text

EPILOG = f"""Several test sets: name them with --sets and write {{set}} in every path, or give several references and
join each run's files with commas, in the same order. {COMPARISON_COLUMNS}."""


@dataclass(frozen=True)
class TestSet:
    """A reference and all systems' outputs for it, the baseline first."""

    name: str
    reference: NamedText
    systems: tuple[tuple[str, tuple[NamedText, ...]], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """References, systems, resampling."""
    parser.epilog = EPILOG
    parser.add_argument("--ref", required=True, nargs="+", metavar="REF", help="the reference, one for each test set")
    options.add_system_arguments(parser, required=True)
    parser.add_argument("--sets", nargs="+", default=[], metavar="SET", help="names to put for {set} in all paths")
    parser.add_argument("--pool", action="store_true", help="put all test sets together")
    parser.add_argument(
        "--no-unk", action="store_true", help="score only sentences in which no run of any system produced <unk>"
    )
    options.add_metric_arguments(parser)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compare on each test set, or on all of them put together."""
    test_sets = read_test_sets(args)
    for test_set in test_sets:
        options.warn(check_texts(test_set.reference, [text for _, runs in test_set.systems for text in runs]))
    if args.pool:
        test_sets = [pooled(test_sets)]
    for test_set in test_sets:
        for name, runs in test_set.systems:
            options.warn(check_runs(name, runs))
    metrics = options.chosen_metrics(args, Path(args.ref[0]))
    comparisons = []
    for test_set in test_sets:
        baseline, *systems = (System(name, tuple(text.lines for text in runs)) for name, runs in test_set.systems)
        comparisons.append(
            compare_systems(
                test_set.reference.lines,
                baseline,
                systems,
                metrics,
                options.chosen_resampling(args),
                args.no_unk,
                test_set.name,
            )
        )
    return options.show(args, {"comparisons": comparisons}, map(comparison_table, comparisons))


def files_of(run: str, sets: Sequence[str], references: int) -> list[Path]:
    """The files of one run, one for each test set."""
    if sets:
        if "{set}" not in run:
            raise UserError("has no {set} in it, but --sets is given", run, "write {set} where the set's name stands")
        return [Path(run.replace("{set}", name)) for name in sets]
    files = [Path(run)] if references == 1 or Path(run).is_file() else [Path(file) for file in run.split(",")]
    if len(files) != references:
        raise UserError(
            f"names {len(files)} files for {references} references", run, "join one file for each reference with commas"
        )
    return files


def read_test_sets(args: argparse.Namespace) -> list[TestSet]:
    """Read everything that the command line names."""
    if args.sets and len(args.ref) != 1:
        raise UserError("takes one path with {set} in it when --sets is given", "--ref")
    references = files_of(args.ref[0], args.sets, 1) if args.sets else [Path(file) for file in args.ref]
    names = args.sets or [path.name for path in references]
    systems = options.given_systems(args)
    listed = [(name, [files_of(file, args.sets, len(references)) for file in files]) for name, files in systems]
    return [
        TestSet(
            set_name,
            read_text(reference, "reference"),
            tuple((name, tuple(read_text(files[number]) for files in runs)) for name, runs in listed),
        )
        for number, (set_name, reference) in enumerate(zip(names, references, strict=True))
    ]


def joined(texts: Sequence[NamedText]) -> NamedText:
    """Texts put end to end."""
    return NamedText(" + ".join(text.name for text in texts), tuple(line for text in texts for line in text.lines))


def pooled(test_sets: Sequence[TestSet]) -> TestSet:
    """All test sets as one."""
    systems = []
    for number, (name, runs) in enumerate(test_sets[0].systems):
        whole = [joined([test_set.systems[number][1][place] for test_set in test_sets]) for place in range(len(runs))]
        systems.append((name, tuple(whole)))
    names = " + ".join(test_set.name for test_set in test_sets)
    return TestSet(names, joined([test_set.reference for test_set in test_sets]), tuple(systems))
