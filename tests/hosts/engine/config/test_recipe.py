"""The keys of a training recipe: what they refuse, what they warn of, and weight decay by hand."""

import pytest
import torch
from torch import nn

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.engine.config.recipe import check_supported_by_pysimt
from pysimt_sac.hosts.engine.training.optim import Optimizer


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.lr_schedule:cosine", "train.lr_decay:plateau"], "lr_schedule: cosine and .* both change the"),
        (["model.lr_schedule:constant", "train.lr_decay:noam"], "lr_schedule: constant and .* both change the"),
        (["model.lr_schedule:step"], "lr_schedule: 'step' is not one of constant, cosine, linear, inverse_sqrt"),
        (["model.lr_schedule:linear", "model.lr_warmup:9", "model.lr_total:9"], "lr_total: 9 is not more than lr_war"),
        (["model.lr_final:2"], "lr_final: 2.0 must be at most 1"),
        (["model.label_smoothing:1"], "label_smoothing: 1.0 must be less than 1"),
        (["model.label_smoothing:0.1", "train.model_type:SACNMT"], "SACNMT has its own loss"),
        (["model.ema_decay:1"], "ema_decay: 1.0 must be less than 1"),
        (["model.weight_decay:0.1", "train.l2_reg:0.1"], "weight_decay: and .train. l2_reg both decay"),
        (["model.weight_decay:0.1", "train.optimizer:sgd"], "weight_decay: is for adam, not for sgd"),
        (["model.accumulate:2", "train.model_type:SACNMT"], "accumulate: SACNMT makes its own updates"),
        (["model.accumulate:0"], "accumulate: 0 must be at least 1"),
        (["model.batch_tokens:-1"], "batch_tokens: -1 must be at least 0"),
        (["model.ema_deca:0.9"], "unknown key 'ema_deca' .did you mean 'ema_decay'"),
    ],
)
def test_contradictions_are_refused_in_one_line(refused, words, message):
    refused(message, *words)


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (["model.lr_warmup:9"], "[model] lr_warmup has no effect without an lr_schedule, e.g. constant"),
        (["model.lr_total:9"], "[model] lr_total has no effect without lr_schedule: cosine or linear"),
        (
            ["model.lr_schedule:constant", "model.lr_total:9"],
            "[model] lr_total has no effect without lr_schedule: cosine or linear",
        ),
        (
            ["model.lr_schedule:inverse_sqrt", "model.lr_final:0.5"],
            "[model] lr_final has no effect without lr_schedule: cosine or linear",
        ),
        (["train.lr_warmup_steps:40"], "[train] lr_warmup_steps has no effect without lr_decay: noam"),
        (["train.lr_decay_factor:0.5"], "[train] lr_decay_factor has no effect without lr_decay: plateau"),
        (["train.eval_beam:12"], "[train] eval_beam has no effect without [model] translator_type: bs"),
        (["train.nesterov:True"], "[train] nesterov has no effect without optimizer: sgd"),
        (["model.bucket_by:None", "model.max_len:9"], "[model] max_len has no effect without bucket_by"),
        (["model.aux_dim:5"], "[model] aux_dim has no effect without pysimt"),
    ],
)
def test_keys_without_effect_are_warned_of(toy, pysimt, words, warning):
    outcome = pysimt("train", "-C", toy.config, "--check", *words)
    assert outcome.status == 0
    assert f"Warning: {warning}" in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        ["train.lr_decay:plateau", "train.lr_decay_factor:0.5"],
        ["model.translator_type:bs", "train.eval_beam:12"],
        ["train.optimizer:sgd", "train.momentum:0.9", "train.nesterov:True"],
        ["model.bucket_by:src", "model.max_len:9", "model.bucket_order:ascending"],
        ["model.bucket_by:None", "model.max_len:None"],
    ],
)
def test_keys_with_an_effect_are_not_warned_of(toy, pysimt, words):
    assert "no effect" not in pysimt("train", "-C", toy.config, "--check", *words).err


def test_recipe_keys_work_for_every_model(toy, pysimt):
    words = ["train.model_type:MLENMT", "model.lr_schedule:cosine", "model.ema_decay:0.9", "model.weight_decay:0.1"]
    outcome = pysimt("train", "-C", toy.config, "--check", *words)
    assert outcome.status == 0
    assert "Warning" not in outcome.err.replace("Warning: there is no pretrained_file", "")


def test_writing_out_a_default_does_not_prevent_resuming(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1").status == 0
    assert pysimt("train", "-C", toy.config, "model.label_smoothing:0", "model.lr_schedule:none").status == 0
    assert "model.ema_decay: 0.0 -> 0.9" in pysimt("train", "-C", toy.config, "model.ema_decay:0.9").error


def test_keys_that_pysimt_would_ignore_are_refused_there():
    honoured = {"lr_schedule": "cosine", "lr_warmup": 5, "ema_decay": 0.9, "weight_decay": 0.1, "label_smoothing": 0.1}
    check_supported_by_pysimt(RecipeOptions(**honoured, accumulate=2, batch_tokens=9), "my.conf")
    for name, value, reason in (
        ("precision", "bfloat16", "pysimt computes in float32"),
        ("wandb_project", "mine", "pysimt draws its curves in TensorBoard"),
    ):
        with pytest.raises(UserError, match=rf"my.conf .model.: {name} .{reason}.: only the embedded engine can"):
            check_supported_by_pysimt(RecipeOptions(**{name: value}), "my.conf")
    with pytest.raises(UserError, match=r"precision \(.*\), wandb_project \(.*\): only"):
        check_supported_by_pysimt(RecipeOptions(precision="bfloat16", wandb_project="mine"), "my.conf")


def test_weight_decay_is_decoupled_from_adams_step():
    """Adam's first step has the size of the rate, whatever the gradient; decay takes rate x decay of the weight."""
    layer = nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.fill_(2.0)
    optimizer = Optimizer(layer, TrainOptions(lr=0.1), True, weight_decay=0.5)
    layer.weight.grad, layer.bias.grad = torch.full((1, 1), 7.0), torch.full((1,), 7.0)
    optimizer.step(lr_factor=0.5)
    assert layer.weight.item() == pytest.approx(2 - 0.05 * 0.5 * 2 - 0.05, abs=1e-6)
    assert layer.bias.item() == pytest.approx(2 - 0.05, abs=1e-6)
    assert optimizer.last_lr == pytest.approx(0.05)
    assert optimizer.lr == 0.1


def test_weights_without_a_gradient_do_not_decay():
    layer = nn.Linear(1, 1)
    before = layer.weight.item()
    optimizer = Optimizer(layer, TrainOptions(lr=0.1), True, weight_decay=0.5)
    optimizer.step()
    assert layer.weight.item() == before
