"""Running commands on either host. Each in a process of its own: what a process has chosen, it keeps."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from pysimt_sac.hosts.choice import pysimt_folder

WHOLE = pysimt_folder() is not None and all(map(find_spec, ("editdistance", "PIL")))
NEEDS_PYSIMT = [
    pytest.mark.pysimt,
    pytest.mark.skipif(not WHOLE, reason="pysimt and what it needs are not here (make test-pysimt PYSIMT=path)"),
]


def needs_pysimt(test):
    """Skip one test alone where pysimt is absent."""
    for mark in NEEDS_PYSIMT:
        test = mark(test)
    return test


COMMAND = "import sys; from pysimt_sac.cli import main; sys.exit(main(sys.argv[1:]))"
COMMANDS = """
import json, sys
from pysimt_sac.cli import main
for command in json.loads(sys.argv[1]):
    if main(command) != 0:
        sys.exit(f"failed: {command}")
"""


def start_python(script, *arguments, stdin=None, **environment):
    """How a script ended."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def run_python(script, *arguments, **more):
    """What a script wrote to standard output; it must end well."""
    done = start_python(script, *arguments, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def pysimt_command(host, *arguments, **more):
    """`pysimt ...` on a host."""
    return run_python(COMMAND, *arguments, PYSIMT_SAC_HOST=host, **more)


def pysimt_commands(host, *commands):
    """Several of them in one process, to save the time of starting."""
    run_python(COMMANDS, json.dumps([[str(word) for word in command] for command in commands]), PYSIMT_SAC_HOST=host)


def training(toy, name, *changes):
    """The words of a training command."""
    return ["train", "-d", "cpu", "-C", toy.config, "-s", name, *changes]


def run_folder(toy, name):
    """Where such a run goes."""
    return toy.folder / "runs" / f"{toy.config.stem}-{name}"


def train(host, toy, name, *changes):
    """The folder of a run."""
    pysimt_command(host, *training(toy, name, *changes))
    return run_folder(toy, name)


def translating(checkpoint, prefix, *more, split="val"):
    """The words of a translation command."""
    return ["translate", "-d", "cpu", "-s", split, "-o", prefix, *more, "--", checkpoint]


def translation(prefix, split="val", suffix="gs.raw"):
    """The lines of a translation."""
    return prefix.with_name(f"{prefix.name}.{split}.{suffix}").read_text().splitlines()
