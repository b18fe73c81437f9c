"""Through torchrun itself: training, translating, a process that dies, a signal, and going on with another number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.conftest import NETWORK
from tests.distributed.processes import differences, last_state, points, run

DYING = Path(__file__).with_name("dying_model.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def torchrun(size, *words, **variables):
    """`torchrun --nproc-per-node SIZE -m pysimt_sac WORDS`; it must end by itself, and soon."""
    command = [*TORCHRUN, str(size), "-m", "pysimt_sac", *map(str, words)]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False
    )


def training(toy, name):
    changes = ["train.model_type:DyingNMT", f"model.plugin_modules:{DYING}", "train.checkpoint_freq:3", *NETWORK]
    return ["train", "-C", toy.config, "-s", name, *changes, "train.max_epochs:2", "train.disp_freq:1"]


@pytest.fixture(scope="module")
def undisturbed(trained):
    """A run of one process that nobody stops."""
    run(1, trained.folder / "out", *training(trained, "undisturbed"))
    return trained.folder / "runs" / "toy-undisturbed"


def assert_same_outcome(folder, undisturbed):
    assert differences(points(folder), points(undisturbed), 1e-5) == []
    assert differences(last_state(folder), last_state(undisturbed), 1e-4) == []


def our_lines(text):
    return [line for line in text.splitlines() if line.startswith("pysimt-sac")]


def test_a_process_that_dies_ends_the_others_and_the_run_goes_on_with_another_number(trained, undisturbed):
    ended = torchrun(2, *training(trained, "killed"), SIGNAL_AT="1 5 SIGKILL")
    assert ended.returncode != 0
    (line,) = our_lines(ended.stderr)
    assert "another process of this run has ended" in line
    folder = trained.folder / "runs" / "toy-killed"
    assert last_state(folder)["progress"]["update"] == 3
    run(3, trained.folder / "out", *training(trained, "killed"))
    assert_same_outcome(folder, undisturbed)


def test_a_signal_to_any_process_saves_once(trained, undisturbed):
    ended = torchrun(2, *training(trained, "stopped"), SIGNAL_AT="1 5 SIGTERM")
    assert ended.returncode != 0
    assert our_lines(ended.stderr) == []
    assert ended.stderr.count("Stopped by SIGTERM; the state is saved.") == 1
    folder = trained.folder / "runs" / "toy-stopped"
    assert last_state(folder)["progress"]["update"] == 5
    run(1, trained.folder / "out", *training(trained, "stopped"))
    assert_same_outcome(folder, undisturbed)


def test_translations_are_in_order(trained):
    actor, output = trained.folder / "runs" / "toy-actor", trained.folder / "out"
    more = ["-s", "val,test", "-b", "2", "-f", "sample", "--seed", "3"]
    ended = torchrun(2, "translate", actor, *more, "-o", output / "two")
    assert ended.returncode == 0, ended.stderr
    run(1, output, "translate", actor, *more, "-o", output / "one")
    for split in ("val", "test"):
        for ending in ("sample", "sample.raw"):
            assert (output / f"two.{split}.{ending}").read_text() == (output / f"one.{split}.{ending}").read_text()
