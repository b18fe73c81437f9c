"""Every algorithm learns the same with one process and with three: losses, metrics, validations, all that is saved."""

import contextlib

import pytest
import torch

from tests.distributed.conftest import NETWORK
from tests.distributed.processes import differences, last_state, points, run

CRITICS = ["model.gate_sentences:8", "model.critic_pretrain_epochs:1", "model.critic_pretrain_target:td"]
VARIANTS = {
    "SimultaneousNMT": ["model.accumulate:2", "model.label_smoothing:0.1", "model.ema_decay:0.9"],
    "MLENMT": ["model.weight_decay:0.01", "model.batch_tokens:150"],
    "REINFORCENMT": ["model.n_samples:2", "model.entropy_weight:0.1"],
    "REINFORCENMT batch": ["model.n_samples:1", "model.permute_rewards:True"],
    "REINFORCENMT greedy": ["model.n_samples:2", "model.baseline:greedy"],
    "REINFORCENMT learned": ["model.n_samples:2", "model.baseline:learned"],
    "MIXERNMT": ["model.mixer_unit:updates"],
    "MRTNMT": ["model.n_samples:3", "model.mrt_reference:True"],
    "VineNMT": ["model.branch_continuation:sample", "model.permute_rewards:True"],
    "ACNMT": [*CRITICS, "model.known_reward:True", "model.support:4"],
    "ERACNMT": CRITICS,
    "SACNMT": [*CRITICS, "model.alpha:auto", "model.kl_weight:0.1", "model.buffer_size:4"],
    "SACNMT branches": [*CRITICS, "model.branch_states:2", "model.known_reward:True", "model.critic_every:2"],
    "SACNMT mixed": [*CRITICS, "model.reward:bleu:0.5,unsup:0.5", "model.updates_per_batch:2", "model.support:0"],
    "SACUnsupNMT": ["model.discriminator_warmup:2"],
    "SACUnsupNMT counts": ["model.discriminator:counts", "model.oracle:return"],
}

# The discriminator's first gradients are as small as their rounding, and Adam enlarges both: only in double precision
# can one tell rounding from a mistake.
IN_DOUBLE_PRECISION = ("SACNMT mixed", "SACUnsupNMT")


@contextlib.contextmanager
def precision_of(variant):
    torch.set_default_dtype(torch.float64 if variant in IN_DOUBLE_PRECISION else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def words(toy, name, variant, updates):
    """A run of an algorithm with validations, reports of its metrics, and a batch that is too small to be divided."""
    model_type = variant.split()[0]
    changes = [f"train.model_type:{model_type}", *NETWORK, *VARIANTS[variant]]
    changes += ["train.lr:0.002", "train.disp_freq:1", "train.eval_freq:4", "train.max_epochs:100"]
    changes += [f"train.max_iterations:{updates}"]
    if model_type != "SimultaneousNMT":
        changes += [f"train.pretrained_file:{toy.folder}/runs/toy-actor"]
    if model_type not in ("SimultaneousNMT", "MLENMT"):
        changes += ["model.health_freq:2"]
    return ["train", "-C", toy.config, "-s", name, *changes]


def train(toy, size, variant, updates=8, name=""):
    """The folder of a run by so many processes."""
    name = name or f"{variant.replace(' ', '-')}-{size}"
    with precision_of(variant):
        run(size, toy.folder / "out", *words(toy, name, variant, updates))
    return toy.folder / "runs" / f"toy-{name}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_three_processes_learn_what_one_does(trained, variant):
    one, three = (train(trained, size, variant) for size in (1, 3))
    assert differences(points(three), points(one), 1e-5) == []
    assert differences(last_state(three), last_state(one), 1e-4) == []


def test_two_processes_leave_the_files_that_one_does(trained):
    one, two = (train(trained, size, "SimultaneousNMT", name=f"files-{size}") for size in (1, 2))
    assert differences(points(two), points(one), 1e-5) == []

    def files(folder):
        (log,) = folder.glob("*.log")
        return sorted(path.name.replace(log.stem, "ID") for path in folder.iterdir())

    assert files(two) == files(one)


if __name__ == "__main__":  # the long comparison: python -m tests.distributed.test_training UPDATES [VARIANT ...]
    import sys
    import tempfile
    from pathlib import Path

    from tests.conftest import make_toy

    toy = make_toy(Path(tempfile.mkdtemp()) / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:8", *NETWORK)
    for variant in sys.argv[2:] or VARIANTS:
        one, *others = (train(toy, size, variant, int(sys.argv[1])) for size in (1, 2, 3))
        for other in others:
            found = differences(points(other), points(one), 1e-5)
            found += differences(last_state(other), last_state(one), 1e-4)
            print(other.name, "is the same" if not found else found[:10], flush=True)
