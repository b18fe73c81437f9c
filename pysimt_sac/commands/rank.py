"""`pysimt-sac rank sample` and `rank score`: human ranking of systems."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import stream_lines
from pysimt_sac.corpora.vocabulary_builder import count_words
from pysimt_sac.evaluation.ranking.sample import GROUPS, RankingOptions, draw_items
from pysimt_sac.evaluation.ranking.score import PairRanking, RankingResult, score_ranking
from pysimt_sac.evaluation.ranking.sheet import key_summary, read_judgements, read_key, write_key, write_sheet
from pysimt_sac.evaluation.report.layout import Table, best_cells
from pysimt_sac.evaluation.report.tables import p_cell
from pysimt_sac.evaluation.scoring.texts import check_lengths, read_text

EPILOG = """Give the sheet to the annotator and keep the key. The annotator ranks the translations of each row, 1 is
best, ties are allowed, by fluency and adequacy together. Then: pysimt-sac rank score --key KEY SHEET..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two steps."""
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    add_sample(steps.add_parser("sample", help="sample sentences and write a blind sheet and its key"))
    add_score(steps.add_parser("score", help="score filled sheets"))


def add_sample(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rank sample`."""
    usual = RankingOptions()
    parser.description = "Sample sentences for human ranking, as in the paper, and write a blind sheet and its key."
    parser.epilog = EPILOG
    parser.add_argument("systems", nargs="+", metavar="[NAME=]HYP", help="hypothesis file; only the key has its name")
    parser.add_argument("--src", required=True, type=Path, metavar="FILE", help="source of the test set")
    parser.add_argument("--train", required=True, type=Path, metavar="FILE", help="training text, source side")
    parser.add_argument("--ref", type=Path, metavar="FILE", help="reference, to show it to the annotator")
    parser.add_argument("--sheet", required=True, type=Path, metavar="CSV", help="sheet to write")
    parser.add_argument("--key", required=True, type=Path, metavar="JSON", help="key to write; not for the annotator")
    options.add_numbers(
        parser,
        ("--per-group", usual.per_group, "sentences per group"),
        ("--rare", usual.rare_frequency, "training frequency of rare source words"),
        ("--other-least", usual.other_least, "lowest training frequency of other words"),
        ("--seed", usual.seed, "random seed"),
    )
    limit = "highest training frequency of other words; 100 gives the paper's average of about 40; 0: no limit"
    options.add_numbers(parser, ("--other-most", usual.other_most, limit), smallest=0)
    parser.set_defaults(run_step=run_sample)


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rank score`."""
    parser.description = "Score filled sheets: how often each system is ranked better than or equal to another one."
    parser.add_argument("sheets", nargs="+", type=Path, metavar="SHEET", help="filled sheet, one for each annotator")
    parser.add_argument("--key", required=True, type=Path, metavar="JSON", help="key of the sheets")
    options.add_output_arguments(parser)
    parser.set_defaults(run_step=run_score)


def run(args: argparse.Namespace) -> int:
    """Run the chosen step."""
    return int(args.run_step(args))


def run_sample(args: argparse.Namespace) -> int:
    """Sample sentences, write sheet and key."""
    if args.sheet.resolve() == args.key.resolve():
        raise UserError("sheet and key must be different files", args.key, "the annotator must not see the key")
    sampling = RankingOptions(args.per_group, args.rare, args.other_least, args.other_most or None, args.seed)
    source = read_text(args.src, "source")
    reference = read_text(args.ref, "reference") if args.ref else None
    if reference:
        check_lengths(reference.name, reference.lines, "the source", source.lines)
    outputs = {name: text.lines for name, text in options.read_outputs(args.systems).items()}
    training = count_words(stream_lines(args.train, "training text"))
    items = draw_items(training, source.lines, outputs, sampling)
    if not items:
        raise UserError("no sentence has a word of these frequencies", args.src, "is --train the same language?")
    write_key(args.key, items, source.lines, sampling)
    write_sheet(args.sheet, items, source.lines, outputs, reference.lines if reference else None)
    found = key_summary(items)
    for group in GROUPS:
        count, mean = found.get(group, (0, 0.0))
        print(f"{group:5}  {count:3} sentences, mean training frequency {mean:.1f}")
        if count < sampling.per_group:
            options.warn([f"only {count} sentences instead of {sampling.per_group} in the group {group!r}"])
    print(f"sheet: {args.sheet}\nkey:   {args.key}")
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Score filled sheets."""
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
    """Return a table with a row for each group and system."""
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
        header=("words", "system", "judgements", "score", "better or equal", "better", "mean rank"),
        rows=tuple(rows),
        left=2,
        rules=frozenset(rules),
        bold=frozenset(bold),
        notes=(
            "score: number of other systems ranked worse or equal, averaged over sentences, as in the paper",
            "the judgements of a sentence are averaged first, so that all sentences have the same weight",
        ),
    )


def pair_table(pairs: tuple[PairRanking, ...]) -> Table:
    """Return a table with a row for each pair of systems."""
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
        notes=(
            "first better, equal, second better: judgements",
            "p: two-sided sign test without ties; a sentence has one vote, the majority of its annotators' preferences",
        ),
    )
