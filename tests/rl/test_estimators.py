"""alpha, fixed and learned; the critics' weight by regression; a baseline that learns and moves nothing else."""

import io
import math

import pytest
import torch

from pysimt_sac.rl.estimators import FutureWeight, LearnedBaseline, Temperature

LOG_PI = torch.tensor([[0.5, 0.25, 0.25]]).log()
ENTROPY = 1.5 * math.log(2)


CPU = torch.device("cpu")
LESS = torch.tensor([[0.9, 0.05, 0.05]]).log()


def test_a_number_is_a_fixed_temperature():
    temperature = Temperature(0.3, CPU)
    temperature.update(LOG_PI, actor_learns=True)
    assert temperature.alpha.item() == pytest.approx(0.3)
    assert temperature.state_dict() == {}


@pytest.mark.parametrize(("policy", "direction"), [(LESS, 1), (torch.full((1, 3), -math.log(3)), -1)])
def test_a_learned_temperature_rises_while_the_entropy_is_too_low_and_falls_while_it_is_too_high(policy, direction):
    temperature = Temperature("auto", CPU)
    temperature.update(LOG_PI, actor_learns=False)
    assert temperature.alpha.item() == pytest.approx(0.01)
    for _ in range(3):
        before = temperature.alpha.item()
        temperature.update(policy, actor_learns=True)
        assert (temperature.alpha.item() - before) * direction > 0


def test_the_target_entropy_is_the_mean_before_the_actor_learns():
    temperature = Temperature("auto", CPU)
    certain = torch.tensor([[1.0, 1e-30, 1e-30]]).log()
    temperature.update(LOG_PI, actor_learns=False)
    temperature.update(certain, actor_learns=False)
    temperature.update(LOG_PI, actor_learns=True)
    assert temperature.target_entropy.item() == pytest.approx(ENTROPY / 2)


def test_without_pre_training_it_is_that_of_the_first_policy():
    temperature = Temperature("auto", CPU)
    for policy in (LOG_PI, LESS):
        temperature.update(policy, actor_learns=True)
    assert temperature.target_entropy.item() == pytest.approx(ENTROPY)


def test_a_restored_temperature_goes_on_as_the_other_would_have():
    one, other = Temperature("auto", CPU), Temperature("auto", CPU)
    one.update(LOG_PI, actor_learns=False)
    one.update(LESS, actor_learns=True)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for temperature in (one, other):
        temperature.update(LESS, actor_learns=True)
    assert one.alpha.item() == other.alpha.item() != pytest.approx(0.01, rel=1e-9)
    assert not one.alpha.requires_grad


# The weight of the critics' future

VALID = torch.tensor([[True, True, True], [True, True, False]])
# Centred: -2 -1 3 | 1 -1, and -2 1 1 | 1 -1
REALISED = torch.tensor([[1.0, 2.0, 6.0], [4.0, 2.0, 9.0]])
PREDICTED = torch.tensor([[0.0, 3.0, 3.0], [5.0, 3.0, 7.0]])


def weight_after(*predictions, realised=REALISED, valid=VALID):
    weight = FutureWeight("auto", True, CPU)
    for predicted in predictions:
        weight.update(predicted.unsqueeze(0), realised, valid)
    return float(weight.value)


def test_it_is_the_slope_of_the_realised_future_on_the_predicted_one():
    covariance, variance = (4 - 1 + 3) + (1 + 1), (4 + 1 + 1) + (1 + 1)
    assert weight_after(PREDICTED) == pytest.approx(covariance / variance)
    assert weight_after(PREDICTED, PREDICTED) == pytest.approx(1.0)
    twice = 2 * PREDICTED + 5  # critics that exaggerate, whatever V(s) they add
    assert weight_after(twice) == pytest.approx(0.5)
    # a running mean: 0.98 of the old one, from 0
    after = (0.98 * 8 + 2 * 8) / (0.98 * 8 + 4 * 8)
    assert weight_after(PREDICTED, twice) == pytest.approx(after)


def test_it_is_the_slope_of_a_least_squares_fit():
    generator = torch.Generator().manual_seed(0)
    predicted, noise = torch.randn(2, 40, 4, generator=generator).unbind()
    realised, valid = 0.6 * predicted + noise, torch.ones(40, 4, dtype=torch.bool)
    x, y = (values - values.mean(1, keepdim=True) for values in (predicted, realised))
    slope = torch.linalg.lstsq(x.reshape(-1, 1), y.reshape(-1, 1)).solution.item()
    assert 0 < slope < 1
    assert weight_after(predicted, realised=realised, valid=valid) == pytest.approx(slope, rel=1e-4)


def test_it_begins_at_zero_and_stays_between_zero_and_one():
    assert weight_after() == 0
    assert weight_after(torch.zeros(2, 3)) == 0  # critics at their start, Q = 0
    assert weight_after(REALISED) == pytest.approx(1.0)
    assert weight_after(-REALISED) == 0  # the wrong order
    assert weight_after(0.1 * REALISED) == 1  # the right order, but too timid
    assert weight_after(REALISED[:0], realised=REALISED[:0], valid=VALID[:0]) == 0


def test_of_several_critics_the_smaller_prediction_counts_as_for_the_actor():
    weight = FutureWeight("auto", True, CPU)
    weight.update(torch.stack((PREDICTED, PREDICTED + 100)), REALISED, VALID)
    assert float(weight.value) == pytest.approx(1.0)


def test_a_given_weight_or_one_without_branches_holds_nothing_out():
    sources = torch.arange(60).view(3, 20)
    for weight, expected in ((FutureWeight(0.3, True, CPU), 0.3), (FutureWeight("auto", False, CPU), 1.0)):
        weight.update(-REALISED.unsqueeze(0), REALISED, VALID)
        assert weight.value == expected
        assert not weight.held_out(sources).any()


def test_about_one_source_in_eight_is_held_out_whatever_batch_it_is_in():
    weight = FutureWeight("auto", True, CPU)
    sources = torch.randint(3, 9000, (9, 4000), generator=torch.Generator().manual_seed(0))
    held_out = weight.held_out(sources)
    assert held_out.float().mean().item() == pytest.approx(1 / 8, abs=0.02)
    padded = torch.cat((sources, torch.zeros(3, 4000, dtype=torch.long)))
    order = torch.randperm(4000, generator=torch.Generator().manual_seed(1))
    assert torch.equal(weight.held_out(padded[:, order]), held_out[order])


def test_a_restored_weight_goes_on_as_the_other_would_have():
    one, other = FutureWeight("auto", True, CPU), FutureWeight("auto", True, CPU)
    one.update(PREDICTED.unsqueeze(0), REALISED, VALID)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for weight in (one, other):
        weight.update(3 * PREDICTED.unsqueeze(0), REALISED, VALID)
    assert 0.3 < float(one.value) < 0.9
    assert torch.equal(one.value, other.value)


def test_a_learned_baseline_learns_and_moves_nothing_else():
    torch.manual_seed(0)
    weight = torch.randn(7, 5, requires_grad=True)  # the decoder's state depends on it
    states_NH = weight.tanh()
    baseline = LearnedBaseline(5, 0.05, torch.device("cpu"))
    assert baseline(states_NH).abs().max() == 0
    returns_N = states_NH.sum(1) + 3
    errors = [baseline.update(baseline(states_NH), returns_N).item() for _ in range(300)]
    assert errors[-1] < 0.01 * errors[0]
    assert weight.grad is None
    other = LearnedBaseline(5, 0.05, torch.device("cpu"))
    other.load_state_dict(baseline.state_dict())
    assert torch.equal(other(states_NH), baseline(states_NH))
    assert other.update(other(states_NH), returns_N) == baseline.update(baseline(states_NH), returns_N)
