"""`pysimt-sac compare`: compare systems with a baseline, several runs each, with significance tests."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.lexical.accuracy import read_cases
from pysimt_sac.evaluation.report.tables import COMPARISON_COLUMNS, comparison_table
from pysimt_sac.evaluation.scoring.comparison import System, compare_systems, pick
from pysimt_sac.evaluation.scoring.texts import NamedText, check_runs, check_texts, read_text, short_names

EPILOG = f"""Several test sets: give their names with --sets and write {{set}} in every path, or give several
references and join each run's files with commas, in the same order. {COMPARISON_COLUMNS}."""


@dataclass(frozen=True)
class TestSet:
    """A reference and the hypotheses of all systems, the baseline first."""

    name: str
    reference: NamedText
    systems: tuple[tuple[str, tuple[NamedText, ...]], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("--ref", required=True, nargs="+", metavar="REF", help="reference, one for each test set")
    options.add_system_arguments(parser, required=True)
    parser.add_argument("--sets", nargs="+", default=[], metavar="SET", help="names that replace {set} in all paths")
    parser.add_argument("--pool", action="store_true", help="concatenate all test sets")
    parser.add_argument("--no-unk", action="store_true", help="leave out sentences in which any run has <unk>")
    parser.add_argument("--mlt", metavar="TSV", help="only sentences with an ambiguous word of this list, with {set}")
    options.add_metric_arguments(parser)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compare on each test set, or on all of them concatenated."""
    test_sets = read_test_sets(args)
    for test_set in test_sets:
        options.warn(check_texts(test_set.reference, [text for _, runs in test_set.systems for text in runs]))
    if args.mlt:
        lists = files_of(args.mlt, args.sets, len(test_sets))
        test_sets = [with_ambiguous_words(own, path) for own, path in zip(test_sets, lists, strict=True)]
    if args.pool:
        test_sets = [pool(test_sets)]
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
    """Return the files of one run, one for each test set."""
    if sets:
        if "{set}" not in run:
            raise UserError("has no {set}, but --sets is given", run, "write {set} in place of the test set's name")
        return [Path(run.replace("{set}", name)) for name in sets]
    files = [Path(run)] if references == 1 or Path(run).is_file() else [Path(file) for file in run.split(",")]
    if len(files) != references:
        raise UserError(
            f"has {len(files)} files for {references} references", run, "join one file for each reference with commas"
        )
    return files


def read_test_sets(args: argparse.Namespace) -> list[TestSet]:
    """Read all references and hypotheses."""
    if args.sets and len(args.ref) != 1:
        raise UserError("takes one path with {set} if --sets is given", "--ref")
    references = files_of(args.ref[0], args.sets, 1) if args.sets else [Path(file) for file in args.ref]
    places = [path.resolve() for path in references]
    for number, name in enumerate(args.sets or args.ref):
        if places[number] in places[:number]:
            raise UserError(f"{name!r} is given twice", "--sets" if args.sets else "--ref", "give each test set once")
    names = args.sets or short_names(references)
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


def with_ambiguous_words(test_set: TestSet, path: Path) -> TestSet:
    """Keep the sentences that have an ambiguous word in a list."""
    kept = sorted({case.line for case in read_cases(path)})
    if kept[-1] >= len(test_set.reference.lines):
        raise UserError(f"goes beyond the {len(test_set.reference.lines)} lines of {test_set.name}", path)

    def keep(text: NamedText) -> NamedText:
        return NamedText(text.name, pick(text.lines, kept), text.path)

    systems = tuple((name, tuple(map(keep, runs))) for name, runs in test_set.systems)
    return TestSet(test_set.name, keep(test_set.reference), systems)


def concatenate(texts: Sequence[NamedText]) -> NamedText:
    """Concatenate texts."""
    return NamedText(" + ".join(text.name for text in texts), tuple(line for text in texts for line in text.lines))


def pool(test_sets: Sequence[TestSet]) -> TestSet:
    """Concatenate test sets."""
    systems = []
    for number, (name, _) in enumerate(test_sets[0].systems):
        parts = [test_set.systems[number][1] for test_set in test_sets]
        systems.append((name, tuple(map(concatenate, zip(*parts, strict=True)))))
    names = " + ".join(test_set.name for test_set in test_sets)
    return TestSet(names, concatenate([test_set.reference for test_set in test_sets]), tuple(systems))
