"""`pysimt-sac lexical`: how ambiguous words are translated, all and rare ones, per word, and by which system better."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.lexical.accuracy import (
    CORRECT,
    WRONG,
    Accuracy,
    Case,
    Example,
    LexicalComparison,
    compare_lexical,
    find_examples,
    normalise,
    read_cases,
)
from pysimt_sac.evaluation.report.layout import Table
from pysimt_sac.evaluation.scoring.comparison import MetricComparison, System
from pysimt_sac.evaluation.scoring.texts import (
    NamedText,
    check_runs,
    empty_lines,
    read_text,
    short_names,
    trace_differences,
)

EPILOG = """Each HYP is a system of its own, and the first one is what the others are compared with. Systems with
several runs: --baseline HYP... --system NAME HYP... as in `pysimt-sac compare`."""
HEADER = ("cases", "system", "runs", "number", "LTA", "ALI", "ALI (paper)", "LTA diff.", "p", "ALI diff.", "p")
NOTES = (
    "LTA: a correct form is in the output; ALI: +1 correct, -1 a known wrong one, 0 neither;",
    "ALI (paper): 2 LTA - 100, every miss -1, which is what the paper's figures for all cases are;",
    "rare: the correct translation is not the most frequent one in training; * p <= 0.05",
)
VERBATIM = {"text": "{}", "markdown": "```\n{}\n```", "latex": "\\begin{{verbatim}}\n{}\n\\end{{verbatim}}"}
MARKS = {CORRECT: "+", WRONG: "-"}
SUSPICIOUS = 5.0  # an LTA that no system has on its own test set


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The list of ambiguous words, the outputs, what to show."""
    parser.epilog = EPILOG
    parser.add_argument("hypotheses", nargs="*", type=Path, metavar="HYP", help="a system's output")
    parser.add_argument(
        "--mlt", required=True, type=Path, metavar="TSV", help="ambiguous words of the test set, from prepare mlt"
    )
    parser.add_argument("--baseline", nargs="+", default=[], type=Path, metavar="HYP", help="the baseline's runs")
    parser.add_argument(
        "--system", action="append", default=[], nargs="+", metavar=("NAME", "HYP"), help="a system and its runs"
    )
    parser.add_argument(
        "--words",
        type=options.not_negative,
        default=20,
        metavar="N",
        help="show the N most frequent words (default: 20; 0: none)",
    )
    parser.add_argument(
        "--examples", type=options.not_negative, default=0, metavar="N", help="show N sentences behind the number"
    )
    parser.add_argument("--src", type=Path, metavar="FILE", help="the source, to show with the examples")
    parser.add_argument("--ref", type=Path, metavar="FILE", help="the reference, to show with the examples")
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Judge every case in every output."""
    cases = read_cases(args.mlt)
    texts = read_systems(args)
    beside = {name: read_text(path, name) for name, path in (("source", args.src), ("reference", args.ref)) if path}
    check(args.mlt, cases, texts, list(beside.values()))
    systems = [System(name, tuple(text.lines for text in runs)) for name, runs in texts]
    comparison = compare_lexical(cases, systems, options.chosen_resampling(args))
    lowest = min(system.all.lta for system in comparison.systems)
    if lowest < SUSPICIOUS:
        options.warn([f"an LTA of {lowest:.1f}: does {args.mlt} belong to this test set and language?"])
    examples = find_examples(cases, systems, args.examples, args.seed)
    if args.format == "json":
        options.emit_json(args, {"comparison": comparison, "examples": examples})
        return 0
    tables = [accuracy_table(comparison)]
    if args.words > 0:
        tables.append(word_table(comparison, args.words))
    shown = [show_example(example, beside) for example in examples]
    options.emit_tables(args, tables, VERBATIM[args.format].format("\n\n".join(shown)) if shown else "")
    return 0


def read_systems(args: argparse.Namespace) -> list[tuple[str, tuple[NamedText, ...]]]:
    """Names and outputs of all systems, the baseline first."""
    systems = [("baseline", args.baseline)] if args.baseline else []
    systems += [(name, [Path(file) for file in files]) for name, *files in args.system]
    systems += [(name, [path]) for name, path in zip(short_names(args.hypotheses), args.hypotheses, strict=True)]
    if not systems:
        raise UserError("no system's output is given", todo="pysimt-sac lexical --mlt TSV HYP...")
    for name, files in systems:
        if not files:
            raise UserError(f"has a name, {name!r}, but no output", "--system", "--system NAME HYP...")
    names = [name for name, _ in systems]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"two systems are called {twice!r}", todo="give each its own name")
    return [(name, tuple(read_text(file) for file in files)) for name, files in systems]


def check(
    mlt: Path, cases: Sequence[Case], systems: Sequence[tuple[str, tuple[NamedText, ...]]], beside: Sequence[NamedText]
) -> None:
    """All texts must be of the same test set, and prepared like the list."""
    texts = [text for _, runs in systems for text in runs]
    for text in [*texts, *beside]:
        if len(text.lines) != len(texts[0].lines):
            raise UserError(f"has {len(text.lines)} lines, but {texts[0].name} has {len(texts[0].lines)}", text.name)
    forms = NamedText(str(mlt), tuple(form for case in cases for form in (*case.correct, *case.wrong_forms())))
    for text in texts:
        as_judged = NamedText(text.name, tuple(map(normalise, text.lines)))
        options.warn([*empty_lines(text, "hypothesis"), *trace_differences(forms, as_judged)])
    for name, runs in systems:
        options.warn(check_runs(name, runs))


def accuracy_table(comparison: LexicalComparison) -> Table:
    """All and rare cases of each system."""
    rows: list[tuple[str, ...]] = []
    for kind, tests in (("all", comparison.all), ("rare", comparison.rare)):
        for number, system in enumerate(comparison.systems):
            accuracy: Accuracy = getattr(system, kind)
            rows.append(
                (
                    kind if number == 0 else "",
                    system.system,
                    str(system.runs),
                    str(accuracy.cases),
                    *((f"{accuracy.lta:.2f}", f"{accuracy.ali:.2f}", f"{accuracy.ali_paper:.2f}") if tests else "---"),
                    *difference_cells(tests, number),
                )
            )
    resampling = comparison.resampling
    return Table(
        header=HEADER,
        rows=tuple(rows),
        left=2,
        rules=frozenset({0, len(comparison.systems)}),
        notes=(*NOTES, f"p by randomisation over sentences, {resampling.shuffles} shuffles, seed {resampling.seed}"),
    )


def difference_cells(tests: Sequence[MetricComparison], number: int) -> list[str]:
    """Difference from the first system and its p, for LTA and for ALI."""
    cells = []
    for test in tests:
        found = test.systems[number].against_baseline
        cells += [f"{found.difference:+.2f}", options.p_cell(found.p)] if found else ["-", "- "]
    return cells or ["-"] * 4


def word_table(comparison: LexicalComparison, wanted: int) -> Table:
    """LTA and ALI of the words with most cases."""
    first = comparison.systems[0].words
    words = sorted(first, key=lambda word: (-first[word].cases, word))[:wanted]
    names = [system.system for system in comparison.systems]
    header = ("word", "cases", *(f"{measure} {name}" for name in names for measure in ("LTA", "ALI")))
    rows = tuple(
        (
            word,
            str(first[word].cases),
            *(
                f"{value:.1f}"
                for system in comparison.systems
                for value in (system.words[word].lta, system.words[word].ali)
            ),
        )
        for word in words
    )
    return Table(header=header, rows=rows, title=f"{len(words)} of {len(first)} words, the most frequent first")


def show_example(example: Example, beside: dict[str, NamedText]) -> str:
    """A case with source, reference and outputs, each output marked +, - or blank."""
    case = example.case
    others = ", ".join(case.wrong_forms()[:6]) or "none"
    rare = ", rare" if case.rare else ""
    lines = [f"line {case.line}: {case.word} -> {' or '.join(case.correct)}{rare} (other translations: {others})"]
    width = max(map(len, [*beside, *example.outputs]))
    lines += [f"    {name.ljust(width)}  {text.lines[case.line]}" for name, text in beside.items()]
    lines += [
        f"  {MARKS.get(example.verdicts[name], ' ')} {name.ljust(width)}  {output}"
        for name, output in example.outputs.items()
    ]
    return "\n".join(lines)
