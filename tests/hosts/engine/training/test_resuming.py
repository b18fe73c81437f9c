"""A run that was stopped, anywhere and anyhow, ends as if it had never been.

Most runs here are forked from the test's process, which has torch loaded already: a second is too long to wait for
every moment at which a run may die. `test_command_line_*` goes through the real command line.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import make_toy
from tests.hosts.engine.dying_runs import (
    BUSY,
    assert_same_run,
    die_at,
    die_in_update,
    fork_training,
    last_state,
    scalars,
    tensorboard_points,
)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """The busy run, never stopped."""
    toy = make_toy(tmp_path_factory.mktemp("whole") / "toy")
    assert fork_training(["train", "-C", toy.config, *BUSY]) == 0
    return toy.run_folder


@pytest.fixture
def undisturbed(whole_run, toy):
    """The busy run, never stopped, and the command of another one that may be."""
    return whole_run, ["train", "-C", toy.config, *BUSY]


def test_a_run_repeats_itself(toy, pysimt):
    for suffix in ("one", "two"):
        assert pysimt("train", "-C", toy.config, "-s", suffix).status == 0
    assert_same_run(toy.folder / "runs/toy-one", toy.folder / "runs/toy-two")


@pytest.mark.slow
def test_killed_at_moments_of_saving(toy, undisturbed):
    """One run, killed again and again: each time later in its saves than the time before."""
    whole, command = undisturbed
    for moment in (1, 2, 3, 5, 9, 14, 20, 23, 27, 32, 38, 45):
        status = fork_training(command, lambda moment=moment: die_at(moment))
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert fork_training(command) == 0
    assert_same_run(whole, toy.run_folder)


def die_after_save(number):
    """Make this process kill itself right after the n-th save of its state."""
    from pysimt_sac.hosts.engine.training.trainer import Trainer

    save, count = Trainer.save, 0

    def deadly(self):
        nonlocal count
        save(self)
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Trainer.save = deadly


@pytest.mark.parametrize(
    "options",
    [
        ["train.eval_freq:0", "train.max_iterations:20", "train.max_epochs:9", "train.checkpoint_freq:10"],
        ["train.eval_freq:5", "train.patience:1", "train.lr:1e-12", "train.max_epochs:9", "train.checkpoint_freq:5"],
        ["train.eval_freq:-1", "train.max_iterations:14", "train.checkpoint_freq:7", "model.accumulate:3"],
    ],
    ids=["last update ends an epoch", "patience ends within an epoch", "without validation"],
)
def test_killed_between_any_two_saves(toy, options):
    """What an update has begun is finished, its epoch's validation included, before a condition may end the run."""
    command = ["train", "-C", toy.config, *options, "-s"]
    assert fork_training([*command, "whole"]) == 0
    number, status = 0, -signal.SIGKILL
    while status:
        number += 1
        status = fork_training([*command, f"killed{number}"], lambda number=number: die_after_save(number))
        assert status in (0, -signal.SIGKILL)
        assert fork_training([*command, f"killed{number}"]) == 0
        assert_same_run(toy.folder / "runs/toy-whole", toy.folder / f"runs/toy-killed{number}")
    assert number > 3


def die_in_last_save(moment):
    """Make this process kill itself at a moment of the save that says that the run has ended."""
    from pysimt_sac.hosts.engine.training import trainer

    save_state = trainer.save_state

    def deadly(folder, state):
        if state["progress"]["ended"]:
            die_at(moment, ["replace"])
        save_state(folder, state)

    trainer.save_state = deadly


def test_killed_anywhere_in_its_last_save(toy):
    command = ["train", "-C", toy.config, "train.max_iterations:2", "train.eval_freq:-1", "-s"]
    assert fork_training([*command, "whole"]) == 0
    for moment in range(1, 7):
        killed = [*command, f"killed{moment}"]
        assert fork_training(killed, lambda moment=moment: die_in_last_save(moment)) == -signal.SIGKILL
        assert fork_training(killed) == 0
        assert_same_run(toy.folder / "runs/toy-whole", toy.folder / f"runs/toy-killed{moment}")


@pytest.mark.parametrize(("eval_freq", "sent_in"), [(0, 10), (5, 10)])
def test_a_signal_in_the_last_update_of_an_epoch_and_of_the_run(toy, eval_freq, sent_in):
    command = ["train", "-C", toy.config, f"train.eval_freq:{eval_freq}", "train.max_iterations:10"]
    assert fork_training([*command, "-s", "whole"]) == 0
    assert fork_training(command, lambda: send_in_update(sent_in, signal.SIGTERM)) == 128 + signal.SIGTERM
    assert fork_training(command) == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)


def test_what_a_killed_process_left_half_written_is_removed(toy, undisturbed):
    _, command = undisturbed
    assert fork_training(command, lambda: die_at(1, ["fsync"])) == -signal.SIGKILL
    assert list(toy.run_folder.glob(".*.tmp"))
    assert fork_training(command) == 0
    assert not list(toy.run_folder.glob(".*.tmp"))


@pytest.mark.parametrize(
    "options",
    [
        [
            "train.eval_freq:-1",
            "train.checkpoint_freq:3",
            "train.lr_decay:noam",
            "train.tf_model_dim:16",
            "train.lr_warmup_steps:5",
        ],
        ["train.checkpoint_freq:3", "train.optimizer:sgd", "train.momentum:0.9", "train.l2_reg:0.001"],
        ["train.checkpoint_freq:3", "train.num_workers:1", "model.bucket_by:src", "train.save_best_metrics:False"],
        ["train.checkpoint_freq:3", "train.freeze_layers:enc,dec.emb", "model.enc_type:lstm"],
        ["train.checkpoint_freq:3", "model.lr_schedule:cosine", "model.lr_warmup:3", "model.weight_decay:0.1"],
        ["train.checkpoint_freq:3", "model.lr_schedule:linear", "model.lr_total:15", "train.eval_metrics:loss"],
        ["train.checkpoint_freq:3", "model.accumulate:3", "train.max_epochs:5", "model.lr_schedule:cosine"],
        ["train.checkpoint_freq:3", "model.batch_tokens:60", "model.accumulate:2", "model.bucket_by:src"],
        [
            "train.eval_freq:5",
            "train.lr_decay:plateau",
            "train.lr_decay_patience:0",
            "train.lr_decay_revert:True",
            "model.ema_decay:0.9",
            "train.checkpoint_freq:3",
        ],
    ],
    ids=lambda options: " ".join(options),
)
def test_all_kinds_of_options_resume(toy, pysimt, options):
    assert pysimt("train", "-C", toy.config, "-s", "whole", *options).status == 0
    command = ["train", "-C", toy.config, *options]
    assert fork_training(command, lambda: die_in_update(14)) == -signal.SIGKILL
    assert fork_training(command) == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)


def test_all_of_a_recipe_together_resumes_after_a_signal_and_in_validation(toy, pysimt):
    options = ["model.lr_schedule:cosine", "model.lr_warmup:5", "model.label_smoothing:0.1", "model.ema_decay:0.8"]
    options += ["model.weight_decay:0.05", "train.eval_freq:6", "train.checkpoint_freq:4", "train.n_checkpoints:2"]
    assert pysimt("train", "-C", toy.config, "-s", "whole", *options).status == 0
    command = ["train", "-C", toy.config, *options]
    assert fork_training(command, lambda: send_in_update(9, signal.SIGTERM)) == 128 + signal.SIGTERM
    assert last_state(toy.run_folder)["progress"]["update"] == 9
    assert fork_training(command, lambda: interrupt_validation(1)) == 128 + signal.SIGTERM
    assert fork_training(command) == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)


STATEFUL = """
import torch
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.core.registry import MODELS

@MODELS.register("Stateful")
class Stateful(SimultaneousNMT):
    '''Its loss depends on an average that is no weight, and on all three generators of random numbers.'''
    def start_training(self, log):
        self.average = torch.zeros(())
    def forward(self, batch, uctr=0, ectr=0):
        import random, numpy
        out = super().forward(batch)
        if self.training:
            noise = random.random() + numpy.random.random() + torch.rand(()).item()
            self.average = 0.9 * self.average + 0.1 * out["loss"].detach()
            out["loss"] = out["loss"] * (1 + 0.1 * noise + 0.001 * self.average)
        else:
            torch.rand(3)
        return out
    def training_state(self):
        return {"average": self.average}
    def load_training_state(self, state):
        self.average = state["average"]
"""


def test_what_a_model_learns_with_is_resumed_too(toy, pysimt):
    (toy.folder / "stateful.py").write_text(STATEFUL)
    options = ["train.model_type:Stateful", f"model.plugin_modules:{toy.folder}/stateful.py", "train.checkpoint_freq:3"]
    assert pysimt("train", "-C", toy.config, "-s", "whole", *options).status == 0
    command = ["train", "-C", toy.config, *options]
    assert fork_training(command, lambda: die_in_update(8)) == -signal.SIGKILL
    assert fork_training(command, lambda: interrupt_validation(1)) == 128 + signal.SIGTERM
    assert fork_training(command) == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)
    assert last_state(toy.run_folder)["model"]["average"] > 0


# Curves


def test_tensorboard_has_neither_gaps_nor_doubles(toy, pysimt):
    board = toy.folder / "tb"
    options = [*BUSY, f"train.tensorboard_dir:{board}"]
    assert pysimt("train", "-C", toy.config, "-s", "whole", *options).status == 0
    command = ["train", "-C", toy.config, *options]
    for moment in (11, 17):
        assert fork_training(command, lambda moment=moment: die_at(moment)) == -signal.SIGKILL
    assert fork_training(command, lambda: die_in_update(3)) == -signal.SIGKILL
    assert fork_training(command) == 0
    expected = sorted((point["name"], point["step"]) for point in scalars(toy.run_folder))
    assert len(set(expected)) == len(expected)
    (folder,) = (board / "toy").iterdir()
    (whole,) = (board / "toy-whole").iterdir()
    assert [point[:2] for point in tensorboard_points(folder)] == expected
    assert tensorboard_points(folder) == tensorboard_points(whole)


# Signals


def send_in_update(number, *signals):
    """Make this process send itself signals in the middle of its n-th update."""
    from pysimt_sac.hosts.engine.training.optim import Optimizer

    clip, count = Optimizer.clip, 0

    def sending(self):
        nonlocal count
        count += 1
        if count == number:
            for sent in signals:
                os.kill(os.getpid(), sent)
        return clip(self)

    Optimizer.clip = sending


def interrupt_validation(number):
    """Make this process send itself a SIGTERM in the middle of its n-th validation."""
    from pysimt_sac.hosts.engine.training.validation import Validator

    translate, count = Validator.translate, 0

    def sending(self, watch):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return translate(self, watch)

    Validator.translate = sending


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(toy, undisturbed, sent):
    whole, command = undisturbed
    assert fork_training(command, lambda: send_in_update(8, sent)) == 128 + sent
    assert last_state(toy.run_folder)["progress"]["update"] == 8
    (log,) = toy.run_folder.glob("*.log")
    assert f"Stopped by {sent.name}; the state is saved. To resume: pysimt train -C" in log.read_text()
    assert fork_training(command) == 0
    assert_same_run(whole, toy.run_folder)


def test_a_signal_at_a_numbered_checkpoint_does_not_lose_it(toy, undisturbed):
    whole, command = undisturbed
    assert fork_training(command, lambda: send_in_update(16, signal.SIGTERM)) == 128 + signal.SIGTERM
    assert list(toy.run_folder.glob("*-update16.ckpt"))
    assert fork_training(command) == 0
    assert_same_run(whole, toy.run_folder)


@pytest.mark.parametrize("validation", [1, 2])
def test_a_signal_in_validation_does_not_wait_for_its_end(toy, undisturbed, validation):
    whole, command = undisturbed
    assert fork_training(command, lambda: interrupt_validation(validation)) == 128 + signal.SIGTERM
    state = last_state(toy.run_folder)["progress"]
    assert state["validation_due"]
    assert state["validation"] == validation - 1
    assert fork_training(command) == 0
    assert_same_run(whole, toy.run_folder)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_at_once(toy, undisturbed, second):
    whole, command = undisturbed
    assert fork_training(command, lambda: send_in_update(8, signal.SIGINT, second)) == -second
    assert last_state(toy.run_folder)["progress"]["update"] == 6
    assert fork_training(command) == 0
    assert_same_run(whole, toy.run_folder)


def test_the_advice_to_go_on_never_restarts(toy):
    from argparse import Namespace

    from pysimt_sac.commands.train import command_to_go_on

    args = Namespace(config=Path("a b.conf"), suffix="s", device_id="cpu", restart=True, overrides=["train.seed:2"])
    args.verbose = args.quiet = False
    assert command_to_go_on(args) == "pysimt train -C 'a b.conf' -s s -d cpu train.seed:2"


# The real command line


def start(toy, *words):
    command = [sys.executable, "-m", "pysimt_sac", "train", "--verbose", "-C", str(toy.config), *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for(process, text):
    """Read the process's messages up to one that contains the text."""
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text!r} was never said")


@pytest.mark.slow
def test_command_line_killed_and_interrupted(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "-s", "whole", *BUSY).status == 0
    for text, sent in (("Epoch 1 - update       6", signal.SIGKILL), ("update      12", signal.SIGTERM)):
        with start(toy, *BUSY) as process:
            wait_for(process, text)
            process.send_signal(sent)
            told = process.stderr.read()
        if sent == signal.SIGKILL:
            assert process.returncode == -sent
        else:
            assert process.returncode == 128 + sent
            assert "To resume: pysimt train -C" in told
    with start(toy, *BUSY) as process:
        process.stderr.read()
    assert process.returncode == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)
