"""`pysimt train --check`: reads, validates, builds, tries every stage of the run, and writes nothing."""

import resource
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.preparation import build_layers, out_of_memory_as_user_error, prepare_weights
from pysimt_sac.hosts.engine.training import sanity_checks
from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.console import ALWAYS, logger, shorten
from pysimt_sac.hosts.engine.training.optim import Optimizer
from pysimt_sac.hosts.engine.training.randomness import fix_seeds
from pysimt_sac.hosts.engine.training.runs import Run, find_state, run_folder
from pysimt_sac.hosts.engine.training.startup import count_parameters, describe_finished
from pysimt_sac.hosts.engine.training.validation import Validator
from pysimt_sac.rl.session import TrainingStage

WARNING = "Warning: "
LOOKS_WRONG = 3  # exit status


class Notes:
    """A stand-in for a run's journal: keeps lines in memory and ignores curves."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def say(self, message: str) -> None:
        """Keep a line."""
        self.lines.append(message)

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Do nothing."""


def check_training(
    model: Any, options: TrainOptions, device: torch.device, suffix: str = "", restart: bool = False
) -> int:
    """Do in memory what the training loop does before its first update, and an update of every stage.

    Returns the exit status: 0, or 3 if something looks wrong.
    """
    logger.info(describe_run(model, options, suffix, restart))
    if options.seed:
        fix_seeds(options.seed)
    corpus = model.load_data("train", options.batch_size)
    logger.info(describe_text(corpus))
    found = list(sanity_checks.about_corpus("training", corpus, model.vocabs))
    validator = Validator(model, options, device) if options.eval_freq >= 0 else None
    if validator:
        logger.info(f"Validation text: {len(validator.loss_corpus)} pairs; metrics: {', '.join(validator.metrics)}")
        found += sanity_checks.about_corpus("validation", validator.loss_corpus, model.vocabs)
    else:
        logger.info("No validation, because eval_freq is negative: the last weights will be the result")
    build_layers(model)
    notes = Notes(prepare_weights(model, options))
    model.to(device).train()
    logger.info(f"{options.model_type}: {count_parameters(model)}")
    higher_better = validator.higher_better(options.eval_metrics[0]) if validator else True
    optimizer = Optimizer(model, options, higher_better, model.recipe.weight_decay)
    model.start_training(notes)
    found += [line.removeprefix(WARNING) for line in notes.lines if line.startswith(WARNING)]
    for line in (line for line in notes.lines if not line.startswith(WARNING)):
        logger.info(line)
    with out_of_memory_as_user_error("the largest batch", "lower batch_size or max_len"):
        found += try_largest_batch(model, corpus, optimizer, options, device)
    log_memory(model, optimizer, device)
    return log_verdict(found)


def log_verdict(found: Iterable[str]) -> int:
    """Log what looks wrong, or that nothing does; return the exit status."""
    found = list(dict.fromkeys(found))
    for finding in found:
        logger.warning(f"{WARNING}{finding}")
    if not found:
        logger.log(ALWAYS, "No problems found; nothing was written. To train, leave out --check.")
        return 0
    things = "1 thing looks" if len(found) == 1 else f"{len(found)} things look"
    logger.log(ALWAYS, f"{things} wrong (see above); nothing was written.")
    return LOOKS_WRONG


def describe_run(model: Any, options: TrainOptions, suffix: str, restart: bool) -> str:
    """Describe the run that would begin or resume; refuse a state of another configuration."""
    folder = run_folder(model.opts, suffix)
    state, remark = (None, "") if restart else find_state(folder, model.opts)
    if state is None:
        return f"A new run would begin in {folder}"
    run = Run(folder, state["exp_id"], state, remark)
    return describe_finished(run, options) or (
        f"{run.exp_id} in {folder} would resume after update {state['progress'].get('update')}"
        + (f" ({remark})" if remark else "")
    )


def describe_text(corpus: ParallelCorpus) -> str:
    """Describe the training text."""
    sides = corpus.sides.items()
    rates = ", ".join(f"{name} {sanity_checks.unknown_rate(side):.2%}" for name, side in sides)
    longest = ", ".join(f"{name} {side.lengths[corpus.kept].max()}" for name, side in sides)
    mean = ", ".join(f"{name} {sanity_checks.words_per_sentence(side):.1f}" for name, side in sides)
    left_out = f"; {corpus.left_out} pairs are longer than max_len and left out" if corpus.left_out else ""
    return (
        f"Training text: {len(corpus)} pairs in {len(corpus.batches(1))} batches; longest: {longest}; "
        f"unknown words: {rates}; words per sentence: {mean}{left_out}"
    )


def try_largest_batch(
    model: Any, corpus: ParallelCorpus, optimizer: Optimizer, options: TrainOptions, device: torch.device
) -> list[str]:
    """Make an update of every stage with the largest batch; return what looks wrong."""
    batches = corpus.batches(1)
    sides = corpus.sides.values()
    batch = corpus[max(batches, key=lambda rows: sum(side.lengths[rows].max() for side in sides) * len(rows))]
    batch.device(device)
    model.eval()
    with torch.no_grad():
        out = model(batch)
    model.train()
    nll = float(out["loss"]) / out["n_items"]
    logger.info(
        f"Largest batch: {batch.size} pairs, {out['n_items']} target words, "
        f"negative log-likelihood {nll:.3f} per word before training"
    )
    per_epoch = -(-len(batches) // model.recipe.accumulate)
    n_updates = min(options.max_iterations, options.max_epochs * per_epoch)
    stages = [stage for stage in model.stages() if stage.first <= n_updates]
    learned = [try_stage(model, batch, stage, optimizer) for stage in stages]
    return [
        *sanity_checks.about_first_loss(nll, len(model.trg_vocab), is_trained=model.is_trained),
        *sanity_checks.about_length(options, model.recipe, per_epoch, actor_learns=any(learned)),
    ]


def try_stage(model: Any, batch: Batch, stage: TrainingStage, optimizer: Optimizer) -> bool:
    """Make one update as in a stage, and log it; return whether the model itself learned."""
    optimizer.zero_grad()
    model.aux_loss.clear()
    out = model(batch, uctr=stage.reported)
    loss = out["loss"] / out["n_items"] + sum(model.aux_loss.values())
    loss.backward()
    learned = any(parameter.grad is not None for parameter in optimizer.parameters)
    if not bool(torch.isfinite(loss + optimizer.clip())):
        where = f"{model.opts.filename}{f' ({stage.name})' if stage.name else ''}"
        raise UserError("the first loss or gradient is not finite", where, "check the model's options")
    optimizer.step()
    metrics = {**({"loss per word": loss.item()} if learned else {}), **(model.figures() or {})}
    shown = ", ".join(f"{name} {shorten(value)}" for name, value in metrics.items())
    logger.info(f"Tried{f' {stage.name!r}' if stage.name else ''}: {shown or 'one update'}")
    return learned


def log_memory(model: Any, optimizer: Optimizer, device: torch.device) -> None:
    """Log the memory that the updates needed, and the disk space that training will need."""
    weights = n_bytes_of(list(model.parameters()))
    average = WeightAverage(model, model.recipe.ema_decay).state_dict()
    state = weights + n_bytes_of([*optimizer.torch_optimizer.state.values(), average, model.training_state()])
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    folder = Path(model.opts.train["save_path"])
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    logger.info(
        f"Memory: at most {in_units(peak)} on {device} with that batch; weights and all that learns: {in_units(state)}"
    )
    logger.info(
        f"Disk: {in_units(2 * state)} for two saved states, {in_units(weights)} for each checkpoint; "
        f"{in_units(shutil.disk_usage(folder).free)} free"
    )


def n_bytes_of(value: Any) -> int:
    """Return the memory of all tensors in nested lists and dictionaries."""
    if isinstance(value, dict):
        return n_bytes_of(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(n_bytes_of(item) for item in value)
    return value.nbytes if isinstance(value, Tensor) else 0


def in_units(n_bytes: float) -> str:
    """Format a number of bytes in readable units."""
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"
