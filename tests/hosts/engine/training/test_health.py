"""Losses that are not numbers, full disks, vanished files: one line, and the last state is good."""

import errno
import os
import re
import resource
import shutil
import sys

import pytest

from pysimt_sac.cli import main
from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.hosts.engine.training.trainer import Trainer
from tests.hosts.engine.dying_runs import assert_same_run, last_state

SICK = """
import torch
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.core.registry import MODELS

@MODELS.register("Sick{kind}")
class Sick(SimultaneousNMT):
    '''Falls ill at update 7.'''
    def forward(self, batch, uctr=0, ectr=0):
        out = super().forward(batch)
        if uctr == 7:
            out["loss"] = {expression}
        return out
"""
ILLNESSES = {
    "Nan": ('out["loss"] * float("nan")', "not finite at update 7: loss nan"),
    "Inf": ('out["loss"] + float("inf")', "not finite at update 7: loss inf"),
    "Gradient": ('out["loss"] + (out["loss"] * 0).sqrt()', "not finite at update 7: loss 2.* gradient norm nan"),
}


@pytest.mark.parametrize("kind", ILLNESSES)
def test_an_update_that_is_not_finite_is_noticed_at_once(toy, pysimt, kind):
    expression, message = ILLNESSES[kind]
    plugin = toy.folder / f"sick_{kind}.py"
    plugin.write_text(SICK.format(kind=kind, expression=expression))
    options = [f"model.plugin_modules:{plugin}", f"train.model_type:Sick{kind}", "train.checkpoint_freq:3"]
    outcome = pysimt("train", "-C", toy.config, *options)
    assert outcome.status == 2
    assert re.search(message, outcome.error)
    assert "a lower lr" in outcome.error
    state = last_state(toy.run_folder)
    assert state["progress"]["update"] == 6
    assert all(weight.isfinite().all() for weight in state["weights"].values())


def test_a_rate_beyond_all_measure(toy, pysimt):
    outcome = pysimt("train", "-C", toy.config, "train.lr:1e38", "train.checkpoint_freq:1")
    assert outcome.status == 2
    assert "not finite" in outcome.error
    weights = last_state(toy.run_folder)["weights"]
    assert all(weight.isfinite().all() for weight in weights.values())


def test_a_metric_that_is_no_number(toy, pysimt):
    plugin = toy.folder / "metric.py"
    plugin.write_text("from pysimt_sac.core.metrics import metric\nmetric('odd')(lambda h, r: float('nan'))\n")
    outcome = pysimt("train", "-C", toy.config, f"model.plugin_modules:{plugin}", "train.eval_metrics:odd")
    assert outcome.status == 2
    assert "the validation's ODD is nan (check that metric)" in outcome.error


def test_out_of_memory_in_an_update(toy, pysimt, monkeypatch):
    forward = SimultaneousNMT.forward

    def greedy(self, batch, uctr=0, ectr=0):
        if uctr == 5:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory: x")
        return forward(self, batch, uctr, ectr)

    monkeypatch.setattr(SimultaneousNMT, "forward", greedy)
    assert "update 5: out of memory (lower batch_size" in pysimt("train", "-C", toy.config).error
    outcome = pysimt("train", "-C", toy.config, "-s", "handled", "train.handle_oom:True")
    assert outcome.status == 0
    assert "Update 5 skipped: out of memory" in outcome.err


# Disks


@pytest.mark.parametrize("kind", ["fsync", "replace"])
def test_a_full_disk_keeps_the_last_state(toy, pysimt, monkeypatch, kind):
    options = ["train.checkpoint_freq:3"]
    assert pysimt("train", "-C", toy.config, "-s", "whole", *options).status == 0
    real, calls = getattr(os, kind), 0

    def full(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls > 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(os, kind, full)
        outcome = pysimt("train", "-C", toy.config, *options)
    assert outcome.status == 2
    assert "cannot be written: no space left on device" in outcome.error
    assert load_state(toy.run_folder)[0]["progress"]["update"] in (3, 6)
    assert not list(toy.run_folder.glob(".*.tmp"))
    assert pysimt("train", "-C", toy.config, *options).status == 0
    assert_same_run(toy.folder / "runs/toy-whole", toy.run_folder)


@pytest.mark.parametrize(("limit", "name"), [(10_000, "train_state.pt"), (3000, ".log")])
def test_a_limit_on_file_sizes(toy, pysimt, limit, name):
    """The system itself refuses to write on: in the middle of torch's own writing, and of the log."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 99
        try:
            sys.stderr = os.fdopen(writing, "w", buffering=1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            status = main(["train", "-C", str(toy.config)])
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as stream:
        told = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2, told
    last = told.splitlines()[-1]
    assert name in last
    assert "cannot be written: file too large" in last
    assert "Traceback" not in told
    assert load_state(toy.run_folder)[0] is None
    assert pysimt("train", "-C", toy.config).status == 0


def test_a_file_that_vanished_since(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_iterations:5").status == 0
    before = {path: path.read_bytes() for path in toy.run_folder.iterdir()}
    moved = toy.src.rename(toy.folder / "elsewhere")
    outcome = pysimt("train", "-C", toy.config)
    assert outcome.status == 2
    assert "train.src: no such corpus file" in outcome.error
    assert {path: path.read_bytes() for path in toy.run_folder.iterdir()} == before
    moved.rename(toy.src)
    assert pysimt("train", "-C", toy.config).status == 0


def test_a_run_folder_that_vanishes(toy, pysimt, monkeypatch):
    display = Trainer.display

    def vanish(self):
        if self.progress.update == 6:
            shutil.rmtree(self.run.folder)
            self.run.folder.parent.joinpath("toy").write_text("something else")
        display(self)

    monkeypatch.setattr(Trainer, "display", vanish)
    outcome = pysimt("train", "-C", toy.config, "train.checkpoint_freq:7")
    assert outcome.status == 2
    assert "runs/toy" in outcome.error
