"""MultEval's columns, by hand and on its own example."""

import os
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import System, compare_statistics, compare_systems
from pysimt_sac.evaluation.scores import choose_metrics
from pysimt_sac.evaluation.significance import Resampling

QUICK = Resampling(shuffles=200, bootstrap=100, seed=1)


class Points:
    """Statistics (points, sentences), the score being points per sentence."""

    name, higher_is_better, signature = "points", True, "none"

    def score(self, sums):
        return sums[..., 0] / sums[..., 1]


def test_columns_by_hand():
    runs = np.array([[1.0, 3, 2, 4], [2, 4, 3, 5], [5, 3, 4, 6]])  # two runs of the baseline, one of the system
    statistics = np.stack([runs, np.ones_like(runs)], axis=-1)
    systems = [System("base", (("a",), ("b",))), System("new", (("c",),))]
    (part,) = compare_statistics([statistics], [Points()], systems, Resampling(2000, 5000, 1))
    base, new = part.systems
    assert base.runs == (2.5, 3.5)
    assert base.average == 3.0
    assert base.s_test == pytest.approx(np.sqrt(0.5))  # with n - 1
    # Both runs have the same variance, 1.25, so the mean of four drawn sentences has sqrt(1.25 / 4).
    assert base.s_sel == pytest.approx(np.sqrt(1.25 / 4), rel=0.05)
    assert base.against_baseline is None
    assert (new.average, new.s_test) == (4.5, None)
    against = new.against_baseline
    assert against.difference == 1.5
    assert against.seeds is None  # one run cannot be paired with two
    assert against.interval.low <= 1.5 <= against.interval.high
    assert not against.identical


@pytest.mark.parametrize(
    ("runs", "same"),
    [(("x", "y"), True), (("y", "x"), True), (("x", "x"), False), (("x",), False), (("x", "z"), False)],
)
def test_a_system_with_the_baselines_hypotheses_is_identical_in_any_order_of_runs(runs, same):
    def system(name, texts):
        return System(name, tuple((text, text) for text in texts))

    metrics = choose_metrics(["length"]).metrics
    found = compare_systems(["a", "b"], system("base", "xy"), [system("new", runs)], metrics, QUICK)
    assert found["length"].systems[1].against_baseline.identical == same
    one = compare_systems(["a", "b"], system("base", "x"), [system("new", "xx")], metrics, QUICK)
    assert one["length"].systems[1].against_baseline.identical  # all runs are the same text


def test_scores_are_sacrebleus_and_a_seed_repeats_everything(references, output):
    baseline, system = System("a", (output(1), output(2))), System("b", (output(3, 0.1), output(4, 0.1)))
    metrics = choose_metrics(["bleu", "ter"]).metrics
    first = compare_systems(references, baseline, [system], metrics, QUICK, test_set="demo")
    expected = [BLEU(tokenize="none", force=True).corpus_score(run, [references]).score for run in system.runs]
    assert first["BLEU"].systems[1].runs == pytest.approx(expected)
    for metric, sign in (("BLEU", 1), ("TER", -1)):  # of which one is better if it is lower
        against = first[metric].systems[1].against_baseline
        assert (against.seeds.better, against.seeds.seeds) == (2, 2)
        assert sign * against.difference > 0
        assert against.seeds.mean == pytest.approx(against.difference)
    assert (first.test_set, first.sentences, first.left_out) == ("demo", 300, 0)
    assert compare_systems(references, baseline, [system], metrics, QUICK, test_set="demo") == first
    other = compare_systems(references, baseline, [system], metrics, Resampling(200, 100, seed=2))
    assert other["BLEU"].systems[0].s_sel != first["BLEU"].systems[0].s_sel


def test_sentences_with_unknown_words_can_be_left_out():
    references = ["a b c d", "e f g h", "i j k l"]
    clean, spoilt = ("a b c d", "e f x h", "i j k l"), ("a b c d", "e f<unk> g h", "i j k l")
    metrics = choose_metrics(["bleu"]).metrics
    result = compare_systems(references, System("a", (clean,)), [System("b", (spoilt,))], metrics, QUICK, True)
    assert (result.sentences, result.left_out) == (2, 1)
    assert [system.average for system in result["BLEU"].systems] == pytest.approx([100, 100])
    all_spoilt = ("<unk>",) * 3
    with pytest.raises(UserError, match="every sentence"):
        compare_systems(references, System("a", (all_spoilt,)), [], metrics, QUICK, True)


def test_systems_that_cannot_be_compared_are_rejected():
    references = ["a", "b"]
    good = System("a", (("a", "b"),))
    with pytest.raises(UserError, match="two systems are called 'a'"):
        compare_systems(references, good, [good])
    with pytest.raises(UserError, match="a run of 'b': has 1 lines, but the reference has 2"):
        compare_systems(references, good, [System("b", (("a",),))])
    with pytest.raises(UserError, match="'b' has no runs"):
        compare_systems(references, good, [System("b", ())])


def multeval_example() -> Path | None:
    """MultEval's `example` folder, which is not ours to include."""
    folder = os.environ.get("PYSIMT_SAC_MULTEVAL")
    return Path(folder) if folder else None


@pytest.mark.slow
@pytest.mark.skipif(multeval_example() is None, reason="set PYSIMT_SAC_MULTEVAL to MultEval's example folder")
def test_multevals_published_example():
    """But for p, 0.00 there: MultEval's shuffles treat runs as independent, ours do not."""
    folder = multeval_example()

    def read(name):
        return tuple((folder / name).read_text(encoding="utf-8").rstrip("\n").split("\n"))

    def system(name):
        return System(name, tuple(read(f"hyps.lc.tok.en.{name}.opt{run}") for run in range(3)))

    references = read("refs.test2010.lc.tok.en.0")
    metrics = choose_metrics(["bleu", "ter", "length"]).metrics
    resampling = Resampling(shuffles=40_000)
    result = compare_systems(references, system("baseline"), [system("sys1")], metrics, resampling)

    def shown(metric, number):
        found = result[metric].systems[number]
        return tuple(f"{value:.1f}" for value in (found.average, found.s_sel, found.s_test))

    assert shown("BLEU", 0) == ("18.5", "0.3", "0.1")
    assert shown("BLEU", 1) == ("18.8", "0.3", "0.3")
    assert f"{result['BLEU'].systems[1].against_baseline.p:.2f}" == "0.01"
    assert shown("TER", 0) == ("65.7", "0.4", "0.2")
    assert shown("TER", 1) == ("64.8", "0.4", "0.6")
    assert shown("length", 0) == ("107.5", "0.4", "0.1")
    assert shown("length", 1) == ("107.7", "0.3", "0.7")
