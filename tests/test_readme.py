"""The README cannot go stale: its files and commands exist."""

import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from pysimt_sac import models  # noqa: F401 - registers the models
from pysimt_sac.cli import COMMANDS, main_sac
from pysimt_sac.core.vocabulary import Vocabulary
from pysimt_sac.hosts.engine.config.merging import MergedConfig
from pysimt_sac.hosts.engine.config.parser import check_config, read_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_commands_it_shows_exist():
    shown = set(re.findall(r"^    (?:echo .*\| )?(pysimt(?:-sac)?) ([\w-]+)", README, flags=re.MULTILINE))
    assert len(shown) > 3
    for program, command in shown:
        assert command in COMMANDS
        assert program == "pysimt-sac" or COMMANDS[command].in_pysimt


@pytest.mark.parametrize("target", ["demo", "test", "reproduce-demo"])
def test_its_commands_are_targets_of_the_makefile(target):
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_the_files_it_names_exist():
    names = set(re.findall(r"`((?:docs|experiments|benchmarks|pysimt_sac)/[\w./]+|[A-Z]+\.\w+)`", README))
    for name in names | set(re.findall(r"\]\((?!http)([^)]+)\)", README)):
        assert (ROOT / name).exists(), name


def test_its_included_config_is_read(tmp_path):
    """The example of `[include]`, with the demo's config as `my.conf`."""
    (text,) = re.findall(r"(?:^    .*\n|^\n)*^    \[include\]\n(?:^    .*\n|^\n)*", README, flags=re.MULTILINE)
    (tmp_path / "my.conf").write_text(MergedConfig(ROOT / "experiments/demo_mle.conf").text(), encoding="utf-8")
    (tmp_path / "sac.conf").write_text(textwrap.dedent(text), encoding="utf-8")
    train, warnings = check_config(read_config(tmp_path / "sac.conf"))
    assert (train.model_type, warnings) == ("BranchedSACNMT", [])


def test_its_sentence_is_one_that_the_demo_model_can_know(tmp_path):
    assert main_sac(["prepare", "demo", "--out", str(tmp_path / "demo")]) == 0
    known = Vocabulary.read(tmp_path / "demo/train.vocab.en").index
    (sentence,) = re.findall(r'^    echo "(.*)" \| pysimt translate runs', README, flags=re.MULTILINE)
    assert [word for word in sentence.split() if word not in known] == []


def test_versions_agree():
    from pysimt_sac import __version__

    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["strict"]
