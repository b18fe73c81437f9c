"""The only exception type shown to users, and hints for misspelt names.

Anything may raise `UserError`; only `cli.run_command` prints it.
"""

import linecache
import traceback
from collections.abc import Iterable
from difflib import get_close_matches

PLUGIN = "pysimt_sac_plugin_"  # prefix of the modules loaded from the user's own files
LONGEST = 1000  # characters of a message; users may pass a whole file where a number belongs


class UserError(Exception):
    """An error of the user or the machine that one line can explain.

    what: the problem; where: the file, key or option; hint: how to fix it.
    """

    def __init__(self, what: str, where: object = "", hint: str = "") -> None:
        self.what = what
        self.where = str(where)
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        message = f"{self.where}: {self.what}" if self.where else self.what
        if self.hint:
            message += f" ({self.hint})"
        return one_line(" ".join(message.split()))


def one_line(message: str) -> str:
    """Return a message as one printable line of limited length, whatever the user's input put into it."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in message)


def error_in_own_file(error: BaseException) -> UserError | None:
    """Describe an exception raised in, or called from, one of the user's own files; None if none is involved."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        if str(frame.f_globals.get("__name__")).startswith(PLUGIN):
            path = frame.f_code.co_filename
            statement = linecache.getline(path, number).strip()
            what = f"line {number}, `{statement}`: {type(error).__name__}: {error}"
            return UserError(what, path, "correct that file; PYSIMT_SAC_TRACEBACK=1 shows the traceback")
    return None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint: the known name nearest to `name`, or all known names if none is near."""
    known = sorted(set(known))
    nearest = get_close_matches(name.lower(), [word.lower() for word in known], n=1)
    if nearest:
        return f"did you mean {next(word for word in known if word.lower() == nearest[0])!r}?"
    return f"known: {', '.join(known)}" if known else "none is known"
