"""`[include]` and overrides: what differs is written once, and acts before interpolation."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysimt_sac import models  # noqa: F401 - registers the models that configurations name
from pysimt_sac.core.errors import UserError
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from pysimt_sac.hosts.engine.config.merging import MergedConfig, raw_parser
from pysimt_sac.hosts.engine.config.parser import check_config, config_text, read_config, resolved_text
from pysimt_sac.hosts.engine.config.values import parse_value

ROOT = Path(__file__).parents[4]

BASE = """\
# Where everything starts.

[vars]
# The target language.
tl: de

[train]
# What to train.
model_type: SimultaneousNMT
# Where results go.
save_path: ./runs/${vars:tl}
tensorboard_dir: ${save_path}/tb
# How fast.
lr: 0.1

[model]
direction: src:Text -> trg:Text

[data]
# Two files,
# one for each side.
train_set: {'src': './train.en',
            'trg': './train.${vars:tl}'}

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


def shown(path):
    """A configuration as it is printed and copied."""
    return MergedConfig(path).text(with_comments=True)


# Including


def test_an_including_file_changes_what_others_interpolate(write):
    options = read_config(write(base=BASE, mine="[include]\nbase: base.conf\n[vars]\ntl: fr\n"))
    assert options.train["save_path"] == Path.cwd() / "runs/fr"
    assert options.data["train_set"]["trg"] == Path.cwd() / "train.fr"
    assert options.train["lr"] == 0.1
    assert options.sections == ["train", "vars", "model", "data", "vocabulary"]  # and no [include]


def test_several_levels_and_several_bases_the_later_one_wins(tmp_path, write):
    (tmp_path / "more").mkdir()
    write(base=BASE, fast="[train]\nlr: 1\nseed: 7\n")
    (tmp_path / "more/middle.conf").write_text("[include]\nbase: ../base.conf,\n  ../fast.conf\n[train]\nseed: 8\n")
    options = read_config(write(mine="[include]\nbase: more/middle.conf\n[model]\nemb_dim: 5\n"))
    assert (options.train["lr"], options.train["seed"], options.model["emb_dim"]) == (1, 8, 5)


def test_two_ways_to_the_same_file_are_no_cycle(write):
    path = write(base=BASE, a="[include]\nbase: base.conf\n", b="[include]\nbase: a.conf, base.conf\n")
    assert read_config(path).train["lr"] == 0.1


def test_an_empty_value_means_nothing_and_none_means_none(write):
    options = read_config(write(base=BASE, mine="[include]\nbase: base.conf\n[train]\ntensorboard_dir:\nlr: none\n"))
    assert (options.train["tensorboard_dir"], options.train["lr"]) == ("", None)


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("base: nowhere.conf", r"mine.conf \[include\] base: \S*nowhere.conf: no such configuration file"),
        ("base: .", r"\[include\] base: \S+: is a folder, not a configuration file"),
        ("base: /dev/null", "a device or a pipe"),
        ("base: a\0b", "cannot be read: embedded null byte|NUL byte"),
        ("base: " + "x" * 300, "file name too long"),
        ("base:", r"\[include\] base: names no file \(e.g. base: mle.conf\)"),
        ("base", "names no file"),
        ("", "names no file"),
        ("bases: base.conf", r"mine.conf \[include\]: unknown key 'bases' \(its only key is 'base'\)"),
        ("base: base.conf\nif: true", "unknown key 'if'"),
        ("base: mine.conf", r"a file includes itself: mine.conf -> mine.conf"),
        ("base: round.conf", r"a file includes itself: mine.conf -> round.conf -> mine.conf"),
        ("base: torn.conf", r"torn.conf: .*already exists"),
        ("base: wrong.conf", r"wrong.conf \[train\]: unknown key 'lrr' \(did you mean 'lr'\?\)"),
    ],
)
def test_mistakes_of_including_are_explained_in_one_line(toy, refused, include, message):
    for name, text in {
        "base": BASE,
        "round": "[include]\nbase: mine.conf",
        "torn": "[train]\nlr: 1\nlr: 2\n",
        "wrong": "[include]\nbase: toy.conf\n[train]\nlrr: 1\n",
        "mine": f"[include]\n{include}\n",
    }.items():
        (toy.folder / f"{name}.conf").write_text(text)
    refused(message, config=toy.folder / "mine.conf")


# Comments


def test_a_key_keeps_its_comment_unless_the_including_file_has_another(write):
    mine = """\
# My experiment,
# in two lines.

[include]
base: base.conf

[train]
# Faster.
lr: 0.2
save_path: ./elsewhere

[model]
; Small.
emb_dim: 5
"""
    text = shown(write(base=BASE, mine=mine))
    assert text.startswith("# My experiment,\n# in two lines.\n\n[vars]\n# The target language.\ntl: de\n")
    assert "# Faster.\nlr: 0.2\n" in text
    assert "# Where results go.\nsave_path: ./elsewhere\ntensorboard_dir: ${save_path}/tb\n" in text
    assert "; Small.\nemb_dim: 5\n" in text
    assert "# Two files,\n# one for each side.\ntrain_set: {'src': './train.en',\n            'trg':" in text
    assert "starts" not in text
    assert "include" not in text


def test_a_plain_file_stays_as_it_is(write):
    path = write(base=BASE)
    assert shown(path) == BASE


def test_a_header_right_above_the_include_is_kept(write):
    assert shown(write(base=BASE, mine="# Mine.\n[include]\nbase: base.conf\n")).startswith("# Mine.\n\n")


words = st.text("ab $#;:=[]{}'\"\n\t,é\x0b\u2028\\", max_size=8)
keys = st.text("ab", min_size=1, max_size=3)


def values_of(path):
    return {section: dict(items) for section, items in MergedConfig(path).values.items() if section != "\n"}


@settings(deadline=None)
@given(st.dictionaries(keys, st.dictionaries(keys, words | st.none(), max_size=3), max_size=3), st.data())
def test_the_merged_text_reads_as_the_same_values(tmp_path_factory, sections, data):
    """Whatever the standard library reads from a file, our text of it says the same; and so it is with overrides."""
    path = tmp_path_factory.getbasetemp() / "any.conf"
    lines = [
        line for name, values in sections.items() for line in (f"[{name}]", *(f"{k}:{v}" for k, v in values.items()))
    ]
    path.write_bytes("\n".join(lines).encode())
    try:
        values, text = values_of(path), shown(path)
    except UserError:
        return  # not a configuration
    path.write_bytes(text.encode())
    assert values_of(path) == values
    if values:
        section, key, written = data.draw(st.sampled_from(sorted(values))), data.draw(keys), data.draw(words)
        try:
            text = MergedConfig(path, [f"{section}.{key}:{written}"]).text()
        except UserError:
            return
        path.write_bytes(text.encode())
        assert values_of(path) == {**values, section: {**values[section], key: written.strip()}}


# Overrides


@pytest.mark.parametrize(
    ("word", "section", "key", "value"),
    [
        ("vars.tl:fr", "vocabulary", "trg", Path.cwd() / "vocab.fr"),
        ("vars.tl:a:b", "vocabulary", "trg", Path.cwd() / "vocab.a:b"),
        ("train.save_path:./x", "train", "tensorboard_dir", Path.cwd() / "x/tb"),
        ("train.save_path:./x/${vars:tl}", "train", "save_path", Path.cwd() / "x/de"),
        ("vars.tl:truecase", "train", "save_path", Path.cwd() / "runs/truecase"),
        ("vars.tl:none", "train", "save_path", Path.cwd() / "runs/none"),
        ("data.train_set.src:./a:b", "data", "train_set", {"src": Path.cwd() / "a:b", "trg": Path.cwd() / "train.de"}),
        ("data.case:truecase", "data", "case", "truecase"),
        ("data.train_set:{'src': 'a',\n'trg': 'b'}", "data", "train_set", {"src": "a", "trg": "b"}),
        ("model.direction:src:Text -> trg:Text", "model", "direction", "src:Text -> trg:Text"),
    ],
)  # fmt: skip
def test_overrides_act_as_if_written_in_the_file(write, word, section, key, value):
    path = write(base=BASE, mine="[include]\nbase: base.conf\n")
    assert read_config(path, [word])[section][key] == value


def test_an_override_can_set_one_entry_of_an_interpolated_dictionary(write):
    text = BASE.replace("[vocabulary]", "val_set: ${train_set}\n[vocabulary]")
    files = read_config(write(base=text), ["data.val_set.src:./x"]).data
    assert files["val_set"] == {"src": Path.cwd() / "x", "trg": Path.cwd() / "train.de"}
    assert files["train_set"]["src"] == Path.cwd() / "train.en"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("vars.tll:fr", r"override 'vars.tll:fr': no value refers to 'tll' \(did you mean 'tl'\?\)"),
        ("train.a=b:3", "a configuration cannot hold such a key or value"),
        ("train.#lr:3", "a configuration cannot hold such a key or value"),
        ("data.x:a\n# b", "a configuration cannot hold such a key or value"),
        ("data.x:${nothing}", "Bad value substitution"),
        ("data.x:a$b", "must be followed by"),
        ("include.base:x", r"no section \[include\]"),
    ],
)
def test_overrides_without_effect_are_refused(write, word, message):
    with pytest.raises(UserError, match=message):
        read_config(write(base=BASE), [word])


def test_interpolation_that_would_fill_the_memory_is_refused(write):
    levels = "\n".join(f"x{n}: " + f"${{x{n + 1}}}" * 8 for n in range(9))
    bomb = BASE.replace("[vars]", f"[vars]\n{levels}\nx9: lol")
    with pytest.raises(UserError, match=r"\[vars\] x0: values of more than 10,000,000 characters after interpolation"):
        read_config(write(base=bomb))


def test_files_that_include_each_other_without_end_are_refused(write):
    bombs = {f"b{n}": f"[include]\nbase: b{n + 1}.conf, b{n + 1}.conf\n" for n in range(30)}
    write(**bombs, b30=BASE)
    with pytest.raises(UserError, match="includes more than 100 files"):
        read_config(write(b0=bombs["b0"]))


def test_a_variable_that_only_the_command_line_gives_may_be_referred_to(write):
    text = BASE.replace("lr: 0.1", "lr: ${vars:rate}")
    assert read_config(write(base=text), ["vars.rate:0.3"]).train["lr"] == 0.3


def test_overridden_variables_reach_the_files_that_are_trained_on(toy, refused):
    """Training and `--check` refuse a missing folder that an overridden variable names."""
    text = toy.config.read_text().replace(f"{toy.folder}/", "${vars:root}/")
    toy.config.write_text(f"[vars]\nroot: {toy.folder}\n\n{text}")
    refused("no such corpus file|no such vocabulary file", "--check", "vars.root:/nonexistent")
    refused("no such corpus file|no such vocabulary file", "vars.root:/nonexistent")
    refused("no value refers to 'rot'", "--check", "vars.rot:/nonexistent")


def test_a_checkpoint_has_nothing_left_to_interpolate(toy, pysimt):
    toy.config.write_text(f"[vars]\nx: 1\n\n{toy.config.read_text()}")
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1", "train.eval_freq:-1").status == 0
    (path,) = toy.run_folder.glob("*-final.ckpt")
    outcome = pysimt("translate", path, "-x", "vars.x:2")
    assert outcome.status == 2
    assert "references to [vars] were already resolved in training" in outcome.error


# In a run's folder


def test_a_run_keeps_its_whole_configuration(toy, pysimt):
    mine = toy.folder / "mine.conf"
    mine.write_text("# Mine.\n\n[include]\nbase: toy.conf\n\n[train]\n# Half as fast.\nlr: 0.005\n")
    outcome = pysimt("train", "-C", mine, "train.max_epochs:1")
    assert outcome.status == 0
    folder = toy.folder / "runs/mine"
    (path,) = folder.glob("*.conf")
    (log,) = folder.glob("*.log")
    assert path.stem == log.stem
    assert path.read_text().startswith("# Mine.\n\n[train]\n")
    assert "# Half as fast.\nlr: 0.005\n" in path.read_text()
    assert read_config(path).to_dict() | {"filename": ""} == read_config(mine, ["train.max_epochs:1"]).to_dict() | {
        "filename": ""
    }
    (checkpoint,) = folder.glob("*.best.bleu.ckpt")
    for options in (load_checkpoint(checkpoint).options, load_state(folder)[0]["config"]):
        assert options["sections"] == ["train", "model", "data", "vocabulary"]
        assert "include" not in options
    assert pysimt("train", "-C", mine, "train.max_epochs:2").status == 0  # goes on, and the file says so
    assert "max_epochs: 2\n" in path.read_text()
    outcome = pysimt("train", "-C", mine, "train.lr:1")
    assert "changed: train.lr: 0.005 -> 1" in outcome.error


def test_the_same_configuration_in_one_file_resumes_the_run(toy, pysimt):
    """What is compared is the content, not how it is spread over files."""
    mine = toy.folder / "mine.conf"
    mine.write_text("[include]\nbase: toy.conf\n[train]\nlr: 0.005\n")
    assert pysimt("train", "-C", mine, "train.max_epochs:1").status == 0
    mine.write_text(shown(mine))
    assert "include" not in mine.read_text()
    outcome = pysimt("train", "-C", mine, "train.max_epochs:2")
    assert outcome.status == 0
    assert "Resuming" in outcome.err


# Fine-tuning on top of pre-training

PRETRAINING = BASE.replace("[model]", "[model]\nlr_schedule: cosine\nlabel_smoothing: 0.1\nlr_warmup: 9")
PRETRAINING = PRETRAINING.replace("[train]", "[train]\nbatch_size: 7\nmax_epochs: 3\nlr_decay: noam", 1)


def fine_tuning(*lines, base="pre.conf"):
    return "\n".join(["[include]", f"base: {base}", "[train]", "model_type: VineNMT", *lines, ""])


def test_an_algorithm_does_not_inherit_how_its_actor_was_trained_from_random_weights(write):
    options = read_config(write(pre=PRETRAINING, mine=fine_tuning()))
    recipe = raw_parser((ROOT / "experiments/base_fine_tuning.conf").read_text())
    for section in ("train", "model"):
        for key, text in recipe.items(section):
            assert options[section][key] == parse_value(text), key
    assert options.train["batch_size"] == 7  # what does not depend on where training starts is inherited
    text = shown(write(mine=fine_tuning()))
    assert "# Learning rate of the actor.\nlr: 0.0001\n" in text
    assert "cosine" not in text
    assert read_config(write(copy=text)).to_dict() | {"filename": ""} == options.to_dict() | {"filename": ""}


def test_what_is_set_for_fine_tuning_stays(write):
    path = write(
        pre=PRETRAINING, own="[train]\nlr: 0.2\n", mine=fine_tuning("max_epochs: 4", base="pre.conf, own.conf")
    )
    options = read_config(path, ["model.lr_schedule:linear"])
    assert (options.train["lr"], options.train["max_epochs"], options.train["eval_freq"]) == (0.2, 4, 100)
    assert (options.model["lr_schedule"], options.model["lr_warmup"]) == ("linear", 0)
    control = read_config(path, ["train.model_type:MLENMT"])
    assert control.train == read_config(path).train | {"model_type": "MLENMT"}


def test_more_maximum_likelihood_and_a_whole_configuration_stay_as_they_are(write):
    more = read_config(write(pre=PRETRAINING, more="[include]\nbase: pre.conf\n[train]\nseed: 3\n"))
    assert (more.train["lr"], more.model["lr_schedule"]) == (0.1, "cosine")
    whole = read_config(write(pre=PRETRAINING), ["train.model_type:VineNMT"])
    assert (whole.train["lr"], whole.model["lr_schedule"]) == (0.1, "cosine")
    assert [path.name for path in MergedConfig(write(pre=PRETRAINING)).layers] == ["pre.conf"]


# Keys of other models


def test_included_keys_of_another_model_are_dropped_without_a_warning(write):
    sac = BASE.replace("SimultaneousNMT", "SACNMT").replace("[model]", "[model]\nalpha: 0.1\nactor_warmup: 5")
    control = "[include]\nbase: sac.conf\n[train]\nmodel_type: MLENMT\n"
    options = read_config(write(sac=sac, control=control))
    _, warnings = check_config(options)
    assert warnings == []
    assert "alpha" not in options.model
    assert options.model["actor_warmup"] == 5
    options = read_config(write(control=control + "[model]\ntau: 0.1\n"), ["model.alpha:0.2"])
    assert check_config(options)[1] == ["[model] alpha is not used by MLENMT", "[model] tau is not used by MLENMT"]


def test_a_dropped_key_that_another_refers_to_stays_in_the_text(write):
    sac = BASE.replace("SimultaneousNMT", "SACNMT").replace("[model]", "[model]\nalpha: 0.1\ntau: 0.2")
    path = write(sac=sac, control="[include]\nbase: sac.conf\n[train]\nmodel_type: mlenmt\nlr: ${model:alpha}\n")
    options = read_config(path)
    check_config(options)
    assert "alpha: 0.1" in config_text(options)
    assert "tau" not in config_text(options)
    assert (options.train["lr"], "alpha" in options.model) == (0.1, False)


def test_final_values_can_omit_defaults(write):
    options = read_config(write(base=BASE), ["train.seed:3"])
    text = resolved_text(options, given_only=True)
    assert "seed: 3\n" in text
    assert "batch_size" not in text
    given = MergedConfig(write(base=text)).keys("train")
    assert set(given) == {"model_type", "save_path", "tensorboard_dir", "lr", "seed"}
