"""Maximum likelihood as an algorithm is the engine's own loss: in an update, and over a whole run."""

import torch

from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.models import MLE
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.models.runs import points, train
from tests.models.task import Board

DEEP = {"out_logic": "deep", "tied_emb": "2way", "n_encoders": 2, "att_bottleneck": "hid"}


def test_its_update_has_the_loss_and_gradient_of_validation():
    model = tiny_model(model_class=model_class(MLE), **DEEP)
    batch = tiny_batch(model, tiny_sentences(4), tiny_sentences(4, seed=1))
    validation = model(batch)
    model.start_training(Board())
    training = model.train()(batch, uctr=1)
    torch.testing.assert_close(training["loss"], validation["loss"])
    assert training["n_items"] == validation["n_items"]
    gradients = [torch.autograd.grad(out["loss"], [*model.parameters()]) for out in (training, validation)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_without_a_run_a_shell_is_the_plain_model():
    """`translate` and validation never build the algorithm."""
    shell, plain = tiny_model(model_class=model_class(MLE)), tiny_model()
    batch = tiny_batch(plain, tiny_sentences(4), tiny_sentences(4, seed=1))
    assert shell.session is None
    assert torch.equal(shell.train()(batch)["loss"], plain.train()(batch)["loss"])
    assert shell.training_state() == {}
    assert shell.lr_factor(1) == 1.0
    assert list(shell.state_dict()) == list(plain.state_dict())


def test_a_run_learns_as_the_plain_model_does(toy):
    runs = [train(toy, name, [f"train.model_type:{name}"]) for name in ("SimultaneousNMT", "MLENMT")]
    plain, ours = (points(run, "val_LOSS") for run in runs)
    assert plain.keys() == ours.keys()
    for update, loss in plain.items():
        assert abs(loss - ours[update]) < 1e-3, update
    weights = [load_state(run)[0]["weights"] for run in runs]
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=0, atol=1e-3)
