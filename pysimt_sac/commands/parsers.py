"""The sub-commands, their modules and their parsers.

Each command is a module of `pysimt_sac.commands` with `add_arguments(parser)` and `run(args)`. It is imported only
when needed, so that `--help` is fast.
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
    "build-vocab": Command("build vocabularies from text files", in_pysimt=True),
    "attach": Command("record in a checkpoint how its text was prepared, so that it can translate plain text"),
    "export": Command("write a model of Hugging Face's transformers as others load it, with a model card"),
    "average": Command("average the weights of several checkpoints"),
    "config": Command("show a configuration merged with its includes; list and copy the ready-made ones"),
    "prepare": Command("prepare a downloaded or generated corpus for training"),
    "score": Command("compute BLEU, chrF, TER and METEOR of translations"),
    "compare": Command("compare systems with a baseline, several runs each, with significance tests"),
    "lexical": Command("measure accuracy on ambiguous words (LTA, ALI)"),
    "frequency": Command("analyse the training frequencies of the words that systems produce"),
    "rank": Command("human ranking: sample a blind sheet, score the filled one"),
    "domain": Command("measure how far test sets are from the training text: unknown words and perplexity"),
    "plot": Command("draw the curves of running or finished trainings, in the terminal or as SVG files"),
    "report": Command("write a page that shows what training changed in the translations"),
    "reproduce": Command("reproduce the paper's tables from the raw data; can be stopped and resumed at any time"),
    "completion": Command("print a completion script for bash, zsh or fish"),
    "host": Command("show what trains and translates here, pysimt or the embedded engine, and who owns `pysimt`"),
}


class CommandParser(argparse.ArgumentParser):
    """The parser of a command. Flags may come before, between and after its other arguments."""

    intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse like argparse; `parse_known_intermixed_args`, which does the work, calls this in turn."""
        if self.intermixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self.intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.intermixing = False


def command_module(name: str) -> str:
    """Return the name of a sub-command's module."""
    return f"pysimt_sac.commands.{name.replace('-', '_')}"


def build_parser(program: str, commands: dict[str, Command], chosen: Collection[str]) -> argparse.ArgumentParser:
    """Build a parser in which only the chosen sub-commands have their arguments."""
    parser = argparse.ArgumentParser(
        prog=program, description="Train and use translation models: maximum likelihood and reinforcement learning."
    )
    parser.add_argument("--version", action="version", version=f"{program} (pysimt_sac {__version__})")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, command in commands.items():
        subparser = subparsers.add_parser(name, help=command.help, description=command.help)
        if name in chosen:
            importlib.import_module(command_module(name)).add_arguments(subparser)
    return parser


def commands_of(program: str) -> dict[str, Command]:
    """Return the sub-commands of `pysimt` or of `pysimt-sac`."""
    return {name: command for name, command in COMMANDS.items() if command.in_pysimt or program != "pysimt"}
