"""A run's folder: what may change between two starts, what `--restart` does, and states that are damaged."""

import os
import zipfile

import pytest
import torch

from pysimt_sac.core.files import atomic_write
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from pysimt_sac.hosts.engine.training.trainer import Trainer
from tests.conftest import make_toy
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


def replaced(state, place, value):
    """A copy of a state with another value at a place such as progress.best.BLEU.file; None: without it."""
    first, _, rest = place.partition(".")
    key = int(first) if first.isdecimal() else first
    if rest:
        return {**state, key: replaced(state[key], rest, value)}
    return {name: item for name, item in state.items() if name != key} if value is None else {**state, key: value}


OUTSIDE = ["/mine.ckpt", "../mine.ckpt", "a/../../mine.ckpt", "..", "mine\0.ckpt"]
WRONG = [
    ("progress", {"what": "is this"}),
    ("progress.epoch", "1"),
    ("progress.batch", -1),
    ("progress.seconds", float("inf")),
    ("progress.update", 10**30),
    ("progress.scores", {"BLEU": "12"}),
    *(("progress.checkpoints", [name]) for name in OUTSIDE),  # would be removed
    *(("progress.best.BLEU.file", name) for name in OUTSIDE),
    ("optimizer", {"what": "is this"}),
    ("optimizer.optimizer.state.0.exp_avg", None),
    ("optimizer.optimizer.state.0.exp_avg_sq", torch.zeros(2)),
    ("optimizer.optimizer.param_groups", []),
    ("optimizer.schedule.num_bad_epochs", "none"),
    ("average.n_averaged", "x"),
    ("average.average", []),
    ("random", {"what": "is this"}),
    ("random.numpy", ["MT19937", torch.zeros(624, dtype=torch.int64), 10**6, 0, 0.0]),
    ("weights", {"what": torch.zeros(2)}),
    ("journal.log", "x"),
    ("journal.scalars", -3),
    ("files", ["x"]),
    ("exp_id", ".."),
    ("config.train", []),
    ("model.stage", 3),
    ("model.first_update", "x"),
    ("model.monitor.first_entropy", "x"),
    ("model.algorithm.critics.optimizer.state.0.exp_avg", None),
    ("model.algorithm.critics.critics", [{}, {}]),
]
OFTEN = ["train.model_type:SACNMT", "train.eval_freq:2", "train.lr_decay:plateau", "model.ema_decay:0.9"]
OFTEN += ["model.critic_pretrain_updates:0"]  # so that the optimiser has a state


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A run that another one could be resumed from."""
    toy = make_toy(tmp_path_factory.mktemp("shared") / "toy")
    assert fork_training(["train", "-C", toy.config, *OFTEN, "train.max_iterations:3"]) == 0
    return toy


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_every_value_of_a_state_has_its_type_and_names_stay_in_the_folder(shared, tmp_path, pysimt, place, value):
    (tmp_path / "mine.ckpt").write_text("precious")
    (tmp_path / "toy").mkdir()
    state = torch.load(shared.run_folder / "train_state.pt", weights_only=True)
    torch.save(replaced(state, place, value), tmp_path / "toy/train_state.pt")
    outcome = pysimt("train", "-C", shared.config, *OFTEN, f"train.save_path:{tmp_path}")
    assert outcome.status == 2
    assert "--restart" in outcome.error or "lacks the weights" in outcome.error
    assert (tmp_path / "mine.ckpt").read_text() == "precious"


# Links and deleted files


@pytest.mark.parametrize("name", [".lock", "{exp_id}.log", "{exp_id}.scalars.jsonl"])
def test_links_in_a_runs_folder_are_not_followed(stopped, pysimt, name):
    precious = stopped.folder / "precious"
    precious.write_text("mine")
    link = stopped.run_folder / name.format(exp_id=last_state(stopped.run_folder)["exp_id"])
    link.unlink()
    link.symlink_to(precious)
    outcome = pysimt("train", "-C", stopped.config, "train.checkpoint_freq:4")
    assert outcome.status == 2
    assert f"{link.name}: cannot be written: it is a symbolic link" in outcome.error
    assert precious.read_text() == "mine"


def test_a_planted_temporary_name_is_not_followed(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "file"
    precious.write_text("mine")
    (tmp_path / f".file.{os.getpid()}.tmp").symlink_to(precious)
    with atomic_write(path) as stream:
        stream.write("new")
    assert (precious.read_text(), path.read_text()) == ("mine", "new")


def test_what_is_deleted_during_a_run_is_noticed_and_written_again(toy, pysimt, monkeypatch):
    assert pysimt("train", "-C", toy.config, "-s", "whole", "train.lr:1e-12").status == 0
    end_epoch = Trainer.end_epoch

    def delete_all(self):
        end_epoch(self)
        if self.progress.epoch == 3:
            for path in self.run.folder.iterdir():
                path.unlink()

    monkeypatch.setattr(Trainer, "end_epoch", delete_all)
    outcome = pysimt("train", "-C", toy.config, "train.lr:1e-12")
    assert outcome.status == 0
    for name in (".log", ".scalars.jsonl"):
        assert f"{name} has been deleted or replaced during the run; it is written again" in outcome.err
    assert "Warning: the best checkpoint has been deleted during the run; the last one is kept" in outcome.err
    assert scalars(toy.run_folder) == scalars(toy.folder / "runs/toy-whole")
    assert len(list(toy.run_folder.glob("*-final.ckpt"))) == 1


# Checkpoints


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


@pytest.fixture
def packed(toy, pysimt):
    """A checkpoint, compressed."""
    assert pysimt("train", "-C", toy.config, "train.eval_freq:-1", "train.max_iterations:1").status == 0
    (path,) = toy.run_folder.glob("*-final.ckpt")
    with zipfile.ZipFile(path) as plain, zipfile.ZipFile(toy.folder / "x.ckpt", "w", zipfile.ZIP_DEFLATED) as archive:
        for part in plain.infolist():
            archive.writestr(part.filename, plain.read(part))
    return toy.folder / "x.ckpt"


def test_compressed_checkpoints_and_weights_larger_than_their_memory_are_refused(toy, packed, pysimt):
    assert "is compressed, which no checkpoint is" in pysimt("translate", packed, "-s", "test", "-o", "x").error
    (path,) = toy.run_folder.glob("*-final.ckpt")
    content = torch.load(path, weights_only=True)
    content["model"]["dec.emb.weight"] = torch.zeros(1).expand(10**6, 10**6)
    torch.save(content, packed)
    assert "its weights are not tensors" in pysimt("translate", packed, "-s", "test", "-o", "x").error


def containing_itself():
    """A dictionary that contains itself."""
    endless = {}
    endless["more"] = endless
    return endless


def containing_much():
    """A list of lists of lists, which are written once and would take 10 TB."""
    level = [1]
    for _ in range(40):
        level = [level] * 2
    return level


@pytest.mark.parametrize("make", [containing_itself, containing_much])
@pytest.mark.parametrize("place", ["opts", "history"])
def test_checkpoints_that_unpack_without_an_end_are_refused(toy, packed, pysimt, place, make):
    (path,) = toy.run_folder.glob("*-final.ckpt")
    content = torch.load(path, weights_only=True)
    content[place]["data"] = make()
    torch.save(content, packed)
    assert "nested without an end" in pysimt("translate", packed, "-s", "test", "-o", "x").error


@pytest.mark.parametrize("counts", [["1"] * 16, [None] * 16, [{}] * 16, [1]])
def test_word_counts_of_a_checkpoint_are_numbers(toy, packed, pysimt, counts):
    (path,) = toy.run_folder.glob("*-final.ckpt")
    content = torch.load(path, weights_only=True)
    content["vocabularies"]["src"]["counts"] = counts
    torch.save(content, packed)
    assert "its vocabularies are damaged" in pysimt("translate", packed, "-s", "test", "-o", "x").error


def test_a_run_without_improvement_keeps_its_last_weights_and_translate_says_which_it_takes(toy, pysimt):
    words = ["train.eval_zero:True", "train.eval_metrics:zero", f"model.plugin_modules:{toy.folder}/zero.py"]
    metric = "from pysimt_sac.core.metrics import metric\nmetric('zero')(lambda hypotheses, references: 0.0)\n"
    (toy.folder / "zero.py").write_text(metric)
    assert pysimt("train", "-C", toy.config, *words).status == 0
    (final,) = toy.run_folder.glob("*-final.ckpt")
    command = ["translate", toy.run_folder, "-s", "test", "-o", toy.folder / "out"]
    told = pysimt(*command).err
    assert ".best.zero.ckpt: it is the starting point, because training brought no improvement; --last" in told
    assert f"Translating with {final}\n" in pysimt(*command, "--last").err
    assert load_checkpoint(final).history["uctr"] == 20
