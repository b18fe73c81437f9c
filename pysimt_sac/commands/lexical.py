"""`pysimt-sac lexical`: measure accuracy on ambiguous words (LTA, ALI), with significance tests."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
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
Systems = list[tuple[str, tuple[NamedText, ...]]]
SUSPICIOUS = 5.0  # no system has such a low LTA on the right test set


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("hypotheses", nargs="*", metavar="[NAME=]HYP", help="hypothesis file")
    parser.add_argument("--mlt", required=True, metavar="TSV", help="list of ambiguous words, from prepare mlt")
    parser.add_argument(
        "--case-sensitive",
        action="store_true",
        help="compare words as they are, like MLT's own scorer (default: ignore case)",
    )
    options.add_system_arguments(parser, required=False)
    options.add_set_argument(parser, "; the test sets are pooled")
    add_number(parser, "--words", 20, "show the N most frequent words; 0: none", natural)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Label all cases in all hypotheses."""
    cases, texts = pool([read_test_set(args, name) for name in args.sets or [""]])
    systems = [System(name, tuple(text.lines for text in runs)) for name, runs in texts]
    comparison = compare_lexical(cases, systems, options.chosen_resampling(args))
    lowest = min(system.all.lta for system in comparison.systems)
    if lowest < SUSPICIOUS:
        options.warn([f"an LTA of {lowest:.1f}: does {args.mlt} belong to this test set and language?"])
    tables = [accuracy_table(comparison)]
    if args.words > 0:
        tables.append(word_table(comparison, args.words))
    return options.show(args, {"comparison": comparison}, tables)


def read_test_set(args: argparse.Namespace, test_set: str) -> tuple[list[Case], Systems]:
    """Read a test set's list and the hypotheses of all systems, the baseline first."""
    given = options.given_systems(args)
    options.check_sets(args, [args.mlt, *args.hypotheses, *(file for _, files in given for file in files)])

    def fill(path: str) -> str:
        return path.replace("{set}", test_set) if args.sets else path

    systems = [(name, tuple(read_text(Path(fill(file))) for file in files)) for name, files in given]
    systems += [(name, (text,)) for name, text in options.read_outputs(list(map(fill, args.hypotheses))).items()]
    if not systems:
        raise UserError("no hypotheses are given", hint="pysimt-sac lexical --mlt TSV HYP...")
    check_names([name for name, _ in systems])
    mlt = Path(fill(args.mlt))
    cases = read_cases(mlt, args.case_sensitive)
    check(mlt, cases, systems)
    return cases, systems


def pool(test_sets: Sequence[tuple[list[Case], Systems]]) -> tuple[list[Case], Systems]:
    """Concatenate test sets."""
    pooled, start = list[Case](), 0
    for cases, systems in test_sets:
        pooled += [replace(case, line=start + case.line) for case in cases]
        start += len(systems[0][1][0].lines)
    names = [name for name, _ in test_sets[0][1]]
    texts = [zip(*(systems[number][1] for _, systems in test_sets), strict=True) for number in range(len(names))]
    return pooled, [(name, tuple(map(NamedText.concatenate, runs))) for name, runs in zip(names, texts, strict=True)]


def check(mlt: Path, cases: Sequence[Case], systems: Systems) -> None:
    """Check that all texts have the same length and the same preprocessing as the list."""
    texts = [text for _, runs in systems for text in runs]
    forms = NamedText(str(mlt), tuple(form for case in cases for form in (*case.correct, *case.wrong_forms())))
    for text in texts:
        check_lengths(text.name, text.lines, texts[0].name, texts[0].lines)
        normalised = NamedText(text.name, tuple(normalise(line, cases[0].case_sensitive) for line in text.lines))
        options.warn([*empty_lines(text, "hypothesis"), *preprocessing_differences(forms, normalised)])
    for name, runs in systems:
        options.warn(check_runs(name, runs))
