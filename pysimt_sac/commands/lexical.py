"""`pysimt-sac lexical`: measure accuracy on ambiguous words (LTA, ALI), with significance tests."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.commands.arguments import add_number, natural
from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import System, check_names
from pysimt_sac.evaluation.lexical import Case, accuracy_table, compare_lexical, normalise, read_cases, word_table
from pysimt_sac.evaluation.texts import (
    NamedText,
    check_lengths,
    check_runs,
    empty_lines,
    preprocessing_differences,
    read_text,
)

EPILOG = """Each HYP is a system; the first one is the baseline. For several runs per system, give --baseline HYP...
and --system NAME HYP... as in `pysimt-sac compare`."""
SUSPICIOUS = 5.0  # no system has such a low LTA on the right test set


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("hypotheses", nargs="*", metavar="[NAME=]HYP", help="hypothesis file")
    parser.add_argument(
        "--mlt", required=True, type=Path, metavar="TSV", help="list of ambiguous words, from prepare mlt"
    )
    parser.add_argument(
        "--case-sensitive",
        action="store_true",
        help="compare words as they are, like MLT's own scorer (default: ignore case)",
    )
    options.add_system_arguments(parser, required=False)
    add_number(parser, "--words", 20, "show the N most frequent words; 0: none", natural)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Label all cases in all hypotheses."""
    cases = read_cases(args.mlt, args.case_sensitive)
    texts = read_hypotheses(args)
    check(args.mlt, cases, texts)
    systems = [System(name, tuple(text.lines for text in runs)) for name, runs in texts]
    comparison = compare_lexical(cases, systems, options.chosen_resampling(args))
    lowest = min(system.all.lta for system in comparison.systems)
    if lowest < SUSPICIOUS:
        options.warn([f"an LTA of {lowest:.1f}: does {args.mlt} belong to this test set and language?"])
    tables = [accuracy_table(comparison)]
    if args.words > 0:
        tables.append(word_table(comparison, args.words))
    return options.show(args, {"comparison": comparison}, tables)


def read_hypotheses(args: argparse.Namespace) -> list[tuple[str, tuple[NamedText, ...]]]:
    """Read the hypotheses of all systems, the baseline first."""
    systems = [(name, tuple(map(read_text, map(Path, files)))) for name, files in options.given_systems(args)]
    systems += [(name, (text,)) for name, text in options.read_outputs(args.hypotheses).items()]
    if not systems:
        raise UserError("no hypotheses are given", hint="pysimt-sac lexical --mlt TSV HYP...")
    check_names([name for name, _ in systems])
    return systems


def check(mlt: Path, cases: Sequence[Case], systems: Sequence[tuple[str, tuple[NamedText, ...]]]) -> None:
    """Check that all texts have the same length and the same preprocessing as the list."""
    texts = [text for _, runs in systems for text in runs]
    forms = NamedText(str(mlt), tuple(form for case in cases for form in (*case.correct, *case.wrong_forms())))
    for text in texts:
        check_lengths(text.name, text.lines, texts[0].name, texts[0].lines)
        normalised = NamedText(text.name, tuple(normalise(line, cases[0].case_sensitive) for line in text.lines))
        options.warn([*empty_lines(text, "hypothesis"), *preprocessing_differences(forms, normalised)])
    for name, runs in systems:
        options.warn(check_runs(name, runs))
