"""alpha, fixed and learnt; slow copies that move by exactly tau."""

import io
import math

import pytest
import torch
from torch import nn

from pysimt_sac.rl.targets import SlowCopy, move_towards
from pysimt_sac.rl.temperature import Temperature

LOG_PI = torch.tensor([[0.5, 0.25, 0.25]]).log()
ENTROPY = 1.5 * math.log(2)


def test_a_fixed_temperature_stays():
    temperature = Temperature(0.01)
    temperature.learn(LOG_PI)
    assert temperature.alpha.item() == pytest.approx(0.01)
    assert temperature.state_dict() == {}


@pytest.mark.parametrize(("aim", "direction"), [(ENTROPY + 0.1, 1), (ENTROPY - 0.1, -1)])
def test_a_learnt_temperature_rises_while_the_entropy_is_too_low(aim, direction):
    temperature = Temperature(0.01, learns=True, target_entropy=aim, lr=0.1)
    for _ in range(3):
        before = temperature.alpha.item()
        temperature.learn(LOG_PI)
        assert (temperature.alpha.item() - before) * direction > 0


def test_the_entropy_to_keep_is_the_mean_of_what_was_observed_before_learning():
    temperature = Temperature(0.01, learns=True, lr=0.1)
    certain = torch.tensor([[1.0, 1e-30, 1e-30]]).log()
    temperature.observe(LOG_PI)
    temperature.observe(certain)
    assert temperature.target.item() == pytest.approx(ENTROPY / 2)
    temperature.learn(LOG_PI)  # more entropy than that: alpha falls
    assert temperature.alpha.item() < 0.01
    assert temperature.target.item() == pytest.approx(ENTROPY / 2)


def test_without_observation_it_is_that_of_the_first_policy():
    temperature = Temperature(0.01, learns=True)
    temperature.learn(LOG_PI)
    temperature.learn(torch.tensor([[0.9, 0.05, 0.05]]).log())
    assert temperature.target.item() == pytest.approx(ENTROPY)


def test_a_temperature_of_zero_means_no_entropy_term():
    assert Temperature(0.0).alpha.item() == 0


@pytest.mark.parametrize("target", [1.2, None])
def test_a_restored_temperature_goes_on_as_the_other_would_have(target):
    one = Temperature(0.01, learns=True, target_entropy=target, lr=0.1)
    one.learn(LOG_PI)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other = Temperature(0.5, learns=True, target_entropy=9.9, lr=0.1)
    other.load_state_dict(torch.load(file, weights_only=True))
    for temperature in (one, other):
        temperature.learn(LOG_PI)
    assert one.alpha.item() == other.alpha.item()
    assert not one.alpha.requires_grad


def test_slow_tensors_move_by_exactly_tau():
    slow, fast = [torch.tensor([0.0, 8.0]), torch.tensor(4.0)], [torch.tensor([1.0, 0.0]), torch.tensor(4.0)]
    move_towards(slow, fast, 0.25)
    assert slow[0].tolist() == [0.25, 6.0]
    assert slow[1].item() == 4
    assert fast[0].tolist() == [1, 0]


def test_a_slow_copy_follows_its_network_and_is_never_trained():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    copy = SlowCopy(network)
    assert network.training
    assert not copy.network.training
    assert not any(parameter.requires_grad for parameter in copy.network.parameters())
    begin = [parameter.clone() for parameter in network.parameters()]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)
    copy.follow(0.0)
    for slow, first in zip(copy.network.parameters(), begin, strict=True):
        assert torch.equal(slow, first)
    copy.follow(0.005)
    for slow, first in zip(copy.network.parameters(), begin, strict=True):
        torch.testing.assert_close(slow, first + 0.005)
    copy.follow(1.0)
    for slow, fast in zip(copy.network.parameters(), network.parameters(), strict=True):
        assert torch.equal(slow, fast)
        assert slow is not fast
