"""The one exception a user ever sees, and the hint that helps with a misspelt name.

Anything may raise `UserError`; only `cli.run_command` prints it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


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
        return " ".join(message.split())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known name is nearest to `name`, or list them all when none is near."""
    known = sorted(set(known))
    nearest = get_close_matches(name, known, n=1)
    if nearest:
        return f"did you mean {nearest[0]!r}?"
    return f"known: {', '.join(known)}" if known else "none is known"
