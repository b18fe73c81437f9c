"""`pysimt-sac average`: the mean of checkpoints, as a checkpoint that everything reads."""

import re
import shutil

import pytest
import torch

from pysimt_sac.cli import main, main_sac
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.conftest import make_toy


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with two numbered checkpoints of a model with tied embeddings."""
    toy = make_toy(tmp_path_factory.mktemp("average") / "toy")
    words = ["train.checkpoint_freq:5", "train.n_checkpoints:3", "train.eval_freq:-1", "model.tied_emb:2way"]
    assert main(["train", "-C", str(toy.config), *words, "train.max_epochs:1"]) == 0
    return toy, sorted(toy.run_folder.glob("*-update*.ckpt"))


def average(capsys, *words):
    """The exit status, and the one line that says why."""
    capsys.readouterr()
    status = main_sac(["average", *map(str, words)])
    return status, capsys.readouterr().err


def test_a_checkpoint_and_its_link_are_not_two(trained, tmp_path, capsys):
    _, (path, _) = trained
    link = tmp_path / "link.ckpt"
    link.symlink_to(path)
    status, error = average(capsys, path, link, "-o", tmp_path / "mean.ckpt")
    assert status == 2
    assert f"{link}: the same checkpoint is given twice, perhaps once through a link" in error


def test_the_weights_are_the_mean_and_the_rest_is_the_first_ones(trained, tmp_path, capsys):
    _, paths = trained
    out = tmp_path / "new/mean.ckpt"
    assert average(capsys, *paths, "-o", out)[0] == 0
    first, second, mean = (load_checkpoint(path) for path in (*paths, out))
    assert first.weights.keys() == mean.weights.keys()
    for name, weight in mean.weights.items():
        expected = (first.weights[name].double() + second.weights[name].double()) / 2
        assert torch.equal(weight, expected.float())
    assert mean.history["averaged"] == [path.name for path in paths]
    assert mean.history["uctr"] == first.history["uctr"]
    assert mean.options == first.options
    assert mean.vocabularies["trg"].tokens == first.vocabularies["trg"].tokens
    tied = [mean.weights[name].data_ptr() for name in ("dec.emb.weight", "dec.out2prob.weight")]
    assert tied[0] == tied[1]


def test_it_translates_and_a_checkpoint_with_itself_is_itself(trained, tmp_path, capsys):
    _, (path, _) = trained
    copy, out = tmp_path / "copy.ckpt", tmp_path / "mean.ckpt"
    shutil.copy(path, copy)
    assert average(capsys, path, copy, "-o", out)[0] == 0
    texts = []
    for checkpoint in (path, out):
        assert main(["translate", "-s", "val", "-o", str(tmp_path / "x"), str(checkpoint)]) == 0
        texts.append((tmp_path / "x.val.gs.raw").read_text())
    assert texts[0] == texts[1] != ""


def test_checkpoints_as_pysimt_writes_them(trained, tmp_path, capsys):
    """Without vocabularies, and with a history that is no plain dictionary of numbers."""
    _, paths = trained
    theirs = []
    for path in paths:
        loaded = load_checkpoint(path)
        theirs.append(tmp_path / path.name)
        torch.save({"opts": loaded.options, "model": loaded.weights, "history": {"uctr": 1}}, theirs[-1])
    assert average(capsys, *theirs, "-o", tmp_path / "mean.ckpt")[0] == 0
    content = torch.load(tmp_path / "mean.ckpt", weights_only=True)
    assert set(content) == {"opts", "model", "history"}
    assert content["history"] == {"uctr": 1, "averaged": [path.name for path in paths]}


def changed(path, place, change):
    """A copy of a checkpoint with something else in it."""
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, place)
    return place


def drop(content):
    del content["model"]["dec.dec0.bias_ih"]


def resize(content):
    content["model"]["dec.dec0.bias_ih"] = torch.zeros(3)


def rename(content):
    content["vocabularies"]["trg"]["tokens"][5] = "OTHER"


def spoil(content):
    content["model"]["dec.dec0.bias_ih"][0] = float("nan")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, "its weights differ from .*: dec.dec0.bias_ih is in only one of them"),
        (resize, r"dec.dec0.bias_ih differs in size from .*: \(3,\), not \(48,\)"),
        (rename, "its vocabularies differ from"),
        (spoil, "dec.dec0.bias_ih has values that are not finite numbers"),
    ],
)
def test_what_has_no_mean_is_refused_and_nothing_is_written(trained, tmp_path, capsys, change, message):
    _, paths = trained
    other = changed(paths[1], tmp_path / "other.ckpt", change)
    status, told = average(capsys, paths[0], other, "-o", tmp_path / "mean.ckpt")
    assert status == 2
    assert len(told.splitlines()) == 1
    assert "pysimt-sac average: error: " in told
    assert re.search(message, told), told
    assert not (tmp_path / "mean.ckpt").exists()


def test_an_input_is_not_overwritten_not_even_through_a_link(trained, tmp_path, capsys):
    _, paths = trained
    before = paths[0].read_bytes()
    link = tmp_path / "link.ckpt"
    link.symlink_to(paths[0])
    for out in (paths[0], link):
        status, told = average(capsys, *paths, "-o", out)
        assert status == 2
        assert "is one of the inputs and would be overwritten" in told
    assert paths[0].read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [(["FIRST"], "cannot average a single checkpoint"), (["FIRST", "none.ckpt"], "none.ckpt: no such checkpoint")],
)
def test_too_few(trained, tmp_path, capsys, words, message):
    given = [trained[1][0] if word == "FIRST" else word for word in words]
    status, told = average(capsys, *given, "-o", tmp_path / "mean.ckpt")
    assert status == 2
    assert message in told
