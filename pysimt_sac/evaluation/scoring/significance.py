"""Bootstrap resampling and stratified approximate randomisation on sufficient statistics.

Statistics have the shape (runs, sentences, statistics). `score` maps sums (..., statistics) to scores (...), or to
scores of several metrics (..., metrics). A resampled test set is a row of weights, so that all sums are one matrix
product. Samples are drawn in blocks of bounded size. The summed counts are whole numbers, so that the same seed gives
the same result on every machine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pysimt_sac.errors import UserError, did_you_mean
from pysimt_sac.evaluation.scoring.metrics import FloatArray

Drawn = npt.NDArray[np.uint8]
ScoreFunction = Callable[[FloatArray], FloatArray]

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


def draw_swaps(random: np.random.Generator, shuffles: int, sentences: int, runs: int) -> Drawn:
    """Which outputs make up the first pseudo-system: per sentence and run, the baseline's or the system's."""
    swapped = random.integers(2, size=(shuffles, sentences, runs), dtype=np.uint8)
    return np.concatenate([1 - swapped, swapped], axis=2)


def draw_subsets(random: np.random.Generator, shuffles: int, sentences: int, first: int, total: int) -> Drawn:
    """Which outputs make up the first pseudo-system: per sentence, `first` of the `total` pooled ones.

    All subsets are equally likely: an output is taken with probability (places left) / (outputs left).
    """
    drawn = np.empty((shuffles, sentences, total), np.uint8)
    places = np.full((shuffles, sentences), first, dtype=np.uint16)
    for position in range(total):
        taken = random.integers(total - position, size=places.shape, dtype=np.uint16) < places
        drawn[:, :, position] = taken
        places -= taken
    return drawn


def draw_multeval(random: np.random.Generator, shuffles: int, sentences: int, runs: int) -> tuple[Drawn, Drawn]:
    """Which outputs make up the two pseudo-systems of MultEval, see `randomisation_p`."""
    swapped = random.integers(2, size=(shuffles, sentences, runs), dtype=np.uint8)
    permutation = np.argsort(random.random((shuffles, sentences, runs), dtype=np.float32), axis=2)
    first = np.take_along_axis(swapped, np.argsort(permutation, axis=2), axis=2)
    second = np.take_along_axis(swapped, permutation, axis=2)
    return np.concatenate([1 - first, first], axis=2), np.concatenate([second, 1 - second], axis=2)


def randomisation_p(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """Two-sided p of each system against the baseline, by stratified approximate randomisation.

    Each shuffle makes two pseudo-systems, sentence by sentence; a system's score is that of its concatenated runs.
    - `paired`: run r of the baseline and run r of the system are swapped with probability 1/2. If the numbers of runs
      differ, the outputs of a sentence are pooled and randomly divided instead. p is the share of shuffles with a
      difference at least as large as the observed one, which is counted as a shuffle, too.
    - `multeval`: the rule of MultEval 0.5.1, which needs equal numbers of runs. For each sentence it draws a swap for
      each of R places, and a permutation of the runs. Place i of the first pseudo-system gets run permutation(i) of the
      baseline or, if swapped, of the system; place i of the second one gets run inverse permutation(i) of the other. If
      the permutation is its own inverse, as always for one or two runs, this is `paired`. Else an output may be in
      both pseudo-systems or in neither. Only larger differences are counted, not equal ones, so that p of identical
      systems is 1 / (shuffles + 1) instead of 1.

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


def shared_randomisation(
    baseline: FloatArray, systems: Sequence[FloatArray], score: ScoreFunction, resampling: Resampling
) -> list[FloatArray]:
    """`randomisation_p` for systems with the same number of runs."""
    n_baseline, sentences, columns = baseline.shape
    pooled = [np.concatenate([baseline, system]) for system in systems]
    n_runs = len(pooled[0])
    dtype: type[np.floating] = np.float32
    if any(summing_type(statistics, sentences * n_runs) is np.float64 for statistics in pooled):
        dtype = np.float64
    tables = [both.transpose(1, 0, 2).reshape(sentences * n_runs, columns).astype(dtype) for both in pooled]
    pooled_sums = [both.sum(axis=(0, 1)) for both in pooled]
    observed = [np.abs(score(baseline.sum(axis=(0, 1))) - score(system.sum(axis=(0, 1)))) for system in systems]
    as_large = [np.zeros(np.shape(difference)) for difference in observed]

    random = np.random.default_rng([resampling.seed, 1, n_runs])
    multeval = resampling.shuffling == MULTEVAL
    for count in blocks(resampling.shuffles, sentences * n_runs):
        # Which runs of each sentence are in the first pseudo-system, and with MultEval's rule also in the second one.
        drawn: tuple[Drawn, ...]
        if multeval:
            drawn = draw_multeval(random, count, sentences, n_baseline)
        elif n_runs == 2 * n_baseline:
            drawn = (draw_swaps(random, count, sentences, n_baseline),)
        else:
            drawn = (draw_subsets(random, count, sentences, n_baseline, n_runs),)
        members = [member.reshape(count, sentences * n_runs).astype(dtype) for member in drawn]
        for number, table in enumerate(tables):
            sums = [(member @ table).astype(np.float64) for member in members]
            other_sums = sums[1] if multeval else pooled_sums[number] - sums[0]
            difference = np.abs(score(sums[0]) - score(other_sums))
            larger = difference > observed[number] + TIE if multeval else difference >= observed[number] - TIE
            as_large[number] += larger.sum(axis=0)
    return [(larger + 1) / (resampling.shuffles + 1) for larger in as_large]
