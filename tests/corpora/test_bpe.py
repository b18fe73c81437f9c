"""BPE: small cases by hand, bad files, and the authors' codes and text."""

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.corpora.bpe import Segmenter, learn_codes, read_codes, read_units, write_units


@pytest.fixture
def codes(tmp_path):
    """`low` is a unit at the end of a word and within one."""
    path = tmp_path / "codes"
    path.write_text("#version: 0.2\nl o\nlo w</w>\nlo w\n")
    return path


def test_units_are_marked_and_rare_ones_split_again(codes, tmp_path):
    assert Segmenter.read(codes)(["low lower"]) == ["low low@@ e@@ r"]
    units = tmp_path / "units"
    units.write_text("low 5\nlow@@ 1\nlo@@ 2\nw@@ 2\ne@@ 2\nr 2\n")
    assert Segmenter.read(codes, units, threshold=2)(["low lower"]) == ["low lo@@ w@@ e@@ r"]
    assert Segmenter.read(codes, units, threshold=0)(["lower"]) == ["low@@ e@@ r"]


def test_units_are_counted_in_the_training_text(codes, tmp_path):
    text, units = tmp_path / "text", tmp_path / "units"
    text.write_text("low lower\nlow\n")
    write_units(text, codes, units)
    assert units.read_text() == "low 2\nlow@@ 1\ne@@ 1\nr 1\n"
    assert read_units(units, threshold=2) == {"low"}


def test_characters_count_as_units_when_learning(tmp_path, capsys):
    text, codes = tmp_path / "text", tmp_path / "codes"
    text.write_text("abab abab\n")
    learn_codes([text], 5, codes)  # a, b and final b leave 2 merges; among equals the last wins
    assert codes.read_text() == "#version: 0.2\nb a\nba b</w>\n"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("text", "line"), [("#version: 0.2\na b\na b c\n", 3), ("a\n", 1)])
def test_files_that_are_no_codes_are_named(tmp_path, text, line):
    path = tmp_path / "codes"
    path.write_text(text)
    with pytest.raises(UserError, match=f"line {line} is not a pair"):
        read_codes(path)


def test_files_that_are_no_vocabulary_are_named(tmp_path):
    path = tmp_path / "units"
    path.write_text("a 1\nb\n")
    with pytest.raises(UserError, match="line 2 is not a unit"):
        read_units(path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en-de", "en-fr"])
def test_the_authors_bpe_comes_out_on_all_lines(shared, pair):
    folder, target = shared / "multi30k/paper" / pair, pair.split("-")[1]
    segment = Segmenter.read(folder / "bpe.model", folder / f"bpe.vocab.{target}", threshold=2)
    ours = segment(read_lines(folder / f"train.lc.norm.tok.{target}"))
    assert len(ours) == 29000
    assert ours == read_lines(folder / f"train.lc.norm.tok.bpe.{target}")


@pytest.mark.slow
def test_the_authors_codes_come_out_of_their_text(shared, tmp_path):
    folder = shared / "multi30k/paper/en-de"
    learn_codes([folder / "train.lc.norm.tok.en", folder / "train.lc.norm.tok.de"], 10000, tmp_path / "codes")
    assert (tmp_path / "codes").read_bytes() == (folder / "bpe.model").read_bytes()
