"""`pysimt translate` warns once, with figures, of text that is unlike what the model has learned; and else never."""

import math

import pytest

from pysimt_sac.core.vocabulary import SPECIAL_TOKENS, Vocabulary
from pysimt_sac.hosts.engine.decoding.input_check import InputCheck, chance_of, expected_unknown


@pytest.fixture
def warnings_of(trained_toy, translate_stdin):
    """The warnings about lines of standard input."""

    def translate(text, *more):
        outcome = translate_stdin(text.encode(), trained_toy.run_folder, *more)
        assert outcome.status == 0
        assert len(outcome.out.splitlines()) == len(text.splitlines())
        return [line for line in outcome.err.splitlines() if line.startswith("Warning")]

    return translate


def test_unknown_words_cause_a_warning_with_figures(warnings_of):
    (warning,) = warnings_of("qwe rty uiop\n")
    assert "3 of 3 words are unknown (100%" in warning
    assert "'qwe'" in warning
    assert "upper case" not in warning
    assert "punctuation" not in warning


def test_upper_case_and_punctuation_that_training_lacked_are_named(warnings_of):
    (warning,) = warnings_of("One two three.\nFour five six.\n")
    assert "4 of 6 words are unknown (67%" in warning
    assert "2 words have upper case, the vocabulary has none, e.g. 'One'" in warning
    assert "2 words end in punctuation, e.g. 'three.', not 'three .'" in warning


@pytest.mark.parametrize("text", ["one two three\n", "one two three four zilch\n", "one\n\n\ntwo\n"])
def test_ordinary_text_causes_no_warning(warnings_of, text):
    assert warnings_of(text) == []


def test_there_is_one_warning_however_many_lines(warnings_of):
    assert len(warnings_of("Qwe rty.\n" * 50, "-b", "4")) == 1


def test_splits_are_checked_too(trained_toy, pysimt, tmp_path):
    source = tmp_path / "new.src"
    source.write_text(trained_toy.test_src.read_text().title())
    outcome = pysimt("translate", trained_toy.run_folder, "-s", "new", "-S", f"src:{source}", "-o", tmp_path / "out")
    assert outcome.status == 0
    assert outcome.err.count("Warning: the source is unlike") == 1
    assert "Warning" not in pysimt("translate", trained_toy.run_folder, "-s", "test,val", "-o", tmp_path / "out").err


# What the vocabulary tells


def vocabulary(counts):
    return Vocabulary([*SPECIAL_TOKENS, *counts], [0, 0, 0, 0, *counts.values()])


def test_words_given_to_a_model_of_subwords_are_noticed():
    check = InputCheck(vocabulary({"un@@": 9, "known": 9, "the": 9}))
    assert "the source has none" in check(["unknown words in the text"])
    check = InputCheck(vocabulary({"un@@": 9, "known": 9, "the": 9}))
    assert "the source has none" not in check(["un@@ known words in the nowhere text x y z"])


def test_upper_case_that_the_vocabulary_has_causes_no_warning():
    check = InputCheck(vocabulary({"Berlin": 5, "is": 5, "large": 5}))
    assert check(["Berlin is large Paris"]) == ""


def test_as_many_new_words_are_expected_as_were_seen_once():
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
