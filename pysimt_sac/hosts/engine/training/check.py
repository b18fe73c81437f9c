"""`pysimt train --check`: reads, validates, builds, tries every stage of the run, and writes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import find_checkpoint, load_checkpoint
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.preparation import build_layers, out_of_memory_as_user_error, prepare_weights
from pysimt_sac.hosts.engine.training import sanity_checks
from pysimt_sac.hosts.engine.training.console import ALWAYS, logger, shorten
from pysimt_sac.hosts.engine.training.memory import SavedTensors, free_space, in_units, measure_memory, peak_memory
from pysimt_sac.hosts.engine.training.optim import Optimizer
from pysimt_sac.hosts.engine.training.randomness import fix_seeds
from pysimt_sac.hosts.engine.training.runs import Run, find_state, run_folder
from pysimt_sac.hosts.engine.training.startup import count_parameters, describe_finished
from pysimt_sac.hosts.engine.training.validation import Validator
from pysimt_sac.rl.session import TrainingStage

WARNING = "Warning: "


class Notes:
    """A stand-in for a run's journal: keeps lines in memory and ignores curves."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        """Keep a line."""
        self.lines.append(message)

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Trial:
    """One update of a stage with the largest batch.

    learned: whether the model itself was updated. activations: bytes kept for the backward pass.
    """

    stage: TrainingStage
    n_items: int
    loss: float
    figures: dict[str, float]
    learned: bool
    activations: int

    def __str__(self) -> str:
        found = {"loss per word": self.loss} if self.learned else {}
        figures = ", ".join(f"{name} {shorten(value)}" for name, value in {**found, **self.figures}.items())
        return f"Tried{f' {self.stage.name!r}' if self.stage.name else ''}: {figures or 'one update'}"


def check_training(
    model: Any, options: TrainOptions, device: torch.device, suffix: str = "", restart: bool = False
) -> int:
    """Do in memory what the training loop does before its first update, and an update of every stage."""
    logger.info(check_run(model, options, suffix, restart))
    if options.seed:
        fix_seeds(options.seed)
    corpus = model.load_data("train", options.batch_size)
    describe_texts(corpus)
    found = list(sanity_checks.about_corpus("training", corpus, model.vocabs))
    validator = Validator(model, options, device) if options.eval_freq >= 0 else None
    if validator:
        logger.info(f"Validation text: {len(validator.loss_corpus)} pairs; metrics: {', '.join(validator.metrics)}")
        found += sanity_checks.about_corpus("validation", validator.loss_corpus, model.vocabs)
    else:
        logger.info("No validation, because eval_freq is negative: the last weights will be the result")
    found += build(model, options, device)
    higher_better = validator.higher_better(options.eval_metrics[0]) if validator else True
    optimizer, notes = Optimizer(model, options, higher_better, model.recipe.weight_decay), Notes()
    model.start_training(notes)
    found += [line.removeprefix(WARNING) for line in notes.lines if line.startswith(WARNING)]
    for line in (line for line in notes.lines if not line.startswith(WARNING)):
        logger.info(line)
    with out_of_memory_as_user_error("the largest batch", "lower batch_size or max_len"):
        found += try_largest_batch(model, corpus, optimizer, options, device, validator is not None)
    return log_verdict(found)


def log_verdict(found: Iterable[str]) -> int:
    """Log what looks wrong, or that nothing does."""
    found = list(dict.fromkeys(found))
    for finding in found:
        logger.warning(f"{WARNING}{finding}")
    if found:
        things = "1 thing looks" if len(found) == 1 else f"{len(found)} things look"
        logger.log(ALWAYS, f"{things} wrong (see above); nothing was written.")
    else:
        logger.log(ALWAYS, "No problems found; nothing was written. To train, leave out --check.")
    return 0


def check_run(model: Any, options: TrainOptions, suffix: str, restart: bool) -> str:
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


def describe_texts(corpus: ParallelCorpus) -> None:
    """Log what was read, and what may be surprising about it."""
    rates = ", ".join(f"{name} {sanity_checks.unknown_rate(side):.2%}" for name, side in corpus.sides.items())
    longest = ", ".join(f"{name} {side.lengths[corpus.kept].max()}" for name, side in corpus.sides.items())
    mean = ", ".join(f"{name} {sanity_checks.words_per_sentence(side):.1f}" for name, side in corpus.sides.items())
    logger.info(
        f"Training text: {len(corpus)} pairs in {len(corpus.batches(1))} batches; longest: {longest}; "
        f"unknown words: {rates}; words per sentence: {mean}"
    )
    if corpus.left_out:
        logger.info(f"{corpus.left_out} pairs are longer than max_len and left out")


def build(model: Any, options: TrainOptions, device: torch.device) -> list[str]:
    """Build the network with its initial weights; return what looks wrong about them."""
    build_layers(model)
    notes = prepare_weights(model, options)
    model.to(device).train()
    logger.info(f"{options.model_type}: {count_parameters(model)}")
    for note in notes:
        logger.info(note)
    if not options.pretrained_file:
        return []
    checkpoint = load_checkpoint(find_checkpoint(options.pretrained_file, options.eval_metrics[0]))
    own = model.state_dict()
    n_taken = len(own) if options.pretrained_layers else len(set(own) & set(checkpoint.weights))
    return list(sanity_checks.about_actor(checkpoint, model.vocabs, n_taken, len(own)))


def try_largest_batch(
    model: Any,
    corpus: ParallelCorpus,
    optimizer: Optimizer,
    options: TrainOptions,
    device: torch.device,
    has_validation: bool,
) -> list[str]:
    """Make an update of every stage with the largest batch; log what they needed, return what looks wrong."""
    largest = max(
        corpus.batches(1),
        key=lambda indices: sum(side.lengths[indices].max() for side in corpus.sides.values()) * len(indices),
    )
    batch = corpus[largest]
    batch.device(device)
    model.eval()
    with torch.no_grad():
        out = model(batch)
    model.train()
    nll, is_trained = float(out["loss"]) / out["n_items"], bool(options.pretrained_file)
    trials = [try_stage(model, batch, stage, optimizer) for stage in model.stages(options.max_epochs)]
    logger.info(
        f"Largest batch: {batch.size} pairs, {out['n_items']} target words, "
        f"negative log-likelihood {nll:.3f} per word before training"
    )
    for trial in trials:
        logger.info(str(trial))
    log_memory(model, optimizer, max(trial.activations for trial in trials), device)
    found = list(sanity_checks.about_first_loss(nll, len(model.trg_vocab), is_trained))
    per_epoch = -(-len(corpus.batches(1)) // model.recipe.accumulate)
    actor_learns = any(trial.learned for trial in trials)
    return found + list(sanity_checks.about_length(options, per_epoch, has_validation, actor_learns))


def try_stage(model: Any, batch: Batch, stage: TrainingStage, optimizer: Optimizer) -> Trial:
    """Make one update as in a stage."""
    optimizer.zero_grad()
    model.aux_loss.clear()
    kept = SavedTensors(model.parameters())
    with kept:
        out = model(batch, uctr=stage.update, ectr=stage.epoch)
        loss = out["loss"] / out["n_items"] + sum(model.aux_loss.values())
    loss.backward()
    learned = any(parameter.grad is not None for parameter in optimizer.parameters)
    if not bool(torch.isfinite(loss + optimizer.clip())):
        where = f"{model.opts.filename}{f' ({stage.name})' if stage.name else ''}"
        raise UserError("the first loss or gradient is not finite", where, "check the model's options")
    for parameter in optimizer.parameters:
        if parameter.grad is None:  # not yet trained in this stage, but its memory will be needed
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return Trial(stage, out["n_items"], loss.item(), model.figures() or {}, learned, kept.bytes)


def log_memory(model: Any, optimizer: Optimizer, activations: int, device: torch.device) -> None:
    """Log the memory and disk space that training needs."""
    memory = measure_memory(model, optimizer, activations)
    logger.info(f"Memory for training, with that batch: {memory}; the whole process: {peak_memory(device)} on {device}")
    saved = memory.weights + memory.optimizer + memory.learner
    logger.info(
        f"Disk: {in_units(2 * saved)} for two saved states, {in_units(memory.weights)} for each checkpoint; "
        f"{free_space(Path(model.opts.train['save_path']))} free"
    )
