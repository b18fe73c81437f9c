"""Runs survive moving: they go on where their text has the same content, and translate where it is found again."""

import shutil
from pathlib import PurePosixPath

import pytest

from pysimt_sac.hosts.engine.data.moved_files import content_crc, find_under, relocated, same_value
from tests.hosts.engine.dying_runs import comparable, differences, last_state


@pytest.fixture
def moved(toy, pysimt):
    """A run of one epoch and a bit, in a folder that was copied elsewhere, and the old one is gone."""
    assert pysimt("train", "-C", toy.config, "train.max_iterations:13").status == 0
    return move(toy.folder, toy.folder.parent / "elsewhere" / "corpus")


def move(old, new):
    shutil.copytree(old, new, symlinks=True)
    config = new / "toy.conf"
    config.write_text(config.read_text().replace(str(old), str(new)))
    shutil.rmtree(old)
    return new


def test_a_run_resumes_in_a_copied_folder(toy, pysimt, moved):
    outcome = pysimt("train", "-C", moved / "toy.conf", "train.max_epochs:3")
    assert outcome.status == 0, outcome.err
    assert pysimt("train", "-C", moved / "toy.conf", "-s", "whole", "train.max_epochs:3").status == 0
    parts = [comparable(last_state(moved / "runs" / name)) for name in ("toy-whole", "toy")]
    assert differences(*parts) == []
    again = move(moved, moved.parent / "third")
    outcome = pysimt("train", "-C", again / "toy.conf", "train.max_epochs:4")
    assert outcome.status == 0, outcome.err


@pytest.mark.parametrize("name", ["train.src", "val.trg", "vocab.src"])
def test_a_run_does_not_resume_with_other_content(pysimt, moved, name):
    path = moved / name
    path.write_text(path.read_text().replace("four", "vier").replace("FOUR", "VIER"))
    outcome = pysimt("train", "-C", moved / "toy.conf")
    assert outcome.status == 2
    section = {"train.src": "data.train_set", "val.trg": "data.val_set", "vocab.src": "vocabulary.src"}[name]
    assert f"another configuration was trained here; changed: {section}: " in outcome.error


def test_a_file_under_another_name_is_still_the_same_file(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_iterations:5").status == 0
    renamed = toy.val_src.rename(toy.folder / "validation.en")
    assert pysimt("train", "-C", toy.config, f"data.val_set.src:{renamed}").status == 0


def test_a_run_resumes_without_the_actor_it_started_from(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "-s", "actor", "train.max_epochs:1").status == 0
    actor, place = toy.folder / "runs/toy-actor", toy.folder / "other/toy-actor"
    assert pysimt("train", "-C", toy.config, f"train.pretrained_file:{actor}", "train.max_epochs:1").status == 0
    place.parent.mkdir()
    actor.rename(place)
    assert pysimt("train", "-C", toy.config, f"train.pretrained_file:{place}").status == 0
    shutil.rmtree(place)
    assert pysimt("train", "-C", toy.config, f"train.pretrained_file:{place}", "train.max_epochs:3").status == 0
    outcome = pysimt("train", "-C", toy.config, f"train.pretrained_file:{toy.folder}/runs/other")
    assert "changed: train.pretrained_file" in outcome.error


def test_a_file_that_has_changed_in_its_place_is_another_file(toy, pysimt):
    """Also where training would not notice: a word of a reference that is not in the vocabulary."""
    toy.val_trg.write_text(toy.val_trg.read_text().replace("FOUR", "unheard-of", 1))
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1").status == 0
    toy.val_trg.write_text(toy.val_trg.read_text().replace("unheard-of", "never-seen", 1))
    outcome = pysimt("train", "-C", toy.config, "train.max_epochs:2")
    assert outcome.status == 2
    assert "another configuration was trained here; changed: data.val_set: changed content of " in outcome.error


def test_files_without_a_known_checksum_are_compared_by_name(toy, pysimt):
    known = {str(toy.src): content_crc(str(toy.src))}
    assert same_value(str(toy.src), "/elsewhere/train.src", {})
    assert not same_value(str(toy.src), str(toy.trg), {})
    assert not same_value(str(toy.src), str(toy.trg), known)
    assert same_value({"a": [str(toy.src), 1]}, {"a": ["/gone/train.src", 1]}, known)
    assert not same_value({"a": 1}, {"b": 1}, known)


# Translating


def test_splits_are_found_below_a_folder(pysimt, moved):
    run, out = moved / "runs/toy", moved / "out"
    outcome = pysimt("translate", run, "-s", "test", "-o", out)
    assert outcome.status == 2
    assert "test.src: no such corpus file" in outcome.error
    assert "--data FOLDER or -x data.test_set.src:FILE" in outcome.error
    assert pysimt("translate", run, "-s", "test", "-o", out, "--data", moved).status == 0
    lines = (moved / "out.test.gs").read_text()
    assert len(lines.splitlines()) == 6
    assert pysimt("translate", run, "-s", "test", "-o", out, "-x", f"data.test_set.src:{moved}/test.src").status == 0
    assert (
        pysimt("translate", run, "-s", "test", "-o", out, "-x", f"data.test_set:{{'src':'{moved}/test.src'}}").status
        == 0
    )
    assert (moved / "out.test.gs").read_text() == lines


def test_a_data_folder_that_is_missing_or_has_other_files_is_refused(pysimt, moved):
    words = ["translate", moved / "runs/toy", "-s", "test", "-o", moved / "out", "--data"]
    assert "nowhere: no such folder" in pysimt(*words, moved / "nowhere").error
    assert "no such corpus file" in pysimt(*words, moved / "runs").error


def test_the_file_that_shares_the_longest_path_is_found(tmp_path):
    for name in ("test.en", "demo/test.en", "other/test.en", "refs/val.1.de"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_under(tmp_path, "/elsewhere/data/demo/test.en") == tmp_path / "demo/test.en"
    assert find_under(tmp_path, "/elsewhere/data/toy/test.en") == tmp_path / "test.en"
    assert find_under(tmp_path, "data/refs/val.*.de") == tmp_path / "refs/val.*.de"
    assert find_under(tmp_path, "/elsewhere/train.en") is None


def test_path_objects_in_pysimts_checkpoints_are_found_too(tmp_path):
    """They are loaded as such, not as strings."""
    (tmp_path / "test.en").touch()
    options = {"data": {"test_set": {"src": PurePosixPath("/gone/test.en")}}, "vocabulary": {}}
    assert relocated(options, tmp_path)["data"] == {"test_set": {"src": str(tmp_path / "test.en")}}
