"""Mistakes with files are caught before they become numbers."""

import re

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.texts import NamedText, check_pair, check_runs, check_texts, read_text, short_names


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def texts(hypothesis, reference):
    return NamedText("ref", tuple(reference)), NamedText("hyp", tuple(hypothesis))


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_an_empty_hypothesis_is_rejected(tmp_path, lines):
    with pytest.raises(UserError, match="this hypothesis is empty"):
        read_text(write(tmp_path / "out", lines))


def test_empty_lines_are_counted():
    assert check_pair(*texts(["a b", "", "c", ""], ["a b", "c", "d", "e"])) == [
        "hyp: 2 lines are empty in this hypothesis, first line 2"
    ]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "message"),
    [
        ("ein mo@@ tor .", "ein motor .", r"hyp: 1 line has BPE units.*sed"),
        ("der mo@@", "der motor", "BPE units"),
        ("ein motor .", "ein mo@@ tor .", r"ref: 1 line has BPE units"),
        ("▁ein ▁mo tor", "ein motor .", "SentencePiece"),
        ("blau @-@ weiß", "blau-weiß", "split hyphens"),
        ("l&apos; eau", "l' eau", "escaped characters"),
        ("Ein Motor .", "ein motor .", "capital letters"),
    ],
)
def test_different_preprocessing_is_a_warning(hypothesis, reference, message):
    (warning,) = check_pair(*texts([hypothesis, "x y"], [reference, "x z"]))
    assert re.search(message, warning)


def test_the_same_preprocessing_is_no_warning():
    assert check_pair(*texts(["ein mo@@ tor läuft", "l&apos; eau"], ["der mo@@ tor läuft", "d&apos; eau"])) == []


def test_swapped_files_are_a_warning(tmp_path):
    (warning,) = check_pair(*texts(["a b", "c d"], ["a <unk>", "c e"]))
    assert "the reference has <unk>" in warning
    (warning,) = check_pair(*texts(["a b"], ["a b"]))
    assert "is identical to the reference" in warning

    translated = read_text(write(tmp_path / "mle.test.beam6", ["a b"]), "reference")
    (warning,) = check_texts(translated, [NamedText("hyp", ("a c",))])
    assert "the name of a system's output" in warning


def test_the_same_run_twice_is_a_warning():
    one, same, other = NamedText("one", ("a",)), NamedText("same", ("a",)), NamedText("other", ("b",))
    assert check_runs("MLE", [one, other]) == []
    assert check_runs("MLE", [one, other, same]) == ["same: is identical to one, another run of 'MLE'"]


def test_names_are_file_names_if_these_are_unique(tmp_path):
    assert short_names([tmp_path / "a" / "x", tmp_path / "b" / "y"]) == ["x", "y"]
    same = [tmp_path / "a" / "x", tmp_path / "b" / "x"]
    assert short_names(same) == [str(path) for path in same]
