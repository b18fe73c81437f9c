"""`pysimt-sac results`: the tables of several reproductions on one page, with what is to be said about them."""

import argparse
from pathlib import Path

from pysimt_sac.files import atomic_write, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS.json", help="of `pysimt-sac reproduce`")
    parser.add_argument("--discussion", type=Path, metavar="FILE", help="Markdown that follows the tables")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file instead of standard output")


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from pysimt_sac.reproduce.results import read_results
    from pysimt_sac.reproduce.results_page import results_page

    discussion = "\n".join(read_lines(args.discussion)) if args.discussion else ""
    page = results_page([read_results(path) for path in args.results], discussion)
    if args.output:
        with atomic_write(args.output) as stream:
            stream.write(page)
    else:
        print(page, end="")
    return 0
