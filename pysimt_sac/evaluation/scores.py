"""Corpus scores of hypotheses, as shown by `pysimt-sac score`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.evaluation.meteor import MeteorMetric, MeteorUnavailableError
from pysimt_sac.evaluation.metrics import (
    BleuMetric,
    ChrfMetric,
    CorpusMetric,
    FloatArray,
    Hypotheses,
    LengthMetric,
    TerMetric,
)
from pysimt_sac.evaluation.texts import UNKNOWN

T = TypeVar("T")
METRIC_NAMES = ("bleu", "chrf", "ter", "meteor", "length")


@dataclass(frozen=True)
class MetricScore:
    """One metric's score of one text."""

    metric: str
    value: float
    higher_is_better: bool
    signature: str


@dataclass(frozen=True)
class TextScores:
    """All scores of one hypothesis file, its length and its `<unk>` tokens."""

    name: str
    sentences: int
    scores: tuple[MetricScore, ...]
    length_ratio: float
    words: int
    unknown_words: int
    unknown_sentences: int

    def __getitem__(self, metric: str) -> float:
        """Return the score of a metric, ignoring case: `scores["BLEU"]`, `scores["METEOR"]`."""
        return by_metric(metric, {score.metric: score.value for score in self.scores})


def by_metric(name: str, parts: Mapping[str, T]) -> T:
    """Return the part of a metric, ignoring case and what its name has in brackets: METEOR (exact stem)."""
    for metric, part in parts.items():
        if name.lower() in (metric.lower(), metric.lower().partition(" (")[0]):
            return part
    raise UserError(f"there is no {name!r}", hint=did_you_mean(name, list(parts)))


@dataclass(frozen=True)
class MetricChoice:
    """The metrics to use, and the reasons why others were left out."""

    metrics: tuple[CorpusMetric, ...]
    missing: tuple[str, ...] = ()


def choose_metrics(
    names: Sequence[str] = METRIC_NAMES,
    tokenize: str = "none",
    language: str | None = None,
    meteor_jar: Path | None = None,
) -> MetricChoice:
    """Make the named metrics; leave out METEOR, stating the reason, if it cannot run."""
    metrics: list[CorpusMetric] = []
    missing: list[str] = []
    for name in dict.fromkeys(names):
        match name:
            case "bleu":
                metrics.append(BleuMetric(tokenize))
            case "chrf":
                metrics.append(ChrfMetric())
            case "ter":
                metrics.append(TerMetric())
            case "length":
                metrics.append(LengthMetric())
            case "meteor":
                try:
                    metrics.append(MeteorMetric(language, meteor_jar))
                except MeteorUnavailableError as reason:
                    missing.append(f"METEOR is left out: {reason}")
            case _:
                raise UserError(f"no metric {name!r}", "--metrics", did_you_mean(name, METRIC_NAMES))
    if not metrics:
        raise UserError("no metric is left", "--metrics", "; ".join(missing))
    return MetricChoice(tuple(metrics), tuple(missing))


def collect_statistics(
    metrics: Sequence[CorpusMetric], runs: Hypotheses, references: Sequence[str]
) -> list[FloatArray]:
    """Collect each metric's statistics of all runs; METEOR's Java runs while Python computes the others."""
    with ThreadPoolExecutor(len(metrics)) as pool:
        return list(pool.map(lambda metric: metric.statistics(runs, references), metrics))


def score_texts(
    references: Sequence[str],
    texts: Sequence[Sequence[str]],
    names: Sequence[str],
    metrics: Sequence[CorpusMetric] | None = None,
) -> list[TextScores]:
    """Score several hypothesis files against the same references, by default with all metrics but METEOR."""
    chosen = choose_metrics().metrics if metrics is None else metrics
    counted = collect_statistics(chosen, texts, references)
    per_metric = [metric.score(own.sum(axis=1)) for metric, own in zip(chosen, counted, strict=True)]
    lengths = LengthMetric()
    ratios = lengths.score(lengths.statistics(texts, references).sum(axis=1)) / 100
    results = []
    for number, (name, lines) in enumerate(zip(names, texts, strict=True)):
        scores = tuple(
            MetricScore(metric.name, float(values[number]), metric.higher_is_better, metric.signature)
            for metric, values in zip(chosen, per_metric, strict=True)
        )
        unknown = [line.count(UNKNOWN) for line in lines]
        results.append(
            TextScores(
                name=name,
                sentences=len(lines),
                scores=scores,
                length_ratio=float(ratios[number]),
                words=sum(len(line.split()) for line in lines),
                unknown_words=sum(unknown),
                unknown_sentences=sum(map(bool, unknown)),
            )
        )
    return results


def score_text(
    references: Sequence[str], hypothesis: Sequence[str], metrics: Sequence[CorpusMetric] | None = None
) -> TextScores:
    """Score one hypothesis file."""
    return score_texts(references, [hypothesis], ["hypothesis"], metrics)[0]
