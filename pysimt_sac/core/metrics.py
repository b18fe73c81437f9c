"""Validation metrics by name. To add one, decorate a function with `@metric`, here or in a plugin module."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from pysimt_sac.core.registry import METRICS

MetricFunction = Callable[[list[str], list[list[str]]], float]


@dataclass
class Metric:
    """A named score; either higher or lower is better."""

    name: str
    score: float
    detailed_score: str = ""
    higher_better: bool = True

    def __post_init__(self) -> None:
        self.name = self.name.upper()

    def better_than(self, other: "Metric") -> bool:
        """Return whether this score beats another of the same metric."""
        return self.score > other.score if self.higher_better else self.score < other.score


class RegisteredMetric(NamedTuple):
    """A registered metric: hypotheses and lists of references in, a score out."""

    compute: MetricFunction
    higher_better: bool


def metric(name: str, higher_better: bool = True) -> Callable[[MetricFunction], MetricFunction]:
    """Register a metric: `compute(hypotheses, references)`, with one list per reference file."""

    def add(compute: MetricFunction) -> MetricFunction:
        METRICS.register(name.upper())(RegisteredMetric(compute, higher_better))
        return compute

    return add


METRICS.register("LOSS")(RegisteredMetric(lambda hypotheses, references: float("nan"), higher_better=False))


def score_with(scorer: Any, hypotheses: list[str], references: list[list[str]]) -> float:
    """Compute a corpus score with one of sacrebleu's metrics."""
    return float(scorer.corpus_score(hypotheses, references).score)


@metric("bleu")
def bleu(hypotheses: list[str], references: list[list[str]]) -> float:
    """Compute BLEU of text that is already tokenised, as multi-bleu does."""
    return score_with(BLEU(tokenize="none", force=True), hypotheses, references)


@metric("sacrebleu")
def sacrebleu(hypotheses: list[str], references: list[list[str]]) -> float:
    """Compute BLEU of detokenised text, with sacrebleu's own tokenisation."""
    return score_with(BLEU(), hypotheses, references)


@metric("chrf")
def chrf(hypotheses: list[str], references: list[list[str]]) -> float:
    """Compute the character F-score (chrF)."""
    return score_with(CHRF(), hypotheses, references)


@metric("ter", higher_better=False)
def ter(hypotheses: list[str], references: list[list[str]]) -> float:
    """Compute the translation edit rate of text that is already tokenised."""
    return score_with(TER(), hypotheses, references)
