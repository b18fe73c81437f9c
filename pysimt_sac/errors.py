"""The one exception a user ever sees, and the hint that helps with a misspelt name.

Anything may raise `UserError`; only `cli.run_command` prints it.
"""

import linecache
import traceback
from collections.abc import Iterable
from difflib import get_close_matches

PLUGIN = "pysimt_sac_plugin_"  # how the modules are called that are made of the user's own files
LONGEST = 1000  # characters of a message; a whole file may have been given where a number belongs


class UserError(Exception):
    """A mistake of the user's or the machine's that one line can explain.

    what: what is wrong; where: the file, key or option it is wrong in; todo: what to do about it.
    """

    def __init__(self, what: str, where: object = "", todo: str = "") -> None:
        self.what = what
        self.where = str(where)
        self.todo = todo
        super().__init__(str(self))

    def __str__(self) -> str:
        message = f"{self.where}: {self.what}" if self.where else self.what
        if self.todo:
            message += f" ({self.todo})"
        return shorten(" ".join(message.split()))


def shorten(message: str) -> str:
    """One line that any terminal can show, whatever the user's input brought into it."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in message)


def error_in_own_file(error: BaseException) -> UserError | None:
    """Say where in a file of the user's own an exception came up, or what that file called; None: in none."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        if str(frame.f_globals.get("__name__")).startswith(PLUGIN):
            path = frame.f_code.co_filename
            statement = linecache.getline(path, number).strip()
            what = f"line {number}, `{statement}`: {type(error).__name__}: {error}"
            return UserError(what, path, "correct that file; PYSIMT_SAC_TRACEBACK=1 shows how it came to that line")
    return None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known name is nearest to `name`, or list them all when none is near."""
    known = sorted(set(known))
    nearest = get_close_matches(name.lower(), [word.lower() for word in known], n=1)
    if nearest:
        return f"did you mean {next(word for word in known if word.lower() == nearest[0])!r}?"
    return f"known: {', '.join(known)}" if known else "none is known"
