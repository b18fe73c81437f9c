"""Checkpoint averaging: one checkpoint with the mean weights of several."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import require_file
from pysimt_sac.hosts.engine.checkpoint import Checkpoint, for_pysimt, load_checkpoint, write_safely
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.config.values import plain


def average_checkpoints(paths: Sequence[Path], out: Path) -> None:
    """Write a checkpoint with the mean weights of several; everything else comes from the first.

    All are loaded at once, since they are small; the mean is computed in float64.
    """
    if len(paths) < 2:
        raise UserError("cannot average a single checkpoint", paths[0], "give two or more")
    for path in paths:
        if require_file(path, "checkpoint").resolve() == out.resolve():
            raise UserError("is one of the inputs and would be overwritten", out, "give -o another name")
    for number, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:number]]:
            raise UserError("the same checkpoint is given twice, perhaps once through a link", path, "give each once")
    checkpoints = [load_checkpoint(path) for path in paths]
    first = checkpoints[0]
    for other in checkpoints[1:]:
        check_alike(first, other)
    for checkpoint in checkpoints:
        for name, weight in checkpoint.weights.items():
            if not bool(weight.isfinite().all()):
                raise UserError(f"{name} has values that are not finite numbers", checkpoint.path, "leave it out")
    content = {
        "opts": for_pysimt(Options.from_dict(first.options).to_dict()),
        "model": mean_weights([checkpoint.weights for checkpoint in checkpoints]),
        "history": {**plain(first.history), "averaged": [path.name for path in paths]},
    }
    if first.vocabularies:
        content["vocabularies"] = {name: vocab.state() for name, vocab in first.vocabularies.items()}
    write_safely(out, content)


def check_alike(first: Checkpoint, other: Checkpoint) -> None:
    """Refuse checkpoints whose networks or vocabularies differ: their mean would be meaningless."""
    against = f"from {first.path}"
    for name in sorted(first.weights.keys() ^ other.weights.keys()):
        raise UserError(f"its weights differ {against}: {name} is in only one of them", other.path)
    for name, weight in first.weights.items():
        sizes = [tuple(found.shape) for found in (other.weights[name], weight)]
        if sizes[0] != sizes[1]:
            raise UserError(f"{name} differs in size {against}: {sizes[0]}, not {sizes[1]}", other.path)
    words = [{side: vocab.tokens for side, vocab in each.vocabularies.items()} for each in (first, other)]
    if not all(words):  # pysimt's checkpoints only name the files
        words = [plain(each.options["vocabulary"]) for each in (first, other)]
    if words[0] != words[1]:
        raise UserError(f"its vocabularies differ {against}", other.path, "average checkpoints of one vocabulary")


def mean_weights(each: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of every weight; weights tied in all checkpoints stay tied."""
    found: dict[tuple[int, ...], Tensor] = {}
    means = {}
    for name, weight in each[0].items():
        same = (*(weights[name].data_ptr() for weights in each), *weight.shape)
        if same not in found:
            found[same] = torch.stack([weights[name].double() for weights in each]).mean(0).to(weight.dtype)
        means[name] = found[same]
    return means
