"""Bootstrap resampling and stratified approximate randomisation on sufficient statistics.

Statistics have the shape (runs, sentences, statistics). `score` maps sums (..., statistics) to scores (...), or to
scores of several metrics (..., metrics). A resampled test set is a row of weights, so that all sums are one matrix
product. Samples are drawn in blocks of bounded size. The summed counts are whole numbers, so that the same seed gives
the same result on every machine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pysimt_sac.errors import UserError, did_you_mean
from pysimt_sac.evaluation.scoring.metrics import FloatArray

ScoreFunction = Callable[[FloatArray], FloatArray]
# The sums of two pseudo-systems, each (shuffles, runs, statistics), from the statistics of both systems' runs.
PseudoSystems = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

BLOCK_NUMBERS = 8_000_000  # random numbers drawn at a time, about 100 MB in all
EXACT_IN_SINGLE = 2**24  # integers up to this are exact in single precision
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
    """Single precision, which is twice as fast, where all sums are exact in it, else double."""
    largest = float(np.abs(statistics).max(initial=0.0)) * weight
    whole = bool((statistics == np.rint(statistics)).all())
    return np.float32 if whole and largest < EXACT_IN_SINGLE else np.float64


def bootstrap_scores(statistics: FloatArray, score: ScoreFunction, samples: int, seed: int) -> FloatArray:
    """Scores of every run on bootstrap samples, the same ones for all runs: (samples, runs, ...)."""
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


def swap_runs(random: np.random.Generator, shuffles: int, sentences: int, runs: int) -> PseudoSystems:
    """Swap run r of the baseline and run r of the system with probability 1/2, sentence by sentence."""
    swapped = random.integers(2, size=(shuffles, sentences, runs), dtype=np.uint8).transpose(2, 0, 1)

    def sums(statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add what the swaps change to the sums of the baseline; the system has the rest."""
        changes = swapped.astype(statistics.dtype) @ (statistics[runs:] - statistics[:runs])
        totals = statistics.sum(axis=1, dtype=np.float64)
        first = totals[:runs] + changes.transpose(1, 0, 2)
        return first, totals[:runs] + totals[runs:] - first

    return sums


def deal_runs(random: np.random.Generator, shuffles: int, sentences: int, first: int, total: int) -> PseudoSystems:
    """Deal the `total` outputs for a sentence to the `first` runs of the baseline and to those of the system."""
    dealt = random.permuted(np.broadcast_to(np.arange(total, dtype=np.uint16), (shuffles, sentences, total)), axis=2)

    def sums(statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum the outputs that each run was dealt."""
        runs = np.zeros((total, shuffles, statistics.shape[2]))
        for output, own in enumerate(statistics):
            runs += (dealt == output).transpose(2, 0, 1).astype(own.dtype) @ own
        return runs[:first].transpose(1, 0, 2), runs[first:].transpose(1, 0, 2)

    return sums


def shuffle_as_multeval(random: np.random.Generator, shuffles: int, sentences: int, runs: int) -> PseudoSystems:
    """MultEval's rule, see `randomisation_p`; the runs of a pseudo-system are concatenated."""
    swapped = random.integers(2, size=(shuffles, sentences, runs), dtype=np.uint8)
    permutation = np.argsort(random.random((shuffles, sentences, runs), dtype=np.float32), axis=2)
    first = np.take_along_axis(swapped, np.argsort(permutation, axis=2), axis=2)
    second = np.take_along_axis(swapped, permutation, axis=2)
    members = np.concatenate([1 - first, first], axis=2), np.concatenate([second, 1 - second], axis=2)

    def sums(statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum the outputs in each pseudo-system."""
        table = statistics.transpose(1, 0, 2).reshape(sentences * 2 * runs, -1)
        one, other = (member.reshape(shuffles, -1).astype(table.dtype) @ table for member in members)
        return one[:, None].astype(np.float64), other[:, None].astype(np.float64)

    return sums


def randomisation_p(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """Two-sided p of each system against the baseline, by stratified approximate randomisation.

    Each shuffle makes two pseudo-systems, sentence by sentence:
    - `paired`: run r of the baseline and run r of the system are swapped with probability 1/2. If the numbers of runs
      differ, the outputs for a sentence are dealt to the runs of both at random instead. A system's score is the mean
      of its runs' scores: p is that of the difference which is reported. p is the share of shuffles with a difference
      at least as large as the observed one, which is counted as a shuffle, too.
    - `multeval`: the rule of MultEval 0.5.1, which needs equal numbers of runs. For each sentence it draws a swap for
      each of R places, and a permutation of the runs. Place i of the first pseudo-system gets run permutation(i) of the
      baseline or, if swapped, of the system; place i of the second one gets run inverse permutation(i) of the other. If
      the permutation is its own inverse, as always for one or two runs, these are the swaps of `paired`. Else an output
      may be in both pseudo-systems or in neither. A system's score is that of its concatenated runs, in which a run
      that is too long makes up for one that is too short. Only larger differences are counted, not equal ones, so that
      p of identical systems is 1 / (shuffles + 1) instead of 1.

    Systems with the same number of runs share their shuffles, which saves most of the time.
    """
    if resampling.shuffling == MULTEVAL and {len(system) for system in systems} - {len(baseline)}:
        todo = f"use --shuffling {PAIRED}"
        raise UserError("needs as many runs of each system as of the baseline", f"--shuffling {MULTEVAL}", todo)
    p_values: list[FloatArray | None] = [None] * len(systems)
    for runs in sorted({len(system) for system in systems}):
        members = [number for number, system in enumerate(systems) if len(system) == runs]
        found = shared_randomisation(baseline, [systems[number] for number in members], score, resampling)
        for number, p in zip(members, found, strict=True):
            p_values[number] = p
    return [p for p in p_values if p is not None]


def mean_difference(score: ScoreFunction, first: FloatArray, second: FloatArray) -> FloatArray:
    """The absolute difference between the mean scores of two systems, of sums (shuffles, runs, statistics)."""
    difference: FloatArray = np.abs(score(first).mean(axis=1) - score(second).mean(axis=1))
    return difference


def shared_randomisation(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """`randomisation_p` for systems with the same number of runs."""
    n_baseline, sentences, _ = baseline.shape
    pooled = [np.concatenate([baseline, system]) for system in systems]
    n_runs = len(pooled[0])
    dtype: type[np.floating] = np.float32
    if any(summing_type(statistics, sentences * n_runs) is np.float64 for statistics in pooled):
        dtype = np.float64
    pooled = [statistics.astype(dtype) for statistics in pooled]
    multeval = resampling.shuffling == MULTEVAL
    sums = [each.sum(axis=(0, 1))[None] if multeval else each.sum(axis=1) for each in (baseline, *systems)]
    observed = [mean_difference(score, sums[0][None], own[None])[0] for own in sums[1:]]
    as_large = [np.zeros(np.shape(each)) for each in observed]
    random = np.random.default_rng([resampling.seed, 1, n_runs])
    for count in blocks(resampling.shuffles, sentences * n_runs):
        if multeval:
            shuffled = shuffle_as_multeval(random, count, sentences, n_baseline)
        elif n_runs == 2 * n_baseline:
            shuffled = swap_runs(random, count, sentences, n_baseline)
        else:
            shuffled = deal_runs(random, count, sentences, n_baseline, n_runs)
        for number, statistics in enumerate(pooled):
            found = mean_difference(score, *shuffled(statistics))
            larger = found > observed[number] + TIE if multeval else found >= observed[number] - TIE
            as_large[number] += larger.sum(axis=0)
    return [(larger + 1) / (resampling.shuffles + 1) for larger in as_large]
