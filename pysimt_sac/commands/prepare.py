"""`pysimt-sac prepare CORPUS`: one sub-command per corpus."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.corpora.record import TextStatistics, summary_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A second level of sub-commands, one per corpus."""
    corpora = parser.add_subparsers(dest="corpus", metavar="CORPUS", required=True)
    add_demo(corpora.add_parser("demo", help="generate the small English-German demo corpus"))


def run(args: argparse.Namespace) -> int:
    """Hand over to the chosen corpus."""
    return int(args.run_corpus(args) or 0)


def print_summary(folder: Path, statistics: Sequence[TextStatistics]) -> None:
    """What was written, in numbers."""
    print("\n".join(summary_table(statistics)))
    print(f"written to {folder}")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Arguments of `prepare demo`."""
    from pysimt_sac.corpora.demo import DEFAULT_SEED

    parser.description = "Generate English captions and their German translations, with ambiguous words."
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, help="another seed makes another corpus (default: %(default)s)"
    )
    parser.set_defaults(run_corpus=run_demo)


def run_demo(args: argparse.Namespace) -> None:
    """Generate and describe the demo corpus."""
    from pysimt_sac.corpora import demo

    print_summary(args.out, demo.prepare(args.out, args.seed))
