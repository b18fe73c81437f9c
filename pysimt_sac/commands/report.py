"""`pysimt-sac report`: write one HTML page with all analyses of some runs."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, make_folder
from pysimt_sac.evaluation.report.charts import save_figure
from pysimt_sac.evaluation.report.data import analyse
from pysimt_sac.evaluation.report.input import ReportRequest, gather
from pysimt_sac.evaluation.report.page import TITLE, render_page
from pysimt_sac.evaluation.report.runs import name_runs

EPILOG = """Each RUN is a folder that training wrote. Runs with the same NAME are runs of one system with different
seeds, in the same order for every system. The baseline is the control, continued maximum likelihood, if there is one
beside reinforcement; else the first system. Test sets that a run has not translated into its own folder (RUN/out.*)
are translated now, with beam search. Source, reference, training text and filters are those of the run's
configuration; ambiguous words are SPLIT.mlt.tsv in the source's folder. Options replace these files, or add hypotheses
without a run folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="*", metavar="[NAME=]RUN", help="run folder")
    parser.add_argument("--out", required=True, type=Path, metavar="HTML", help="page to write")
    parser.add_argument("--baseline", default="", metavar="NAME", help="system that the others are compared with")
    parser.add_argument("--title", default=TITLE, help="title of the page (default: %(default)s)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="also write the figures as SVG files")
    parser.add_argument("--search", default="", metavar="NAME", help="translations to use: gs, beam6, ...")
    files = parser.add_argument_group("files instead of those of the runs")
    files.add_argument(
        "--hyp", action="append", default=[], metavar="NAME:SPLIT=FILE", help="hypothesis file; may be repeated"
    )
    for option, meaning in (("--src", "source"), ("--ref", "reference"), ("--mlt", "list of ambiguous words")):
        files.add_argument(
            option, action="append", default=[], metavar="SPLIT=FILE", help=f"{meaning} of a test set; may be repeated"
        )
    files.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="where the runs' files are now, if they have moved: each is searched below it by the end of its path",
    )
    files.add_argument("--train", type=Path, metavar="FILE", help="training text, target side, without BPE")
    options.add_measure_argument(parser)
    options.add_metric_arguments(parser, with_source=False)
    options.add_resampling_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page, and the figures if asked for."""
    given = gather(make_request(args))
    options.warn(given.warnings)
    metrics = options.chosen_metrics(args, given.sets[0].reference.path or Path())
    data = analyse(given, metrics, options.chosen_resampling(args), args.improved_by)
    for test_set in data.sets:
        found = test_set.frequency.warnings() if test_set.frequency else []
        options.warn(f"{test_set.name}: {warning}" for warning in found)
    with atomic_write(args.out) as stream:
        stream.write(render_page(data, args.title))
    if args.figures:
        make_folder(args.figures)
        for figure in data.figures():
            save_figure(figure, args.figures / f"{figure.file}.svg")
        options.note([f"{len(data.figures())} figures written to {args.figures}"])
    print(f"written to {args.out}")
    return 0


def make_request(args: argparse.Namespace) -> ReportRequest:
    """Return the request that the options describe."""
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
        data=args.data,
        baseline=args.baseline,
    )


def by_split(words: list[str], option: str) -> dict[str, Path]:
    """Parse SPLIT=FILE."""
    files = {}
    for word in words:
        split, equals, file = word.partition("=")
        if not (equals and split and file):
            raise UserError(f"{word!r} is not of the form SPLIT=FILE", option)
        files[split] = Path(file)
    return files
