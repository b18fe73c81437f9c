"""The sub-commands, their modules and their parsers.

Each command is a module of `pysimt_sac.commands` with `add_arguments(parser)` and `run(args)`. It is imported only
when it is asked for, so that `--help` answers at once.
"""

import argparse
import importlib
from collections.abc import Collection
from typing import Any, NamedTuple

from pysimt_sac import __version__


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
    "reproduce": Command("the paper's tables from the raw data, by one command that can be stopped at any moment"),
    "results": Command("one page of the results of several reproductions"),
    "completion": Command("a script with which bash, zsh or fish completes these commands"),
    "host": Command("what trains and translates here: pysimt itself or the embedded engine; whose `pysimt` is"),
}


class CommandParser(argparse.ArgumentParser):
    """The parser of a command. Flags may stand before, between and after its other arguments."""

    intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; `parse_known_intermixed_args`, which does the work, calls it in turn."""
        if self.intermixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self.intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.intermixing = False


def command_module(name: str) -> str:
    """The module behind a sub-command."""
    return f"pysimt_sac.commands.{name.replace('-', '_')}"


def build_parser(program: str, commands: dict[str, Command], chosen: Collection[str]) -> argparse.ArgumentParser:
    """A parser in which only the chosen sub-commands have their arguments."""
    parser = argparse.ArgumentParser(
        prog=program, description="Train and use translation models, by maximum likelihood and by reinforcement."
    )
    parser.add_argument("--version", action="version", version=f"{program} (pysimt_sac {__version__})")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, command in commands.items():
        subparser = subparsers.add_parser(name, help=command.help, description=command.help)
        if name in chosen:
            importlib.import_module(command_module(name)).add_arguments(subparser)
    return parser


def commands_of(program: str) -> dict[str, Command]:
    """The sub-commands of `pysimt` or of `pysimt-sac`."""
    return {name: command for name, command in COMMANDS.items() if command.in_pysimt or program != "pysimt"}
