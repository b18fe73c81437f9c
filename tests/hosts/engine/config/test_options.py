"""Options: one declaration gives types and defaults; `test_bad_config.py` has the messages about wrong values."""

import dataclasses

import pytest

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


@pytest.mark.parametrize("cls", [TrainOptions, ModelOptions, RecipeOptions])
def test_every_option_is_documented_and_its_default_is_valid(cls):
    fields = dataclasses.fields(cls)
    assert all(len(field.metadata["help"]) > 5 for field in fields)
    read(cls, **{field.name: field.default for field in fields})
