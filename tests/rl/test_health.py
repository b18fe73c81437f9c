"""The health monitor judges running means of several reports: every problem once, and no single batch."""

import re

import pytest

from pysimt_sac.rl.health import LEAST_REPORTS, RECENT, HealthMonitor
from tests.models.runs import lines, points, train, train_actor

WELL = {
    "length_ratio": 1.0,
    "entropy": 1.0,
    "max_q": 5.0,
    "max_return": 5.0,
    "q": 3.0,
    "return_to_go": 2.9,
    "mle_loss": 0.5,
}
WELL["gradient_rl"] = 0.1  # the actor learns


def told(monitor, metrics, times=RECENT):
    """The warnings of so many equal reports."""
    return [warning for _ in range(times) for warning in monitor.check(metrics)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length_ratio": 0.7}, "too short"),
        ({"length_ratio": 1.4}, "too long"),
        ({"entropy": 0.1}, "entropy fell from 1 to 0.1"),
        ({"max_q": 16.0}, "lower tau"),
        ({"q": 6.0}, "predicted return"),
        ({"mle_loss": 3.0}, "rose from 0.5 to"),
    ],
)
def test_each_problem_is_named_once_with_what_to_change_until_it_has_recovered(change, words):
    monitor = HealthMonitor()
    assert told(monitor, WELL) == []
    assert monitor.check({**WELL, **change}) == []  # one batch
    (warning,) = told(monitor, {**WELL, **change})
    assert words in warning
    assert told(monitor, WELL) == []
    assert len(told(monitor, {**WELL, **change})) == 1


def test_a_reward_that_is_far_too_large_is_named():
    (warning,) = told(HealthMonitor(), {**WELL, "reward_mine": 1e6})
    assert "the reward 'mine' gives a translation 1e+06" in warning


def test_critics_that_are_not_in_every_report_are_watched():
    monitor, actor = HealthMonitor(), {name: value for name, value in WELL.items() if name not in ("q", "max_q")}
    found = [warning for _ in range(RECENT) for metrics in ({**WELL, "max_q": 16.0}, actor)
             for warning in monitor.check(metrics)]  # fmt: skip
    assert len(found) == 1
    assert "lower tau" in found[0]


def test_single_batches_say_nothing():
    """The case that was seen: an entropy of 0.05, of 0.000013 in one report, of 0.06 in the next."""
    monitor = HealthMonitor()
    for entropy in (0.05, 0.06, 0.05, 1.3e-5, 0.06, 0.05, 1.3e-5, 0.05):
        assert monitor.check({**WELL, "entropy": entropy}) == []


def test_the_first_entropy_is_a_mean_too():
    monitor = HealthMonitor()
    for entropy in (9.0, 1.0, 2.0):
        monitor.check({"entropy": entropy})
    assert monitor.first_entropy == 4.0


def test_critics_that_still_learn_alone_may_be_wrong():
    alone = {name: value for name, value in WELL.items() if name != "gradient_rl"}
    assert told(HealthMonitor(), {**alone, "q": 9.0}) == []


def test_a_restored_monitor_remembers_the_means_and_what_it_said():
    one, other = HealthMonitor(), HealthMonitor()
    told(one, WELL)
    assert len(told(one, {**WELL, "entropy": 0.1})) == 1
    other.load_state_dict(one.state_dict())
    assert told(other, {**WELL, "entropy": 0.1}) == []
    assert vars(other) == vars(one)
    assert len(told(other, {**WELL, "entropy": 0.1, "q": 9.0})) == 1


def test_algorithms_without_critics_are_monitored_too():
    assert told(HealthMonitor(), {"length_ratio": 1.1}) == []
    assert told(HealthMonitor(), {"length_ratio": 0.5}, LEAST_REPORTS - 1) == []
    assert len(told(HealthMonitor(), {"length_ratio": 0.5})) == 1


def test_a_run_warns_of_its_means(toy):
    """Whatever a toy run does, its warnings name the mean of the reports before them."""
    actor = train_actor(toy)
    changes = [actor, "train.model_type:REINFORCENMT", "model.health_freq:1", "train.lr:0.3", "train.max_epochs:1"]
    folder = train(toy, "wild", changes)
    ratios = list(points(folder, "rl_length_ratio").values())
    means = [
        sum(ratios[max(0, end - RECENT) : end]) / min(end, RECENT) for end in range(LEAST_REPORTS, len(ratios) + 1)
    ]
    (named,) = [float(re.search(r"length ratio ([\d.]+)", line)[1]) for line in lines(folder, "Warning: sampled")][:1]
    assert named in [round(mean, 2) for mean in means]
