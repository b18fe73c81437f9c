"""`pysimt-sac completion`: print a shell script, built from all parsers, that completes both commands.

The script is static, so that completion is fast and starts no Python.
"""

import argparse
from collections.abc import Iterator

from pysimt_sac.commands import completion_scripts
from pysimt_sac.commands.completion_scripts import Flag, Place
from pysimt_sac.commands.parsers import build_parser, commands_of

PROGRAMS = ("pysimt", "pysimt-sac")
EPILOG = "To try it: source <(pysimt-sac completion bash). docs/editors.md says where shells look for such scripts."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=list(completion_scripts.SHELLS), metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    places = [place for program in PROGRAMS for place in places_of(program)]
    print(completion_scripts.SHELLS[args.shell](places), end="")
    return 0


def places_of(program: str) -> Iterator[Place]:
    """Return the places of a program and all its sub-commands."""
    commands = commands_of(program)
    return walk(build_parser(program, commands, commands), program)


def walk(parser: argparse.ArgumentParser, path: str) -> Iterator[Place]:
    """Yield a parser's place, then those of its sub-commands."""
    place = Place(path)
    below: list[tuple[argparse.ArgumentParser, str]] = []
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            place.commands = {choice.dest: choice.help or "" for choice in action._choices_actions}
            below = [(inner, f"{path} {name}") for name, inner in action.choices.items()]
        elif action.option_strings:
            choices = [str(choice) for choice in action.choices or ()]
            text = (action.help or "") % vars(action)
            place.flags.append(Flag(list(action.option_strings), text, action.nargs != 0, choices))
        else:
            place.choices += [str(choice) for choice in action.choices or ()]
    yield place
    for inner, name in below:
        yield from walk(inner, name)
