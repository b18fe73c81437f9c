"""`pysimt-sac table`: fill the paper's tables with your own runs."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.evaluation.report.paper import paper_tables
from pysimt_sac.evaluation.report.paper_tables import Filler, as_table
from pysimt_sac.evaluation.report.runs_file import EXAMPLE, RunsFile, read_runs

EPILOG = """Write a runs file with `pysimt-sac table --example > runs.toml` and put your paths there. Without a runs
file, the paper's tables are shown; with one, only the tables for which it has runs. The paper's human ranking and
perplexities are not among these tables."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="?", type=Path, metavar="RUNS.toml", help="runs file")
    parser.add_argument("--example", action="store_true", help="print an example of a runs file and exit")
    parser.add_argument(
        "--table",
        action="append",
        choices=list(paper_tables()),
        metavar="NAME",
        help=f"show only this table; may be repeated ({', '.join(paper_tables())})",
    )
    options.add_meteor_argument(parser)
    options.add_resampling_arguments(parser)
    options.add_output_arguments(parser, ("markdown", "latex", "text", "json"))


def run(args: argparse.Namespace) -> int:
    """Fill and show the tables."""
    if args.example:
        options.emit(args, EXAMPLE.rstrip("\n"))
        return 0
    runs_file = read_runs(args.runs) if args.runs else RunsFile()
    filler = Filler(runs_file, options.chosen_resampling(args), args.meteor_jar)
    wanted = [table for key, table in paper_tables().items() if key in (args.table or paper_tables())]
    filled = [filler.fill(table) for table in wanted]
    if args.runs and not args.table:
        filled = [table for table in filled if any(row.runs for row in table.rows)]
    options.warn(filler.warnings)
    return options.show(args, {"tables": filled}, map(as_table, filled))
