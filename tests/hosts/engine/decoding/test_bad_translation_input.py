"""Whatever is wrong with what `pysimt translate` is given: one line that names it, exit status 2, nothing written."""

import re

import pytest
import torch

from pysimt_sac.core.files import LONGEST_LINE
from pysimt_sac.hosts.engine.checkpoint import OUR_TYPE


@pytest.fixture
def refused(trained_toy, pysimt, tmp_path):
    """Translate and expect to be refused, with a message that fits a pattern, and nothing written."""

    def check(pattern, *words, checkpoint=None):
        outcome = pysimt("translate", checkpoint or trained_toy.final_checkpoint, *words)
        assert outcome.status == 2, outcome
        assert outcome.error.startswith(("pysimt translate: error: ", "pysimt: error: "))
        assert re.search(pattern, outcome.error), outcome.error
        assert outcome.out == ""
        assert not [path for path in tmp_path.rglob("*") if path.suffix in (".raw", ".gs", ".tmp", ".nbest")]

    return check


WORDS = [
    ("-k 0", "-k: 0 must be at least 1"),
    ("-k many", "invalid int value"),
    ("-b 9999999999999999999", "-b: 9999999999999999999 is absurdly large"),
    ("-f bs -k 100000", r"-k: 100000 must be at most 1000 \(4 to 12 are usual\)"),
    ("-m 0", "-m: 0 must be at least 1"),
    ("-m 1000000000000", "-m: 1000000000000 must be at most 100000"),
    ("-b 0", "-b: 0 must be at least 1"),
    ("-a -1", "-a: -1.0 must be at least 0"),
    ("-a nan", "-a: nan is not a finite number"),
    ("--temperature 0", "--temperature: 0.0 must be more than 0"),
    ("--temperature inf", "--temperature: inf is not a finite number"),
    ("--top-k -1", "--top-k: -1 must be at least 0"),
    ("--seed -1", "--seed: -1 must be at least 0"),
    ("-f beam", "invalid choice: 'beam'"),
    ("-N", "n-best lists come from beam search"),
    ("-N -f bs", "n-best lists are written to files, not to standard output"),
    ("-d cuda:7", "GPU"),
    ("-s test", "-o PREFIX: missing"),
    ("-o OUT", "-o: standard input is translated to standard output, not to files .write > FILE instead"),
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
def test_arguments_that_make_no_sense_are_refused(refused, tmp_path, words, pattern):
    refused(pattern, *words.replace("OUT", str(tmp_path / "out")).split())


def test_a_folder_in_place_of_an_output_file_is_refused_before_translating(trained_toy, pysimt, tmp_path):
    (tmp_path / "out.test.gs.raw").mkdir()
    outcome = pysimt("translate", trained_toy.final_checkpoint, "-s", "val,test", "-o", tmp_path / "out")
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
def test_files_that_are_no_checkpoints_are_refused(refused, tmp_path, content, reason):
    path = tmp_path / "x.ckpt"
    path.write_bytes(content)
    refused(f"x.ckpt: {reason}", checkpoint=path)


def test_a_missing_checkpoint_and_a_folder_without_one_are_refused(refused, tmp_path):
    refused("no such checkpoint", checkpoint=tmp_path / "x.ckpt")
    refused("holds no checkpoint", checkpoint=tmp_path)
    (tmp_path / "x.best.bleu.ckpt").write_bytes(b"junk")
    refused("x.best.bleu.ckpt: is not a checkpoint, or is damaged", checkpoint=tmp_path)


def test_a_run_without_validation_translates_with_its_last_checkpoint(trained_toy, pysimt, tmp_path):
    assert pysimt("translate", trained_toy.run_folder, "-s", "test", "-o", f"{tmp_path}/").status == 0
    assert (tmp_path / "toy.test.gs").is_file()
    lone = tmp_path / "lone.ckpt"
    lone.write_bytes(trained_toy.final_checkpoint.read_bytes())
    assert pysimt("translate", lone, "-s", "test", "-o", f"{tmp_path}/").status == 0
    assert (tmp_path / "lone.test.gs").read_text() == (tmp_path / "toy.test.gs").read_text()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_training_state_is_refused_as_a_checkpoint(trained_toy, refused):
    refused("is not a checkpoint of pysimt or pysimt_sac", checkpoint=trained_toy.run_folder / "train_state.pt")


@pytest.mark.parametrize("cut", [1, 22, 5000, 40000])
def test_a_truncated_checkpoint_is_refused(trained_toy, refused, tmp_path, cut):
    path = tmp_path / "x.ckpt"
    path.write_bytes(trained_toy.final_checkpoint.read_bytes()[:-cut])
    refused("is truncated: the end of the checkpoint is missing", checkpoint=path)


def test_a_truncated_checkpoint_of_the_oldest_format_is_refused(trained_toy, refused, tmp_path):
    path = tmp_path / "x.ckpt"
    torch.save(torch.load(trained_toy.final_checkpoint, weights_only=True), path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes()[:2000])
    refused("it is truncated", checkpoint=path)


@pytest.mark.parametrize("name", ["old_format", "new_format"])
def test_python_files_that_only_the_checkpoint_names_are_not_run(trained_toy, refused, tmp_path, name):
    """Else anybody's checkpoint could run what lies beside it."""
    trace, plugin, path = tmp_path / "executed", tmp_path / f"{name}.py", tmp_path / "x.ckpt"
    plugin.write_text(f"open({str(trace)!r}, 'w').close()\n")
    content = torch.load(trained_toy.final_checkpoint, weights_only=True)
    content["opts"]["model"]["plugin_modules"] = [str(plugin)]
    content["opts"][OUR_TYPE] = "Mine"
    torch.save(content, path, _use_new_zipfile_serialization=name == "new_format")
    refused(f"its model Mine is defined in a Python file, .*add -x model.plugin_modules:{plugin}", checkpoint=path)
    assert not trace.exists()
    refused("defined in a Python file", "-x", f"model.plugin_modules:{plugin}", checkpoint=path)
    assert trace.exists()


def test_a_checkpoint_that_lacks_weights_is_refused(trained_toy, refused, tmp_path):
    content = torch.load(trained_toy.final_checkpoint, weights_only=True)
    del content["model"]["dec.emb.weight"]
    torch.save(content, tmp_path / "x.ckpt")
    refused("x.ckpt: lacks the weights dec.emb.weight", checkpoint=tmp_path / "x.ckpt")


# Standard input


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"\xef\xbb\xbfone\n", "begins with a byte-order mark"),
        (b"caf\xe9\n", "line 1 is not valid UTF-8"),
        (b"one\r\n", "line 1 has a carriage return"),
        (b"one \0 two\n", "line 1 has a NUL byte"),
        (b"one " * 100_000 + b"\n", "line 1 has 100000 words"),
        (b"o" * (LONGEST_LINE + 1), "line 1 is longer than 64 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_standard_input_that_is_no_text_is_refused(trained_toy, translate_stdin, content, pattern):
    outcome = translate_stdin(content, trained_toy.final_checkpoint)
    assert outcome.status == 2
    assert re.search(f"standard input.*{pattern}", outcome.error)
    assert outcome.out == ""


def test_lines_before_a_bad_one_are_translated(trained_toy, translate_stdin):
    outcome = translate_stdin(b"one two\n\nthree\ncaf\xe9\n", trained_toy.final_checkpoint)
    assert outcome.status == 2
    assert outcome.out.count("\n") == 3
    assert "standard input: line 4 is not valid UTF-8" in outcome.error


@pytest.mark.parametrize("words", ["-f bs -k 1000", "-f sample --top-k 1000", "-b 1000000000", "-f bs -k 2 -m 1"])
def test_extreme_values_of_the_search_work(trained_toy, translate_stdin, words):
    outcome = translate_stdin(b"one two\nthree", trained_toy.final_checkpoint, *words.split())
    assert outcome.status == 0, outcome.err
    assert outcome.out.count("\n") == 2


def test_samples_from_standard_input_do_not_depend_on_the_batches(trained_toy, translate_stdin):
    """Nor do equal lines have equal samples: each has random numbers of its own."""
    found = []
    for size in ("1", "2", "16"):
        text = b"one two three\n\n" + b"one two three\n" * 5
        outcome = translate_stdin(text, trained_toy.final_checkpoint, "-f", "sample", "--seed", "3", "-b", size)
        assert outcome.status == 0
        found.append(outcome.out.splitlines())
    assert found[0] == found[1] == found[2]
    assert found[0][1] == ""
    assert len(set(found[0])) > 2
