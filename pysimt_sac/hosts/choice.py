"""The choice of the host: pysimt if installed, else the embedded engine; `PYSIMT_SAC_HOST` overrides it.

And pysimt's names of networks, which configurations and checkpoints of either host use.
"""

import functools
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.version import full_version

CHOICES = ("auto", "embedded", "pysimt")
VARIABLE = "PYSIMT_SAC_HOST"
HUGGING_FACE = "HuggingFaceNMT"  # any model of transformers, in `hosts.huggingface`
NETWORKS = ("SimultaneousNMT", "SimultaneousWaitKNMT", HUGGING_FACE)  # the engine's, the first two by pysimt's names
TESTED = "1.0.0"  # the version of pysimt that the adapter is tested with


def pysimt_folder() -> Path | None:
    """Return the folder where pysimt is installed; None if it is not."""
    found = importlib.util.find_spec("pysimt")
    # A clone of its repository in the working directory is found as a namespace package, which has no file.
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def pysimt_version() -> str:
    """Return the version of the pysimt that is installed, without importing it."""
    folder = pysimt_folder()
    text = (folder / "__init__.py").read_text(encoding="utf-8") if folder else ""
    found = re.search(r"^__version__\s*=\s*['\"](.+?)['\"]", text, re.MULTILINE)
    return found[1] if found else "of unknown version"


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
    tested = "" if pysimt_version() == TESTED else f" (tested with {TESTED})"
    return f"pysimt {pysimt_version()}{tested} with pysimt_sac {full_version()}"


def network_of(train: dict[str, Any], model: dict[str, Any]) -> str:
    """Return pysimt's name of the network that a configuration trains; an algorithm's network shows in its keys."""
    name = str(train.get("model_type", ""))
    if model.get("hf_model"):
        return HUGGING_FACE
    if name.startswith(("Simultaneous", "Encoder")):  # all of pysimt's models, and none of ours
        return name
    translator_args = model.get("translator_args")
    waits = model.get("translator_type") == "wk" or (isinstance(translator_args, dict) and "k" in translator_args)
    kind = "SimultaneousTF" if "model_dim" in model else "Simultaneous"
    kind = "EncoderSelfAttentionSimultaneous" if "n_heads" in model else kind
    return f"{kind}{'WaitK' if waits else ''}NMT"


def check_reads_alike(stored: dict[str, Any], wait: int | None, path: object) -> None:
    """Refuse the options of a wait-k actor for a configuration that reads whole sources."""
    if wait is None and "WaitK" in network_of(stored["train"], stored["model"]):
        hint = "set [model] translator_args: {'k': ...} as in its own configuration"
        raise UserError("is a wait-k model, but this configuration reads the whole source", path, hint)


def wait_of(train: dict[str, Any], model: dict[str, Any], where: object) -> int | None:
    """Return the k of a wait-k network; None for others."""
    if "WaitK" not in network_of(train, model):
        return None
    k = (model.get("translator_args") or {}).get("k")
    if not isinstance(k, int | float) or k < 1 or k != int(k):
        raise UserError(
            "a wait-k model needs its k, a number of words", f"{where} [model]", "translator_args: {'k': 3}"
        )
    return int(k)
