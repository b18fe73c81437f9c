"""pysimt binds its device when its modules are imported: `reserve_device` therefore comes before all else of it."""

from typing import Any

import torch

from pysimt_sac.errors import UserError
from pysimt_sac.hosts.choice import VARIABLE, pysimt_folder


def reserve_device(wanted: str) -> Any:
    """pysimt's DeviceManager, which knows `cpu` and `[N]gpu` only; then all else of pysimt is imported."""
    if wanted.lower() == "auto":
        wanted = "gpu" if torch.cuda.is_available() else "cpu"
    try:
        from pysimt.utils.device import DeviceManager

        try:
            manager = DeviceManager(wanted)
        except RuntimeError as error:
            raise UserError(str(error), f"-d {wanted}", "pysimt knows cpu and gpu") from error
        import pysimt_sac.hosts.pysimt_host  # noqa: F401 - to see whether all that pysimt needs is there
    except UserError:
        raise
    except Exception as error:  # importing runs all of pysimt and of what it needs
        todo = f"set {VARIABLE}=embedded to use the engine"
        what = f"pysimt cannot be imported: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("pysimt"):
            what = f"pysimt needs the package {error.name}, which is not installed"
            todo = f"pip install {error.name}, or {todo}"
        raise UserError(what, pysimt_folder(), todo) from error
    return manager
