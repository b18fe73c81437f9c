"""`pysimt-sac domain`: how far test sets are from a training text."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.evaluation.lexical.domain import DomainAnalysis, DomainDistance, NeuralOptions, domain_distances
from pysimt_sac.evaluation.lexical.ngram import NAME
from pysimt_sac.evaluation.report.layout import Table
from pysimt_sac.evaluation.scoring.texts import read_text, short_names

EPILOG = """All texts must be of one language and prepared alike. The paper measures the source side (English), so that
the distance is that of what the system has to translate."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The training text, the test sets, the models."""
    usual = NeuralOptions()
    parser.epilog = EPILOG
    parser.add_argument("tests", nargs="+", type=Path, metavar="TEST", help="a test set")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="the training text")
    options.add_numbers(parser, ("--order", 3, "of the n-gram model"))
    parser.add_argument("--neural", action="store_true", help="a small neural language model, too (takes minutes)")
    options.add_numbers(
        parser,
        ("--size", usual.size, "size of the neural model's layer"),
        ("--epochs", usual.epochs, "most passes over the training text"),
        ("--seed", usual.seed, "seed of the neural model"),
    )
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and show."""
    training = read_text(args.train, "training text")
    tests = [read_text(path, "test set") for path in args.tests]
    neural = NeuralOptions(args.size, args.epochs, args.seed) if args.neural else None
    named = list(zip(short_names(args.tests), (text.lines for text in tests), strict=True))
    analysis = domain_distances(training.lines, named, args.order, neural)
    if not analysis.discounts_estimated:
        options.note(["the training text is too small or too regular to estimate discounts; 0.5, 1 and 1.5 are used"])
    return options.show(args, analysis, [domain_table(analysis)])


def domain_table(analysis: DomainAnalysis) -> Table:
    """A row for each test set."""
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
        f"{analysis.training_types:,} types; ends of sentences included;",
        "unknown words share one probability; 'known words only' leaves them out",
    ]
    if analysis.neural:
        header = (*header, "neural")
        notes.append(
            f"neural: GRU of size {analysis.neural.size}, seed {analysis.neural.seed}; words seen once in training are "
            "its unknown word, so that it cannot be compared with the n-gram model's"
        )
    return Table(header=header, rows=tuple(map(domain_row, analysis.sets)), notes=tuple(notes))


def domain_row(distance: DomainDistance) -> tuple[str, ...]:
    """One test set's cells."""
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
