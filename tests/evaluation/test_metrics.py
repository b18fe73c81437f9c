"""Scores of summed statistics equal sacrebleu's corpus scores, one by one and many at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation import metrics
from pysimt_sac.evaluation.metrics import BleuMetric, ChrfMetric, LengthMetric, TerMetric, sentence_scores
from pysimt_sac.evaluation.scores import by_metric, choose_metrics, score_text

PAIRS = [
    (BleuMetric(), lambda: BLEU(tokenize="none", force=True)),
    (ChrfMetric(), CHRF),
    (TerMetric(), TER),
]
sentences = st.lists(st.sampled_from(["a", "b", "cd", "."]), max_size=7).map(" ".join)


@pytest.mark.parametrize(("own", "sacrebleus"), PAIRS, ids=lambda value: getattr(value, "name", ""))
@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4))
def test_corpus_scores_equal_sacrebleus(own, sacrebleus, pairs):
    hypotheses, references = map(list, zip(*pairs, strict=True))
    expected = sacrebleus().corpus_score(hypotheses, [references]).score
    score = own.score(own.statistics([hypotheses], references).sum(axis=1))
    assert score.shape == (1,)
    assert score[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("own", "sacrebleus"), PAIRS, ids=lambda value: getattr(value, "name", ""))
def test_many_sums_at_once_give_the_scores_of_each(own, sacrebleus, references, output):
    runs = [output(seed, 0.1 * seed) for seed in range(1, 4)]
    statistics = own.statistics(runs, references)
    assert statistics.shape[:2] == (3, len(references))
    halves = np.stack([statistics[:, :150].sum(axis=1), statistics[:, 150:].sum(axis=1)])
    scores = own.score(halves)
    metric = sacrebleus()
    for half, part in enumerate((slice(0, 150), slice(150, None))):
        for number, run in enumerate(runs):
            expected = metric.corpus_score(run[part], [references[part]]).score
            assert scores[half, number] == pytest.approx(expected, abs=1e-9)
    assert own.signature == str(metric.get_signature())


def test_the_edits_of_equal_hypotheses_are_counted_once(references, output, monkeypatch):
    counted = []
    monkeypatch.setattr(metrics, "translation_edit_rate", lambda *pair: counted.append(pair) or (len(counted), 0))
    metrics.count_edits.cache_clear()
    first, second = TerMetric().statistics([output(1)[:9], output(1)[:9]], references[:9])
    assert (first == second).all()
    TerMetric().statistics([output(1)[:9]], references[:9])  # in another comparison
    assert len(counted) == 9
    metrics.count_edits.cache_clear()


def test_sentence_bleu_is_sacrebleus_with_one_added(references, output):
    lines = [*output(1, 0.4)[:50], "", "ein", "unrelated words only"]
    wanted = [*references[:50], "ein mann .", "ein", "ein mann steht ."]
    oracle = BLEU(smooth_method="add-k", smooth_value=1, tokenize="none", force=True)
    expected = [oracle.sentence_score(line, [reference]).score for line, reference in zip(lines, wanted, strict=True)]
    assert sentence_scores([lines], wanted, "bleu")[0] == pytest.approx(expected)
    assert expected[-3:] == pytest.approx([0, 100, 0])


def test_sentence_chrf_is_sacrebleus(references, output):
    lines = output(2, 0.4)
    pairs = zip(lines, references, strict=True)
    expected = [CHRF().sentence_score(line, [reference]).score for line, reference in pairs]
    assert sentence_scores([lines, references], references, "chrf")[0] == pytest.approx(expected)


def test_unknown_sentence_metrics_are_rejected():
    with pytest.raises(UserError, match="did you mean 'bleu'"):
        sentence_scores([["a"]], ["a"], "blue")


def test_length_is_words_per_reference_word():
    metric = LengthMetric()
    statistics = metric.statistics([["a b c", "d"], ["a", ""]], ["x y", "z"])
    assert metric.score(statistics.sum(axis=1)) == pytest.approx([400 / 3, 100 / 3])


def test_a_metric_is_found_by_the_start_of_its_name():
    parts = {"BLEU": 1, "METEOR (exact stem)": 2}
    assert [by_metric(name, parts) for name in ("meteor", "METEOR (exact stem)", "bleu")] == [2, 2, 1]
    with pytest.raises(UserError, match=r"there is no 'BLUE' \(did you mean 'BLEU'"):
        by_metric("BLUE", parts)


def test_the_tokeniser_is_chosen_and_named():
    hypotheses, references = ["Hello, world!"], ["Hello , world !"]
    scores = [score_text(references, hypotheses, choose_metrics(["bleu"], name).metrics) for name in ("none", "13a")]
    assert [round(each["BLEU"]) for each in scores] != [100, 100]
    assert round(scores[1]["BLEU"]) == 100
    assert "tok:13a" in scores[1].scores[0].signature
    with pytest.raises(UserError, match=r"no tokeniser '13b'.*13a"):
        choose_metrics(["bleu"], "13b")


def test_unknown_metrics_and_unknown_words():
    with pytest.raises(UserError, match="did you mean 'chrf'"):
        choose_metrics(["chfr"])
    scored = score_text(["a b c", "d"], ["a <unk> <unk>-shirt", "d"])  # after filters
    assert (scored.words, scored.unknown_words, scored.unknown_sentences) == (4, 2, 1)
    assert scored.length_ratio == 1.0
    assert [score.metric for score in scored.scores] == ["BLEU", "chrF", "TER", "length"]
