"""The choice of the host: pysimt if installed, else the embedded engine; `PYSIMT_SAC_HOST` overrides it."""

import functools
import importlib.util
import os
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.version import full_version

CHOICES = ("auto", "embedded", "pysimt")
VARIABLE = "PYSIMT_SAC_HOST"


def pysimt_folder() -> Path | None:
    """Return the folder where pysimt is installed; None if it is not."""
    found = importlib.util.find_spec("pysimt")
    # A clone of its repository in the working directory is found as a namespace package, which has no file.
    return Path(found.origin).parent if found is not None and found.origin is not None else None


@functools.cache
def name() -> str:
    """Return the name of the host, `pysimt` or `embedded`."""
    wanted = os.environ.get(VARIABLE, "auto").lower() or "auto"
    if wanted not in CHOICES:
        raise UserError(f"{wanted!r} is not one of {', '.join(CHOICES)}", VARIABLE)
    installed = pysimt_folder() is not None
    if wanted == "pysimt" and not installed:
        hint = "get it from its repository, ImperialNLP/pysimt, or set PYSIMT_SAC_HOST=embedded"
        raise UserError("pysimt is not installed in this environment", VARIABLE, hint)
    if wanted == "auto":
        return "pysimt" if installed else "embedded"
    return wanted


def describe() -> str:
    """Return the host and its version, for logs."""
    if name() == "embedded":
        return f"embedded engine of pysimt_sac {full_version()}"
    import pysimt

    return f"pysimt {pysimt.__version__} with pysimt_sac {full_version()}"
