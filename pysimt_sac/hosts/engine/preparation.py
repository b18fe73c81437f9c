"""Preparing a model for the training loop and for `--check`: layers, initial weights, frozen layers."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.choice import check_reads_alike
from pysimt_sac.hosts.engine.checkpoint import (
    Checkpoint,
    find_checkpoint,
    keep_prefixes,
    load_checkpoint,
    load_weights,
)
from pysimt_sac.hosts.engine.config.recipe import SMOOTHED


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out; torch has a type for it only on GPUs."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and ("allocate memory" in str(error) or "not enough memory" in str(error))
    )


@contextlib.contextmanager
def out_of_memory_as_user_error(where: object, hint: str) -> Iterator[None]:
    """Turn "out of memory" in the block into a `UserError` that says what to do."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError("out of memory", where, hint) from error


def build_layers(model: Any, is_train: bool = True) -> None:
    """Create the layers; sizes that do not fit into memory are a user error."""
    try:
        model.setup(is_train=is_train)
    except (RuntimeError, MemoryError, OverflowError, ValueError) as error:
        reason = "out of memory" if is_out_of_memory(error) else str(error).partition("\n")[0]
        hint = "check the sizes, e.g. emb_dim, enc_dim and dec_dim"
        raise UserError(f"cannot build the network: {reason}", f"{model.opts.filename} [model]", hint) from error


def check_same_words(model: Any, checkpoint: Checkpoint) -> None:
    """Refuse a vocabulary of the same size with other words: they would get the wrong embeddings."""
    for side, vocab in model.vocabs.items():
        theirs = checkpoint.vocabularies.get(str(side))
        if theirs and len(theirs) == len(vocab) and (difference := vocab.difference_from(theirs)):
            hint = "use its vocabularies, or say with pretrained_layers which weights to take"
            what = f"was trained with another vocabulary of {str(side)!r}: {difference}"
            raise UserError(what, checkpoint.path, hint)


def settings_of_pretraining(model: Any, options: TrainOptions, checkpoint: Checkpoint) -> list[str]:
    """Return the keys of the learning rate that have the values with which an actor was trained from scratch."""
    theirs = {**checkpoint.options["train"], **checkpoint.options["model"]}
    values = {**vars(options), **vars(model.recipe)}
    if options.model_type in SMOOTHED or theirs["model_type"] not in SMOOTHED:
        return []
    usual = {**defaults(TrainOptions), **defaults(RecipeOptions)}
    return [key for key in ("lr", "lr_decay", "lr_schedule") if theirs.get(key) == values[key] != usual[key]]


def prepare_weights(model: Any, options: TrainOptions, fresh: bool = True) -> list[str]:
    """Initialise, load pretrained weights unless a state will be loaded, freeze; return notes about it."""
    notes = []
    with out_of_memory_as_user_error(f"{model.opts.filename} [model]", "lower emb_dim, enc_dim or dec_dim"):
        model.reset_parameters()
    if options.pretrained_file and fresh:
        checkpoint = load_checkpoint(find_checkpoint(options.pretrained_file, options.eval_metrics[0]))
        check_reads_alike(checkpoint.options, model.wait, checkpoint.path)
        weights = checkpoint.weights
        if options.pretrained_layers:
            weights = keep_prefixes(weights, options.pretrained_layers, checkpoint.path)
        else:
            check_same_words(model, checkpoint)
        taken = load_weights(model, weights, checkpoint.path, partial=True)
        n_all = len(model.state_dict())
        notes.append(f"Loaded {len(taken)} of {n_all} weights from {checkpoint.path}")
        if len(taken) < n_all and not options.pretrained_layers:
            notes.append(f"Warning: {n_all - len(taken)} weights are not in {checkpoint.path} and start at random")
        if inherited := settings_of_pretraining(model, options, checkpoint):
            hint = "include base_fine_tuning.conf last, or set what fine-tuning needs"
            notes.append(f"Warning: {' and '.join(inherited)} as in pre-training, from random weights: {hint}")
    for prefix in options.freeze_layers:
        frozen = [item for item in model.named_parameters() if item[0].startswith(prefix)]
        if not frozen:
            known = sorted({name.rpartition(".")[0] for name, _ in model.named_parameters()})
            raise UserError(
                f"no weight begins with {prefix!r}", "[train] freeze_layers", f"there are: {', '.join(known)}"
            )
        for _, parameter in frozen:
            parameter.requires_grad_(False)
        notes.append(f"Froze {', '.join(name for name, _ in frozen)}")
    return notes if fresh else []
