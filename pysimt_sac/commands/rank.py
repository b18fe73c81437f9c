"""`pysimt-sac rank sample` and `rank score`: human ranking of systems."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.corpora.vocabulary_builder import count_words
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.ranking.sample import GROUPS, RankingOptions, draw_items
from pysimt_sac.evaluation.ranking.score import PairRanking, RankingResult, score_ranking
from pysimt_sac.evaluation.ranking.sheet import key_summary, read_judgements, read_key, write_key, write_sheet
from pysimt_sac.evaluation.report.layout import Table, best_cells
from pysimt_sac.evaluation.report.tables import p_cell
from pysimt_sac.evaluation.scoring.texts import check_lengths, read_text
from pysimt_sac.files import stream_lines

EPILOG = """Give the sheet to the judge and keep the key. The judge ranks the translations of each row, 1 the best, ties
allowed, looking at fluency and adequacy together. Then: pysimt-sac rank score --key KEY SHEET..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two sub-commands."""
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    add_sample(steps.add_parser("sample", help="draw sentences and write a blind sheet and its key"))
    add_score(steps.add_parser("score", help="score one or several filled sheets"))


def add_sample(parser: argparse.ArgumentParser) -> None:
    """What to draw from, and how much."""
    usual = RankingOptions()
    parser.description = "Draw sentences for human ranking, as the paper did, and write a blind sheet and its key."
    parser.epilog = EPILOG
    parser.add_argument("systems", nargs="+", metavar="[NAME=]HYP", help="a system's output; its name is for the key")
    parser.add_argument("--src", required=True, type=Path, metavar="FILE", help="the source of the test set")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="the training text, source side")
    parser.add_argument("--ref", type=Path, metavar="FILE", help="show the reference to the judge, too")
    parser.add_argument("--sheet", required=True, type=Path, metavar="CSV", help="the sheet to write")
    parser.add_argument("--key", required=True, type=Path, metavar="JSON", help="the key to write; keep it apart")
    options.add_numbers(
        parser,
        ("--per-group", usual.per_group, "sentences of each group"),
        ("--rare", usual.rare_frequency, "a rare source word was seen N times in training"),
        ("--other-least", usual.other_least, "any other one at least N times"),
        ("--seed", usual.seed, "the same seed draws the same sheet"),
    )
    limit = "and at most N times, which gives the paper's average of about 40; 0: no limit"
    options.add_numbers(parser, ("--other-most", usual.other_most, limit), smallest=0)
    parser.set_defaults(run_step=run_sample)


def add_score(parser: argparse.ArgumentParser) -> None:
    """The key and the sheets."""
    parser.description = "How often is each system better than or equal to another one?"
    parser.add_argument("sheets", nargs="+", type=Path, metavar="SHEET", help="a filled sheet; several judges: several")
    parser.add_argument("--key", required=True, type=Path, metavar="JSON", help="the key that belongs to the sheets")
    options.add_output_arguments(parser)
    parser.set_defaults(run_step=run_score)


def run(args: argparse.Namespace) -> int:
    """Hand over to the chosen step."""
    return int(args.run_step(args))


def run_sample(args: argparse.Namespace) -> int:
    """Draw and write."""
    if args.sheet.resolve() == args.key.resolve():
        raise UserError("sheet and key must be two files", args.key, "the judge must not see the key")
    choice = RankingOptions(args.per_group, args.rare, args.other_least, args.other_most or None, args.seed)
    source = read_text(args.src, "source")
    reference = read_text(args.ref, "reference") if args.ref else None
    if reference:
        check_lengths(reference.name, reference.lines, "the source", source.lines)
    outputs = {name: text.lines for name, text in options.read_outputs(args.systems).items()}
    training = count_words(stream_lines(args.train, "training text"))
    items = draw_items(training, source.lines, outputs, choice)
    if not items:
        raise UserError("no sentence has a word of the frequencies asked for", args.src, "is --train its language?")
    write_key(args.key, items, source.lines, choice)
    write_sheet(args.sheet, items, source.lines, outputs, reference.lines if reference else None)
    found = key_summary(items)
    for group in GROUPS:
        count, mean = found.get(group, (0, 0.0))
        print(f"{group:5}  {count:3} sentences, mean frequency of their words in training {mean:.1f}")
        if count < choice.per_group:
            options.warn([f"only {count} sentences instead of {choice.per_group} in the group {group!r}"])
    print(f"sheet for the judge: {args.sheet}\nkey, to keep:        {args.key}")
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Read the sheets and show the scores."""
    key = read_key(args.key)
    judgements = []
    for sheet in args.sheets:
        found, empty = read_judgements(sheet, key)
        judgements += found
        if empty:
            options.warn([f"{sheet}: {empty} of {len(found) + empty} rows have no ranks and are left out"])
    result = score_ranking(judgements)
    return options.show(args, result, [system_table(result), pair_table(result.pairs)])


def system_table(result: RankingResult) -> Table:
    """A row for each group and system."""
    rows: list[tuple[str, ...]] = []
    rules, bold = set(), set()
    for group, systems in result.groups.items():
        rules.add(len(rows))
        best = best_cells([[round(system.score, 2)] for system in systems], [True])
        bold |= {(len(rows) + row, 3) for row, _ in best}
        rows += [
            (
                group if number == 0 else "",
                system.system,
                str(system.judgements),
                f"{system.score:.2f}",
                f"{system.better_or_equal:.1f}%",
                f"{system.better:.1f}%",
                f"{system.mean_rank:.2f}",
            )
            for number, system in enumerate(systems)
        ]
    return Table(
        header=("words", "system", "judged", "score", "better or equal", "better", "mean rank"),
        rows=tuple(rows),
        left=2,
        rules=frozenset(rules),
        bold=frozenset(bold),
        notes=("score: other systems that it is better than or equal to, on average per sentence, as in the paper",),
    )


def pair_table(pairs: tuple[PairRanking, ...]) -> Table:
    """A row for each pair of systems."""
    return Table(
        header=("words", "first", "second", "first better", "equal", "second better", "p"),
        rows=tuple(
            (
                pair.group,
                pair.first,
                pair.second,
                str(pair.first_better),
                str(pair.equal),
                str(pair.second_better),
                p_cell(pair.p),
            )
            for pair in pairs
        ),
        left=3,
        notes=("p: two-sided sign test, ties left out",),
    )
