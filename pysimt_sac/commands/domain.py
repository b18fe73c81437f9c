"""`pysimt-sac domain`: measure the distance of test sets from a training text."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.evaluation.lexical.domain import DomainAnalysis, DomainDistance, NeuralOptions, domain_distances
from pysimt_sac.evaluation.lexical.ngram import NAME
from pysimt_sac.evaluation.report.layout import Table
from pysimt_sac.evaluation.scoring.texts import read_text, short_names

EPILOG = """All texts must have the same language and the same preprocessing. The paper measures the source side
(English)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    usual = NeuralOptions()
    parser.epilog = EPILOG
    parser.add_argument("tests", nargs="+", type=Path, metavar="TEST", help="test set")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="training text")
    options.add_numbers(parser, ("--order", 3, "order of the n-gram model"))
    parser.add_argument("--neural", action="store_true", help="also train a small GRU language model (takes minutes)")
    options.add_numbers(
        parser,
        ("--size", usual.size, "hidden size of the GRU model"),
        ("--epochs", usual.epochs, "epochs of the GRU model, at most"),
        ("--seed", usual.seed, "random seed of the GRU model"),
    )
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure all test sets."""
    training = read_text(args.train, "training text")
    tests = [read_text(path, "test set") for path in args.tests]
    neural = NeuralOptions(args.size, args.epochs, args.seed) if args.neural else None
    named = list(zip(short_names(args.tests), (text.lines for text in tests), strict=True))
    analysis = domain_distances(training.lines, named, args.order, neural)
    if not analysis.discounts_estimated:
        options.note(["the training text is too small to estimate discounts; 0.5, 1 and 1.5 are used"])
    return options.show(args, analysis, [domain_table(analysis)])


def domain_table(analysis: DomainAnalysis) -> Table:
    """Return a table with a row for each test set."""
    header: tuple[str, ...] = (
        "test set",
        "sentences",
        "words",
        "unknown words",
        "unknown types",
        "perplexity",
        "known words only",
    )
    notes = [
        f"perplexity: {analysis.order}-gram model, {NAME}, of {analysis.training_sentences:,} sentences with "
        f"{analysis.training_types:,} types; </s> is included",
        "unknown words share one probability; 'known words only' leaves them out",
    ]
    if analysis.neural:
        header = (*header, "neural")
        notes.append(
            f"neural: GRU of size {analysis.neural.size}, seed {analysis.neural.seed}; words seen once in training "
            "are its <unk>; not comparable with the n-gram model"
        )
    return Table(header=header, rows=tuple(map(domain_row, analysis.sets)), notes=tuple(notes))


def domain_row(distance: DomainDistance) -> tuple[str, ...]:
    """Return the row of a test set."""
    cells = (
        distance.name,
        str(distance.sentences),
        str(distance.words),
        f"{100 * distance.unknown_rate:.2f}%",
        f"{100 * distance.unknown_type_rate:.2f}%",
        f"{distance.perplexity:.2f}",
        f"{distance.perplexity_known:.2f}",
    )
    return cells if distance.neural_perplexity is None else (*cells, f"{distance.neural_perplexity:.2f}")
