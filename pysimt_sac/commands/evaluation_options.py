"""Options and output that the evaluation's commands have in common."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.report.layout import FORMATS, Table, render
from pysimt_sac.evaluation.scoring.meteor import guess_language
from pysimt_sac.evaluation.scoring.scores import METRIC_NAMES, MetricChoice, choose_metrics
from pysimt_sac.evaluation.scoring.significance import SIGNIFICANT, Resampling
from pysimt_sac.evaluation.scoring.texts import NamedText, read_text, short_names
from pysimt_sac.files import write_lines


def positive(text: str) -> int:
    """A whole number above zero."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def not_negative(text: str) -> int:
    """A whole number from zero up."""
    return positive(text) if int(text) else 0


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
    parser.add_argument("--meteor-jar", type=Path, metavar="JAR", help="METEOR's program, if it is not installed")


def add_resampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How often to resample, and from which seed."""
    usual = Resampling()
    for option, default, meaning in (
        ("--shuffles", usual.shuffles, "shuffles for p"),
        ("--bootstrap", usual.bootstrap, "resampled test sets for intervals and s_sel"),
    ):
        parser.add_argument(
            option, type=positive, default=default, metavar="N", help=f"number of {meaning} (default: {default})"
        )
    parser.add_argument(
        "--seed", type=int, default=usual.seed, help="the same seed gives the same numbers (default: 1)"
    )


def add_output_arguments(parser: argparse.ArgumentParser, formats: Sequence[str] = (*FORMATS, "json")) -> None:
    """In what form, and where to."""
    parser.add_argument("--format", choices=formats, default=formats[0], help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file instead of the screen")


def read_outputs(words: Sequence[str]) -> dict[str, NamedText]:
    """Systems' outputs, each given as HYP or NAME=HYP, by their names."""
    paths, names = [], []
    for word in words:
        name, equals, file = word.partition("=")
        named = bool(equals) and not Path(word).is_file()
        paths.append(Path(file if named else word))
        names.append(name if named else "")
    outputs: dict[str, NamedText] = {}
    for name, usual, path in zip(names, short_names(paths), paths, strict=True):
        if (name or usual) in outputs:
            raise UserError(f"two systems are called {name or usual!r}", todo="give each its own name: NAME=HYP")
        outputs[name or usual] = read_text(path)
    return outputs


def chosen_resampling(args: argparse.Namespace) -> Resampling:
    """The resampling that the options ask for."""
    if args.seed < 0:
        raise UserError("must not be negative", "--seed")
    return Resampling(shuffles=args.shuffles, bootstrap=args.bootstrap, seed=args.seed)


def chosen_metrics(args: argparse.Namespace, reference: Path) -> MetricChoice:
    """The metrics that the options ask for."""
    names = [name.strip().lower() for name in args.metrics.split(",") if name.strip()]
    return choose_metrics(names, args.tokenize, args.lang or guess_language(reference), args.meteor_jar)


def p_cell(p: float) -> str:
    """A p-value, with a star if it is small enough to count."""
    return f"{p:.4f}{'*' if p <= SIGNIFICANT else ' '}"


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


def emit_tables(args: argparse.Namespace, tables: Sequence[Table], appendix: str = "") -> None:
    """Show tables in the format asked for, and what else there is."""
    parts = [render(table, args.format) for table in tables]
    emit(args, "\n\n".join([*parts, appendix] if appendix else parts))


def emit_json(args: argparse.Namespace, value: object) -> None:
    """Show results as JSON."""
    emit(args, json.dumps(to_json(value), ensure_ascii=False, indent=2))


def emit(args: argparse.Namespace, text: str) -> None:
    """To the screen, or to a file, whole or not at all."""
    if args.output:
        write_lines(args.output, text.split("\n"))
        note([f"written to {args.output}"])
    else:
        print(text)
