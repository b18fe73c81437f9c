"""The README cannot go stale: its files and commands exist."""

import re
import tomllib
from pathlib import Path

import pytest

from pysimt_sac.cli import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


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


def test_versions_agree():
    from pysimt_sac import __version__

    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["strict"]
