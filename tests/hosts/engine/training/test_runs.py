"""A run's folder: what may change between two starts, what `--restart` does, and states that are damaged."""

import os

import pytest
import torch

from pysimt_sac.hosts.engine.checkpoint import load_state
from tests.hosts.engine.dying_runs import (
    assert_same_run,
    comparable,
    die_in_update,
    differences,
    fork_training,
    last_state,
    log_lines,
    scalars,
)

# What may change, and what may not


def test_changed_keys_are_refused_by_name(toy, pysimt):
    assert pysimt("train", "-C", toy.config).status == 0
    before = {path: path.read_bytes() for path in toy.run_folder.iterdir()}
    changes = ["train.lr:0.5", "model.emb_dim:9", f"data.val_set.src:{toy.test_src}", "train.max_epochs:9"]
    outcome = pysimt("train", "-C", toy.config, *changes)
    assert outcome.status == 2
    assert "train.lr: 0.01 -> 0.5; model.emb_dim: 8 -> 9; data.val_set:" in outcome.error
    assert "max_epochs" not in outcome.error
    assert "--restart" in outcome.error
    assert {path: path.read_bytes() for path in toy.run_folder.iterdir()} == before


def test_length_logging_and_workers_may_change(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "-s", "whole", "train.max_epochs:3", "train.disp_freq:1").status == 0
    assert pysimt("train", "-C", toy.config, "train.max_iterations:7", "train.disp_freq:1").status == 0
    more = ["train.max_epochs:3", "train.disp_freq:1", "train.checkpoint_freq:4", "train.patience:9"]
    assert pysimt("train", "-C", toy.config, "-d", "cpu", *more).status == 0
    whole = toy.folder / "runs/toy-whole"
    parts = [comparable(last_state(folder)) for folder in (whole, toy.run_folder)]
    assert differences(*parts) == []
    assert scalars(whole) == scalars(toy.run_folder)


def test_a_finished_run_says_so_and_stays_as_it_is(toy, pysimt):
    assert pysimt("train", "-C", toy.config).status == 0
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in toy.run_folder.iterdir()}
    outcome = pysimt("train", "-C", toy.config)
    assert outcome.status == 0
    assert "is finished: 2 epochs done" in outcome.err
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in toy.run_folder.iterdir()}
    del before[toy.run_folder / ".lock"], after[toy.run_folder / ".lock"]
    assert after == before


def test_changed_text_is_noticed(toy, pysimt):
    assert pysimt("train", "-C", toy.config).status == 0
    for path in (toy.src, toy.val_trg):
        text = path.read_text()
        path.write_text(text.replace("four ", "five ").replace("FOUR ", "FIVE "))
        assert ": changed content of {" in pysimt("train", "-C", toy.config, "train.max_epochs:3").error
        path.write_text(text)
    assert pysimt("train", "-C", toy.config, "train.max_epochs:3").status == 0


def test_restart_moves_the_old_run_aside(toy, pysimt):
    assert pysimt("train", "-C", toy.config).status == 0
    (old_log,) = toy.run_folder.glob("*.log")
    assert pysimt("train", "-C", toy.config, "--restart", "train.lr:0.02").status == 0
    assert (toy.run_folder / "old-1" / old_log.name).exists()
    (new_log,) = toy.run_folder.glob("*.log")
    assert new_log.name != old_log.name
    assert pysimt("train", "-C", toy.config, "--restart").status == 0
    assert sorted(path.name for path in toy.run_folder.glob("old-*")) == ["old-1", "old-2"]
    assert log_lines(toy.run_folder) == log_lines(toy.run_folder / "old-1")


def test_restart_touches_nothing_if_the_new_run_cannot_begin(toy, pysimt):
    assert pysimt("train", "-C", toy.config).status == 0
    before = {path: path.read_bytes() for path in toy.run_folder.iterdir()}
    toy.trg.unlink()
    assert "no such corpus file" in pysimt("train", "-C", toy.config, "--restart").error
    assert {path: path.read_bytes() for path in toy.run_folder.iterdir()} == before


def test_one_folder_one_process(toy, pysimt):
    from pysimt_sac.hosts.engine.config.parser import read_config
    from pysimt_sac.hosts.engine.training.runs import open_run

    with open_run(read_config(toy.config)):
        outcome = pysimt("train", "-C", toy.config)
        assert outcome.status == 2
        assert "another process is training here" in outcome.error
    assert not toy.run_folder.parent.exists()
    assert pysimt("train", "-C", toy.config).status == 0


# Damaged states


@pytest.fixture
def stopped(toy, pysimt):
    """A run with a newest state after update 8 and one before it after update 4."""
    assert fork_training(["train", "-C", toy.config, "train.checkpoint_freq:4"], lambda: die_in_update(10)) < 0
    return toy


def test_a_state_cut_at_any_byte_is_recognised(stopped):
    """The last positions, where the archive's directory ends, and forty others."""
    path = stopped.run_folder / "train_state.pt"
    size = path.stat().st_size
    for cut in [*range(size - 1, size - 40, -1), *range(size - 40, 0, -size // 40), 1, 0]:
        os.truncate(path, cut)
        state, remark = load_state(stopped.run_folder)
        assert state["progress"]["update"] == 4
        assert "train_state.pt is damaged; resuming from the one before it" in remark


def test_a_flipped_bit_is_recognised(stopped):
    path = stopped.run_folder / "train_state.pt"
    state = torch.load(path, weights_only=True)
    content = bytearray(path.read_bytes())
    needle = state["weights"]["dec.emb.weight"].numpy().tobytes()[64:128]
    content[content.index(needle)] ^= 1
    path.write_bytes(content)
    assert load_state(stopped.run_folder)[0]["progress"]["update"] == 4


def test_the_previous_state_leads_to_the_same_end(stopped, pysimt):
    options = ["train.checkpoint_freq:4"]
    assert pysimt("train", "-C", stopped.config, "-s", "whole", *options).status == 0
    os.truncate(stopped.run_folder / "train_state.pt", 5000)
    outcome = pysimt("train", "-C", stopped.config, *options)
    assert "is damaged; resuming from the one before it" in outcome.err
    assert_same_run(stopped.folder / "runs/toy-whole", stopped.run_folder)


def test_only_damaged_states_are_an_error(stopped, pysimt):
    for path in stopped.run_folder.glob("train_state*"):
        os.truncate(path, 5000)
    before = {path: path.read_bytes() for path in stopped.run_folder.iterdir()}
    outcome = pysimt("train", "-C", stopped.config)
    assert outcome.status == 2
    assert "all saved states of this run are damaged (start over with --restart)" in outcome.error
    assert {path: path.read_bytes() for path in stopped.run_folder.iterdir()} == before
    assert pysimt("train", "-C", stopped.config, "--restart").status == 0


@pytest.mark.parametrize("part", ["progress", "optimizer", "random", "weights"])
def test_a_state_of_another_kind_is_refused(stopped, pysimt, part):
    for path in stopped.run_folder.glob("train_state*"):
        torch.save({**torch.load(path, weights_only=True), part: {"what": "is this"}}, path)
    outcome = pysimt("train", "-C", stopped.config)
    assert outcome.status == 2
    assert "--restart" in outcome.error or "lacks the weights" in outcome.error


def test_numbered_checkpoints_are_saved_at_validations_as_well(toy, pysimt):
    words = ["train.checkpoint_freq:5", "train.n_checkpoints:9", "train.eval_freq:5", "train.max_epochs:1"]
    assert pysimt("train", "-C", toy.config, *words).status == 0
    numbers = {path.name.rpartition("-update")[2] for path in toy.run_folder.glob("*-update*.ckpt")}
    assert numbers == {"5.ckpt", "10.ckpt"}


def test_the_last_epoch_is_validated_if_the_last_update_ends_it(toy, pysimt):
    """An epoch has ten updates."""
    words = ["train.eval_freq:0", "train.max_epochs:100"]
    assert pysimt("train", "-C", toy.config, *words, "train.max_iterations:20").status == 0
    progress = last_state(toy.run_folder)["progress"]
    assert (progress["update"], progress["epoch"], progress["validation"]) == (20, 3, 2)
    assert pysimt("train", "-C", toy.config, *words, "train.max_iterations:25").status == 0
    progress = last_state(toy.run_folder)["progress"]
    assert (progress["update"], progress["epoch"], progress["batch"], progress["validation"]) == (25, 3, 5, 2)
