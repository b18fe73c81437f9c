"""Processes of one run that die or are stopped: the others say so, and the run goes on as if nothing had happened."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from pysimt_sac.core import distributed
from tests.conftest import make_toy
from tests.distributed.conftest import DROPOUT, NETWORK
from tests.distributed.processes import differences, last_state, points, pysimt_sac, run, start, wait
from tests.distributed.test_training import SAMPLING
from tests.stress import SCALE, SEED, times

DYING = Path(__file__).parents[1] / "distributed" / "dying_model.py"
STOPPED = ["train.model_type:DyingNMT", f"model.plugin_modules:{DYING}", *NETWORK, "train.max_epochs:1"]
UPDATES = 40


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A toy with an actor in runs/toy-actor."""
    toy = make_toy(tmp_path_factory.mktemp("ranks") / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:3", *NETWORK)
    return toy


def assert_same_outcome(one, other):
    assert differences(points(one), points(other), 0.0) == []
    assert differences(last_state(one, all_ranks=True), last_state(other, all_ranks=True), 0.0) == []


def saved_update(folder):
    """The update of the last saved state; 0 if there is none."""
    return int(last_state(folder)["progress"]["update"]) if (folder / "train_state.pt").exists() else 0


@pytest.mark.parametrize("model_type", SAMPLING if SCALE else ["SACNMT"])
def test_processes_killed_at_random_moments(trained, model_type):
    changes = [f"train.model_type:{model_type}", *NETWORK, *DROPOUT, *SAMPLING[model_type], "train.checkpoint_freq:2"]
    changes += ["train.max_epochs:100", f"train.max_iterations:{UPDATES}", "train.patience:1000"]
    changes += [f"train.pretrained_file:{trained.folder}/runs/toy-actor"]
    calm, stormy = (
        ["train", "-C", trained.config, "-s", f"{model_type}-{name}", *changes] for name in ("calm", "storm")
    )
    run(2, trained.folder / "out", *calm)
    rng, folder = random.Random(SEED), trained.folder / f"runs/toy-{model_type}-storm"
    for moment in sorted(rng.choices(range(UPDATES - 10), k=times(1))):
        children = start(2, pysimt_sac(*stormy), trained.folder / "out")
        while saved_update(folder) < moment:
            assert not any(os.waitpid(child, os.WNOHANG)[0] for child in children), "a process has ended by itself"
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.2))  # anywhere within an update, a validation or a save
        victim = rng.randrange(2)
        os.kill(children[victim], signal.SIGKILL)
        assert sorted(wait(children)) == [-signal.SIGKILL, 2]
    run(2, trained.folder / "out", *stormy)
    assert_same_outcome(trained.folder / f"runs/toy-{model_type}-calm", folder)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_stopped_process_is_named_and_the_run_goes_on_when_it_does(trained, monkeypatch, victim):
    out, words = trained.folder / "out", ["train", "-C", trained.config, *STOPPED, "-s"]
    run(2, out, *words, "calm")
    monkeypatch.setattr(distributed, "SLOW", 1.0)
    monkeypatch.setenv("SIGNAL_AT", f"{victim} 5 SIGSTOP")
    children = start(2, pysimt_sac(*words, f"stopped{victim}"), out)
    assert os.WIFSTOPPED(os.waitpid(children[victim], os.WUNTRACED)[1])
    told, until = out / f"{1 - victim}.err", time.monotonic() + 300
    while f"Waiting for process {victim} of 2" not in told.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(children[victim], signal.SIGCONT)
    assert wait(children) == [0, 0]
    assert_same_outcome(trained.folder / "runs/toy-calm", trained.folder / f"runs/toy-stopped{victim}")


def test_a_stopped_process_is_not_waited_for_for_longer_than_one_says(trained, monkeypatch):
    out, words = (
        trained.folder / "out",
        ["train", "-C", trained.config, *STOPPED, "-s", "given-up", "--timeout", "0.05"],
    )
    monkeypatch.setenv("SIGNAL_AT", "1 5 SIGSTOP")
    children = start(2, pysimt_sac(*words), out)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 2
    os.kill(children[1], signal.SIGKILL)
    wait(children[1:])
    assert "another process of this run has not answered for 0.05 minutes" in (out / "0.err").read_text()
