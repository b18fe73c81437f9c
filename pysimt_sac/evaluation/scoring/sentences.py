"""Sentence-level scores, for finding the sentences that a system improved.

Sentence BLEU is sacrebleu's with `add-k` smoothing and k = 1: 1 is added to the matches and totals of all orders but
the first. Corpus scores, in `scores`, are not means of these.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.evaluation.scoring.metrics import NGRAM_ORDER, BleuMetric, ChrfMetric, FloatArray, Hypotheses, ratio

MEASURES = ("bleu", "chrf")


def sentence_scores(runs: Hypotheses, references: Sequence[str], measure: str = "bleu") -> FloatArray:
    """Compute sentence scores in percent, of shape (runs, sentences)."""
    match measure:
        case "bleu":
            metric = BleuMetric()
            return smoothed_bleu(metric, metric.statistics(runs, references))
        case "chrf":
            chrf = ChrfMetric()
            return chrf.score(chrf.statistics(runs, references))
    raise UserError(f"no sentence-level metric {measure!r}", hint=did_you_mean(measure, MEASURES))


def smoothed_bleu(metric: BleuMetric, statistics: FloatArray) -> FloatArray:
    """Compute add-1 sentence BLEU from statistics (runs, sentences, statistics)."""
    matches, totals = statistics[..., 2 : 2 + NGRAM_ORDER], statistics[..., 2 + NGRAM_ORDER :]
    added = np.array([0.0, 1.0, 1.0, 1.0])
    precisions = ratio(matches + added, totals + added)
    with np.errstate(divide="ignore"):
        mean = np.exp(np.log(precisions).mean(axis=-1))
    scores: FloatArray = 100 * metric.brevity_penalty(statistics) * mean
    return scores
