"""Everything that adapts real pysimt: registration of our models, safe loading, its command line's two verbs.

Nothing here runs unless pysimt is installed. pysimt binds its device when it is imported, so it is imported inside
functions, after the device is known.
"""

import argparse
import random
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from pysimt_sac.errors import UserError


def reserve_device(name: str) -> Any:
    """pysimt's DeviceManager; it knows `cpu` and `[N]gpu` only."""
    import torch
    from pysimt.utils.device import DeviceManager

    wanted = name.lower()
    if wanted == "auto":
        wanted = "gpu" if torch.cuda.is_available() else "cpu"
    try:
        return DeviceManager(wanted)
    except RuntimeError as error:
        raise UserError(str(error), f"-d {name}", "pysimt knows cpu and gpu") from error


def register() -> None:
    """Put our models where pysimt looks for its own, and let it load checkpoints on current torch."""
    from pysimt import mainloop, models, monitor, stranslator

    import pysimt_sac.models  # noqa: F401 - registers our models in our registry
    from pysimt_sac.engine.registry import MODELS

    for name, model in MODELS.items.items():
        if not hasattr(models, name):
            setattr(models, name, model)
    for module in (mainloop, monitor, stranslator):
        module.load_pt_file = load_pt_file


def load_pt_file(path: Any, device: str = "cpu") -> dict[str, Any]:
    """pysimt's loader, without its unsafe unpickling, which torch has refused since 2.6."""
    from pysimt_sac.engine.checkpoint import load_checkpoint

    checkpoint = load_checkpoint(path)
    loaded: dict[str, Any] = {"opts": checkpoint.options, "model": checkpoint.weights, "history": checkpoint.history}
    if checkpoint.optimizer is not None:
        loaded["optimizer"] = checkpoint.optimizer
    return loaded


def train(args: argparse.Namespace) -> int:
    """`pysimt train` in pysimt's own loop."""
    if args.check or args.restart:
        raise UserError("only the embedded engine has this", "--check or --restart", "set PYSIMT_SAC_HOST=embedded")
    from pysimt import __version__, logger
    from pysimt.config import Options
    from pysimt.utils.misc import fix_seed

    manager = reserve_device(args.device_id)
    options = Options(str(args.config), args.overrides)
    name_run(options, args.suffix)
    log = logger.setup(options.train)
    log.info(f"Host: pysimt {__version__}")
    options.train["seed"] = fix_seed(options.train["seed"]) if options.train["seed"] > 0 else fix_seed()
    log.info(options)
    register()
    from pysimt import models
    from pysimt.mainloop import MainLoop

    model_type = getattr(models, options.train["model_type"], None)
    if model_type is None:
        raise UserError(f"unknown model {options.train['model_type']!r}", f"{args.config} [train] model_type")
    MainLoop(model_type(opts=options), options.train, manager)()
    return 0


def name_run(options: Any, suffix: str) -> None:
    """The run's folder and id, by pysimt's own rules."""
    options.train["subfolder"] = Path(options.filename).stem + (f"-{suffix}" if suffix else "")
    (Path(options.train["save_path"]) / options.train["subfolder"]).mkdir(parents=True, exist_ok=True)
    digest = sha256(f"{time.time()}{random.random()}".encode()).hexdigest()[:5]
    options.train["exp_id"] = f"{options.train['model_type'].lower()}-r{digest}"


def translate(args: argparse.Namespace) -> int:
    """`pysimt translate` in pysimt's own translator."""
    if not args.splits:
        raise UserError("only the embedded engine translates standard input", "-s", "set PYSIMT_SAC_HOST=embedded")
    if args.func == "sample":
        raise UserError("only the embedded engine samples", "-f sample", "set PYSIMT_SAC_HOST=embedded")
    reserve_device(args.device_id)
    from pysimt import logger
    from pysimt.utils.misc import fix_seed

    logger.setup()
    if not args.stochastic:
        fix_seed(args.seed)
    register()
    from pysimt.stranslator import STranslator

    names = ("model", "splits", "source", "output", "func", "beam_size", "lp_alpha", "suppress_unk", "n_best")
    more = ("max_len", "batch_size", "disable_filters", "override")
    arguments = {name: getattr(args, name) for name in (*names, *more)}
    STranslator(delta="", n_init_tokens="", criteria="", **arguments)()
    sys.stdout.flush()
    return 0
