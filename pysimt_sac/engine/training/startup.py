"""What a run says of itself before it begins."""

import platform
from typing import Any

import torch

from pysimt_sac import __version__
from pysimt_sac.engine.checkpoint import state_fits
from pysimt_sac.engine.config.options import TrainOptions
from pysimt_sac.engine.config.values import plain
from pysimt_sac.engine.training.progress import Progress
from pysimt_sac.engine.training.runs import Run


def count_parameters(model: torch.nn.Module) -> str:
    """How many weights a model has, and how many of them are trained."""
    total = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return f"{total / 1e6:.2f}M parameters" + (f", {trained / 1e6:.2f}M of them trained" if trained < total else "")


def describe_finished(run: Run, options: TrainOptions) -> str:
    """What to say of a run that has nothing left to do; empty for all others."""
    with state_fits(run.folder):
        reason = Progress.from_dict(run.state["progress"]).finished(options) if run.state else ""
    if not reason:
        return ""
    more = "raise max_epochs, max_iterations or patience to train on; --restart starts over"
    return f"{run.exp_id} in {run.folder} is finished: {reason} ({more})"


def describe_host(device: torch.device) -> str:
    """The software and the machine, as far as results depend on them."""
    return (
        f"Host: embedded engine of pysimt_sac {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {device} with {torch.get_num_threads()} threads"
    )


def describe_start(trainer: Any) -> str:
    """Options, model and data of a run; in one line when it resumes."""
    run, progress = trainer.run, trainer.progress
    if run.state is not None:
        resuming = f"Resuming {run.exp_id} after update {progress.update} of epoch {progress.epoch}"
        return f"{run.remark}\n{resuming}" if run.remark else resuming
    lines = [f"Run {run.exp_id} in {run.folder}; seed {progress.seed}"]
    for section in trainer.model.opts.sections:
        lines.append(f"[{section}]")
        lines += [f"  {key}: {value}" for key, value in plain(trainer.model.opts[section]).items()]
    lines.append(str(trainer.model))
    lines.append(f"{trainer.model.opts.train['model_type']}: {count_parameters(trainer.model)}")
    corpus = trainer.corpus
    lines.append(
        f"Training on {len(corpus)} sentence pairs in {len(corpus.batches(1))} batches"
        + (f"; {corpus.left_out} longer than max_len left out" if corpus.left_out else "")
    )
    return "\n".join(lines)
