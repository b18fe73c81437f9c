"""Options and output that the evaluation's commands have in common."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.commands.arguments import whole_number
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.report.layout import FORMATS, Table, render
from pysimt_sac.evaluation.scoring.comparison import check_names
from pysimt_sac.evaluation.scoring.meteor import guess_language
from pysimt_sac.evaluation.scoring.metrics import CorpusMetric
from pysimt_sac.evaluation.scoring.scores import METRIC_NAMES, choose_metrics
from pysimt_sac.evaluation.scoring.sentences import MEASURES
from pysimt_sac.evaluation.scoring.significance import Resampling
from pysimt_sac.evaluation.scoring.texts import NamedText, read_text, short_names
from pysimt_sac.files import write_lines


def add_numbers(parser: argparse.ArgumentParser, *options: tuple[str, int | None, str], smallest: int = 1) -> None:
    """Options that take a whole number, each as name, default and meaning."""

    def number(text: str) -> int:
        return whole_number(text, smallest)

    for option, default, meaning in options:
        parser.add_argument(option, type=number, default=default, metavar="N", help=f"{meaning} (default: {default})")


def add_metric_arguments(parser: argparse.ArgumentParser) -> None:
    """Which metrics, and how they read text."""
    parser.add_argument(
        "--metrics",
        default=",".join(METRIC_NAMES),
        metavar="NAME,...",
        help="what to compute, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenize",
        default="none",
        metavar="NAME",
        help="sacrebleu's tokeniser for BLEU: none for text that is tokenised already, 13a for text that is not "
        "(default: %(default)s)",
    )
    parser.add_argument("--lang", help="language for METEOR (default: from the reference's name)")
    add_meteor_argument(parser)


def add_meteor_argument(parser: argparse.ArgumentParser) -> None:
    """Where METEOR is."""
    parser.add_argument("--meteor-jar", type=Path, metavar="JAR", help="METEOR's program, if it is not installed")


def add_measure_argument(parser: argparse.ArgumentParser) -> None:
    """What a sentence is improved by."""
    parser.add_argument(
        "--improved-by", choices=MEASURES, default=MEASURES[0], help="score of a sentence (default: %(default)s)"
    )


def add_system_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """The baseline and the systems, with several runs each."""
    parser.add_argument(
        "--baseline", required=required, nargs="+", default=[], metavar="HYP", help="the baseline's runs"
    )
    parser.add_argument(
        "--system",
        required=required,
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "HYP"),
        help="a system's name and its runs; once for each system",
    )


def add_resampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How often to resample, and from which seed."""
    usual = Resampling()
    add_numbers(
        parser,
        ("--shuffles", usual.shuffles, "number of shuffles for p"),
        ("--bootstrap", usual.bootstrap, "number of resampled test sets for intervals and s_sel"),
    )
    parser.add_argument(
        "--seed", type=int, default=usual.seed, help="the same seed gives the same numbers (default: 1)"
    )


def add_output_arguments(parser: argparse.ArgumentParser, formats: Sequence[str] = (*FORMATS, "json")) -> None:
    """In what form, and where to."""
    parser.add_argument("--format", choices=formats, default=formats[0], help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file instead of the screen")


def given_systems(args: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Names and runs of `add_system_arguments`, the baseline first, if there is one."""
    systems = [("baseline", args.baseline)] if args.baseline else []
    systems += [(name, files) for name, *files in args.system]
    for name, files in systems:
        if not files:
            raise UserError(f"has a name, {name!r}, but no output", "--system", "--system NAME HYP...")
    return systems


def read_outputs(words: Sequence[str]) -> dict[str, NamedText]:
    """Systems' outputs, each given as HYP or NAME=HYP, by their names."""
    paths, names = [], []
    for word in words:
        name, equals, file = word.partition("=")
        named = bool(equals) and not Path(word).is_file()
        paths.append(Path(file if named else word))
        names.append(name if named else "")
    names = [name or usual for name, usual in zip(names, short_names(paths), strict=True)]
    check_names(names, "give each its own name: NAME=HYP")
    return {name: read_text(path) for name, path in zip(names, paths, strict=True)}


def chosen_resampling(args: argparse.Namespace) -> Resampling:
    """The resampling that the options ask for."""
    if args.seed < 0:
        raise UserError("must not be negative", "--seed")
    return Resampling(shuffles=args.shuffles, bootstrap=args.bootstrap, seed=args.seed)


def chosen_metrics(args: argparse.Namespace, reference: Path) -> tuple[CorpusMetric, ...]:
    """The metrics that the options ask for; those that cannot be computed here are named."""
    names = [name.strip().lower() for name in args.metrics.split(",") if name.strip()]
    choice = choose_metrics(names, args.tokenize, args.lang or guess_language(reference), args.meteor_jar)
    note(choice.missing)
    return choice.metrics


def warn(messages: Iterable[str]) -> None:
    """Warnings go to standard error, so that results can be piped."""
    for message in messages:
        print(f"warning: {message}", file=sys.stderr)


def note(messages: Iterable[str]) -> None:
    """What is good to know, but no reason to worry."""
    for message in messages:
        print(f"note: {message}", file=sys.stderr)


def to_json(value: Any) -> Any:
    """Dataclasses as dictionaries, numbers that are none as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(args: argparse.Namespace, results: object, tables: Iterable[Table], appendix: str = "") -> int:
    """Show results as JSON, or as tables and what else there is, as `--format` says; the exit status."""
    if args.format == "json":
        emit(args, json.dumps(to_json(results), ensure_ascii=False, indent=2))
    else:
        emit(args, "\n\n".join(filter(None, [*(render(table, args.format) for table in tables), appendix])))
    return 0


def emit(args: argparse.Namespace, text: str) -> None:
    """To the screen, or to a file, whole or not at all."""
    if args.output:
        write_lines(args.output, text.split("\n"))
        note([f"written to {args.output}"])
    else:
        print(text)
