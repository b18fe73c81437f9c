"""`pysimt-sac config`: a configuration with all that it includes, as one plain file."""

import re
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.engine.config.parser import read_config

BASE = """\
[vars]
tl: de

[train]
model_type: SimultaneousNMT
save_path: ./runs/${vars:tl}
tensorboard_dir: ${save_path}/tb
# How fast.
lr: 0.1

[model]
direction: src:Text -> trg:Text

[data]
train_set: {'src': './train.en', 'trg': './train.${vars:tl}'}

[vocabulary]
src: ./vocab.en
trg: ./vocab.${vars:tl}
"""


@pytest.fixture
def write(tmp_path):
    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.conf").write_text(text)
        return tmp_path / f"{name}.conf"

    return write


def config_command(capsys, *words):
    status = main_sac(["config", *map(str, words)])
    return status, *capsys.readouterr()


def test_the_command_prints_a_usable_configuration(write, capsys, tmp_path):
    path = write(base=BASE, mine="[include]\nbase: base.conf\n[vars]\ntl: fr\n")
    status, text, _ = config_command(capsys, path, "train.lr:0.7")
    assert status == 0
    assert "# How fast.\nlr: 0.7\n" in text
    assert "save_path: ./runs/${vars:tl}\n" in text
    (tmp_path / "printed.conf").write_text(text)
    printed, read = (
        read_config(*words).to_dict() for words in ((tmp_path / "printed.conf",), (path, ["train.lr:0.7"]))
    )
    assert printed | {"filename": ""} == read | {"filename": ""}


def test_a_file_that_others_include_can_be_printed_though_it_is_not_complete(write, capsys):
    assert config_command(capsys, write(part="[train]\nlr: ${vars:x}\n"))[1] == "[train]\nlr: ${vars:x}\n"


def test_final_values_with_all_defaults(write, capsys, tmp_path):
    path = write(base=BASE, mine="[include]\nbase: base.conf\n[data]\ncase: truecase\nhalf: a$$b\n")
    status, text, _ = config_command(capsys, path, "--resolved")
    assert status == 0
    assert f"tensorboard_dir: {Path.cwd()}/runs/de/tb\n" in text
    assert "batch_size: 32\n" in text
    assert "enc_dim: 256\n" in text
    assert "aux_dim" not in text
    assert "case: 'truecase'\n" in text
    (tmp_path / "printed.conf").write_text(text)
    assert read_config(tmp_path / "printed.conf").data == read_config(path).data
    assert read_config(path).data["half"] == "a$b"


def test_a_mistake_is_one_line(write, capsys):
    status, out, told = config_command(capsys, write(mine="[include]\nbase: nowhere.conf\n"))
    assert (status, out) == (2, "")
    assert re.fullmatch(r"pysimt-sac config: error: .*nowhere.conf: no such configuration file.*\n", told)


def test_included_keys_of_another_model_are_not_printed(write, capsys):
    sac = BASE.replace("SimultaneousNMT", "SACNMT").replace("[model]", "[model]\nalpha: 0.1\nactor_warmup: 5")
    path = write(sac=sac, control="[include]\nbase: sac.conf\n[train]\nmodel_type: mlenmt\n")
    for more in ((), ("--resolved",)):
        _, text, told = config_command(capsys, path, *more)
        assert "alpha" not in text
        assert "actor_warmup: 5\n" in text
        assert told == ""
