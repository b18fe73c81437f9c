"""`pysimt train --check`: everything but training."""

import resource
from typing import Any

import torch

from pysimt_sac.engine.journal import logger
from pysimt_sac.engine.optim import Optimizer
from pysimt_sac.engine.options import TrainOptions
from pysimt_sac.engine.report import count_parameters
from pysimt_sac.engine.validation import Validator
from pysimt_sac.errors import UserError


def peak_memory(device: torch.device) -> float:
    """The most memory used so far, in GB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def check_training(model: Any, options: TrainOptions, device: torch.device) -> int:
    """Read all data, build the model, push the largest batch through one update, and say what was found."""
    corpus = model.load_data("train", options.batch_size)
    unknown = {name: unknown_rate(side) for name, side in corpus.sides.items()}
    rates = ", ".join(f"{name} {rate:.2%}" for name, rate in unknown.items())
    logger.info(f"Training text: {len(corpus)} pairs, {len(corpus.batches())} batches; unknown words: {rates}")
    if corpus.left_out:
        logger.info(f"{corpus.left_out} pairs are longer than max_len and left out")
    validator = Validator(model, options, device) if options.eval_freq >= 0 else None
    if validator:
        logger.info(f"Validation text: {len(validator.loss_corpus)} pairs; metrics: {', '.join(validator.metrics)}")
    model.setup()
    model.reset_parameters()
    model.to(device).train()
    logger.info(f"{options.model_type}: {count_parameters(model)}")
    optimizer = Optimizer(model, options, higher_better=True)
    largest = max(
        corpus.batches(),
        key=lambda indices: sum(side.lengths[indices].max() for side in corpus.sides.values()) * len(indices),
    )
    batch = corpus[largest]
    batch.device(device)
    out = model(batch, uctr=1, ectr=1)
    loss = out["loss"] / out["n_items"]
    loss.backward()
    if not bool(torch.isfinite(loss + optimizer.clip())):
        raise UserError("the first loss or gradient is not finite", model.opts.filename, "look at the model's options")
    optimizer.step()
    logger.info(f"Largest batch: {batch.size} pairs, {out['n_items']} target words, loss {loss.item():.3f} per word")
    logger.info(f"Peak memory with it: {peak_memory(device):.2f} GB on {device}")
    logger.info("All is well; nothing was written. Train without --check.")
    return 0


def unknown_rate(side: Any) -> float:
    """The share of unknown words in a text."""
    return float((side.ids == 3).mean())
