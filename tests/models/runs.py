"""Runs on the toy corpus through the front door, and what to look at afterwards."""

import json

import torch

from pysimt_sac.cli import main
from pysimt_sac.hosts.engine.checkpoint import load_state

SHORT = ["train.lr:0.001", "train.batch_size:40", "model.health_freq:2", "model.rollout_max_len:8"]


def train_actor(toy):
    """Train an actor, and say where to find it: a change of the configuration."""
    train(toy, "mle", ["train.max_epochs:3"])
    return actor_of(toy)


def actor_of(toy):
    return f"train.pretrained_file:{toy.folder}/runs/toy-mle"


def changes(toy, model_type, *options):
    """The changes of the toy's configuration that train its actor by an algorithm with these options of `[model]`."""
    return [*SHORT, actor_of(toy), f"train.model_type:{model_type}", *(f"model.{option}" for option in options)]


def train(toy, name, changes, *more):
    """The folder of a run."""
    assert main(["train", "-C", str(toy.config), "-s", name, *changes, *more]) == 0
    return toy.folder / "runs" / f"{toy.config.stem}-{name}"


def assert_same_state(one, other):
    """Two runs have ended with the same weights, optimiser, learner and random states."""
    (expected, _), (found, _) = load_state(one), load_state(other)
    for part in ("model", "weights", "optimizer", "random"):
        assert equal(expected[part], found[part]), part


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
