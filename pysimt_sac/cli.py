"""The command line: `pysimt` (the sub-commands of pysimt itself) and `pysimt-sac` (all sub-commands).

The commands are in `pysimt_sac.commands`. This module is the only place that prints a `UserError`.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from pysimt_sac.commands.parsers import COMMANDS, build_parser, command_module, commands_of
from pysimt_sac.core.errors import UserError, error_in_own_file, one_line
from pysimt_sac.core.files import why

__all__ = ["COMMANDS", "main", "main_sac"]


def run_command(program: str, arguments: Sequence[str]) -> int:
    """Run a sub-command; a `UserError` becomes one line on standard error and exit status 2, a bug exit status 1."""
    chosen = [word for word in arguments if not word.startswith("-")][:1]
    parser = build_parser(program, commands_of(program), chosen)
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
        # The reader closed the pipe (`| head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print(f"{program} {args.command}: error: out of memory", file=sys.stderr)
        return 2
    except BaseException as error:
        if not isinstance(error, Exception) and not error_in_own_file(error):
            raise
        if os.environ.get("PYSIMT_SAC_TRACEBACK"):
            raise
        if own := error_in_own_file(error):
            print(f"{program} {args.command}: error: {own}", file=sys.stderr)
            return 2
        if isinstance(error, OSError) and error.filename is not None:  # e.g. a name that is too long
            print(f"{program} {args.command}: error: {UserError(why(error), error.filename)}", file=sys.stderr)
            return 2
        what = " ".join(f"{type(error).__name__}: {error}".split())
        hint = "PYSIMT_SAC_TRACEBACK=1 shows where; please report it"
        print(f"{program} {args.command}: error: unexpected {one_line(what)} ({hint})", file=sys.stderr)
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `pysimt` command."""
    return run_command("pysimt", sys.argv[1:] if arguments is None else arguments)


def main_sac(arguments: Sequence[str] | None = None) -> int:
    """Run the `pysimt-sac` command."""
    return run_command("pysimt-sac", sys.argv[1:] if arguments is None else arguments)
