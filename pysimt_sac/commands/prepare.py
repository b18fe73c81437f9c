"""`pysimt-sac prepare CORPUS`: one sub-command per corpus."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A second level of sub-commands, one per corpus."""
    parser.add_subparsers(dest="corpus", metavar="CORPUS", required=True)


def run(args: argparse.Namespace) -> int:
    """Hand over to the chosen corpus."""
    return int(args.run_corpus(args) or 0)
