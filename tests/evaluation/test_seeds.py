"""Statistics over seeds against hand-computed values and numerical integration."""

import math

import pytest

from pysimt_sac.evaluation.significance import T_QUANTILES, holm, over_seeds


def t_quantile(freedom):
    """The 97.5% quantile of Student's t: the density integrated by Simpson's rule, inverted by bisection."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def area(end, steps=4000):
        points = [scale * (1 + (end * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
        return end / steps / 3 * (points[0] + points[-1] + 4 * sum(points[1:-1:2]) + 2 * sum(points[2:-1:2]))

    low, high = 0.0, 13.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if area(middle) < 0.475 else (low, middle)
    return low


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 30])
def test_the_quantiles_are_those_of_students_t(freedom):
    assert T_QUANTILES[freedom - 1] == pytest.approx(t_quantile(freedom), abs=1e-4)


def test_the_interval_by_hand():
    found = over_seeds([1.5, 2.0, 4.0], [1.0, 2.0, 3.0])  # 0.5, 0 and 1: mean 0.5, standard deviation 0.5
    margin = 4.3027 * 0.5 / math.sqrt(3)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - margin, 0.5 + margin))
    assert found.wins == "2 of 3"
    assert over_seeds([1.5, 2.0, 4.0], [1.0, 2.0, 3.0], higher_is_better=False).wins == "0 of 3"


def test_runs_that_cannot_be_paired_have_no_interval():
    assert over_seeds([1.0], [2.0]) is None
    assert over_seeds([1.0, 2.0], [1.0, 2.0, 3.0]) is None
    assert over_seeds([1.5, 2.5], [1.0, 2.0]) is None  # without any spread there is nothing to learn from


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
