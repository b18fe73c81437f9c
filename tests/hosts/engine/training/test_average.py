"""The moving average of the weights against a direct computation, and where a run uses it."""

import copy

import pytest
import torch
from torch import nn

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from pysimt_sac.hosts.engine.training.average import WeightAverage
from tests.hosts.engine.dying_runs import last_state, scalars


def test_the_first_steps_by_hand():
    """Kept of the average: 1/10, then 2/11, then the decay, 0.2, which is less than 3/12."""
    layer = nn.Linear(1, 1, bias=False)
    average = WeightAverage(layer, 0.2)
    expected = start = layer.weight.item()
    for value, kept in ((1.0, 0.1), (5.0, 2 / 11), (-3.0, 0.2)):
        with torch.no_grad():
            layer.weight.fill_(value)
        layer.weight.grad = torch.ones_like(layer.weight)
        average.update()
        expected = kept * expected + (1 - kept) * value
        assert average.average["weight"].item() == pytest.approx(expected)
    assert start != expected
    with average.in_place():
        assert layer.weight.item() == pytest.approx(expected)
    assert layer.weight.item() == -3


def test_updates_without_gradients_and_frozen_weights_change_nothing():
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    average = WeightAverage(layer, 0.9)
    before = copy.deepcopy(average.state_dict())
    average.update()
    assert average.state_dict()["n_averaged"] == 0
    assert torch.equal(average.average["weight"], before["average"]["weight"])
    assert set(average.average) == {"weight"}


def test_equal_weights_have_exactly_themselves_as_their_average():
    torch.manual_seed(0)
    layer = nn.Linear(30, 30)
    average = WeightAverage(layer, 0.999)
    layer.weight.grad = torch.zeros_like(layer.weight)
    for _ in range(50):
        average.update()
    assert torch.equal(average.average["weight"], layer.weight)


def test_the_weights_come_back_bit_by_bit_even_after_an_error():
    torch.manual_seed(0)
    layer = nn.Linear(30, 30)
    average = WeightAverage(layer, 0.9)
    raw = torch.randn(30, 30)
    with torch.no_grad():
        layer.weight.copy_(raw)
    kept = average.average["weight"].clone()
    with pytest.raises(KeyError), average.in_place():
        assert torch.equal(layer.weight, kept)
        raise KeyError
    assert torch.equal(layer.weight, raw)
    assert torch.equal(average.average["weight"], kept)


def test_training_goes_on_from_the_raw_weights_and_the_average_is_what_is_validated_and_saved(toy, pysimt):
    words = ["train.eval_metrics:loss", "train.checkpoint_freq:3", "train.n_checkpoints:9"]
    runs = {}
    for name, decay in (("raw", 0), ("ema", 0.5)):
        assert pysimt("train", "-C", toy.config, "-s", name, *words, f"model.ema_decay:{decay}").status == 0
        runs[name] = toy.folder / f"runs/toy-{name}"
    states = {name: last_state(folder) for name, folder in runs.items()}
    for name, weight in states["raw"]["weights"].items():
        assert torch.equal(weight, states["ema"]["weights"][name])
    assert states["ema"]["average"]["n_averaged"] == 20

    def checkpoint(name, label):
        (path,) = runs[name].glob(f"*{label}*.ckpt")
        return load_checkpoint(path).weights

    average = states["ema"]["average"]["average"]
    best = checkpoint("ema", "-val002.best.loss")
    assert all(torch.equal(best[name], average[name]) for name in average)
    assert not torch.equal(best["dec.emb.weight"], states["ema"]["weights"]["dec.emb.weight"])
    raw = [checkpoint("raw", f"-update{update}") for update in (3, 6)]
    numbered = [checkpoint("ema", f"-update{update}") for update in (3, 6)]
    assert all(not torch.equal(numbered[i]["dec.emb.weight"], raw[i]["dec.emb.weight"]) for i in (0, 1))
    losses = {n: [p["value"] for p in scalars(runs[n]) if p["name"] == "val_LOSS"] for n in runs}
    assert all(one != other for one, other in zip(losses["raw"], losses["ema"], strict=True))


def test_going_back_to_the_best_weights_goes_back_to_the_average(toy, pysimt):
    words = ["train.lr_decay:plateau", "train.lr_decay_patience:0", "train.lr_decay_revert:True", "train.lr:0.3"]
    outcome = pysimt("train", "-C", toy.config, *words, "train.eval_freq:5", "model.ema_decay:0.9")
    assert outcome.status == 0
    assert "Reverted to the weights of" in outcome.err.rpartition("Validation 4")[2]
    state = last_state(toy.run_folder)
    average = state["average"]["average"]
    assert all(torch.equal(average[name], state["weights"][name]) for name in average)
