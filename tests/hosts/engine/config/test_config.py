"""Configurations in pysimt's format."""

import os
from pathlib import Path

import pytest

from pysimt_sac.hosts.engine.config.parser import Options, check_config, read_config, result_changing_differences
from pysimt_sac.hosts.engine.config.values import parse_value, write_value
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT  # noqa: F401 - registers the model that the text names

CONFIG = """
[vars]
root: ./data

[train]
model_type: SimultaneousNMT
save_path: ./runs
eval_metrics: bleu,loss
tensorboard_dir: ${save_path}/tb

[model]
Direction: src:Text -> trg:Text
max_len: None
tied_emb: 2way

[data]
train_set: {'src': '${vars:root}/train.en',
            'trg': '${vars:root}/train.de'}
val_set: {'src': '${vars:root}/val.en', 'trg': '${vars:root}/val.de'}
style: truecase

[vocabulary]
src: ${vars:root}/vocab.en
trg: ${vars:root}/vocab.de
"""


@pytest.fixture
def read(tmp_path):
    def read(text=CONFIG, *overrides):
        path = tmp_path / "my.conf"
        path.write_text(text)
        return read_config(path, overrides)

    return read


def test_values_are_interpolated_typed_and_made_paths(read):
    options = read()
    assert options.model["direction"] == "src:Text -> trg:Text"  # keys are lower-cased
    assert options.model["max_len"] is None
    assert options.data["train_set"]["src"] == Path.cwd() / "data/train.en"
    assert options.train["tensorboard_dir"] == Path.cwd() / "runs/tb"
    assert options.train["batch_size"] == 32  # pysimt's defaults are there to be interpolated, too
    assert options.data["style"] == "truecase"  # not True, as pysimt would have it


def test_environment_variables_are_replaced(read, monkeypatch):
    monkeypatch.setenv("SCRATCH", "/somewhere")
    assert read(CONFIG.replace("./runs", "$SCRATCH/runs")).train["save_path"] == Path("/somewhere/runs")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("1e-05", 1e-05), ("TRUE", True), ("none", None), ("[1, 'a']", [1, "a"]), ("a,b", "a,b"), ("", ""),
        ("truecase", "truecase"), ("nonesuch", "nonesuch"), ("1_a", "1_a"), ("{'a': './b'}", {"a": Path.cwd() / "b"}),
        ("./a.py,./b.py", [Path.cwd() / "a.py", Path.cwd() / "b.py"]), ("./a,b", Path.cwd() / "a,b"),
        ("~/x", Path(os.path.expanduser("~/x"))), ("(0.9, 0.99)", (0.9, 0.99)), ("print('x')", "print('x')"),
    ],
)  # fmt: skip
def test_text_becomes_a_value(text, value):
    assert parse_value(text) == value


@pytest.mark.parametrize(
    "value",
    ["", "a b", "5", "None", "true", "truecase", "$x", "'q'", " x", "a\nb", 3, 0.1, None, True, [1, "a"], (0.9, 0.99),
     {"src": "x"}, {"trg": Path("/y")}, Path("/z")],
)  # fmt: skip
def test_values_that_are_written_are_read_again(value):
    assert parse_value(write_value(value).replace("$$", "$")) == value


def test_a_checkpoint_keeps_plain_values_only(read):
    stored = read().to_dict()
    assert stored["data"]["val_set"]["trg"] == str(Path.cwd() / "data/val.de")
    again = Options.from_dict(stored, ["model.max_len:7"])
    assert again.model["max_len"] == 7
    assert again.sections == stored["sections"]


def test_a_good_configuration_passes(read):
    train, warnings = check_config(read())
    assert train.eval_metrics == ("bleu", "loss")
    assert warnings == []


def test_resuming_refuses_only_changes_that_affect_the_result(read):
    old = read().to_dict()
    harmless = read(CONFIG, "train.max_epochs:7", "train.disp_freq:1", "train.num_workers:2", "data.style:new")
    assert result_changing_differences(old, harmless.to_dict()) == []
    changed = read(CONFIG, "train.lr:1", "model.emb_dim:9", "data.val_set.src:/x").to_dict()
    assert [text.split(":")[0] for text in result_changing_differences(old, changed)] == [
        "train.lr", "model.emb_dim", "data.val_set",
    ]  # fmt: skip
