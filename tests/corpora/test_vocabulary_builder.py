"""Vocabularies: counts, order and pysimt's file format."""

import json
from pathlib import Path

import pytest

from pysimt_sac.cli import main
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_json, vocabulary_path


def test_frequent_words_come_first_and_equals_as_they_appeared():
    counts = count_words(["b a", "c a", "d"])
    assert list(keep_frequent(counts).items()) == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]


def test_limits_and_special_tokens_leave_words_out():
    counts = count_words(["a a a b b c", "<unk> <unk> <unk> <unk>"])
    assert keep_frequent(counts, min_frequency=2) == {"a": 3, "b": 2}
    assert keep_frequent(counts, max_words=1) == {"a": 3}


def test_the_file_is_what_pysimt_reads():
    expected = '{\n  "<pad>": "0 0",\n  "<bos>": "1 0",\n  "<eos>": "2 0",\n  "<unk>": "3 0",\n  "ä": "4 2"\n}'
    assert vocabulary_json({"ä": 2}) == expected
    assert json.loads(vocabulary_json({"ä": 2}, with_special_tokens=False)) == {"ä": "0 2"}


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ((0, 0), "train.lc.norm.tok.vocab.en"),
        ((3, 0), "train.lc.norm.tok-min3.vocab.en"),
        ((3, 9), "train.lc.norm.tok-min3-max9tokens.vocab.en"),
    ],
)
def test_vocabularies_are_named_as_by_pysimt(limits, name):
    assert vocabulary_path(Path("out"), Path("in/train.lc.norm.tok.en"), *limits) == Path("out") / name
    assert vocabulary_path(Path("out"), Path("in/train.lc.norm.tok.en.gz"), *limits) == Path("out") / name


def test_the_command_writes_one_vocabulary_per_file(tmp_path, capsys):
    (tmp_path / "train.en").write_text("a b a\n")
    (tmp_path / "train.de").write_text("x\n")
    files = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    assert main(["build-vocab", *files, "-o", str(tmp_path / "out"), "-m", "2"]) == 0
    assert "1 of 2 words" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/train-min2.vocab.en").read_text())["a"] == "4 2"
    assert len(json.loads((tmp_path / "out/train-min2.vocab.de").read_text())) == 4


def test_the_command_joins_files_in_a_single_vocabulary_without_special_tokens(tmp_path):
    (tmp_path / "a.en").write_text("x y\n")
    (tmp_path / "b.en").write_text("z y\n")
    files = [str(tmp_path / "a.en"), str(tmp_path / "b.en")]
    assert main(["build-vocab", *files, "-o", str(tmp_path), "-s", "all.json", "-x", "-M", "2"]) == 0
    assert json.loads((tmp_path / "all.json").read_text()) == {"y": "0 2", "x": "1 1"}


def test_the_command_writes_nothing_when_a_file_is_missing_or_names_clash(tmp_path, capsys):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.en").write_text("a\n")
    out = str(tmp_path / "out")
    assert main(["build-vocab", str(tmp_path / "one/train.en"), str(tmp_path / "missing.en"), "-o", out]) == 2
    assert "missing.en: no such text file" in capsys.readouterr().err
    same = [str(tmp_path / "one/train.en"), str(tmp_path / "two/train.en")]
    assert main(["build-vocab", *same, "-o", out]) == 2
    assert "would be written twice" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["-1", "many"])
def test_the_command_refuses_senseless_limits(value, capsys):
    with pytest.raises(SystemExit):
        main(["build-vocab", "x", f"-m={value}"])
    assert "is not a whole number of at least 0" in capsys.readouterr().err


@pytest.mark.parametrize("pair", ["en-de", "en-fr"])
def test_words_and_counts_agree_with_the_authors(research_data, pair):
    text = f"train.lc.norm.tok.bpe.{pair[3:]}"
    folder = research_data / "data/multi30k/paper" / pair
    words = keep_frequent(count_words((folder / text).read_text(encoding="utf-8").splitlines()))
    theirs = json.loads(vocabulary_path(folder, Path(text)).read_text(encoding="utf-8"))
    assert {word: int(entry.split()[1]) for word, entry in list(theirs.items())[4:]} == words
