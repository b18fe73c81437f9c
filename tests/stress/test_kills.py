"""Runs that are killed at random moments, or whose disk is full, end as if nothing had happened: the same bits."""

import importlib.util
import os
import random
import resource
import signal
import time

import pytest

from pysimt_sac.hosts.engine.checkpoint import load_state
from tests.conftest import make_toy
from tests.hosts.engine.dying_runs import BUSY, assert_same_run, fork_training, start_training
from tests.models.runs import assert_same_state, train_actor
from tests.models.test_resuming import KINDS, settings
from tests.stress import SCALE, SEED, times

OFTEN = ["train.checkpoint_freq:2", "train.eval_freq:5", "train.max_epochs:3"]
LIKELIHOOD = {
    "MLE": [*BUSY, "train.max_epochs:4"],
    "MLE, a recipe": [*BUSY, "model.ema_decay:0.9", "model.accumulate:2"],
}
REINFORCED = KINDS if SCALE else ["mixer", "sac unsup"]
HOSTS = ["embedded", "pysimt"] if importlib.util.find_spec("pysimt") else ["embedded"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A toy with an actor."""
    toy = make_toy(tmp_path_factory.mktemp("stress") / "toy")
    train_actor(toy)
    return toy


def kill_again_and_again(words, rng, seconds, prepare=None):
    """Start a run and kill it at a random moment, each time a bit further on; then let it end."""
    for _ in range(times(2)):
        child = start_training(words, prepare)
        time.sleep(rng.uniform(0, 2 * seconds / times(2)))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, -signal.SIGKILL)
    assert fork_training(words, prepare) == 0


def timed(words, prepare=None):
    """How long an undisturbed run takes."""
    started = time.monotonic()
    assert fork_training(words, prepare) == 0
    return time.monotonic() - started


@pytest.mark.parametrize("kind", LIKELIHOOD)
def test_likelihood_killed_at_random_moments(toy, kind):
    rng, words = random.Random(SEED), ["train", "-C", toy.config, *LIKELIHOOD[kind], "-s"]
    seconds = timed([*words, "whole"])
    kill_again_and_again([*words, "killed"], rng, seconds)
    assert_same_run(toy.folder / "runs/toy-whole", toy.folder / "runs/toy-killed")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("kind", REINFORCED)
def test_algorithms_killed_at_random_moments(trained, kind, host):
    rng, name = random.Random(SEED), f"{kind}-{host}".replace(", ", "-").replace(" ", "-")

    def on_host():
        from pysimt_sac.hosts import choice

        os.environ[choice.VARIABLE] = host
        choice.name.cache_clear()

    words = ["train", "-C", trained.config, *settings(trained, kind), *OFTEN, "-s"]
    seconds = timed([*words, f"{name}-whole"], on_host)
    kill_again_and_again([*words, f"{name}-killed"], rng, seconds, on_host)
    runs = [trained.folder / "runs" / f"toy-{name}-{end}" for end in ("whole", "killed")]
    assert_same_state(*runs)
    if host == "embedded":
        assert_same_run(*runs)


def test_disks_that_are_full_at_random_moments(toy):
    """The system refuses to write beyond a size that lies between those of the smallest and the largest file."""
    rng, words = random.Random(SEED), ["train", "-C", toy.config, *BUSY, "-s"]
    assert fork_training([*words, "whole"]) == 0
    largest = max(path.stat().st_size for path in (toy.folder / "runs/toy-whole").iterdir())
    for number in range(times(2)):
        limit = rng.randrange(100, largest)
        full = [*words, f"full{number}"]
        assert fork_training(full, lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) == 2
        folder = toy.folder / f"runs/toy-full{number}"
        load_state(folder)  # whatever was saved is whole
        assert not list(folder.glob(".*.tmp"))
        assert fork_training(full) == 0
        assert_same_run(toy.folder / "runs/toy-whole", folder)
