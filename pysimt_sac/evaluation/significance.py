"""Significance over test sentences, whether these runs differ, and over seeds, whether a method helps.

Over sentences: bootstrap resampling and stratified approximate randomisation on sufficient statistics of shape (runs,
sentences, statistics). `score` maps sums (..., statistics) to scores (...), or to scores of several metrics (...,
metrics). A resampled test set is a row of weights, so all sums are one matrix product. Samples are drawn in blocks of
bounded size. The summed counts are integers, so the same seed gives the same result on every machine.

Over seeds: run N of one system is paired with run N of another: both have the same seed, and mostly start from the same
actor.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.metrics import FloatArray

ScoreFunction = Callable[[FloatArray], FloatArray]

BLOCK_NUMBERS = 8_000_000  # random numbers drawn at a time, about 100 MB in all
EXACT_IN_SINGLE = 2**24  # integers up to this value are exact in single precision
SIGNIFICANT = 0.05  # marked with a star in tables
TIE = 1e-9  # scores closer than this count as equal
# 97.5% quantiles of Student's t distribution with 1, 2, ... 30 degrees of freedom.
T_QUANTILES = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
PAIRED = "paired"  # the rule of `randomisation_p`, in results: earlier versions had others


@dataclass(frozen=True)
class Resampling:
    """Numbers of shuffles and bootstrap samples, the random seed, and the name of the rule of `randomisation_p`."""

    shuffles: int = 10_000
    bootstrap: int = 1_000
    seed: int = 1
    shuffling: str = field(default=PAIRED, init=False)

    def __post_init__(self) -> None:
        for name, least in (("shuffles", 1), ("bootstrap", 2), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise UserError(f"{value} must be at least {least}", name)


def blocks(total: int, numbers_each: int) -> Iterator[int]:
    """Split a number of samples into blocks that fit into memory."""
    size = max(1, BLOCK_NUMBERS // max(1, numbers_each))
    for start in range(0, total, size):
        yield min(size, total - start)


def summing_type(statistics: FloatArray, weight: int) -> type[np.floating]:
    """Return single precision, which is twice as fast, if all sums are exact in it, else double."""
    largest = float(np.abs(statistics).max(initial=0.0)) * weight
    whole = bool((statistics == np.rint(statistics)).all())
    return np.float32 if whole and largest < EXACT_IN_SINGLE else np.float64


def bootstrap_scores(statistics: FloatArray, score: ScoreFunction, samples: int, seed: int) -> FloatArray:
    """Score every run on bootstrap samples, the same for all runs: (samples, runs, ...)."""
    runs, sentences, columns = statistics.shape
    dtype = summing_type(statistics, sentences)
    table = statistics.transpose(1, 0, 2).reshape(sentences, runs * columns).astype(dtype)
    random = np.random.default_rng([seed, 0])
    scores = []
    for count in blocks(samples, sentences):
        drawn = random.integers(sentences, size=(count, sentences))
        drawn += sentences * np.arange(count)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=count * sentences).reshape(count, sentences).astype(dtype)
        scores.append(score((weights @ table).astype(np.float64).reshape(count, runs, columns)))
    return np.concatenate(scores)


def randomisation_p(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """Compute the two-sided p of each system against the baseline, by stratified approximate randomisation.

    Each shuffle swaps the outputs of baseline and system with probability 1/2 per sentence, all runs together, since
    the runs of a system are not independent: they find the same sentences easy. If the numbers of runs differ, runs are
    repeated until they are equal. A system's score is the mean of its runs' scores, so p is that of the reported
    difference. p is the share of shuffles with a difference at least as large as the observed one, which counts as a
    shuffle, too. All systems share their shuffles, which saves most of the time.
    """
    sentences = baseline.shape[1]
    pairs = [with_as_many_runs(baseline, system) for system in systems]
    observed = [mean_difference(score, first.sum(axis=1)[None], second.sum(axis=1)[None])[0] for first, second in pairs]
    as_large = [np.zeros(np.shape(each)) for each in observed]
    dtypes = [summing_type(np.stack(pair), 2 * pair[0].shape[0] * sentences) for pair in pairs]
    pairs = [(first.astype(dtype), second.astype(dtype)) for (first, second), dtype in zip(pairs, dtypes, strict=True)]
    random = np.random.default_rng([resampling.seed, 1, 2])
    for count in blocks(resampling.shuffles, 2 * sentences):
        swapped = random.integers(2, size=(count, sentences), dtype=np.uint8)
        for number, (first, second) in enumerate(pairs):
            found = mean_difference(score, *swapped_sums(first, second, swapped))
            as_large[number] += (found >= observed[number] - TIE).sum(axis=0)
    return [(larger + 1) / (resampling.shuffles + 1) for larger in as_large]


def swapped_sums(
    first: FloatArray, second: FloatArray, swapped: npt.NDArray[np.uint8]
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of two systems, of shape (shuffles, runs, statistics), after sentences were swapped."""
    runs, sentences, columns = first.shape
    moved = (second - first).transpose(1, 0, 2).reshape(sentences, runs * columns)
    changes = (swapped.astype(moved.dtype) @ moved).reshape(len(swapped), runs, columns)
    return first.sum(axis=1, dtype=np.float64) + changes, second.sum(axis=1, dtype=np.float64) - changes


def with_as_many_runs(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Repeat runs until both systems have the same number of them; the mean over runs does not change."""
    runs = math.lcm(len(first), len(second))
    return np.tile(first, (runs // len(first), 1, 1)), np.tile(second, (runs // len(second), 1, 1))


def mean_difference(score: ScoreFunction, first: FloatArray, second: FloatArray) -> FloatArray:
    """Compute the absolute difference between two systems' mean scores, from sums (shuffles, runs, statistics)."""
    difference: FloatArray = np.abs(score(first).mean(axis=1) - score(second).mean(axis=1))
    return difference


# Over seeds


@dataclass(frozen=True)
class OverSeeds:
    """The mean difference of paired runs, its 95% t-interval, and how many of the seeds are better with the system."""

    mean: float
    low: float
    high: float
    better: int
    seeds: int

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low:+.2f}..{self.high:+.2f}"

    @property
    def wins(self) -> str:
        """The number of seeds as text: `2 of 3`."""
        return f"{self.better} of {self.seeds}"


def over_seeds(system: Sequence[float], baseline: Sequence[float], higher_is_better: bool = True) -> OverSeeds | None:
    """Compare the scores of runs paired by seed; None for a single run, or if the runs cannot be paired.

    None as well if all differences are the same: runs that are alike, or few cases, say nothing about other seeds.
    """
    if len(system) != len(baseline) or len(system) < 2:
        return None
    differences = [own - other for own, other in zip(system, baseline, strict=True)]
    if max(differences) - min(differences) < TIE:
        return None
    mean, n = fmean(differences), len(differences)
    quantile = T_QUANTILES[min(n - 1, len(T_QUANTILES)) - 1]  # of more runs: that of 31, which is slightly too large
    margin = quantile * stdev(differences) / math.sqrt(n)
    better = sum((own > 0) if higher_is_better else (own < 0) for own in differences)
    return OverSeeds(mean, mean - margin, mean + margin, better, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests by Holm's step-down method, in the order given."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[number] * (len(p_values) - rank)))
        corrected[number] = largest
    return corrected
