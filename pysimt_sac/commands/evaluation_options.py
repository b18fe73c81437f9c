"""Options and output shared by the evaluation commands."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.commands.arguments import add_number
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import write_lines
from pysimt_sac.evaluation.comparison import check_names
from pysimt_sac.evaluation.meteor import guess_language
from pysimt_sac.evaluation.metrics import MEASURES, CorpusMetric
from pysimt_sac.evaluation.scores import METRIC_NAMES, choose_metrics
from pysimt_sac.evaluation.significance import Resampling
from pysimt_sac.evaluation.tables import FORMATS, Table, render
from pysimt_sac.evaluation.texts import NamedText, check_lengths, read_text, short_names


def add_metric_arguments(parser: argparse.ArgumentParser, with_source: bool = True) -> None:
    """Add the choice of metrics and their settings. with_source: the option that workers need, unless there is one."""
    parser.add_argument(
        "--metrics",
        default=",".join(METRIC_NAMES),
        metavar="NAME,...",
        help="metrics, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenize",
        default="none",
        metavar="NAME",
        help="sacrebleu's tokeniser for BLEU: none for tokenised text, 13a for detokenised text (default: %(default)s)",
    )
    parser.add_argument(
        "--worker",
        action="append",
        default=[],
        metavar="NAME=WORKER",
        help="one more metric: a command or a URL that scores, as for `reward: remote`; may be repeated",
    )
    if with_source:
        parser.add_argument("--src", metavar="SRC", help="--worker: the source text")
    parser.add_argument("--lang", help="language for METEOR (default: from the reference's file name)")
    add_meteor_argument(parser)


def add_meteor_argument(parser: argparse.ArgumentParser) -> None:
    """Add the path of METEOR."""
    parser.add_argument("--meteor-jar", type=Path, metavar="JAR", help="path of meteor-1.5.jar")


def add_measure_argument(parser: argparse.ArgumentParser) -> None:
    """Add the sentence-level metric."""
    parser.add_argument(
        "--improved-by",
        choices=MEASURES,
        default=MEASURES[0],
        help="sentence-level metric (default: %(default)s)",
    )


def add_system_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the baseline and the systems, with several runs each."""
    parser.add_argument(
        "--baseline",
        required=required,
        nargs="+",
        default=[],
        metavar="HYP",
        help="the baseline's hypotheses, one file per run",
    )
    parser.add_argument("--baseline-name", default="baseline", metavar="NAME", help="its name (default: %(default)s)")
    parser.add_argument(
        "--system",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "HYP"),
        help="name and hypotheses of a system, one file per run, with the baseline's seeds in the same order; may be "
        "repeated",
    )


def add_set_argument(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add the names of several test sets."""
    help_text = f"names that replace {{set}} in all paths{note}"
    parser.add_argument("--sets", nargs="+", default=[], metavar="SET", help=help_text)


def check_sets(args: argparse.Namespace, paths: Iterable[str]) -> None:
    """Check the names of test sets, and that all paths have a place for them."""
    for name in args.sets:
        if args.sets.count(name) > 1:
            raise UserError(f"{name!r} is given twice", "--sets", "give each test set once")
    for path in paths:
        if args.sets and "{set}" not in path:
            raise UserError("has no {set}, but --sets is given", path, "write {set} in place of the test set's name")


def add_resampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the numbers of samples and the seed."""
    defaults = Resampling()
    add_number(parser, "--shuffles", defaults.shuffles, "shuffles of approximate randomisation")
    add_number(parser, "--bootstrap", defaults.bootstrap, "bootstrap samples")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="random seed (default: %(default)s)")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add output format and file."""
    formats = (*FORMATS, "json")
    parser.add_argument("--format", choices=formats, default=formats[0], help="output format (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file instead of standard output")


def given_systems(args: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Return the names and runs given by `add_system_arguments`, the baseline first."""
    systems = [(args.baseline_name, args.baseline)] if args.baseline else []
    systems += [(name, files) for name, *files in args.system]
    for name, files in systems:
        if not files:
            raise UserError(f"{name!r} has no hypotheses", "--system", "--system NAME HYP...")
        if Path(name.replace("{set}", next(iter(args.sets), ""))).is_file():
            what = f"{name!r} is a file, and would be taken for the system's name"
            raise UserError(what, "--system", "--system NAME HYP...")
    return systems


def read_outputs(words: Sequence[str]) -> dict[str, NamedText]:
    """Read hypotheses given as HYP or NAME=HYP, by name."""
    paths, names = [], []
    for word in words:
        name, equals, file = word.partition("=")
        named = bool(equals) and not Path(word).is_file()
        paths.append(Path(file if named else word))
        names.append(name if named else "")
    names = [name or short for name, short in zip(names, short_names(paths), strict=True)]
    check_names(names, "give each its own name: NAME=HYP")
    return {name: read_text(path) for name, path in zip(names, paths, strict=True)}


def chosen_resampling(args: argparse.Namespace) -> Resampling:
    """Return the resampling options."""
    return Resampling(args.shuffles, args.bootstrap, args.seed)


def chosen_metrics(args: argparse.Namespace, reference: Path) -> tuple[CorpusMetric, ...]:
    """Return the chosen metrics; print why others are left out."""
    names = [name.strip().lower() for name in args.metrics.split(",") if name.strip()]
    choice = choose_metrics(names, args.tokenize, args.lang or guess_language(reference), args.meteor_jar)
    note(choice.missing)
    return (*choice.metrics, *map(worker_metric, args.worker))


def worker_metric(word: str) -> CorpusMetric:
    """Return the metric that NAME=WORKER describes."""
    from pysimt_sac.evaluation.workers import WorkerMetric

    name, equals, worker = word.partition("=")
    if not (name.strip() and equals):
        raise UserError(f"{word!r} is not of the form NAME=WORKER", "--worker", "e.g. --worker COMET='python comet.py'")
    return WorkerMetric(name.strip(), worker)


def with_sources(args: argparse.Namespace, reference: NamedText, path: Path | None) -> NamedText:
    """Return a reference whose lines know their sources, if workers need them."""
    if not args.worker:
        return reference
    from pysimt_sac.evaluation.workers import SourcedLine

    if path is None:
        raise UserError("needs the source text", "--worker", "add --src SRC")
    source = read_text(path, "source")
    check_lengths(source.name, source.lines, f"the reference {reference.name}", reference.lines)
    lines = tuple(SourcedLine.of(*pair) for pair in zip(reference.lines, source.lines, strict=True))
    return dataclasses.replace(reference, lines=lines)


def warn(messages: Iterable[str], kind: str = "warning") -> None:
    """Print warnings, or what else `kind` says, to standard error."""
    for message in messages:
        print(f"{kind}: {message}", file=sys.stderr)


def note(messages: Iterable[str]) -> None:
    """Print notes to standard error."""
    warn(messages, "note")


def to_json(value: Any) -> Any:
    """Turn dataclasses into dictionaries, NaN and infinities into None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(args: argparse.Namespace, results: object, tables: Iterable[Table]) -> int:
    """Print or write results, as JSON or as tables, as `--format` says; return the exit status."""
    if args.format == "json":
        text = json.dumps(to_json(results), ensure_ascii=False, indent=2)
    else:
        text = "\n\n".join(render(table, args.format) for table in tables)
    if args.output:
        write_lines(args.output, text.split("\n"))
        note([f"written to {args.output}"])
    else:
        print(text)
    return 0
