"""Whatever is wrong with what `pysimt translate` is given: one line that names it, exit status 2, nothing written."""

import io
import re
import sys

import pytest
import torch

from pysimt_sac.cli import main
from tests.conftest import make_toy


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A toy with a checkpoint, shared: translating changes neither."""
    toy = make_toy(tmp_path_factory.mktemp("trained") / "toy")
    assert main(["train", "-C", str(toy.config), "train.max_epochs:1", "train.eval_freq:-1"]) == 0
    (path,) = toy.run_folder.glob("*-final.ckpt")
    return toy, path


@pytest.fixture
def refused(trained, pysimt, tmp_path):
    """Translate and expect to be refused, with a message that fits a pattern, and nothing written."""

    def check(pattern, *words, checkpoint=None):
        outcome = pysimt("translate", checkpoint or trained[1], *words)
        assert outcome.status == 2, outcome
        assert outcome.error.startswith(("pysimt translate: error: ", "pysimt: error: "))
        assert re.search(pattern, outcome.error), outcome.error
        assert outcome.out == ""
        assert not [path for path in tmp_path.rglob("*") if path.suffix in (".raw", ".gs", ".tmp", ".nbest")]

    return check


WORDS = [
    ("-k 0", "-k: 0 must be more than 0"),
    ("-k -3", "-k: -3 must be more than 0"),
    ("-k many", "invalid int value"),
    ("-k 9999999999999999999", "within reason"),
    ("-f bs -k 100000", r"-k: 100000 must be at most 1000 \(4 to 12 are usual\)"),
    ("-m 0", "-m: 0 must be more than 0"),
    ("-m 1000000000000", "-m: 1000000000000 must be at most 100000"),
    ("-b 0", "-b: 0 must be more than 0"),
    ("-a -1", "must be 0 or more"),
    ("-a nan", "must be 0 or more"),
    ("-a inf", "must be 0 or more"),
    ("--temperature 0", "must be more than 0"),
    ("--temperature nan", "must be more than 0"),
    ("--temperature inf", "must be more than 0"),
    ("--top-k -1", "must be 0 or more"),
    ("--seed -1", "must be 0 or more"),
    ("-f beam", "invalid choice: 'beam'"),
    ("-N", "n-best lists come from beam search"),
    ("-N -f bs", "n-best lists are written to files, not to standard output"),
    ("-d cuda:7", "GPU"),
    ("-s test", "-o PREFIX: missing"),
    ("-s tset -o OUT", "unknown split 'tset'.*did you mean 'test'"),
    ("-s test,tset -o OUT", "unknown split 'tset'.*did you mean 'test'"),
    ("-s , -o OUT", "',' is not a list of splits"),
    ("-s test, -o OUT", "'test,' is not a list of splits"),
    ("-S src:x -o OUT", "-S: needs the name of one split"),
    ("-s a,b -S src:x -o OUT", "-S: needs the name of one split"),
    ("-s a -S x -o OUT", "'x' is not of the form src:FILE"),
    ("-s a -S src: -o OUT", "'src:' is not of the form src:FILE"),
    ("-s a -S trg:x -o OUT", "'trg:x' is not of the form src:FILE"),
    ("-s a -S src:nowhere -o OUT", "nowhere: no such text file"),
    ("-s a -S src:/ -o OUT", "is a folder, not a text file"),
    ("-s test -o OUT -x banana", "not of the form section.key:value"),
    ("-s test -o OUT -x modle.x:1", "did you mean 'model'"),
    ("-s test -o OUT -x model.emb_dim:9", r"has a different size: \(\d+, 8\) in the file, \(\d+, 9\) in the model"),
    ("-s test -o OUT -x model.emb_dim:none", "None is not a whole number"),
    ("-s test -o OUT -x train.eval_filters:de-bpee", "unknown filter 'de-bpee'"),
    ("-s test -o OUT -x train.model_type:Nothing", "unknown model 'Nothing'"),
    ("-s test -o OUT -x vocabulary.src:nowhere", "the vocabulary file nowhere does not exist"),
    ("-s test -o OUT -x vocabulary.src:5", "the vocabulary file 5 does not exist"),
    ("-s test -o OUT -x data.test_set:5", "is not a dictionary of files|no file for 'src'"),
    ("-s test -o OUT -x data.test_set.src:none", "no file for 'src'"),
    ("-s test -o OUT -x model.plugin_modules:./no.py", "no such Python file"),
    ("-s test -o /proc/nowhere/out", "cannot create this folder"),
    ("-s test -o /dev/null/out", "cannot create this folder|cannot be read: not a directory"),
]


@pytest.mark.parametrize(("words", "pattern"), WORDS, ids=[case[0] for case in WORDS])
def test_arguments(refused, tmp_path, words, pattern):
    refused(pattern, *words.replace("OUT", str(tmp_path / "out")).split())


def test_a_folder_where_a_translation_should_go(trained, pysimt, tmp_path):
    (tmp_path / "out.test.gs.raw").mkdir()
    outcome = pysimt("translate", trained[1], "-s", "val,test", "-o", tmp_path / "out")
    assert outcome.status == 2
    assert "out.test.gs.raw: is a folder; a file was to be written here" in outcome.error
    assert not (tmp_path / "out.val.gs.raw").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"junk\n", "is not a checkpoint, or is damaged"),
        (b"PK\x03\x04 half of an archive", "is truncated"),
        (b"PK\x05\x06" + b"\0" * 18, "is not a checkpoint, or is damaged"),
    ],
)
def test_files_that_are_no_checkpoints(refused, tmp_path, content, reason):
    path = tmp_path / "x.ckpt"
    path.write_bytes(content)
    refused(f"x.ckpt: {reason}", checkpoint=path)


def test_a_missing_checkpoint_and_a_folder(refused, tmp_path):
    refused("no such checkpoint", checkpoint=tmp_path / "x.ckpt")
    refused("holds no checkpoint", checkpoint=tmp_path)
    (tmp_path / "x.best.bleu.ckpt").write_bytes(b"junk")
    refused("x.best.bleu.ckpt: is not a checkpoint, or is damaged", checkpoint=tmp_path)


def test_a_run_without_validation_has_its_last_checkpoint(trained, pysimt, tmp_path):
    assert pysimt("translate", trained[0].run_folder, "-s", "test", "-o", f"{tmp_path}/").status == 0
    assert (tmp_path / "toy.test.gs").is_file()
    lone = tmp_path / "lone.ckpt"
    lone.write_bytes(trained[1].read_bytes())
    assert pysimt("translate", lone, "-s", "test", "-o", f"{tmp_path}/").status == 0
    assert (tmp_path / "lone.test.gs").read_text() == (tmp_path / "toy.test.gs").read_text()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_training_state_is_no_checkpoint(trained, refused):
    refused("is not a checkpoint of pysimt or pysimt_sac", checkpoint=trained[0].run_folder / "train_state.pt")


@pytest.mark.parametrize("cut", [1, 21, 22, 100, 5000, 40000])
def test_a_cut_checkpoint(trained, refused, tmp_path, cut):
    path = tmp_path / "x.ckpt"
    path.write_bytes(trained[1].read_bytes()[:-cut])
    refused("is truncated: the end of the checkpoint is missing", checkpoint=path)


def test_a_cut_checkpoint_of_the_oldest_format(trained, refused, tmp_path):
    path = tmp_path / "x.ckpt"
    torch.save(torch.load(trained[1], weights_only=True), path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes()[:2000])
    refused("it is truncated", checkpoint=path)


@pytest.mark.parametrize("name", ["old_format", "new_format"])
def test_python_files_that_only_the_checkpoint_names_are_not_run(trained, refused, tmp_path, name):
    """Else anybody's checkpoint could run what lies beside it."""
    trace, plugin, path = tmp_path / "executed", tmp_path / f"{name}.py", tmp_path / "x.ckpt"
    plugin.write_text(f"open({str(trace)!r}, 'w').close()\n")
    content = torch.load(trained[1], weights_only=True)
    content["opts"]["model"]["plugin_modules"] = [str(plugin)]
    content["opts"]["train"]["model_type"] = "Mine"
    torch.save(content, path, _use_new_zipfile_serialization=name == "new_format")
    refused(f"its model Mine is defined in a Python file, .*add -x model.plugin_modules:{plugin}", checkpoint=path)
    assert not trace.exists()
    refused("defined in a Python file", "-x", f"model.plugin_modules:{plugin}", checkpoint=path)
    assert trace.exists()


def test_a_checkpoint_that_lacks_weights(trained, refused, tmp_path):
    content = torch.load(trained[1], weights_only=True)
    del content["model"]["dec.emb.weight"]
    torch.save(content, tmp_path / "x.ckpt")
    refused("x.ckpt: lacks the weights dec.emb.weight", checkpoint=tmp_path / "x.ckpt")


# Standard input


class Stdin:
    """Standard input with these bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"\xef\xbb\xbfone\n", "begins with a byte-order mark"),
        (b"caf\xe9\n", "line 1 is not valid UTF-8"),
        (b"one\r\n", "line 1 has a carriage return"),
        (b"one \0 two\n", "line 1 has a NUL byte"),
        (b"one " * 100_000 + b"\n", "line 1 has 100000 words"),
    ],
)
def test_standard_input(refused, monkeypatch, content, pattern):
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    refused(f"standard input.*{pattern}")


def test_what_came_before_a_bad_line_is_translated(trained, pysimt, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(b"one two\n\nthree\ncaf\xe9\n"))
    outcome = pysimt("translate", trained[1])
    assert outcome.status == 2
    assert outcome.out.count("\n") == 3
    assert "standard input: line 4 is not valid UTF-8" in outcome.error


@pytest.mark.parametrize("words", ["-f bs -k 1000", "-f sample --top-k 1000", "-b 1000000000", "-f bs -k 2 -m 1"])
def test_large_numbers_that_make_sense(trained, pysimt, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", Stdin(b"one two\nthree"))
    outcome = pysimt("translate", trained[1], *words.split())
    assert outcome.status == 0, outcome.err
    assert outcome.out.count("\n") == 2


def test_samples_from_standard_input_do_not_depend_on_the_batches(trained, pysimt, monkeypatch):
    """Nor do equal lines have equal samples: each has random numbers of its own."""
    found = []
    for size in ("1", "2", "16"):
        monkeypatch.setattr(sys, "stdin", Stdin(b"one two three\n\n" + b"one two three\n" * 5))
        outcome = pysimt("translate", trained[1], "-f", "sample", "--seed", "3", "-b", size)
        assert outcome.status == 0
        found.append(outcome.out.splitlines())
    assert found[0] == found[1] == found[2]
    assert found[0][1] == ""
    assert len(set(found[0])) > 2
