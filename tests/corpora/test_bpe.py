"""Learning BPE: small cases by hand, and the authors' codes and text."""

import pytest

from pysimt_sac.core.files import read_lines
from pysimt_sac.corpora.language_pairs import learn_codes, write_units
from pysimt_sac.text.subwords import Segmentation, make_segmenter, read_segmentation
from tests.text.subword_models import CODES


def test_units_are_counted_in_the_training_text(tmp_path):
    text, codes, units = (tmp_path / name for name in ("text", "codes", "units"))
    text.write_text("low lower\nlow\n")
    codes.write_text(CODES)
    write_units(text, codes, units)
    assert units.read_text() == "low 2\nlow@@ 1\ne@@ 1\nr 1\n"


def test_characters_count_as_units_when_learning(tmp_path, capsys):
    text, codes = tmp_path / "text", tmp_path / "codes"
    text.write_text("abab abab\n")
    learn_codes([text], 5, codes)  # a, b and final b leave 2 merges; among equals the last wins
    assert codes.read_text() == "#version: 0.2\nb a\nba b</w>\n"
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en-de", "en-fr"])
def test_the_authors_bpe_text_is_reproduced(research_data, pair):
    folder, target = research_data / "data/multi30k/paper" / pair, pair.split("-")[1]
    named = Segmentation("bpe", "bpe.model", f"bpe.vocab.{target}", threshold=2)
    ours = make_segmenter(read_segmentation(named, folder, folder), folder)(
        read_lines(folder / f"train.lc.norm.tok.{target}")
    )
    assert len(ours) == 29000
    assert ours == read_lines(folder / f"train.lc.norm.tok.bpe.{target}")


@pytest.mark.slow
def test_the_authors_codes_are_reproduced(research_data, tmp_path):
    folder = research_data / "data/multi30k/paper/en-de"
    learn_codes([folder / "train.lc.norm.tok.en", folder / "train.lc.norm.tok.de"], 10000, tmp_path / "codes")
    assert (tmp_path / "codes").read_bytes() == (folder / "bpe.model").read_bytes()
