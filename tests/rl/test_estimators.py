"""alpha, fixed and learned; a baseline that learns and moves nothing else."""

import io
import math

import pytest
import torch

from pysimt_sac.rl.estimators import LearnedBaseline, Temperature

LOG_PI = torch.tensor([[0.5, 0.25, 0.25]]).log()
ENTROPY = 1.5 * math.log(2)


def test_a_fixed_temperature_stays():
    temperature = Temperature(0.01)
    temperature.update(LOG_PI)
    assert temperature.alpha.item() == pytest.approx(0.01)
    assert temperature.state_dict() == {}


@pytest.mark.parametrize(("aim", "direction"), [(ENTROPY + 0.1, 1), (ENTROPY - 0.1, -1)])
def test_a_learned_temperature_rises_while_the_entropy_is_too_low(aim, direction):
    temperature = Temperature(0.01, learned=True, target_entropy=aim, lr=0.1)
    for _ in range(3):
        before = temperature.alpha.item()
        temperature.update(LOG_PI)
        assert (temperature.alpha.item() - before) * direction > 0


def test_the_entropy_to_keep_is_the_mean_of_what_was_observed_before_learning():
    temperature = Temperature(0.01, learned=True, lr=0.1)
    certain = torch.tensor([[1.0, 1e-30, 1e-30]]).log()
    temperature.observe(LOG_PI)
    temperature.observe(certain)
    assert temperature.target.item() == pytest.approx(ENTROPY / 2)
    temperature.update(LOG_PI)  # more entropy than that: alpha falls
    assert temperature.alpha.item() < 0.01
    assert temperature.target.item() == pytest.approx(ENTROPY / 2)


def test_without_observation_it_is_that_of_the_first_policy():
    temperature = Temperature(0.01, learned=True)
    temperature.update(LOG_PI)
    temperature.update(torch.tensor([[0.9, 0.05, 0.05]]).log())
    assert temperature.target.item() == pytest.approx(ENTROPY)


def test_a_temperature_of_zero_means_no_entropy_term():
    assert Temperature(0.0).alpha.item() == 0


@pytest.mark.parametrize("target", [1.2, None])
def test_a_restored_temperature_goes_on_as_the_other_would_have(target):
    one = Temperature(0.01, learned=True, target_entropy=target, lr=0.1)
    one.update(LOG_PI)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other = Temperature(0.5, learned=True, target_entropy=9.9, lr=0.1)
    other.load_state_dict(torch.load(file, weights_only=True))
    for temperature in (one, other):
        temperature.update(LOG_PI)
    assert one.alpha.item() == other.alpha.item()
    assert not one.alpha.requires_grad


@pytest.mark.parametrize(("alpha", "learned", "start"), [(0.3, False, 0.3), ("auto", True, 0.01)])
def test_auto_is_learned_and_a_number_is_not(alpha, learned, start):
    temperature = Temperature.build(alpha, None, 0.1, torch.device("cpu"))
    assert temperature.learned == learned
    assert temperature.alpha.item() == pytest.approx(start)


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
