"""Runs in pysimt's loop that were stopped go on from the last whole epoch, and end as if they never had been."""

import json
from operator import itemgetter

import pytest

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from tests.hosts.engine.dying_runs import differences
from tests.hosts.pysimt.hosts import COMMAND, NEEDS_PYSIMT, start_python, train

pytestmark = NEEDS_PYSIMT

# Dies like a killed process when the loop calls a function of pysimt's for the N-th time, before or after it.
DIE = """
import os, sys
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt import mainloop, monitor
owner, name, when, number = sys.argv[1:5]
from pysimt_sac.hosts.pysimt.loop import Loop
place = {"loop": mainloop.MainLoop, "ours": Loop, "monitor": monitor.Monitor}[owner]
original, count = getattr(place, name), 0
def deadly(self, *args, **more):
    global count
    count += 1
    if when == "before" and count == int(number):
        os._exit(9)
    result = original(self, *args, **more)
    if when == "after" and count == int(number):
        os._exit(9)
    return result
setattr(place, name, deadly)
from pysimt_sac.cli import main
sys.exit(main(sys.argv[5:]))
"""
BUSY = ["train.max_epochs:4", "train.lr_decay:plateau", "train.lr_decay_patience:0", "train.lr_decay_revert:True"]
BUSY += ["train.eval_metrics:bleu,loss,chrf", "train.checkpoint_freq:7", "train.n_checkpoints:2", "model.bucket_by:src"]
BUSY += ["train.eval_filters:lower", "train.eval_zero:True", "model.translator_type:bs"]
AVERAGED = ["train.model_type:SimultaneousNMT", "model.ema_decay:0.9", "model.weight_decay:0.01"]
SAC = ["train.model_type:SACNMT", "model.critic_pretrain_updates:5", "model.support_size:6", "model.buffer_size:4"]
SAC += ["model.rollout_max_len:8", "model.actor_warmup:30", "model.gradient_dropout:True", "train.lr:0.003"]

BY_WORDS = ["train.model_type:MLENMT", "model.batch_tokens:40", "model.accumulate:3", "model.ema_decay:0.9"]


def points(folder):
    """All curves; an algorithm may name the figures of one update in another order after it was resumed."""
    (curves,) = folder.glob("*.scalars.jsonl")
    return sorted((json.loads(line) for line in curves.read_text().splitlines()), key=itemgetter("step", "name"))


def checkpoints(folder):
    """What each checkpoint holds, by its name without the run's id; links by what they point to."""
    found = {}
    for path in folder.glob("*.ckpt"):
        name = path.name.split("-r", 1)[1][5:]
        found[name] = path.readlink().name.split("-r", 1)[1][5:] if path.is_symlink() else load_checkpoint(path).weights
    return found


def assert_same_run(whole, parts):
    (expected, _), (found, _) = load_state(whole), load_state(parts)
    for part in ("progress", "weights", "optimizer", "average", "model", "random"):
        assert differences(without_ids(expected[part]), without_ids(found[part])) == [], part
    assert points(whole) == points(parts)
    assert differences(checkpoints(whole), checkpoints(parts)) == []


def without_ids(part):
    """A part of a state; the names of the last checkpoints carry the run's id."""
    return {key: value for key, value in part.items() if key != "checkpoints"}


@pytest.mark.parametrize(
    "changes", [AVERAGED, SAC, BY_WORDS], ids=["pysimt's own model with averaged weights", "SACNMT", "batches by words"]
)
def test_a_resumed_run_equals_an_undisturbed_one(toy, changes):
    changes = [*BUSY, *changes]
    whole = train("pysimt", toy, "whole", *changes)
    command = ["train", "-d", "cpu", "-C", toy.config, "-s", "parts", *changes]
    deaths = [
        ("monitor", "save_model", "after", 1),  # while validating before the first update
        ("ours", "train_batch", "before", 15),  # within the second epoch
        ("monitor", "save_models", "after", 1),  # after a validation, before the epoch's state is written
        ("monitor", "val_summary", "after", 1),
        ("loop", "train_epoch", "after", 2),
    ]
    for death in deaths:
        assert start_python(DIE, *death, *command, PYSIMT_SAC_HOST="pysimt").returncode == 9
    parts = train("pysimt", toy, "parts", *changes)
    assert_same_run(whole, parts)
    assert len(load_state(parts)[0]["progress"]["train_loss"]) == 4
    assert len(list(parts.glob("*.log"))) == 1


def test_a_signal_ends_it_with_a_status_that_says_so(toy):
    command = ["train", "-d", "cpu", "-C", toy.config, "-s", "stopped"]
    script = DIE.replace("os._exit(9)", "os.kill(os.getpid(), 15)")
    done = start_python(script, "loop", "train_batch", "before", 15, *command, PYSIMT_SAC_HOST="pysimt")
    assert done.returncode == 128 + 15
    assert "Stopped by SIGTERM; the same command resumes" in done.stderr.splitlines()[-1]
    assert len(load_state(toy.folder / "runs/toy-stopped")[0]["progress"]["train_loss"]) == 1


def test_what_pysimt_alone_cannot_run_and_an_optimiser_that_is_not_inherited(toy):
    """Approximate buckets, a process that loads data, no loss among the metrics; a rate of one's own in fine-tuning."""
    first = train("pysimt", toy, "first", "train.max_epochs:1", "train.save_optim_state:True")
    (actor,) = first.glob("*.best.bleu.ckpt")
    assert load_checkpoint(actor).optimizer is not None
    changes = [
        "model.bucket_by:src",
        "model.sampler_type:approximate",
        "train.num_workers:1",
        "train.eval_metrics:bleu",
    ]
    changes += [f"train.tensorboard_dir:{toy.folder}/board", "train.lr:0.002", "train.max_epochs:1"]
    second = train("pysimt", toy, "second", *changes, f"train.pretrained_file:{actor}")
    state, _ = load_state(second)
    assert state["optimizer"]["optimizer"]["param_groups"][0]["lr"] == 0.002
    assert list(second.glob("*.best.bleu.ckpt"))
    assert list(toy.folder.glob("board/toy-second/*/events*"))


def test_a_finished_run_stays_as_it_is_and_goes_on_if_there_is_more_to_do(toy):
    stages = [["train.max_iterations:14"], ["train.max_iterations:14"], ["train.max_epochs:2"], ["train.max_epochs:3"]]
    for more in stages:
        parts = train("pysimt", toy, "parts", "train.model_type:MLENMT", *more)
    assert_same_run(train("pysimt", toy, "whole", "train.model_type:MLENMT", "train.max_epochs:3"), parts)
    done = start_python(
        COMMAND, "train", "-C", toy.config, "-s", "parts", "train.model_type:MLENMT", PYSIMT_SAC_HOST="pysimt"
    )
    assert done.returncode == 0
    assert "is finished: 3 epochs" in done.stderr


@pytest.mark.parametrize(
    ("host", "change", "expected"),
    [
        ("pysimt", "train.lr:0.5", "train.lr: 0.01 -> 0.5"),
        ("embedded", "train.lr:0.01", "began on another host: pysimt"),
    ],
)
def test_another_configuration_or_host_is_refused(toy, host, change, expected):
    train("pysimt", toy, "run", "train.max_epochs:1")
    done = start_python(COMMAND, "train", "-d", "cpu", "-C", toy.config, "-s", "run", change, PYSIMT_SAC_HOST=host)
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    (log,) = (toy.folder / "runs/toy-run").glob("*.log")
    restarted = start_python(
        COMMAND, "train", "-d", "cpu", "-C", toy.config, "-s", "run", change, "--restart", PYSIMT_SAC_HOST=host
    )
    assert restarted.returncode == 0, restarted.stderr[-2000:]
    assert (toy.folder / "runs/toy-run/old-1" / log.name).is_file()
