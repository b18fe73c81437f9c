"""Reinforcement learning for machine translation: a pysimt plugin with its own engine.

    import pysimt_sac

    model = pysimt_sac.load("runs/my")
    model.translate(["A man is cleaning a dog."])

The names below are imported on first use: `import pysimt_sac` alone does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysimt_sac.api.evaluation import bleu, compare, lexical
    from pysimt_sac.api.model import Model, Translation, load
    from pysimt_sac.api.training import Run, train
    from pysimt_sac.core.errors import UserError

__version__ = "0.1.0"
__all__ = ["Model", "Run", "Translation", "UserError", "bleu", "compare", "lexical", "load", "train"]

_MODULES = {
    "api.evaluation": ("bleu", "compare", "lexical"),
    "api.model": ("Model", "Translation", "load"),
    "api.training": ("Run", "train"),
    "core.errors": ("UserError",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
