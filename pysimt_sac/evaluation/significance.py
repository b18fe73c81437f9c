"""Bootstrap resampling and stratified approximate randomisation on sufficient statistics.

Statistics have the shape (runs, sentences, statistics). `score` maps sums (..., statistics) to scores (...), or to
scores of several metrics (..., metrics). A resampled test set is a row of weights, so all sums are one matrix product.
Samples are drawn in blocks of bounded size. The summed counts are integers, so the same seed gives the same result on
every machine.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.evaluation.metrics import FloatArray

ScoreFunction = Callable[[FloatArray], FloatArray]
# Maps the statistics of two systems to the sums of their pseudo-systems, each of shape (shuffles, runs, statistics).
Shuffled = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

BLOCK_NUMBERS = 8_000_000  # random numbers drawn at a time, about 100 MB in all
EXACT_IN_SINGLE = 2**24  # integers up to this value are exact in single precision
SIGNIFICANT = 0.05  # marked with a star in tables
TIE = 1e-9  # scores closer than this count as equal
PAIRED, MULTEVAL = SHUFFLINGS = ("paired", "multeval")


@dataclass(frozen=True)
class Resampling:
    """Numbers of shuffles and bootstrap samples, the random seed, and the rule of `randomisation_p`."""

    shuffles: int = 10_000
    bootstrap: int = 1_000
    seed: int = 1
    shuffling: str = PAIRED

    def __post_init__(self) -> None:
        for name, least in (("shuffles", 1), ("bootstrap", 2), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise UserError(f"{value} must be at least {least}", name)
        if self.shuffling not in SHUFFLINGS:
            raise UserError(f"no rule {self.shuffling!r}", "shuffling", did_you_mean(self.shuffling, SHUFFLINGS))


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


def swap_systems(random: np.random.Generator, shuffles: int, sentences: int) -> Shuffled:
    """Swap the outputs of two systems, all runs of a sentence together, with probability 1/2 per sentence."""
    swapped = random.integers(2, size=(shuffles, sentences), dtype=np.uint8)

    def sums(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Apply the changes made by the swaps to the sums of both systems."""
        runs, _, columns = first.shape
        moved = (second - first).transpose(1, 0, 2).reshape(sentences, runs * columns)
        changes = (swapped.astype(moved.dtype) @ moved).reshape(shuffles, runs, columns)
        return (first.sum(axis=1, dtype=np.float64) + changes, second.sum(axis=1, dtype=np.float64) - changes)

    return sums


def shuffle_as_multeval(random: np.random.Generator, shuffles: int, sentences: int, runs: int) -> Shuffled:
    """Shuffle by MultEval's rule, see `randomisation_p`; the runs of a pseudo-system are concatenated."""
    swapped = random.integers(2, size=(shuffles, sentences, runs), dtype=np.uint8)
    permutation = np.argsort(random.random((shuffles, sentences, runs), dtype=np.float32), axis=2)
    first_swaps = np.take_along_axis(swapped, np.argsort(permutation, axis=2), axis=2)
    second_swaps = np.take_along_axis(swapped, permutation, axis=2)
    members = (
        np.concatenate([1 - first_swaps, first_swaps], axis=2),
        np.concatenate([second_swaps, 1 - second_swaps], axis=2),
    )

    def sums(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum the outputs in each pseudo-system."""
        table = np.concatenate([first, second]).transpose(1, 0, 2).reshape(sentences * 2 * runs, -1)
        one, other = (member.reshape(shuffles, -1).astype(table.dtype) @ table for member in members)
        return one[:, None].astype(np.float64), other[:, None].astype(np.float64)

    return sums


def randomisation_p(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """Compute the two-sided p of each system against the baseline, by stratified approximate randomisation.

    Each shuffle makes two pseudo-systems, sentence by sentence:
    - `paired`: the outputs of baseline and system are swapped with probability 1/2, all runs together, since the runs
      of a system are not independent: they find the same sentences easy. If the numbers of runs differ, runs are
      repeated until they are equal. A system's score is the mean of its runs' scores, so p is that of the reported
      difference. p is the share of shuffles with a difference at least as large as the observed one, which counts
      as a shuffle, too.
    - `multeval`: the rule of MultEval 0.5.1, which needs equal numbers of runs. For each sentence it draws a swap for
      each of R places, and a permutation of the runs. Place i of the first pseudo-system gets run permutation(i) of the
      baseline or, if swapped, of the system; place i of the second gets run inverse permutation(i) of the other. If the
      permutation is not its own inverse, an output may be in both pseudo-systems or in neither. p is too small if the
      runs of a system are alike. A system's score is that of its concatenated runs, where a run that is too long makes
      up for one that is too short. Only larger differences are counted, not equal ones, so p of identical systems is
      1 / (shuffles + 1) instead of 1.

    All systems share their shuffles, which saves most of the time.
    """
    multeval = resampling.shuffling == MULTEVAL
    if multeval and {len(system) for system in systems} - {len(baseline)}:
        hint = f"use --shuffling {PAIRED}"
        raise UserError("needs the same number of runs for every system", f"--shuffling {MULTEVAL}", hint)
    n_runs, sentences, _ = baseline.shape
    pairs = [with_as_many_runs(baseline, system) for system in systems]
    sums = [[each.sum(axis=(0, 1))[None] if multeval else each.sum(axis=1) for each in pair] for pair in pairs]
    observed = [mean_difference(score, first[None], second[None])[0] for first, second in sums]
    as_large = [np.zeros(np.shape(each)) for each in observed]
    dtypes = [summing_type(np.stack(pair), 2 * pair[0].shape[0] * sentences) for pair in pairs]
    pairs = [(first.astype(dtype), second.astype(dtype)) for (first, second), dtype in zip(pairs, dtypes, strict=True)]
    random = np.random.default_rng([resampling.seed, 1, 2])
    for count in blocks(resampling.shuffles, 2 * sentences * (n_runs if multeval else 1)):
        if multeval:
            shuffled = shuffle_as_multeval(random, count, sentences, n_runs)
        else:
            shuffled = swap_systems(random, count, sentences)
        for number, (first, second) in enumerate(pairs):
            found = mean_difference(score, *shuffled(first, second))
            larger = found > observed[number] + TIE if multeval else found >= observed[number] - TIE
            as_large[number] += larger.sum(axis=0)
    return [(larger + 1) / (resampling.shuffles + 1) for larger in as_large]


def with_as_many_runs(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Repeat runs until both systems have the same number of them; the mean over runs does not change."""
    runs = math.lcm(len(first), len(second))
    return np.tile(first, (runs // len(first), 1, 1)), np.tile(second, (runs // len(second), 1, 1))


def mean_difference(score: ScoreFunction, first: FloatArray, second: FloatArray) -> FloatArray:
    """Compute the absolute difference between two systems' mean scores, from sums (shuffles, runs, statistics)."""
    difference: FloatArray = np.abs(score(first).mean(axis=1) - score(second).mean(axis=1))
    return difference
