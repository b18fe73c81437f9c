"""The start of pysimt, which binds its device at import: call `reserve_device` before importing the rest of it."""

import functools
import inspect
import operator
from typing import Any

import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.hosts.choice import TESTED, VARIABLE, pysimt_folder, pysimt_version

# What this package replaces, extends or calls by name, and the parameters that it relies on.
USED = {
    "config.Options.from_dict": "dict_",
    "mainloop.MainLoop": "model train_opts dev_mgr",
    "mainloop.MainLoop.do_validation": "",
    "mainloop.MainLoop.train_batch": "batch",
    "mainloop.MainLoop.train_epoch": "",
    "mainloop.Monitor": "save_path exp_id model logger patience eval_metrics",
    "mainloop.TensorBoard": "",
    "mainloop.get_translator": "_type",
    "mainloop.load_pt_file": "fname",
    "metrics.Metric": "name score higher_better",
    "models.EncoderSelfAttentionSimultaneousNMT.cache_enc_states": "batch",
    "models.EncoderSelfAttentionSimultaneousNMT.get_enc_state_dict": "up_to",
    "models.SimultaneousNMT": "opts",
    "models.SimultaneousNMT.forward": "batch",
    "models.SimultaneousNMT.load_data": "split batch_size mode",
    "models.SimultaneousNMT.register_tensorboard": "handle",
    "models.SimultaneousNMT.set_defaults": "",
    "monitor.Monitor.reload_previous_best": "",
    "monitor.Monitor.save_model": "metric suffix do_symlink",
    "monitor.Monitor.state_dict": "",
    "monitor.load_pt_file": "fname",
    "stranslator.STranslator": "kwargs",
    "stranslator.get_translator": "_type",
    "stranslator.load_pt_file": "fname",
    "translators.BeamSearch": "model data_loader out_prefix batch_size filter_chain max_len",
    "translators.get_translator": "_type",
}


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

        check_pysimt()
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


@functools.cache
def check_pysimt() -> None:
    """Refuse a pysimt that lacks something we replace or call: it would fail later, or go on without us.

    Only once: then some of it is ours.
    """
    import pysimt

    for path, parameters in USED.items():
        try:
            found = set(inspect.signature(operator.attrgetter(path)(pysimt)).parameters)
        except (AttributeError, TypeError, ValueError):
            found = None
        if found is None or not found.issuperset(parameters.split()):
            what = f"pysimt {pysimt_version()} has no {path}({', '.join(parameters.split())})"
            hint = f"tested with pysimt {TESTED}: install that version, or set {VARIABLE}=embedded"
            raise UserError(what, pysimt_folder(), hint)
