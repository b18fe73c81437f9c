"""The ready configurations: keys are explained, nothing is repeated, and the files they name are those of `prepare`."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.cli import main_sac
from pysimt_sac.core.options import defaults, names
from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import ModelOptions, RecipeOptions
from pysimt_sac.corpora.language_pairs import PairSettings
from pysimt_sac.hosts.engine import shell as embedded  # noqa: F401 - registers the plain model
from pysimt_sac.hosts.engine.config.merging import MergedConfig, included_files, read_one
from pysimt_sac.hosts.engine.config.parser import check_config, model_keys, option_classes, read_config
from pysimt_sac.hosts.huggingface import network as huggingface  # noqa: F401 - registers it

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
CONFIGS = sorted(FOLDER.glob("*.conf"))
EXPERIMENTS = [path for path in CONFIGS if not path.name.startswith("base_")]


def name_of(path):
    return path.name


def read(path, *overrides):
    """All values as text, interpolated."""
    return MergedConfig(path, overrides).interpolating_parser()


def named_files(config):
    sets = [ast.literal_eval(value) for key, value in config["data"].items() if key.endswith("_set")]
    return [file for files in sets for file in files.values()] + list(config["vocabulary"].values())


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_key_has_its_comment_of_one_line(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    for (two_before, before), (_, line) in pairwise(pairwise(lines)):
        is_key = line and line[0] not in "#[ " and ":" in line and before != "[include]"
        assert not is_key or (before.startswith("# ") and not two_before.startswith("#")), line


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_the_first_line_says_what_it_is(path):
    """`pysimt-sac config --list` shows it."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert first.endswith(".")


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_a_file_shows_only_what_differs_from_what_it_includes(path):
    own, bases = read_one(path), {}
    for base in included_files(path, own):
        bases |= {
            (section, key): value
            for section, values in MergedConfig(base).values.items()
            for key, value in values.items()
        }
    for section in set(own.sections()) - {"include"}:
        for key, value in own.items(section):
            assert (section, key) not in bases or bases[section, key] != value, key


def test_what_others_include_is_included():
    included = {base for path in CONFIGS for base in included_files(path, read_one(path))}
    assert set(CONFIGS) - set(EXPERIMENTS) <= included


@pytest.mark.parametrize("path", EXPERIMENTS, ids=name_of)
def test_every_key_is_known_and_used_and_its_value_makes_sense(path):
    _, warnings = check_config(read_config(path))
    assert warnings == []


def test_the_demo_configs_fit_the_demo_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main_sac(["prepare", "demo", "--out", "data/demo"]) == 0
    for path in FOLDER.glob("demo_*.conf"):
        assert [file for file in named_files(read(path)) if not Path(file).is_file()] == []


@pytest.mark.parametrize("path", EXPERIMENTS, ids=name_of)
def test_who_begins_with_an_actor_finds_it_where_maximum_likelihood_leaves_it(path):
    """And has its network and its text."""
    config, kind = read(path), path.stem.rpartition("demo_")
    actor = f"{kind[0]}{kind[1]}mle"
    if not config["train"].get("pretrained_file"):
        return
    other = read(FOLDER / f"{actor}.conf")
    assert config["train"]["pretrained_file"] == f"{other['train']['save_path']}/{actor}"
    network = {key: value for key, value in other["model"].items() if key not in names(RecipeOptions)}
    assert network.items() <= config["model"].items()
    for section in ("vars", "data", "vocabulary"):
        assert config[section] == other[section]


@pytest.mark.parametrize(
    ("control", "experiment", "differing"),
    [
        ("control_mle", "sac_bleu", {"model_type", "eval_start"}),
        ("control_time", "sac_bleu", {"model_type", "eval_start", "max_epochs", "max_iterations", "patience"}),
        ("control_permuted", "branched_sac", {"permute_rewards"}),
        ("control_prefixes", "reinforce", {"model_type", "shaping"}),
        ("demo_control", "demo_sac_bleu", {"model_type", "lambda_mle", "lambda_rl"}),
        ("demo_control", "demo_sac_unsup", {"model_type"}),
        ("hf_demo_control", "hf_demo_vine", {"model_type"}),
    ],
)
def test_a_control_has_the_conditions_of_what_it_controls(control, experiment, differing):
    control, experiment = (read(FOLDER / f"{name}.conf") for name in (control, experiment))
    used = model_keys(MODELS.get(control["train"]["model_type"]))
    for section in experiment.sections():
        for key in {*control[section], *experiment[section]} - differing:
            if section != "model" or key in used:
                assert control[section][key] == experiment[section][key], key


@pytest.mark.parametrize("name", ["branched_sac", "vine"])
def test_a_models_defaults_are_its_recipe(name):
    """So that `model_type` alone is enough."""
    options = read_config(FOLDER / f"{name}.conf")
    check_config(options)  # drops what the model does not use
    model = MODELS.get(options.train["model_type"])
    usual = {key: value for cls in option_classes(model) for key, value in defaults(cls).items()} | model.defaults
    own = model_keys(model) - names(ModelOptions) - names(RecipeOptions)
    assert {key: value for key, value in options.model.items() if key in own and value != usual[key]} == {}


def test_the_paper_config_names_the_prepared_files():
    root = "./data/multi30k/en-de"
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    texts = [
        f"{root}/{PairSettings().text_name(split, language, 'bpe' if language == 'de' else '')}"
        for split in splits
        for language in ("en", "de")
    ]
    vocabularies = [f"{root}/train.lc.norm.tok.vocab.en", f"{root}/train.lc.norm.tok.bpe.vocab.de"]
    assert named_files(read(FOLDER / "mle.conf")) == texts + vocabularies


@pytest.mark.parametrize("name", ["mle", "sac_bleu", "control_mle"])
def test_one_override_changes_the_pair(name):
    config = read(FOLDER / f"{name}.conf", "vars.tl:fr")
    assert config["train"]["save_path"] == "./runs/en-fr"
    assert config["train"]["tensorboard_dir"] == "./runs/en-fr/tb_dir"
    assert all("/en-fr/" in file and not file.endswith(".de") for file in named_files(config))
