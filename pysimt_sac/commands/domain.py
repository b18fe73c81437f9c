"""`pysimt-sac domain`: measure the distance of test sets from a training text."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.commands.arguments import add_number
from pysimt_sac.evaluation.domain import SMOOTHING, DomainAnalysis, domain_distances
from pysimt_sac.evaluation.tables import Table
from pysimt_sac.evaluation.texts import read_text, short_names

EPILOG = """All texts must have the same language and the same preprocessing. The paper measures the source side
(English)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("tests", nargs="+", type=Path, metavar="TEST", help="test set")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="training text")
    add_number(parser, "--order", 3, "order of the n-gram model")
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure all test sets."""
    training = read_text(args.train, "training text")
    tests = [read_text(path, "test set").lines for path in args.tests]
    analysis = domain_distances(training.lines, list(zip(short_names(args.tests), tests, strict=True)), args.order)
    if not analysis.discounts_estimated:
        options.note(["the training text is too small to estimate discounts; 0.5, 1 and 1.5 are used"])
    return options.show(args, analysis, [domain_table(analysis)])


def domain_table(analysis: DomainAnalysis) -> Table:
    """Return a table with a row for each test set."""
    return Table(
        header=("test set", "sentences", "words", "unknown words", "unknown types", "perplexity", "known words only"),
        rows=tuple(
            (
                distance.name,
                str(distance.sentences),
                str(distance.words),
                f"{100 * distance.unknown_rate:.2f}%",
                f"{100 * distance.unknown_type_rate:.2f}%",
                f"{distance.perplexity:.2f}",
                f"{distance.perplexity_known:.2f}",
            )
            for distance in analysis.sets
        ),
        notes=(
            f"perplexity: {analysis.order}-gram model, {SMOOTHING}, of {analysis.training_sentences:,} sentences with "
            f"{analysis.training_types:,} types; </s> is included",
            "unknown words share one probability; 'known words only' leaves them out",
        ),
    )
