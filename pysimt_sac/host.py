"""The seam between this package and its host: pysimt if it is installed, else the embedded engine.

Chosen once per process and exported lazily; `models.base` derives from `host.SimultaneousNMT`. Only this module and
`bridge` may import pysimt. `PYSIMT_SAC_HOST` (`auto`, `embedded`, `pysimt`) decides otherwise.
"""

import functools
import importlib.util
import os
from typing import Any

from pysimt_sac.errors import UserError

CHOICES = ("auto", "embedded", "pysimt")


@functools.cache
def name() -> str:
    """`pysimt` or `embedded`."""
    wanted = os.environ.get("PYSIMT_SAC_HOST", "auto").lower() or "auto"
    if wanted not in CHOICES:
        raise UserError(f"{wanted!r} is not one of {', '.join(CHOICES)}", "PYSIMT_SAC_HOST")
    found = importlib.util.find_spec("pysimt")
    installed = found is not None and found.origin is not None  # a mere folder of that name has no origin
    if wanted == "pysimt" and not installed:
        todo = "get it from its repository, ImperialNLP/pysimt, or set PYSIMT_SAC_HOST=embedded"
        raise UserError("pysimt is not installed in this environment", "PYSIMT_SAC_HOST", todo)
    if wanted == "auto":
        return "pysimt" if installed else "embedded"
    return wanted


def __getattr__(attribute: str) -> Any:
    if attribute != "SimultaneousNMT":
        raise AttributeError(attribute)
    if name() == "pysimt":
        from pysimt.models import SimultaneousNMT as PysimtModel

        return PysimtModel
    from pysimt_sac.engine.nmt import SimultaneousNMT as EngineModel

    return EngineModel
