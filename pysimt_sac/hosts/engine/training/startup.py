"""What a run reports about itself before it begins."""

import dataclasses
import os
import platform
from pathlib import Path
from typing import Any

import torch

from pysimt_sac.core.distributed import world
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.core.version import full_version
from pysimt_sac.hosts.engine.checkpoint import state_fits
from pysimt_sac.hosts.engine.config.values import plain
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.training.console import compact
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.hosts.engine.training.runs import Run

SHOWN_ELSEWHERE = ("model_type", "pretrained_file", "seed", "direction")


def count_parameters(model: torch.nn.Module) -> str:
    """Describe how many weights a model has, and how many of them are trained."""
    total = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return f"{total / 1e6:.2f}M parameters" + (f", {trained / 1e6:.2f}M of them trained" if trained < total else "")


def describe_finished(run: Run, options: TrainOptions) -> str:
    """Describe a run that has nothing left to do; empty for all others."""
    with state_fits(run.folder):
        progress = Progress.from_dict(run.state["progress"]) if run.state else Progress()
    if not progress.ended or not (reason := progress.stop_reason(options)):
        return ""
    more = "raise max_epochs, max_iterations or patience to continue; --restart starts over"
    return f"{run.exp_id} in {run.folder} is finished: {reason} ({more})"


def describe_host(device: torch.device) -> str:
    """Describe the software and the machine, as far as results depend on them."""
    processes = f"{world.size} processes, each on " if world.size > 1 else ""
    return (
        f"Host: embedded engine of pysimt_sac {full_version()}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {processes}{device} with {torch.get_num_threads()} threads"
    )


def announce(trainer: Any) -> None:
    """Report what starts or resumes: in full in the log, in brief on the console."""
    run, progress, journal = trainer.run, trainer.progress, trainer.journal
    if not world.is_main:
        return
    if run.state is None:
        journal.say(describe_start(trainer))
        compact(describe_briefly(trainer))
        return
    resuming = f"Resuming {run.exp_id} after update {progress.update} of epoch {progress.epoch}"
    journal.show(f"{run.remark}\n{resuming}" if run.remark else resuming)


def describe_start(trainer: Any) -> str:
    """Describe all of a run's options, its model and data."""
    run, progress = trainer.run, trainer.progress
    lines = [f"Run {run.exp_id} in {run.folder}; seed {progress.seed}"]
    for section in trainer.model.opts.sections:
        lines.append(f"[{section}]")
        lines += [f"  {key}: {value}" for key, value in plain(trainer.model.opts[section]).items()]
    lines.append(str(trainer.model))
    lines.append(f"{trainer.model.opts.train['model_type']}: {count_parameters(trainer.model)}")
    lines.append(f"Training on {describe_corpus(trainer.corpus)}")
    return "\n".join(lines)


def describe_corpus(corpus: ParallelCorpus) -> str:
    """Describe the amount of text."""
    left_out = f"; {corpus.left_out} longer than max_len left out" if corpus.left_out else ""
    return f"{len(corpus)} sentence pairs in {len(corpus.batches(1))} batches{left_out}"


def describe_briefly(trainer: Any) -> str:
    """Describe a run for the console: model, data, changed options, and where the log is."""
    model, train, log = trainer.model, trainer.options, trainer.journal.paths["log"]
    device = f"{world.size} processes on {trainer.device.type}" if world.size > 1 else str(trainer.device)
    about = {
        "model": f"{train.model_type}, {count_parameters(model)}; {device}, seed {trainer.progress.seed}",
        "start": "; ".join(note for note in trainer.notes if not note.startswith("Warning")),
        "data": f"{describe_corpus(trainer.corpus)}; {len(model.src_vocab)} -> {len(model.trg_vocab)} words",
        "recipe": ", ".join(file.name for file in included_layers(model)),
        "changed": ", ".join(f"{key}={value}" for key, value in unusual_options(model).items()) or "nothing",
        "log": min((str(log), os.path.relpath(log)), key=len),
    }
    return "\n".join(f"{name + ':':10}{text}" for name, text in about.items() if text)


def included_layers(model: Any) -> list[Path]:
    """Return the files that a model's configuration includes."""
    return model.opts.merged.layers[:-1] if model.opts.merged else []


def unusual_options(model: Any) -> dict[str, Any]:
    """Return the keys of `[train]` and `[model]` that change the outcome and are not at their default.

    With an `[include]`, only those that the configuration sets itself: the included files are the recipe.
    """
    usual = {**defaults(TrainOptions), **defaults(RecipeOptions), **model.defaults}
    free = {field.name for field in dataclasses.fields(TrainOptions) if field.metadata["resume"]}
    if included_layers(model):
        merged = model.opts.merged
        free |= {key for (_, key), file in merged.files.items() if file != merged.path}
    given = {**plain(model.opts.train), **plain(model.opts.model)}
    return {
        key: value
        for key, value in given.items()
        if key not in free and key not in SHOWN_ELSEWHERE and key in usual and not equal(value, usual[key])
    }


def equal(value: Any, default: Any) -> bool:
    """Return whether a value, as a configuration may write it, is the default."""
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    return bool(value == default or words == plain(default) or (not value and not default))
