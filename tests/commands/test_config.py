"""`pysimt-sac config`: a configuration with all that it includes, as one plain file."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.hosts.engine.config.parser import check_config, read_config
from pysimt_sac.hosts.engine.config.ready import ready_configs

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


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 1, 2), (0, 1, 3, 2), (0, 3, 1, 2)])
def test_flags_may_stand_anywhere(write, capsys, order):
    words = [write(base=BASE), "train.lr:0.7", "train.seed:5", "--resolved"]
    status, text, _ = config_command(capsys, *(words[place] for place in order))
    assert status == 0
    assert "lr: 0.7\n" in text
    assert "seed: 5\n" in text


def test_an_incomplete_file_can_be_printed(write, capsys):
    assert config_command(capsys, write(part="[train]\nlr: ${vars:x}\n"))[1] == "[train]\nlr: ${vars:x}\n"


@pytest.mark.parametrize("view", [[], ["--resolved"], ["--options"]])
def test_a_fresh_process_knows_the_plain_model(write, view):
    """In this one, other tests may have made it known."""
    command = [sys.executable, "-m", "pysimt_sac", "config", write(base=BASE), *view]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_resolved_shows_final_values_with_all_defaults(write, capsys, tmp_path):
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


@pytest.mark.parametrize("key", ["plugin_modules", "reward_modules"])
@pytest.mark.parametrize("view", ["--resolved", "--options", "--check"])
def test_what_only_shows_something_does_not_run_the_code_that_a_configuration_names(toy, capsys, key, view):
    plugin = toy.folder / "mine.py"
    plugin.write_text("import pathlib; pathlib.Path(__file__ + '.ran').touch()")
    toy.config.write_text(toy.config.read_text().replace("[model]", f"[model]\n{key}: {plugin}"))
    words = ["train", "--check", "-C"] if view == "--check" else ["config", view]
    changes = ["train.model_type:MLENMT" if key == "plugin_modules" else "train.model_type:REINFORCENMT"]
    words = [*words, str(toy.config), *changes]
    assert main_sac(words) == 2
    assert (
        f"toy.conf [model] {key}: would run {plugin} (read that code first; --trust runs it)" in capsys.readouterr().err
    )
    assert main_sac(["config", str(toy.config)]) == 0  # the text as written
    assert not plugin.with_name("mine.py.ran").exists()
    assert main_sac([*words, "--trust"]) in (0, 3)
    assert plugin.with_name("mine.py.ran").exists()


# The ready ones


def test_the_list_names_every_experiment_and_says_what_it_is(capsys):
    status, out, _ = config_command(capsys, "--list")
    assert status == 0
    assert re.search(r"^sac_bleu +Soft Actor-Critic with the BLEU reward on Multi30K", out, flags=re.MULTILINE)
    names = [line.split()[0] for line in out.splitlines()]
    assert {"mle", "demo_mle", "control_mle"} <= set(names)
    assert not [name for name in names if name.startswith("base_")]


def test_a_copy_includes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = config_command(capsys, "--copy", "control_mle")
    assert (status, out) == (0, "Wrote control_mle.conf\n")
    text = (tmp_path / "control_mle.conf").read_text()
    assert text.startswith("# Control C1 for sac_bleu.conf")
    assert "[include]" not in text
    copied, ours = read_config(tmp_path / "control_mle.conf"), read_config(ready_configs()["control_mle"])
    assert check_config(copied)[1] == check_config(ours)[1] == []
    assert copied.to_dict() | {"filename": ""} == ours.to_dict() | {"filename": ""}
    for dest in ("a/", "a/b.conf", "a"):
        assert config_command(capsys, "--copy", "mle.conf", dest)[0] == (2 if dest == "a" else 0)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b.conf", "mle.conf"]


def test_shipped_files_are_copied_and_included_by_name_from_any_folder(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_command(capsys, "--copy", "base_sac")[:2] == (0, "Wrote base_sac.conf\n")
    (tmp_path / "base_sac.conf").unlink()
    Path("mine.conf").write_text("[include]\nbase: sac_bleu.conf, base_sac.conf\n[train]\nlr: 0.7\n")
    options, shipped = read_config(Path("mine.conf")), ready_configs()["sac_bleu"]
    assert options.train["lr"] == 0.7
    assert options.model.keys() == read_config(shipped).model.keys()
    Path("sac_bleu.conf").write_text("[train]\nseed: 77\n")  # a file beside it comes first
    assert "seed: 77\n" in config_command(capsys, "mine.conf")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--copy", "sac_blue"], "no experiment is called 'sac_blue' (did you mean 'sac_bleu'?)"),
        (["--copy", "mle", "x.conf", "y.conf"], "'y.conf' is one argument too many"),
        (["--copy", "mle", "/proc/x/"], "cannot create this folder"),
        ([], "no configuration is named (--list shows those that come with this package)"),
        (["x.conf", "--list"], "is for one configuration"),
        (["x.conf"], "no such configuration file"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, out, told = config_command(capsys, *words)
    assert (status, out) == (2, "")
    assert message in told
    assert list(tmp_path.iterdir()) == []
