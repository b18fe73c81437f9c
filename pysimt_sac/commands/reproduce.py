"""`pysimt-sac reproduce`: reproduce the paper's tables from the raw data; can be stopped and resumed at any time."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pysimt_sac.commands.arguments import cores, positive
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines

EPILOG = """After any interruption, the same command resumes where it stopped. It writes results.json, tables.md and
report.html to --out, beside the data, runs, translations, scores and logs behind them. See docs/reproduce.md."""
EVERY, EVERY_ON_TERMINAL = 60.0, 2.0  # seconds between progress lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("pair", metavar="PAIR", help="en-de or en-fr (Multi30K), or demo (the generated corpus)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="output folder")
    parser.add_argument("--raw", type=Path, metavar="FOLDER", help="raw files of the corpus, as for `prepare`")
    parser.add_argument("--mlt", type=Path, metavar="FOLDER", help="MLT's ambiguous words, as for `prepare mlt`")
    parser.add_argument("--prepared", type=Path, metavar="FOLDER", help="instead of --raw: the output of `prepare`")
    parser.add_argument("--seeds", type=positive, default=3, metavar="N", help="runs per system (default: 3)")
    parser.add_argument("--systems", default="", metavar="A,B", help="only these systems and those they start from")
    parser.add_argument("--short", action="store_true", help="short runs, to try it out")
    parser.add_argument(
        "--matrix",
        type=Path,
        metavar="FILE",
        help="your own systems and settings, or equal_time, ablations, unsupervised",
    )
    parser.add_argument("--plan", action="store_true", help="print the plan with estimated times and exit")
    parser.add_argument("--trust", action="store_true", help="--plan: run Python files that configurations name")
    parser.add_argument("--print-matrix", action="store_true", help="print the matrix, to be edited, and exit")
    parser.add_argument("--tables", action="store_true", help="train nothing; build the tables from existing results")
    parser.add_argument("--jobs", type=positive, metavar="N", help="parallel steps (default: cores / threads)")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="threads per step (default: 1)")
    parser.add_argument(
        "-d", "--device-id", default="cpu", metavar="DEVICE", help="auto, cpu, gpu or cuda:N (default: cpu)"
    )


def run(args: argparse.Namespace) -> int:
    """Plan the reproduction and run it."""
    from pysimt_sac.hosts.engine.training.interrupts import Interrupted
    from pysimt_sac.reproduce.corpus import Request
    from pysimt_sac.reproduce.matrix import find_matrix
    from pysimt_sac.reproduce.reproduction import Reproduction
    from pysimt_sac.reproduce.runner import own_folder

    matrix, console = find_matrix(args.pair, args.matrix), Console()
    if args.print_matrix:
        print("\n".join(read_lines(matrix.path)))
        return 0
    request = Request(
        pair=args.pair,
        out=checked_out(args.out),
        raw=args.raw,
        mlt=args.mlt,
        prepared=args.prepared,
        seeds=args.seeds,
        systems=tuple(name.strip() for name in args.systems.split(",") if name.strip()),
        short=args.short,
        jobs=args.jobs or max(1, cores() // args.threads),
        threads=args.threads,
        device=args.device_id,
        trusted=not args.plan or args.trust,
    )
    reproduction = Reproduction(matrix, request, console.log, console.show_progress)
    if args.plan:
        print("\n".join(reproduction.plan()))
        return 0
    with own_folder(request.out):
        console.log("\n".join(reproduction.plan()))
        try:
            reproduction.run(train=not args.tables)
        except Interrupted as interruption:
            command = shlex.join(["pysimt-sac", *sys.argv[1:]])
            console.log(f"Stopped by {interruption}; all states are saved. To resume: {command}")
            return interruption.status
        finally:
            console.clear()
    for reason in reproduction.runner.failed.values():
        console.log(reason)
    for path in reproduction.written():
        print(f"written: {path}")
    return 1 if reproduction.runner.failed else 0


def checked_out(path: Path | None) -> Path:
    """Return the absolute output folder; refuse a path with a $, which configurations could not name."""
    if path is None:
        raise UserError("missing", "--out FOLDER", "give the output folder")
    out = path.expanduser().resolve()
    if "$" in str(out):
        raise UserError("a $ cannot be part of this folder's path", out, "choose another --out")
    return out


class Console:
    """Lines on standard error and, on a terminal, a progress line below them."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self.last, self.shown = time.monotonic(), ""

    def log(self, message: str) -> None:
        """Print a permanent line."""
        self.clear()
        clock = "" if "\n" in message else time.strftime("%H:%M:%S ")
        print(f"{clock}{message}", file=sys.stderr, flush=True)

    def show_progress(self, line: Callable[[], str]) -> None:
        """Report overall progress, unless the last report is recent."""
        if time.monotonic() - self.last < (EVERY_ON_TERMINAL if self.is_terminal else EVERY):
            return
        self.last = time.monotonic()
        if not self.is_terminal:
            self.log(line())
            return
        from pysimt_sac.hosts.engine.training.console import terminal_width

        self.clear()
        self.shown = line()[: max(20, terminal_width() - 1)]
        print(self.shown, end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the progress line."""
        if self.shown:
            print(f"\r{' ' * len(self.shown)}\r", end="", file=sys.stderr, flush=True)
            self.shown = ""
