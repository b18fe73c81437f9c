"""`pysimt-sac frequency`: how frequent in training the words are that systems produce."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.lexical.frequency import (
    RARE,
    FrequencyAnalysis,
    SentenceGroup,
    WordUse,
    analyse_frequency,
    count_training_words,
)
from pysimt_sac.evaluation.report.data import frequency_figure
from pysimt_sac.evaluation.report.figures import save_figure
from pysimt_sac.evaluation.report.layout import Table
from pysimt_sac.evaluation.scoring.sentences import MEASURES
from pysimt_sac.evaluation.scoring.texts import check_texts, read_text
from pysimt_sac.files import stream_lines

EPILOG = """The training text is the target side, in words like outputs and reference (no BPE). The first HYP is the
baseline: for each other one, the sentences that it improved are analysed apart, as in the paper's figure. Plots:
NAME.svg (needs nothing) or NAME.png (needs matplotlib) shows all sentences, NAME-1.svg and so on the improved ones."""
SHOWN_PERCENTILES = (10, 25, 50, 75, 90)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Training text, reference, outputs, what to draw."""
    parser.epilog = EPILOG
    parser.add_argument("systems", nargs="+", metavar="[NAME=]HYP", help="a system's output")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="the training text, target side")
    parser.add_argument("--ref", required=True, type=Path, metavar="REF", help="the reference")
    parser.add_argument(
        "--rare",
        type=options.not_negative,
        default=RARE,
        metavar="N",
        help="words seen at most N times in training are rare (default: %(default)s)",
    )
    parser.add_argument(
        "--improved-by", choices=MEASURES, default=MEASURES[0], help="score of a sentence (default: %(default)s)"
    )
    parser.add_argument("--plot", action="append", default=[], type=Path, metavar="FILE", help="draw the figure")
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Analyse and show."""
    for path in args.plot:
        if path.suffix.lower() not in (".svg", ".png"):
            raise UserError("figures are written as .svg or .png", path)
    reference = read_text(args.ref, "reference")
    outputs = options.read_outputs(args.systems)
    options.warn(check_texts(reference, outputs.values()))
    training = count_training_words(stream_lines(args.train, "training text"))
    if not training:
        raise UserError("this training text is empty", args.train)
    systems = [(name, text.lines) for name, text in outputs.items()]
    analysis = analyse_frequency(training, reference.lines, systems, args.rare, args.improved_by)
    warn_of_other_words(analysis)
    for path in args.plot:
        for number, group in enumerate(analysis.groups()):
            place = path.with_stem(f"{path.stem}-{number}") if number else path
            save_figure(frequency_figure(analysis, group), place)
            options.note([f"drew {group.title}: {place}"])
    if args.format == "json":
        options.emit_json(args, analysis)
    else:
        options.emit_tables(args, [frequency_table(analysis, group) for group in analysis.groups()])
    return 0


def warn_of_other_words(analysis: FrequencyAnalysis) -> None:
    """A reference most of whose words are unknown is of another language, or otherwise prepared."""
    reference = analysis.all.texts[0]
    if reference.unseen > 0.3:
        share = f"{100 * reference.unseen:.0f}% of the reference's words"
        options.warn([f"{share} are not in the training text: is it the same language, and no BPE?"])


def frequency_table(analysis: FrequencyAnalysis, group: SentenceGroup) -> Table:
    """A row for each text."""
    notes: tuple[str, ...] = ()
    if group is analysis.all:
        notes = (
            f"rare: seen at most {analysis.rare_limit} times in {analysis.training_words:,} words of training; "
            "unseen: never; TTR: different words per word;",
            "distinct-n: different n-grams per n-gram; P50: half of the words were seen at most so often in training;",
            f"improved: a higher sentence {analysis.measure.upper()} than the first system's",
        )
    count = group.texts[0].sentences
    return Table(
        title=f"{group.title} ({count})",
        header=("text", "words", "types", "TTR", "distinct-2", "distinct-3", "unseen", "rare", "mean",
                *(f"P{percent}" for percent in SHOWN_PERCENTILES)),
        rows=tuple(map(frequency_row, group.texts)),
        notes=notes,
    )  # fmt: skip


def frequency_row(text: WordUse) -> tuple[str, ...]:
    """One text's cells."""
    percentiles = [str(text.percentiles[percent]) if text.percentiles else "-" for percent in SHOWN_PERCENTILES]
    return (
        text.name,
        str(text.words),
        str(text.types),
        *(f"{value:.3f}" for value in (text.type_token_ratio, text.distinct_2, text.distinct_3)),
        *(f"{100 * value:.2f}%" for value in (text.unseen, text.rare)),
        f"{text.mean_frequency:.0f}",
        *percentiles,
    )
