"""The README cannot go stale: its options are the declared ones, its files and commands exist."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from pysimt_sac.cli import COMMANDS, main
from pysimt_sac.engine.config.registry import MODELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_options_are_the_declared_ones():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.with_tables(README) == README, "run `make docs`"


def test_the_commands_it_shows_exist():
    shown = set(re.findall(r"^    (?:echo .*\| )?(pysimt(?:-sac)?) ([\w-]+)", README, flags=re.MULTILINE))
    assert len(shown) > 5
    for program, command in shown:
        assert command in COMMANDS
        assert program == "pysimt-sac" or COMMANDS[command].in_pysimt


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_are_targets_of_the_makefile(target):
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_the_files_it_names_exist():
    for name in set(re.findall(r"`((?:docs|experiments|benchmarks|pysimt_sac)/[\w./]+)`", README)):
        assert (ROOT / name).exists(), name


def test_the_algorithm_it_shows_trains(toy):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert example in (ROOT / "docs/algorithms.md").read_text()
    plugin = toy.folder / "my_algorithm.py"
    plugin.write_text(example)
    config = toy.config.read_text().replace("model_type: SimultaneousNMT", "model_type: HalfNMT")
    toy.config.write_text(config.replace("[model]", f"[model]\nplugin_modules: {plugin}"))
    try:
        assert main(["train", "-C", str(toy.config), "train.max_epochs:1"]) == 0
    finally:
        MODELS.items.pop("HalfNMT", None)
    assert list(toy.run_folder.glob("halfnmt-*.best.bleu.ckpt"))


def test_versions_agree():
    from pysimt_sac import __version__

    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["strict"]
