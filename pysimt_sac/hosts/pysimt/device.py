"""Device selection for pysimt, which binds its device at import: call `reserve_device` before importing pysimt."""

from typing import Any

import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.hosts.choice import VARIABLE, pysimt_folder


def reserve_device(wanted: str) -> Any:
    """Create pysimt's DeviceManager, which supports only `cpu` and `[N]gpu`; then import the rest of pysimt."""
    if wanted.lower() == "auto":
        wanted = "gpu" if torch.cuda.is_available() else "cpu"
    try:
        from pysimt.utils.device import DeviceManager

        try:
            manager = DeviceManager(wanted)
        except RuntimeError as error:
            raise UserError(str(error), f"-d {wanted}", "pysimt supports cpu and gpu") from error
        import pysimt_sac.hosts.pysimt.host  # noqa: F401 - checks that pysimt's dependencies are installed
    except UserError:
        raise
    except Exception as error:  # importing runs code of pysimt and of its dependencies
        hint = f"set {VARIABLE}=embedded to use the engine"
        what = f"pysimt cannot be imported: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("pysimt"):
            what = f"pysimt needs the package {error.name}, which is not installed"
            hint = f"pip install {error.name}, or {hint}"
        raise UserError(what, pysimt_folder(), hint) from error
    return manager
