"""`pysimt-sac results`: put the tables of several reproductions on one page, with a discussion."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pysimt_sac.errors import UserError
from pysimt_sac.files import atomic_write, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS.json", help="from `pysimt-sac reproduce`")
    parser.add_argument("--discussion", type=Path, metavar="FILE", help="Markdown for the page; may quote figures")
    parser.add_argument(
        "--join", action="store_true",
        help="instead of a page, join the given files, with different systems and the same baselines, into one",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file instead of standard output")


def run(args: argparse.Namespace) -> int:
    """Write the page, or the joined file."""
    from pysimt_sac.reproduce.results import read_results
    from pysimt_sac.reproduce.results_page import results_page

    found = {path: read_results(path) for path in args.results}
    if args.join:
        return join_files(found, args)
    discussion = "\n".join(read_lines(args.discussion)) if args.discussion else ""
    page = results_page(by_name(found), discussion)
    if args.output:
        with atomic_write(args.output) as stream:
            stream.write(page)
    else:
        print(page, end="")
    return 0


def by_name(found: Mapping[Path, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return results by the names that a discussion quotes: the file's or, for a `results.json`, its folder's."""
    named: dict[str, dict[str, Any]] = {}
    for path, results in found.items():
        name = path.absolute().parent.name if path.name == "results.json" else path.stem
        if name in named:
            raise UserError(f"two files are called {name!r}", path, "rename one of them")
        named[name] = results
    return named


def join_files(found: Mapping[Path, dict[str, Any]], args: argparse.Namespace) -> int:
    """Join several files into one; for each system that is in several of them, print which one counts."""
    from pysimt_sac.reproduce.joining import join, replaced
    from pysimt_sac.reproduce.results import write_results

    if len(found) < 2 or args.output is None or args.discussion:
        raise UserError("takes at least two files, and -o FILE, but no --discussion", "--join")
    write_results(args.output, join(found))
    for name, counts, other in replaced(found):
        print(f"{name}: taken from {counts}, not from {other}", file=sys.stderr)
    print(f"written: {args.output}")
    return 0
