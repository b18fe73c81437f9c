"""`pysimt-sac completion`: print a shell script, built by shtab from all parsers, that completes a command.

The script is static, so that completion is fast and starts no Python.
"""

import argparse
from typing import Any

from pysimt_sac.commands.parsers import build_parser, commands_of
from pysimt_sac.core.errors import UserError

EPILOG = "To try it: source <(pysimt-sac completion bash). docs/completion.md says where shells look for such scripts."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument(
        "program",
        nargs="?",
        choices=["pysimt-sac", "pysimt"],
        default="pysimt-sac",
        metavar="PROGRAM",
        help="the command to complete: pysimt-sac (default) or pysimt",
    )


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError as error:
        hint = "pip install 'pysimt_sac[completion]'"
        raise UserError("needs shtab, which is not installed", args.shell, hint) from error

    commands = commands_of(args.program)
    parser = build_parser(args.program, commands, commands)
    complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, args.shell))
    return 0


def complete_files(parser: argparse.ArgumentParser, complete: Any) -> None:
    """Complete file names wherever an argument has no fixed choices."""
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                complete_files(inner, complete)
        elif action.nargs != 0 and not action.choices:
            action.complete = complete  # type: ignore[attr-defined]
