"""Which host commands use: pysimt if it is installed, else the embedded engine, unless `PYSIMT_SAC_HOST` says so."""

import functools
import importlib.util
import os
from pathlib import Path

from pysimt_sac.engine.version import full_version
from pysimt_sac.errors import UserError

CHOICES = ("auto", "embedded", "pysimt")
VARIABLE = "PYSIMT_SAC_HOST"


def pysimt_folder() -> Path | None:
    """Where pysimt is installed, if it is."""
    found = importlib.util.find_spec("pysimt")
    # A clone of its repository in the working directory is a package of that name, too, but one without a file.
    return Path(found.origin).parent if found is not None and found.origin is not None else None


@functools.cache
def name() -> str:
    """`pysimt` or `embedded`."""
    wanted = os.environ.get(VARIABLE, "auto").lower() or "auto"
    if wanted not in CHOICES:
        raise UserError(f"{wanted!r} is not one of {', '.join(CHOICES)}", VARIABLE)
    installed = pysimt_folder() is not None
    if wanted == "pysimt" and not installed:
        todo = "get it from its repository, ImperialNLP/pysimt, or set PYSIMT_SAC_HOST=embedded"
        raise UserError("pysimt is not installed in this environment", VARIABLE, todo)
    if wanted == "auto":
        return "pysimt" if installed else "embedded"
    return wanted


def describe() -> str:
    """The host and its version."""
    if name() == "embedded":
        return f"embedded engine of pysimt_sac {full_version()}"
    import pysimt

    return f"pysimt {pysimt.__version__} with pysimt_sac {full_version()}"
