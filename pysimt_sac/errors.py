"""The one exception a user ever sees, and the hint that helps with a misspelt name.

Anything may raise `UserError`; only `cli.run_command` prints it.
"""

from collections.abc import Iterable
from difflib import get_close_matches

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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known name is nearest to `name`, or list them all when none is near."""
    known = sorted(set(known))
    nearest = get_close_matches(name.lower(), [word.lower() for word in known], n=1)
    if nearest:
        return f"did you mean {next(word for word in known if word.lower() == nearest[0])!r}?"
    return f"known: {', '.join(known)}" if known else "none is known"
