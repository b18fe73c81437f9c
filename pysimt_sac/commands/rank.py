"""`pysimt-sac rank sample` and `rank score`: human ranking of systems."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.commands.arguments import add_number
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import stream_lines
from pysimt_sac.corpora.vocabulary_builder import count_words
from pysimt_sac.evaluation.comparison import p_cell
from pysimt_sac.evaluation.ranking import draw_rows, read_judgements, score_ranking, write_sheet
from pysimt_sac.evaluation.tables import Table
from pysimt_sac.evaluation.texts import check_lengths, read_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two steps."""
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    sample = steps.add_parser("sample", help="sample sentences and write a blind sheet and its key")
    sample.add_argument("systems", nargs="+", metavar="[NAME=]HYP", help="hypothesis file; only the key has its name")
    sample.add_argument("--src", required=True, type=Path, metavar="FILE", help="source of the test set")
    sample.add_argument("--train", required=True, type=Path, metavar="FILE", help="training text, source side")
    sample.add_argument("--sheet", required=True, type=Path, metavar="CSV", help="sheet to write, for the annotator")
    sample.add_argument("--key", required=True, type=Path, metavar="JSON", help="key to write; not for the annotator")
    add_number(sample, "--per-group", 50, "sentences per group")
    add_number(sample, "--seed", 1, "random seed")
    score = steps.add_parser("score", help="score filled sheets")
    score.add_argument("sheets", nargs="+", type=Path, metavar="SHEET", help="filled sheet, one for each annotator")
    score.add_argument("--key", required=True, type=Path, metavar="JSON", help="key of the sheets")
    options.add_output_arguments(score)


def run(args: argparse.Namespace) -> int:
    """Write sheet and key, or score filled sheets."""
    return run_sample(args) if args.step == "sample" else run_score(args)


def run_sample(args: argparse.Namespace) -> int:
    """Write sheet and key."""
    if args.sheet == args.key:
        raise UserError("sheet and key must be different files", args.key, "the annotator must not see the key")
    sources = read_text(args.src, "source").lines
    outputs = {name: text.lines for name, text in options.read_outputs(args.systems).items()}
    for name, lines in outputs.items():
        check_lengths(name, lines, "the source", sources)
    training = count_words(stream_lines(args.train, "training text"))
    rows = draw_rows(training, sources, outputs, args.per_group, args.seed)
    write_sheet(args.sheet, args.key, rows, sources, outputs)
    if len(rows) < 2 * args.per_group:
        options.warn([f"only {len(rows)} sentences instead of {2 * args.per_group} have words of these frequencies"])
    print(f"sheet: {args.sheet}\nkey:   {args.key}")
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Score filled sheets."""
    scores = score_ranking(*read_judgements(args.sheets, args.key))
    rows = [(each.group, each.system, str(each.judgements), f"{each.score:.2f}", p_cell(each.p)) for each in scores]
    note = "score: other systems ranked worse or equal, averaged over sentences; p: sign test against the first system"
    table = Table(("words", "system", "judgements", "score", "p"), tuple(rows), left=2, notes=(note,))
    return options.show(args, {"scores": scores}, [table])
