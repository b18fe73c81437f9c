"""pysimt binds its device when its modules are imported: `reserve_device` therefore comes before all else of it."""

from typing import Any

import torch

from pysimt_sac.errors import UserError
from pysimt_sac.hosts.choice import VARIABLE, pysimt_folder


def reserve_device(wanted: str) -> Any:
    """pysimt's DeviceManager, which knows `cpu` and `[N]gpu` only; then all else of pysimt is imported."""
    from pysimt.utils.device import DeviceManager

    if wanted.lower() == "auto":
        wanted = "gpu" if torch.cuda.is_available() else "cpu"
    try:
        manager = DeviceManager(wanted)
        import pysimt_sac.hosts.pysimt_host  # noqa: F401 - to see whether all that pysimt needs is there
    except RuntimeError as error:
        raise UserError(str(error), f"-d {wanted}", "pysimt knows cpu and gpu") from error
    except ModuleNotFoundError as error:
        todo = f"pip install {error.name}, or set {VARIABLE}=embedded"
        raise UserError(
            f"pysimt needs the package {error.name}, which is not installed", pysimt_folder(), todo
        ) from error
    return manager
