"""`pysimt train --check`: reads, validates, builds, pushes one batch through, and writes nothing."""

import resource
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import TrainOptions
from pysimt_sac.engine.data.corpus import ParallelCorpus
from pysimt_sac.engine.data.vocabulary import UNK
from pysimt_sac.engine.network.preparation import build_layers, memory_named, prepare_weights
from pysimt_sac.engine.training.average import WeightAverage
from pysimt_sac.engine.training.console import logger
from pysimt_sac.engine.training.optim import Optimizer
from pysimt_sac.engine.training.randomness import fix_seeds
from pysimt_sac.engine.training.runs import Run, find_state, run_folder
from pysimt_sac.engine.training.startup import count_parameters, describe_finished
from pysimt_sac.engine.training.validation import Validator
from pysimt_sac.errors import UserError


class NoJournal:
    """Stands in for a run's journal: nothing is kept."""

    def say(self, message: str) -> None:
        """Nothing."""

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Memory:
    """Bytes that training needs, by purpose; `learner` is what a model keeps beside its weights, such as critics."""

    weights: int
    gradients: int
    optimizer: int
    learner: int
    activations: int

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {in_units(size)}" for name, size in vars(self).items())
        return f"{in_units(sum(vars(self).values()))} ({parts})"


def in_units(n_bytes: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def check_training(
    model: Any, options: TrainOptions, device: torch.device, suffix: str = "", restart: bool = False
) -> int:
    """Do what the training loop does before its first update, and that update, in memory only; say what was found."""
    logger.info(check_run(model, options, suffix, restart))
    if options.seed:
        fix_seeds(options.seed)
    corpus = model.load_data("train", options.batch_size)
    describe_texts(corpus)
    validator = Validator(model, options, device) if options.eval_freq >= 0 else None
    if validator:
        logger.info(f"Validation text: {len(validator.loss_corpus)} pairs; metrics: {', '.join(validator.metrics)}")
    else:
        logger.info("No validation, because eval_freq is negative: the last weights will be the result")
    build_layers(model)
    notes = prepare_weights(model, options)
    model.to(device).train()
    logger.info(f"{options.model_type}: {count_parameters(model)}")
    for note in notes:
        logger.info(note)
    higher_better = validator.higher_better(options.eval_metrics[0]) if validator else True
    optimizer = Optimizer(model, options, higher_better, model.recipe.weight_decay)
    model.register_tensorboard(NoJournal())
    with memory_named("the largest batch", "lower batch_size or max_len"):
        try_largest_batch(model, corpus, optimizer, device)
    logger.info("All is well; nothing was written. To train, leave out --check.")
    return 0


def check_run(model: Any, options: TrainOptions, suffix: str, restart: bool) -> str:
    """Whether a new run would begin or an old one go on; a state of another configuration is refused."""
    folder = run_folder(model.opts, suffix)
    state, remark = (None, "") if restart else find_state(folder, model.opts)
    if state is None:
        return f"A new run would begin in {folder}"
    run = Run(folder, state["exp_id"], state, remark)
    return describe_finished(run, options) or (
        f"{run.exp_id} in {folder} would go on after update {state['progress'].get('update')}"
        + (f" ({remark})" if remark else "")
    )


def describe_texts(corpus: ParallelCorpus) -> None:
    """What was read, and what in it may surprise."""
    rates = ", ".join(f"{name} {unknown_rate(side):.2%}" for name, side in corpus.sides.items())
    longest = ", ".join(f"{name} {side.lengths[corpus.keep].max()}" for name, side in corpus.sides.items())
    logger.info(
        f"Training text: {len(corpus)} pairs in {len(corpus.batches(1))} batches; longest: {longest}; "
        f"unknown words: {rates}"
    )
    if corpus.left_out:
        logger.info(f"{corpus.left_out} pairs are longer than max_len and left out")


def unknown_rate(side: Any) -> float:
    """The share of unknown words in a text."""
    return float((side.ids == UNK).mean())


def try_largest_batch(model: Any, corpus: ParallelCorpus, optimizer: Optimizer, device: torch.device) -> None:
    """One update with the batch that needs most memory, and what it needed."""
    largest = max(
        corpus.batches(1),
        key=lambda indices: sum(side.lengths[indices].max() for side in corpus.sides.values()) * len(indices),
    )
    batch = corpus[largest]
    batch.device(device)
    kept = SavedTensors(model.parameters())
    with kept:
        out = model(batch, uctr=1, ectr=1)
        loss = out["loss"] / out["n_items"] + sum(model.aux_loss.values())
    loss.backward()
    if not bool(torch.isfinite(loss + optimizer.clip())):
        raise UserError("the first loss or gradient is not finite", model.opts.filename, "look at the model's options")
    for parameter in optimizer.parameters:
        if parameter.grad is None:  # not yet trained in the first update, but it will be
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    logger.info(f"Largest batch: {batch.size} pairs, {out['n_items']} target words, loss {loss.item():.3f} per word")
    memory = measure_memory(model, optimizer, kept.bytes)
    logger.info(f"Memory for training, with that batch: {memory}; the whole process: {peak_memory(device)} on {device}")
    saved = memory.weights + memory.optimizer + memory.learner
    logger.info(
        f"Disk: {in_units(2 * saved)} for two saved states, {in_units(memory.weights)} for each checkpoint; "
        f"{free_space(Path(model.opts.train['save_path']))} are free"
    )


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """Within a `with` block, counts what the forward pass keeps for the backward pass."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self.weights = {weight.untyped_storage().data_ptr() for weight in weights}
        self.storages: dict[int, int] = {}
        super().__init__(self.count, lambda tensor: tensor)

    def count(self, tensor: Tensor) -> Tensor:
        """Note a tensor's memory once, however many views of it are kept; weights are counted elsewhere."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.weights:
            self.storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(self.storages.values())


def measure_memory(model: Any, optimizer: Optimizer, activations: int) -> Memory:
    """The memory of an update that has been made; an average of the weights is counted with the optimiser."""
    average = WeightAverage(model, model.recipe.ema_decay)
    return Memory(
        weights=n_bytes_of(list(model.parameters())),
        gradients=n_bytes_of([parameter.grad for parameter in model.parameters()]),
        optimizer=n_bytes_of([*optimizer.torch_optimizer.state.values(), average.state_dict()]),
        learner=n_bytes_of(model.training_state()),
        activations=activations,
    )


def n_bytes_of(value: Any) -> int:
    """The memory of all tensors in nested lists and dictionaries."""
    if isinstance(value, dict):
        return n_bytes_of(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(n_bytes_of(item) for item in value)
    return value.nbytes if isinstance(value, Tensor) else 0


def peak_memory(device: torch.device) -> str:
    """The most memory used so far."""
    if device.type == "cuda":
        return in_units(torch.cuda.max_memory_allocated(device))
    return in_units(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def free_space(path: Path) -> str:
    """The room left on the disk that a folder is, or will be, on."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return in_units(shutil.disk_usage(path).free)
