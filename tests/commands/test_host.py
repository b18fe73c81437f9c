"""`pysimt-sac host`: what it says with and without pysimt, and whose script it takes `pysimt` to be."""

import os
import subprocess
import sys

import pytest

from pysimt_sac import __version__
from pysimt_sac.commands.host import OURS, THEIRS, owner
from pysimt_sac.hosts.pysimt.device import USED

OUR_SCRIPT = "#!/usr/bin/python\nimport sys\nfrom pysimt_sac.cli import main\nsys.exit(main())\n"
THEIR_SCRIPT = "#!/usr/share/pysimt_sac/bin/python\nimport os\nfrom pysimt import logger\n"

MODULES = "logger mainloop metrics models monitor stranslator translators config samplers/approx"
MODULES += " utils/data utils/io utils/misc utils/topology utils/device"


# A module in which every name is a class that has every name in turn, and all the parameters that are looked for.
ANYTHING = f"""
class Anything(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return cls
class Every(metaclass=Anything):
    def __init__(self, *_, {"=None, ".join(sorted(set(" ".join(USED.values()).split())))}=None):
        pass
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Every
"""


def install(folder, **texts):
    """A pysimt in which every name is a class; other texts for some of its modules."""
    for name in MODULES.split():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(path.stem, ANYTHING))
        (path.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text("__version__ = '1.2.3'\n")


def tell(tmp_path, host, script=None, installed=False, **texts):
    """The command in a process of its own, with a `pysimt` to find or without."""
    places, scripts = tmp_path / "places", tmp_path / "scripts"
    (places / "pysimt").mkdir(parents=True)
    scripts.mkdir()
    if installed:
        install(places / "pysimt", **texts)
    if script:
        (scripts / "pysimt").write_text(script)
        (scripts / "pysimt").chmod(0o755)
    code = "import sys; from pysimt_sac.cli import main_sac; sys.exit(main_sac(['host']))"
    environment = {key: value for key, value in os.environ.items() if key != "PYSIMT_SAC_HOST"}
    environment.update({"PYSIMT_SAC_HOST": host} if host else {}, PATH=str(scripts))
    environment["PYTHONPATH"] = os.pathsep.join([str(places), *sys.path])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("host", [None, "auto", "pysimt"])
def test_pysimt_is_found_where_it_is(tmp_path, host):
    done = tell(tmp_path, host, OUR_SCRIPT, installed=True)
    assert done.returncode == 0
    assert f"pysimt 1.2.3 (tested with 1.0.0) with pysimt_sac {__version__}" in done.stdout
    assert str(tmp_path / "places/pysimt") in done.stdout
    assert f"belongs to pysimt_sac, {tmp_path}/scripts/pysimt" in done.stdout
    assert "force-reinstall" not in done.stdout


@pytest.mark.parametrize(
    ("texts", "reason", "hint"),
    [
        (
            {"metrics": "import editdistance_x"},
            "pysimt needs the package editdistance_x, which is not installed",
            "(pip install editdistance_x, or set PYSIMT_SAC_HOST=embedded",
        ),
        ({"translators": "BeamSearch = get_translator = print"}, "pysimt 1.2.3 has no ", "(tested with pysimt 1.0.0: "),
        ({"device": "1 / 0"}, "pysimt cannot be imported: ZeroDivisionError", "(set PYSIMT_SAC_HOST=embedded"),
        ({"topology": "import pysimt.nothing"}, "pysimt cannot be imported: ModuleNotFoundError", "(set PYSIMT"),
    ],
)
def test_a_pysimt_that_cannot_be_imported_is_no_host(tmp_path, texts, reason, hint):
    done = tell(tmp_path, "auto", installed=True, **texts)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith(f"Host:              none, because {reason}")
    assert second.strip().startswith(hint)
    assert "with pysimt_sac" not in done.stdout


def test_the_engine_can_be_chosen_though_pysimt_is_there(tmp_path):
    done = tell(tmp_path, "embedded", THEIR_SCRIPT, installed=True)
    assert f"embedded engine of pysimt_sac {__version__}" in done.stdout
    assert "belongs to pysimt itself" in done.stdout
    assert "pysimt-sac train" in done.stdout
    assert "pip install --force-reinstall" in done.stdout


@pytest.mark.parametrize(
    ("host", "expected"), [("pysimt", "get it from its repository"), ("tensorflow", "is not one of")]
)
def test_a_host_that_is_not_available_is_refused_in_one_line(tmp_path, host, expected, monkeypatch):
    done = tell(tmp_path, host)
    if host == "pysimt" and done.returncode == 0:
        pytest.skip("pysimt itself is importable here")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert expected in line


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (OUR_SCRIPT, OURS),
        (THEIR_SCRIPT, THEIRS),
        ("__requires__ = 'pysimt-sac==0.1.0'\n", OURS),
        ("__requires__ = 'pysimt==1.0.0'\n", THEIRS),
        ("#!/bin/sh\necho simulating physics\n", "another program"),
    ],
)
def test_a_scripts_text_tells_whose_it_is(tmp_path, script, expected):
    (tmp_path / "pysimt").write_text(script)
    assert owner(tmp_path / "pysimt") == expected
