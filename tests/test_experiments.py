"""The ready configurations: every key is explained, and the files they name are those that `prepare` writes."""

import ast
from configparser import ConfigParser, ExtendedInterpolation
from itertools import pairwise
from pathlib import Path

import pytest

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.cli import main_sac
from pysimt_sac.corpora.multi30k import text_name
from pysimt_sac.engine.config.parser import check_config, read_config
from pysimt_sac.hosts import embedded  # noqa: F401 - registers the plain model

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
CONFIGS = sorted(FOLDER.glob("*.conf"))


def read(path):
    config = ConfigParser(interpolation=ExtendedInterpolation())
    config.read(path, encoding="utf-8")
    return config


def named_files(config):
    sets = [ast.literal_eval(value) for key, value in config["data"].items() if key.endswith("_set")]
    return [file for files in sets for file in files.values()] + list(config["vocabulary"].values())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_key_has_its_comment(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        is_key = line and line[0] not in "#[ " and ":" in line
        assert not is_key or before.startswith("# "), line


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_key_is_known_and_used_and_its_value_makes_sense(path):
    _, warnings = check_config(read_config(path))
    assert warnings == []


def test_the_demo_configs_fit_the_demo_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main_sac(["prepare", "demo", "--out", "data/demo"]) == 0
    for path in FOLDER.glob("demo_*.conf"):
        assert [file for file in named_files(read(path)) if not Path(file).is_file()] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_who_begins_with_an_actor_finds_it_where_maximum_likelihood_leaves_it(path):
    """And has its network and its text."""
    config, actor = read(path), "demo_mle" if path.stem.startswith("demo_") else "mle"
    if "pretrained_file" not in config["train"]:
        return
    other = read(FOLDER / f"{actor}.conf")
    assert config["train"]["pretrained_file"] == f"{other['train']['save_path']}/{actor}"
    assert other["model"].items() <= config["model"].items()
    for section in ("vars", "data", "vocabulary"):
        assert config[section] == other[section]


def test_the_paper_config_names_the_prepared_files():
    config = read(FOLDER / "mle.conf")
    root = "./data/multi30k/en-de"
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    texts = [f"{root}/{text_name(split, language, language == 'de')}" for split in splits for language in ("en", "de")]
    vocabularies = [f"{root}/train.lc.norm.tok.vocab.en", f"{root}/train.lc.norm.tok.bpe.vocab.de"]
    assert named_files(config) == texts + vocabularies


def test_one_line_changes_the_pair(tmp_path):
    text = (FOLDER / "mle.conf").read_text(encoding="utf-8")
    assert text.count("\ntl: de\n") == 1
    other = tmp_path / "mle.conf"
    other.write_text(text.replace("\ntl: de\n", "\ntl: fr\n"), encoding="utf-8")
    config = read(other)
    assert config["train"]["save_path"] == "./runs/en-fr"
    assert all("/en-fr/" in file and not file.endswith(".de") for file in named_files(config))
