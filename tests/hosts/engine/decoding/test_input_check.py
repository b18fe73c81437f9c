"""`pysimt translate` warns once, with figures, of text that is unlike what the model has learned; and else never."""

import io
import math
import sys

import pytest

from pysimt_sac.cli import main
from pysimt_sac.core.vocabulary import SPECIAL_TOKENS, Vocabulary
from pysimt_sac.hosts.engine.decoding.input_check import InputCheck, chance_of, expected_unknown
from tests.conftest import make_toy


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A toy with a checkpoint, shared: translating changes neither."""
    toy = make_toy(tmp_path_factory.mktemp("trained") / "toy")
    assert main(["train", "-C", str(toy.config), "train.max_epochs:1", "train.eval_freq:-1"]) == 0
    return toy


@pytest.fixture
def warnings_of(trained, pysimt, monkeypatch):
    """The warnings about lines of standard input."""

    def translate(text, *more):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        outcome = pysimt("translate", trained.run_folder, *more)
        assert outcome.status == 0
        assert len(outcome.out.splitlines()) == len(text.splitlines())
        return [line for line in outcome.err.splitlines() if line.startswith("Warning")]

    return translate


def test_words_that_nobody_knows(warnings_of):
    (warning,) = warnings_of("qwe rty uiop\n")
    assert "3 of 3 words are unknown (100%" in warning
    assert "'qwe'" in warning
    assert "upper case" not in warning
    assert "punctuation" not in warning


def test_case_and_punctuation_of_a_text_that_was_not_prepared(warnings_of):
    (warning,) = warnings_of("One two three.\nFour five six.\n")
    assert "4 of 6 words are unknown (67%" in warning
    assert "2 words have upper case, the vocabulary has none, e.g. 'One'" in warning
    assert "2 words end in punctuation, e.g. 'three.', not 'three .'" in warning


@pytest.mark.parametrize("text", ["one two three\n", "one two three four zilch\n", "one\n\n\ntwo\n"])
def test_ordinary_text_is_translated_without_a_word(warnings_of, text):
    assert warnings_of(text) == []


def test_one_warning_however_many_lines(warnings_of):
    assert len(warnings_of("Qwe rty.\n" * 50, "-b", "4")) == 1


def test_splits_are_checked_too(trained, pysimt, tmp_path):
    source = tmp_path / "new.src"
    source.write_text(trained.test_src.read_text().title())
    outcome = pysimt("translate", trained.run_folder, "-s", "new", "-S", f"src:{source}", "-o", tmp_path / "out")
    assert outcome.status == 0
    assert outcome.err.count("Warning: the source is unlike") == 1
    assert "Warning" not in pysimt("translate", trained.run_folder, "-s", "test,val", "-o", tmp_path / "out").err


# What the vocabulary tells


def vocabulary(counts):
    return Vocabulary([*SPECIAL_TOKENS, *counts], [0, 0, 0, 0, *counts.values()])


def test_a_model_of_pieces_is_given_words():
    check = InputCheck(vocabulary({"un@@": 9, "known": 9, "the": 9}))
    assert "the source has none" in check(["unknown words in the text"])
    check = InputCheck(vocabulary({"un@@": 9, "known": 9, "the": 9}))
    assert "the source has none" not in check(["un@@ known words in the nowhere text x y z"])


def test_upper_case_that_the_vocabulary_has_is_no_news():
    check = InputCheck(vocabulary({"Berlin": 5, "is": 5, "large": 5}))
    assert check(["Berlin is large Paris"]) == ""


def test_new_words_are_as_many_as_those_seen_once():
    assert expected_unknown([1, 1, 2, 16]) == 2 / 20
    assert expected_unknown([0, 0]) == expected_unknown([60, 60, 70]) == 0


def test_words_that_a_vocabulary_leaves_out_are_estimated_from_the_rarest_it_has():
    """By Zipf's law 300 words are seen once if 100 are seen twice: new are 300, left out 300, of 1500 words."""
    assert expected_unknown([2] * 100 + [1000]) == pytest.approx(600 / 1500)


@pytest.mark.parametrize(("n_unknown", "n_words", "share"), [(3, 3, 0.05), (2, 3, 0.05), (40, 500, 0.05), (9, 9, 0.3)])
def test_the_chance_is_the_binomial_distributions(n_unknown, n_words, share):
    expected = sum(
        math.comb(n_words, found) * share**found * (1 - share) ** (n_words - found)
        for found in range(n_unknown, n_words + 1)
    )
    assert chance_of(n_unknown, n_words, share) == pytest.approx(expected, rel=1e-4)
