"""The command line: `pysimt` (what pysimt itself has) and `pysimt-sac` (that and all the rest).

Each command is a module of `pysimt_sac.commands` with `add_arguments(parser)` and `run(args)`. It is imported only
when it is asked for, so that `--help` answers at once. This module is the only place that prints a `UserError`.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from pysimt_sac import __version__
from pysimt_sac.errors import UserError, error_in_own_file, shorten


class Command(NamedTuple):
    """A sub-command: its one-line help, and whether `pysimt` has it too."""

    help: str
    in_pysimt: bool = False


COMMANDS: dict[str, Command] = {
    "train": Command("train a model from a configuration file", in_pysimt=True),
    "translate": Command("translate with a trained model", in_pysimt=True),
    "build-vocab": Command("count the words of text files into vocabularies", in_pysimt=True),
    "attach": Command("tell a checkpoint how its text was prepared, so that it translates plain text"),
    "average": Command("one checkpoint with the mean weights of several"),
    "config": Command("show a configuration with all that it includes; list and copy the ready ones"),
    "prepare": Command("turn a downloaded or generated corpus into what training reads"),
    "score": Command("BLEU, chrF, TER and METEOR of translations"),
    "compare": Command("is a system better than the baseline? several runs each, with significance"),
    "lexical": Command("how well ambiguous words are translated (LTA, ALI)"),
    "table": Command("the paper's tables, filled with your own runs"),
    "frequency": Command("how frequent in training are the words that systems produce?"),
    "rank": Command("human ranking: draw a blind sheet, score the filled one"),
    "domain": Command("how far is a test set from the training text? unknown words and perplexity"),
    "report": Command("one page that shows what training did to the translations"),
    "host": Command("what trains and translates here: pysimt itself or the embedded engine; whose `pysimt` is"),
}


def command_module(name: str) -> str:
    """The module behind a sub-command."""
    return f"pysimt_sac.commands.{name.replace('-', '_')}"


def build_parser(program: str, commands: dict[str, Command], chosen: str | None) -> argparse.ArgumentParser:
    """A parser in which only the chosen sub-command has its arguments."""
    parser = argparse.ArgumentParser(
        prog=program, description="Train and use translation models, by maximum likelihood and by reinforcement."
    )
    parser.add_argument("--version", action="version", version=f"{program} (pysimt_sac {__version__})")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands.items():
        subparser = subparsers.add_parser(name, help=command.help, description=command.help)
        if name == chosen:
            importlib.import_module(command_module(name)).add_arguments(subparser)
    return parser


def run_command(program: str, commands: dict[str, Command], arguments: Sequence[str]) -> int:
    """Parse and run; a `UserError` becomes one line on standard error and exit status 2, a mistake of ours 1."""
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    parser = build_parser(program, commands, chosen)
    args = parser.parse_args(arguments)
    try:
        status = importlib.import_module(command_module(args.command)).run(args)
        sys.stdout.flush()
        return int(status or 0)
    except UserError as error:
        print(f"{program} {args.command}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program} {args.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print(f"{program} {args.command}: error: out of memory", file=sys.stderr)
        return 2
    except Exception as error:
        if os.environ.get("PYSIMT_SAC_TRACEBACK"):
            raise
        if own := error_in_own_file(error):
            print(f"{program} {args.command}: error: {own}", file=sys.stderr)
            return 2
        what = " ".join(f"{type(error).__name__}: {error}".split())
        hint = "PYSIMT_SAC_TRACEBACK=1 shows where; please report it"
        print(f"{program} {args.command}: error: unexpected {shorten(what)} ({hint})", file=sys.stderr)
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The `pysimt` command."""
    commands = {name: command for name, command in COMMANDS.items() if command.in_pysimt}
    return run_command("pysimt", commands, sys.argv[1:] if arguments is None else arguments)


def main_sac(arguments: Sequence[str] | None = None) -> int:
    """The `pysimt-sac` command."""
    return run_command("pysimt-sac", COMMANDS, sys.argv[1:] if arguments is None else arguments)
