"""Scores of summed statistics equal sacrebleu's corpus scores, one by one and many at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.scoring.metrics import BleuMetric, ChrfMetric, LengthMetric, TerMetric
from pysimt_sac.evaluation.scoring.scores import MetricScore, by_metric, choose_metrics, score_text

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


def test_length_is_words_per_reference_word():
    metric = LengthMetric()
    statistics = metric.statistics([["a b c", "d"], ["a", ""]], ["x y", "z"])
    assert metric.score(statistics.sum(axis=1)) == pytest.approx([400 / 3, 100 / 3])


def test_a_metric_is_found_by_the_start_of_its_name():
    parts = [MetricScore(name, 1.0, True, "") for name in ("BLEU", "METEOR (exact stem)")]
    assert by_metric("meteor", parts) is by_metric("METEOR (exact stem)", parts) is parts[1]
    assert by_metric("bleu", parts) is parts[0]
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
