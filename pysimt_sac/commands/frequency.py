"""`pysimt-sac frequency`: analyse the training frequencies of the words in hypotheses."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.commands.arguments import add_number, natural
from pysimt_sac.core.errors import UserError
from pysimt_sac.corpora.vocabulary_builder import count_words
from pysimt_sac.evaluation.frequency import RARE, analyse_frequency, frequency_table
from pysimt_sac.evaluation.report.charts import save_figure
from pysimt_sac.evaluation.report.data import frequency_figure
from pysimt_sac.evaluation.texts import check_texts, preprocessing_differences, read_text

EPILOG = """The training text is the target side, in words without BPE. The first HYP is the baseline; for every other
HYP, the sentences that it improved are also analysed separately, as in the paper's figure. Plots: NAME.svg shows all
sentences, NAME-1.svg and so on the improved ones."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("systems", nargs="+", metavar="[NAME=]HYP", help="hypothesis file")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="training text, target side")
    parser.add_argument("--ref", required=True, type=Path, metavar="REF", help="reference")
    add_number(parser, "--rare", RARE, "highest training frequency of a rare word", natural)
    options.add_measure_argument(parser)
    parser.add_argument("--plot", action="append", default=[], type=Path, metavar="SVG", help="figure to write")
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Analyse all systems."""
    for path in args.plot:
        if path.suffix.lower() != ".svg":
            raise UserError("figures are written as .svg", path)
    reference = read_text(args.ref, "reference")
    outputs = options.read_outputs(args.systems)
    options.warn(check_texts(reference, outputs.values()))
    training_text = read_text(args.train, "training text")
    options.warn(preprocessing_differences(reference, training_text))
    training = count_words(training_text.lines)
    systems = [(name, text.lines) for name, text in outputs.items()]
    analysis = analyse_frequency(training, reference.lines, systems, args.rare, args.improved_by)
    options.warn(analysis.warnings())
    for path in args.plot:
        for number, group in enumerate(analysis.groups()):
            place = path.with_stem(f"{path.stem}-{number}") if number else path
            save_figure(frequency_figure(analysis, group), place)
            options.note([f"wrote {place}: {group.title}"])
    return options.show(args, analysis, (frequency_table(analysis, group) for group in analysis.groups()))
