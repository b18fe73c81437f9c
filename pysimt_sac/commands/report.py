"""`pysimt-sac report`: one page with everything about some runs."""

import argparse
import importlib.util
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.report.data import ReportData, analyse
from pysimt_sac.evaluation.report.figures import save_figure
from pysimt_sac.evaluation.report.input import ReportRequest, gather, name_runs
from pysimt_sac.evaluation.report.page import render_page
from pysimt_sac.files import atomic_write, make_folder

EPILOG = """Each RUN is a folder that training wrote; the first one is the baseline. The same NAME several times: runs
of one system with other seeds. Translations are looked for in the run's folder, where `pysimt translate -s test -f bs
-o RUN/out CKPT` writes them. Source, reference, training text and filters are those of the run's configuration, and
ambiguous words SPLIT.mlt.tsv beside the source; options name others, or outputs that have no run folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Runs, files in place of theirs, what to compute."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="*", metavar="[NAME=]RUN", help="a run's folder")
    parser.add_argument("--out", required=True, type=Path, metavar="HTML", help="the page to write")
    parser.add_argument("--title", default="What training did to the translations", help="the page's title")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write the figures as SVG and PNG files, too")
    parser.add_argument("--search", default="", metavar="NAME", help="which translations to take: gs, beam6, ...")
    files = parser.add_argument_group("files in place of the runs' own")
    files.add_argument(
        "--hyp", action="append", default=[], metavar="NAME:SPLIT=FILE", help="a system's translation; may be repeated"
    )
    for option, meaning in (("--src", "source"), ("--ref", "reference"), ("--mlt", "list of ambiguous words")):
        files.add_argument(
            option, action="append", default=[], metavar="SPLIT=FILE", help=f"a test set's {meaning}; may be repeated"
        )
    files.add_argument("--train", type=Path, metavar="FILE", help="the training text, target side, in words")
    options.add_measure_argument(parser)
    options.add_metric_arguments(parser)
    options.add_resampling_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, compute, write."""
    given = gather(make_request(args))
    options.warn(given.warnings)
    metrics = options.chosen_metrics(args, given.sets[0].reference.path or Path())
    data = analyse(given, metrics, options.chosen_resampling(args), args.improved_by)
    with atomic_write(args.out) as stream:
        stream.write(render_page(data, args.title))
    if args.figures:
        save_figures(data, args.figures)
    print(f"written to {args.out}")
    return 0


def make_request(args: argparse.Namespace) -> ReportRequest:
    """What the command line asks for."""
    outputs: dict[tuple[str, str], tuple[Path, ...]] = {}
    for word in args.hyp:
        system, equals, file = word.partition("=")
        name, colon, split = system.rpartition(":")
        if not (equals and colon and name and split and file):
            raise UserError(f"{word!r} is not of the form NAME:SPLIT=FILE", "--hyp")
        outputs[name, split] = (*outputs.get((name, split), ()), Path(file))
    return ReportRequest(
        runs=name_runs(args.runs),
        outputs=outputs,
        sources=by_split(args.src, "--src"),
        references=by_split(args.ref, "--ref"),
        ambiguous=by_split(args.mlt, "--mlt"),
        training=args.train,
        search=args.search,
    )


def by_split(words: list[str], option: str) -> dict[str, Path]:
    """Files by split."""
    files = {}
    for word in words:
        split, equals, file = word.partition("=")
        if not (equals and split and file):
            raise UserError(f"{word!r} is not of the form SPLIT=FILE", option)
        files[split] = Path(file)
    return files


def save_figures(data: ReportData, folder: Path) -> None:
    """All figures of the page as files."""
    make_folder(folder)
    endings = ["svg", "png"] if importlib.util.find_spec("matplotlib") else ["svg"]
    if "png" not in endings:
        options.note(["no PNG files, because matplotlib is not installed"])
    for named in data.figures():
        for ending in endings:
            save_figure(named.figure, folder / f"{named.file}.{ending}")
    options.note([f"{len(data.figures())} figures written to {folder}"])
