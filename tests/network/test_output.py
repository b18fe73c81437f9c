"""The chunked output loss is torch's cross-entropy; parts of the layer are as in the whole; dropout keeps the mean."""

import pytest
import torch
from torch import nn

from pysimt_sac.network import output
from pysimt_sac.network.output import Dropout, linear_cross_entropy, linear_log_probs, linear_rows


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("n_positions", [1, 7, 20])
def test_equals_torchs_cross_entropy_with_its_gradients(n_positions, smoothing, monkeypatch):
    monkeypatch.setattr(output, "CHUNK", 7)
    torch.manual_seed(0)
    layer = nn.Linear(5, 11).double()
    x = torch.randn(n_positions, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 11, (n_positions,))
    variables = [x, layer.weight, layer.bias]
    ours = linear_cross_entropy(layer, x, targets, smoothing)
    reference = nn.functional.cross_entropy(layer(x), targets, reduction="sum", label_smoothing=smoothing)
    with torch.no_grad():
        torch.testing.assert_close(linear_cross_entropy(layer, x, targets, smoothing), reference)
    torch.testing.assert_close(ours, reference)
    mine, theirs = torch.autograd.grad(3 * ours, variables), torch.autograd.grad(3 * reference, variables)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_choice_that_is_nearly_impossible_among_all_has_finite_gradients():
    layer = nn.Linear(1, 4)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[500.0], [0.0], [1.0], [2.0]]))
        layer.bias.zero_()
    log_pi, log_p, entropy = linear_log_probs(layer, torch.ones(1, 1), torch.tensor([3]), first=2)
    assert log_pi.item() == pytest.approx(-0.313262)  # -log(1 + 1/e)
    assert log_p.item() == pytest.approx(-498)
    (log_pi + log_p + entropy).sum().backward()
    assert layer.weight.grad.isfinite().all()


def test_a_hopeless_target_has_a_finite_loss():
    layer = nn.Linear(1, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[500.0], [-500.0]]))
        layer.bias.zero_()
    assert linear_cross_entropy(layer, torch.ones(1, 1), torch.tensor([1])).item() == pytest.approx(1000)


@pytest.mark.parametrize("wanted", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, -3, 0.5)])
def test_log_probabilities_and_their_gradients_are_those_of_autograd(wanted, monkeypatch):
    monkeypatch.setattr(output, "CHUNK", 7)
    torch.manual_seed(0)
    layer = nn.Linear(5, 11).double()
    x = torch.randn(20, 5, dtype=torch.float64, requires_grad=True)
    rows, factors = torch.randint(2, 11, (20,)), torch.randn(20, dtype=torch.float64)
    log_p, log_p_all = layer(x)[:, 2:].log_softmax(-1), layer(x).log_softmax(-1)
    places = rows.unsqueeze(1)
    expected = [log_p.gather(1, places - 2).squeeze(1), log_p_all.gather(1, places).squeeze(1)]
    expected.append(-(log_p.exp() * log_p).sum(1))
    found = linear_log_probs(layer, x, rows, first=2)
    gradients = []
    for each in (found, expected):
        loss = sum(weight * (part * factors).sum() for weight, part in zip(wanted, each, strict=True) if weight)
        gradients.append(torch.autograd.grad(loss, [x, layer.weight, layer.bias]))
    for ours, reference in zip([*found, *gradients[0]], [*expected, *gradients[1]], strict=True):
        torch.testing.assert_close(ours, reference)


@pytest.mark.parametrize("shape", [(7,), (7, 3)])
def test_some_outputs_equal_those_of_the_whole_layer_with_their_gradients(shape):
    torch.manual_seed(0)
    layer = nn.Linear(5, 11).double()
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    rows = torch.randint(0, 11, shape)
    ours, reference = linear_rows(layer, x, rows), layer(x).gather(1, rows.view(7, -1)).view(shape)
    torch.testing.assert_close(ours, reference)
    variables = [x, layer.weight, layer.bias]
    gradients = [torch.autograd.grad(found.square().sum(), variables) for found in (ours, reference)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_dropout_zeroes_its_share_scales_the_rest_and_rests_in_evaluation():
    torch.manual_seed(0)
    dropout, x = Dropout(0.25), torch.ones(100_000)
    dropped = dropout(x)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert (dropped == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert torch.equal(dropout.eval()(x), x)
