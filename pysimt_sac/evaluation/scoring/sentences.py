"""Scores of single sentences, to tell which ones a system improved. Called by the analyses and the report.

Sentence BLEU adds 1 to matches and totals of all orders but the first, so that a short sentence without a matching
4-gram is not simply 0; it equals sacrebleu's `add-k` smoothing with 1. A corpus is scored by `scores`, not by means of
these.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.errors import UserError, did_you_mean
from pysimt_sac.evaluation.scoring.metrics import NGRAM_ORDER, BleuMetric, ChrfMetric, FloatArray, Hypotheses, ratio

MEASURES = ("bleu", "chrf")


def sentence_scores(outputs: Hypotheses, references: Sequence[str], measure: str = "bleu") -> FloatArray:
    """Scores in percent of every sentence of every output: (outputs, sentences)."""
    match measure:
        case "bleu":
            metric = BleuMetric()
            return smoothed_bleu(metric, metric.statistics(outputs, references))
        case "chrf":
            chrf = ChrfMetric()
            return chrf.score(chrf.statistics(outputs, references))
    raise UserError(f"no measure of sentences {measure!r}", todo=did_you_mean(measure, MEASURES))


def smoothed_bleu(metric: BleuMetric, statistics: FloatArray) -> FloatArray:
    """Add-1 BLEU of each sentence's statistics."""
    matches, totals = statistics[..., 2 : 2 + NGRAM_ORDER], statistics[..., 2 + NGRAM_ORDER :]
    added = np.array([0.0, 1.0, 1.0, 1.0])
    precisions = ratio(matches + added, totals + added)
    with np.errstate(divide="ignore"):
        mean = np.exp(np.log(precisions).mean(axis=-1))
    scores: FloatArray = 100 * metric.brevity_penalty(statistics) * mean
    return scores
