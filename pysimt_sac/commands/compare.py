"""`pysimt-sac compare`: compare systems with a baseline, several runs each, with significance tests."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import COMPARISON_COLUMNS, System, compare_systems, comparison_table, pick
from pysimt_sac.evaluation.lexical import read_cases
from pysimt_sac.evaluation.texts import NamedText, check_runs, check_texts, read_text

EPILOG = (
    f"""For several test sets, give their names with --sets and write {{set}} in every path. {COMPARISON_COLUMNS}."""
)


@dataclass(frozen=True)
class TestSet:
    """A reference and the hypotheses of all systems, the baseline first."""

    name: str
    reference: NamedText
    systems: tuple[tuple[str, tuple[NamedText, ...]], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("--ref", required=True, metavar="REF", help="reference")
    options.add_system_arguments(parser, required=True)
    options.add_set_argument(parser)
    parser.add_argument("--pool", action="store_true", help="concatenate all test sets")
    parser.add_argument("--no-unk", action="store_true", help="leave out sentences in which any run has <unk>")
    parser.add_argument("--mlt", metavar="TSV", help="only sentences with an ambiguous word of this list")
    options.add_metric_arguments(parser)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compare on each test set, or on all of them concatenated."""
    test_sets = read_test_sets(args)
    for test_set in test_sets:
        options.warn(check_texts(test_set.reference, [text for _, runs in test_set.systems for text in runs]))
    if args.mlt:
        test_sets = [with_ambiguous_words(own, Path(args.mlt.replace("{set}", own.name))) for own in test_sets]
    if args.pool:
        test_sets = [pool(test_sets)]
    for test_set in test_sets:
        for name, runs in test_set.systems:
            options.warn(check_runs(name, runs))
    metrics = options.chosen_metrics(args, Path(args.ref))
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


def read_test_sets(args: argparse.Namespace) -> list[TestSet]:
    """Read all references and hypotheses."""
    systems = options.given_systems(args)
    options.check_sets(args, [args.ref, *(file for _, files in systems for file in files)])

    def read(path: str, test_set: str, what: str = "hypothesis") -> NamedText:
        return read_text(Path(path.replace("{set}", test_set) if args.sets else path), what)

    def read_reference(test_set: str) -> NamedText:
        source = Path(args.src.replace("{set}", test_set) if args.sets else args.src) if args.src else None
        return options.with_sources(args, read(args.ref, test_set, "reference"), source)

    return [
        TestSet(
            test_set,
            read_reference(test_set),
            tuple((name, tuple(read(file, test_set) for file in files)) for name, files in systems),
        )
        for test_set in args.sets or [Path(args.ref).name]
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


def pool(test_sets: Sequence[TestSet]) -> TestSet:
    """Concatenate test sets."""
    systems = []
    for number, (name, _) in enumerate(test_sets[0].systems):
        parts = [test_set.systems[number][1] for test_set in test_sets]
        systems.append((name, tuple(map(NamedText.concatenate, zip(*parts, strict=True)))))
    names = " + ".join(test_set.name for test_set in test_sets)
    return TestSet(names, NamedText.concatenate([test_set.reference for test_set in test_sets]), tuple(systems))
