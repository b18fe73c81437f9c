"""Scores of single sentences, against sacrebleu's own."""

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.scoring.sentences import sentence_scores


def test_bleu_is_sacrebleus_with_one_added(references, output):
    lines = [*output(1, 0.4)[:50], "", "ein", "unrelated words only"]
    wanted = [*references[:50], "ein mann .", "ein", "ein mann steht ."]
    oracle = BLEU(smooth_method="add-k", smooth_value=1, tokenize="none", force=True)
    expected = [oracle.sentence_score(line, [reference]).score for line, reference in zip(lines, wanted, strict=True)]
    assert sentence_scores([lines], wanted, "bleu")[0] == pytest.approx(expected)
    assert expected[-3:] == pytest.approx([0, 100, 0])


def test_chrf_is_sacrebleus(references, output):
    lines = output(2, 0.4)
    oracle = CHRF()
    expected = [
        oracle.sentence_score(line, [reference]).score for line, reference in zip(lines, references, strict=True)
    ]
    assert sentence_scores([lines, references], references, "chrf")[0] == pytest.approx(expected)


def test_an_unknown_measure_is_refused():
    with pytest.raises(UserError, match="did you mean 'bleu'"):
        sentence_scores([["a"]], ["a"], "blue")
