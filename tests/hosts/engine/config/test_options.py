"""Options: one declaration gives types, ranges, defaults and messages."""

import dataclasses

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import read_section
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions


def read(cls, **values):
    return read_section(cls, values, "my.conf [x]")


def test_defaults_are_pysimts():
    train = read(TrainOptions)
    assert (train.batch_size, train.lr, train.gclip, train.patience, train.eval_freq) == (32, 0.0004, 5.0, 20, 3000)
    model = read(ModelOptions)
    assert (model.emb_dim, model.enc_dim, model.max_len, model.out_logic) == (128, 256, 80, "simple")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lr": 1}, 1.0),
        ({"eval_metrics": "bleu, loss"}, ("bleu", "loss")),
        ({"eval_filters": ["de-bpe", "de-hyphen"]}, ("de-bpe", "de-hyphen")),
        ({"eval_filters": ""}, ()),
        ({"lr_decay": False}, False),
        ({"lr_decay": "plateau"}, "plateau"),
        ({"adam_betas": [0.5, 0.9]}, (0.5, 0.9)),
        ({"tf_model_dim": None}, None),
    ],
)
def test_values_become_their_types(given, expected):
    (name,) = given
    assert getattr(read(TrainOptions, **given), name) == expected


@pytest.mark.parametrize(
    ("cls", "given", "message"),
    [
        (TrainOptions, {"batch_size": 0}, "batch_size: 0 must be at least 1"),
        (TrainOptions, {"batch_size": 2.5}, "batch_size: 2.5 is not a whole number"),
        (TrainOptions, {"batch_size": True}, "batch_size: True is not a whole number"),
        (TrainOptions, {"lr": float("nan")}, "lr: nan is not a finite number"),
        (TrainOptions, {"lr": "fast"}, "lr: 'fast' is not a finite number"),
        (TrainOptions, {"lr_decay": "sometimes"}, "one of False, plateau, noam"),
        (TrainOptions, {"lr_decay": True}, "one of False, plateau, noam"),
        (TrainOptions, {"lr_decay_factor": 1.0}, "must be less than 1"),
        (TrainOptions, {"optimizer": "adamax"}, "is not one of adam, sgd"),
        (TrainOptions, {"adam_betas": [0.9]}, "is not 2 numbers in brackets"),
        (TrainOptions, {"eval_metrics": 3}, "is not a list of words"),
        (ModelOptions, {"dropout_emb": 1}, "must be less than 1"),
        (ModelOptions, {"enc_bidirectional": 1}, "is not True or False"),
        (ModelOptions, {"tied_emb": "4way"}, "one of False, 2way, 3way"),
        (ModelOptions, {"att_bottleneck": "wide"}, "one of ctx, hid or a whole number"),
        (ModelOptions, {"att_bottleneck": -3}, "must be at least 1"),
        (ModelOptions, {"max_len": 1}, "must be at least 2"),
    ],
)
def test_wrong_values_are_explained(cls, given, message):
    with pytest.raises(UserError) as caught:
        read(cls, **given)
    assert message in str(caught.value)
    assert str(caught.value).startswith("my.conf [x]")


@pytest.mark.parametrize("cls", [TrainOptions, ModelOptions, RecipeOptions])
def test_every_option_is_documented_and_its_default_is_valid(cls):
    fields = dataclasses.fields(cls)
    assert all(len(field.metadata["help"]) > 5 for field in fields)
    read(cls, **{field.name: field.default for field in fields})
