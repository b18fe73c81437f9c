"""Validation metrics by name. To add one, decorate a function with `@metric`, here or in a plugin module."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from pysimt_sac.core.registry import METRICS

Scorer = Callable[[list[str], list[list[str]]], float]


@functools.total_ordering
class Metric:
    """A named score; either higher or lower is better."""

    def __init__(self, name: str, score: float, detailed_score: str = "", higher_better: bool = True) -> None:
        self.name = name.upper()
        self.score = score
        self.detailed_score = detailed_score
        self.higher_better = higher_better

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and (self.name, self.score) == (other.name, other.score)

    def __lt__(self, other: "Metric") -> bool:
        return self.score < other.score

    def __hash__(self) -> int:
        return hash((self.name, self.score))

    def __repr__(self) -> str:
        return f"{self.name} = {self.detailed_score or f'{self.score:.2f}'}"

    def better_than(self, other: "Metric") -> bool:
        """Return whether this score beats another of the same metric."""
        return self.score > other.score if self.higher_better else self.score < other.score


class ScoredBy(NamedTuple):
    """A registered metric: hypotheses and lists of references in, a score out."""

    compute: Scorer
    higher_better: bool


def metric(name: str, higher_better: bool = True) -> Callable[[Scorer], Scorer]:
    """Register a metric: `compute(hypotheses, references)`, with one list per reference file."""

    def add(compute: Scorer) -> Scorer:
        METRICS.register(name.upper())(ScoredBy(compute, higher_better))
        return compute

    return add


METRICS.register("LOSS")(ScoredBy(lambda hypotheses, references: float("nan"), higher_better=False))


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
