"""Resampling against exact enumeration and against sacrebleu's tests; its memory."""

import itertools
import tracemalloc

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from pysimt_sac.evaluation import significance
from pysimt_sac.evaluation.comparison import System, compare_systems
from pysimt_sac.evaluation.metrics import BleuMetric, ChrfMetric, TerMetric
from pysimt_sac.evaluation.scores import choose_metrics
from pysimt_sac.evaluation.significance import (
    Resampling,
    blocks,
    bootstrap_scores,
    randomisation_p,
    summing_type,
)

SACREBLEUS = [
    pytest.param(BleuMetric(), lambda: BLEU(tokenize="none", force=True), id="BLEU"),
    pytest.param(ChrfMetric(), CHRF, id="chrF"),
    pytest.param(TerMetric(), TER, id="TER"),
]


def mean_score(sums):
    """Points per sentence, of statistics (points, sentences)."""
    return sums[..., 0] / sums[..., 1]


def with_ones(points):
    return np.stack([points, np.ones_like(points)], axis=-1)


def capped_score(sums):
    """As `mean_score`, but points above 4 do not count: like a brevity penalty, not linear in the sums."""
    return np.minimum(mean_score(sums), 4)


SCORES = pytest.mark.parametrize("score", [mean_score, capped_score])


def mean_of_runs(score, points):
    """The mean score of runs (runs, sentences), which is what a comparison shows."""
    return score(with_ones(points).sum(axis=1)).mean()


def exact_p(baseline, system, score):
    """Two-sided p over all ways to swap the outputs of two systems sentence by sentence."""
    observed = abs(mean_of_runs(score, baseline) - mean_of_runs(score, system))
    differences = []
    for swapped in itertools.product([False, True], repeat=baseline.shape[1]):
        first, second = np.where(swapped, system, baseline), np.where(swapped, baseline, system)
        differences.append(abs(mean_of_runs(score, first) - mean_of_runs(score, second)))
    return np.mean(np.array(differences) >= observed - 1e-9)


@SCORES
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_p_is_that_of_all_swaps(runs, score):
    random = np.random.default_rng(runs)
    baseline, system = random.integers(0, 9, (2, runs, 8)).astype(float)
    shuffles = 40_000
    p = randomisation_p(with_ones(baseline), [with_ones(system)], score, Resampling(shuffles, seed=3))[0]
    expected = exact_p(baseline, system, score)
    assert float(p) == pytest.approx(expected, abs=5 * np.sqrt(0.25 / shuffles))


@SCORES
def test_with_unequal_numbers_of_runs_they_are_repeated(score):
    random = np.random.default_rng(4)
    baseline, system = random.integers(0, 9, (2, 8)).astype(float), random.integers(0, 9, (3, 8)).astype(float)
    shuffles = 40_000
    p = randomisation_p(with_ones(baseline), [with_ones(system)], score, Resampling(shuffles, seed=3))[0]
    expected = exact_p(np.tile(baseline, (3, 1)), np.tile(system, (2, 1)), score)
    assert float(p) == pytest.approx(expected, abs=5 * np.sqrt(0.25 / shuffles))


@pytest.mark.parametrize("runs", [(3, 3), (3, 1)])
def test_p_is_calibrated_when_the_runs_of_a_system_are_alike(runs):
    """Two systems that are equally good; each has its own easy sentences, which are easy in all of its runs."""
    random, trials = np.random.default_rng(6), 400

    def significant():
        systems = (random.normal(size=(1, 100)) + 0.3 * random.normal(size=(n_runs, 100)) for n_runs in runs)
        baseline, system = map(with_ones, systems)
        return randomisation_p(baseline, [system], mean_score, Resampling(99))[0] <= 0.05

    assert np.mean([significant() for _ in range(trials)]) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / trials))


def test_p_is_of_the_difference_between_means_not_between_concatenated_runs():
    """Of the concatenated runs, the capped run makes up for the other one; its own score does not."""
    baseline = with_ones(np.array([[1.0] * 20, [7.0] * 20]))  # scores 1 and 4; concatenated 4
    system = with_ones(np.array([[2.0] * 20, [3.0] * 20]))  # scores 2 and 3; concatenated 2.5
    assert float(randomisation_p(baseline, [system], capped_score, Resampling(999))[0]) == 1.0  # the means are equal


def test_equal_systems_have_p_1_and_opposite_ones_the_smallest():
    points = np.random.default_rng(0).integers(0, 5, (2, 50)).astype(float)
    same, better = randomisation_p(
        with_ones(points), [with_ones(points), with_ones(points + 3)], mean_score, Resampling(999)
    )
    assert float(same) == 1.0
    assert float(better) == 1 / 1000


def test_p_does_not_depend_on_the_other_systems():
    random = np.random.default_rng(5)
    baseline, one, other, longer = (with_ones(random.integers(0, 9, (runs, 40)).astype(float)) for runs in (2, 2, 2, 3))
    together = randomisation_p(baseline, [one, longer, other], mean_score, Resampling(500, seed=7))
    alone = [
        randomisation_p(baseline, [system], mean_score, Resampling(500, seed=7))[0] for system in (one, longer, other)
    ]
    assert [float(p) for p in together] == [float(p) for p in alone]


def test_bootstrap_agrees_with_theory():
    points = np.random.default_rng(2).normal(10, 2, (1, 400))
    scores = bootstrap_scores(with_ones(points), mean_score, 4000, seed=1)
    assert scores.shape == (4000, 1)
    assert scores.mean() == pytest.approx(points.mean(), abs=0.01)
    assert scores.std() == pytest.approx(points.std() / np.sqrt(400), rel=0.06)


def test_sums_use_single_precision_only_where_it_is_exact():
    assert summing_type(np.array([[[3.0, 100.0]]]), 1000) is np.float32
    assert summing_type(np.array([[[3.0, 100_000.0]]]), 1000) is np.float64
    assert summing_type(np.array([[[0.5]]]), 10) is np.float64


def test_blocks_are_bounded_and_complete():
    sizes = list(blocks(10_000, 6000))
    assert sum(sizes) == 10_000
    assert max(sizes) * 6000 <= 8_000_000
    assert list(blocks(3, 10**9)) == [1, 1, 1]


def spread(p, samples):
    """Five standard deviations of the difference between two estimates of p."""
    return 5 * np.sqrt(2 * max(p * (1 - p), 1e-4) / samples)


@pytest.mark.parametrize("noise", [0.20, 0.215, 0.26])
@pytest.mark.parametrize(("own", "sacrebleus"), SACREBLEUS)
def test_one_run_agrees_with_sacrebleus_randomisation(own, sacrebleus, noise, references, output, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "1")
    monkeypatch.setattr(significance, "TIE", -1e-9)  # sacrebleu does not count ties
    texts = output(1, 0.2), output(2, noise)
    baseline, system = (own.statistics([text], references) for text in texts)
    p = float(randomisation_p(baseline, [system], own.score, Resampling(10_000, seed=4))[0])
    test = PairedTest(
        [("a", texts[0]), ("b", texts[1])], {"metric": sacrebleus()}, [references], "ar", n_samples=10_000
    )
    found = next(iter(column[1] for name, column in test()[1].items() if name != "System"))
    assert p == pytest.approx(found.p_value, abs=spread(p, 10_000))


@pytest.mark.parametrize("noise", [0.20, 0.215, 0.26])
@pytest.mark.parametrize(("own", "sacrebleus"), SACREBLEUS)
def test_one_run_agrees_with_sacrebleus_bootstrap(own, sacrebleus, noise, references, output, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "1")
    texts, samples = (output(1, 0.2), output(2, noise)), 2000
    statistics = own.statistics(texts, references)
    scores = bootstrap_scores(statistics, own.score, samples, seed=4)
    test = PairedTest(
        [("a", texts[0]), ("b", texts[1])], {"metric": sacrebleus()}, [references], "bs", n_samples=samples
    )
    found = next(iter(column[1] for name, column in test()[1].items() if name != "System"))
    low, high = np.percentile(scores[:, 1], [2.5, 97.5])
    assert scores[:, 1].mean() == pytest.approx(found.mean, abs=5 * scores[:, 1].std() * np.sqrt(2 / samples))
    assert (high - low) / 2 == pytest.approx(found.ci, rel=0.15)
    # Sacrebleu's p from our samples: how often a difference, less the mean one, exceeds the observed one.
    observed = np.abs(np.diff(own.score(statistics.sum(axis=1))))[0]
    differences = np.abs(scores[:, 1] - scores[:, 0])
    p = float(np.mean(differences - differences.mean() > observed))
    assert p == pytest.approx(found.p_value, abs=spread(p, samples))


@pytest.mark.slow
def test_ten_thousand_shuffles_of_five_systems_take_bounded_memory():
    random = np.random.default_rng(0)
    totals = random.integers(3, 20, (15, 1000, 4))
    statistics = np.concatenate([totals[..., :1], totals[..., :1] + 1, totals // 2, totals], axis=-1).astype(float)
    metric = BleuMetric()
    tracemalloc.start()
    bootstrap_scores(statistics, metric.score, 1000, 1)
    systems = [statistics[first : first + 3] for first in range(0, 15, 3)]
    randomisation_p(systems[0], [*systems[1:], systems[1][:1]], metric.score, Resampling(10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400e6


def test_all_metrics_of_choice_can_be_resampled_together(references, output):
    metrics = choose_metrics(["ter", "bleu"]).metrics
    one = compare_systems(references, System("a", (output(1),)), [System("b", (output(2),))], metrics)
    for metric in metrics:
        alone = compare_systems(references, System("a", (output(1),)), [System("b", (output(2),))], [metric])
        assert alone[metric.name] == one[metric.name]
