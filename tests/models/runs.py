"""Runs on the toy corpus through the front door, and what to look at afterwards."""

import json

import torch

from pysimt_sac.cli import main


def train_actor(toy):
    """Train an actor, and say where to find it: a change of the configuration."""
    train(toy, "mle", ["train.max_epochs:3"])
    return f"train.pretrained_file:{toy.folder}/runs/toy-mle"


def train(toy, name, changes, *more):
    """The folder of a run."""
    assert main(["train", "-C", str(toy.config), "-s", name, *changes, *more]) == 0
    return toy.folder / "runs" / f"{toy.config.stem}-{name}"


def equal(one, other):
    """Whether two nested states hold the same numbers."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def points(folder, name):
    """A curve: values by update."""
    (curves,) = folder.glob("*.scalars.jsonl")
    found = (json.loads(line) for line in curves.read_text().splitlines())
    return {point["step"]: point["value"] for point in found if point["name"] == name}


def lines(folder, part):
    """The lines of the log that have some words in them."""
    (log,) = folder.glob("*.log")
    return [line for line in log.read_text().splitlines() if part in line]
