"""BLEU, chrF, TER and length: sufficient statistics per sentence, and scores from summed statistics.

Statistics are collected once. The score of a resampled test set is then a sum and a formula, which `significance`
computes for thousands of samples at a time. The last axis of an array holds the statistics. METEOR is in `meteor`.
Corpus scores are not means of the sentence-level scores at the end of this module.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER

from pysimt_sac.core.errors import UserError, did_you_mean

FloatArray = npt.NDArray[np.float64]
Hypotheses = Sequence[Sequence[str]]  # of several runs on the same test set

NGRAM_ORDER = 4
CHRF_BETA_SQUARED = CHRF.BETA**2
MEASURES = ("bleu", "chrf")  # sentence-level metrics


class Formula(Protocol):
    """The part of a metric that significance tests need."""

    name: str
    higher_is_better: bool
    signature: str

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute scores in percent from summed statistics of shape (..., statistics)."""
        ...


class CorpusMetric(Formula, Protocol):
    """A formula that can also collect its statistics from text."""

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Collect additive statistics of shape (runs, sentences, statistics)."""
        ...


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


class SacrebleuMetric(ABC):
    """A metric with the statistics that sacrebleu resamples in its own significance tests."""

    higher_is_better = True
    signature = ""  # known once sacrebleu has the references

    @abstractmethod
    def make(self, references: Sequence[str]) -> Any:
        """Make sacrebleu's metric with these references."""

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Collect sacrebleu's statistics."""
        metric = self.make(references)
        self.signature = str(metric.get_signature())
        return np.array([metric._extract_corpus_statistics(run, None) for run in runs], dtype=np.float64)


class BleuMetric(SacrebleuMetric):
    """BLEU with sacrebleu's default smoothing. Statistics: both lengths, four match counts, four totals."""

    name = "BLEU"

    def __init__(self, tokenize: str = "none") -> None:
        if tokenize not in BLEU.TOKENIZERS:
            raise UserError(f"no tokeniser {tokenize!r}", "--tokenize", did_you_mean(tokenize, BLEU.TOKENIZERS))
        self.tokenize = tokenize

    def make(self, references: Sequence[str]) -> BLEU:
        """Make BLEU with the tokeniser."""
        try:
            return BLEU(tokenize=self.tokenize, force=True, references=[references])
        except (ImportError, RuntimeError) as error:  # some tokenisers need extra packages
            message = str(error).strip().splitlines()[0]
            raise UserError(f"the tokeniser {self.tokenize!r} cannot be used: {message}", "--tokenize") from error

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute BLEU with exponential smoothing: the k-th order without matches has 1 / 2^k matches."""
        matches, totals = sums[..., 2 : 2 + NGRAM_ORDER], sums[..., 2 + NGRAM_ORDER :]
        missing = (matches == 0) & (totals > 0)
        smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
        return np.where(matches.any(axis=-1), combine_bleu(sums, smoothed, totals), 0.0)


def combine_bleu(sums: FloatArray, matches: FloatArray, totals: FloatArray) -> FloatArray:
    """Multiply the brevity penalty, below 1 for short hypotheses, by the geometric mean of the precisions."""
    length, reference_length = sums[..., 0], sums[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(length < reference_length, np.exp(1 - reference_length / length), 1.0)
        mean = np.exp(np.log(ratio(matches, totals)).mean(axis=-1))
    bleu: FloatArray = 100 * penalty * mean
    return bleu


class ChrfMetric(SacrebleuMetric):
    """chrF2. Statistics: for n = 1 to 6 the n-grams of the hypothesis, of the reference, and the matches."""

    name = "chrF"

    def make(self, references: Sequence[str]) -> CHRF:
        """Make chrF with its defaults."""
        return CHRF(references=[references])

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute the F-score of mean precision and mean recall over the orders that occur."""
        hypothesis, reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        occurs = (hypothesis > 0) & (reference > 0)
        orders = occurs.sum(axis=-1).astype(np.float64)
        precision = ratio((ratio(matches, hypothesis) * occurs).sum(axis=-1), orders)
        recall = ratio((ratio(matches, reference) * occurs).sum(axis=-1), orders)
        weighted = CHRF_BETA_SQUARED * precision + recall
        return 100 * ratio((1 + CHRF_BETA_SQUARED) * precision * recall, weighted)


@lru_cache(maxsize=500_000)
def count_edits(hypothesis: str, reference: str) -> int:
    """Count the edits of tokenised sentences; cached, because runs share hypotheses and comparisons share systems."""
    edits: int = translation_edit_rate(hypothesis.split(), reference.split())[0]
    return edits


class TerMetric:
    """Translation edit rate. Statistics: edits and reference words."""

    name = "TER"
    higher_is_better = False
    signature = ""

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Count edits after sacrebleu's preprocessing."""
        metric = TER(references=[references])
        self.signature = str(metric.get_signature())
        tokenised, *outputs = ([metric.tokenizer(line.rstrip()) for line in text] for text in (references, *runs))
        words = [len(reference.split()) for reference in tokenised]
        return np.array([list(zip(map(count_edits, run, tokenised), words, strict=True)) for run in outputs], float)

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute edits per reference word; 100 for an empty reference with any edits."""
        edits, words = sums[..., 0], sums[..., 1]
        return 100 * np.where(words > 0, ratio(edits, words), edits > 0)


class LengthMetric:
    """Length ratio in percent. Statistics: words of the hypothesis and of the reference."""

    name = "length"
    higher_is_better = True
    signature = "words of the hypothesis per word of the reference, in percent: 100 is as long as the reference"

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Count words separated by white space."""
        reference_words = [len(line.split()) for line in references]
        return np.array(
            [[(len(line.split()), words) for line, words in zip(run, reference_words, strict=True)] for run in runs],
            dtype=np.float64,
        )

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute the length ratio."""
        return 100 * ratio(sums[..., 0], sums[..., 1])


def sentence_scores(runs: Hypotheses, references: Sequence[str], measure: str = "bleu") -> FloatArray:
    """Compute sentence-level scores in percent, of shape (runs, sentences).

    Sentence BLEU has `add-k` smoothing with k = 1: 1 is added to the matches and totals of all orders but the first.
    """
    match measure:
        case "bleu":
            sums = BleuMetric().statistics(runs, references)
            added = np.array([0.0, 1.0, 1.0, 1.0])
            return combine_bleu(sums, sums[..., 2 : 2 + NGRAM_ORDER] + added, sums[..., 2 + NGRAM_ORDER :] + added)
        case "chrf":
            chrf = ChrfMetric()
            return chrf.score(chrf.statistics(runs, references))
    raise UserError(f"no sentence-level metric {measure!r}", hint=did_you_mean(measure, MEASURES))
