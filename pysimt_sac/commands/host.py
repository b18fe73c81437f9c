"""`pysimt-sac host`: what trains and translates here, pysimt itself or the engine; and whose the command is."""

import argparse
import os
import re
import shutil
import sysconfig
from pathlib import Path

from pysimt_sac.errors import UserError
from pysimt_sac.files import why
from pysimt_sac.hosts import choice

OURS, THEIRS = "pysimt_sac", "pysimt itself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(args: argparse.Namespace) -> int:
    """Say it line by line."""
    for line in describe_host():
        print(line)
    value = os.environ.get(choice.VARIABLE)
    meaning = "pysimt if it is installed, else the embedded engine"
    print(f"{choice.VARIABLE}:   {value or f'not set (auto: {meaning})'}")
    print(f"pysimt:            {choice.pysimt_folder() or 'not installed in this environment'}")
    for line in describe_command(find_script()):
        print(line)
    return 0


def describe_host() -> list[str]:
    """The host; pysimt is one only if all of it can be imported."""
    if choice.name() == "pysimt":
        from pysimt_sac.hosts.pysimt_device import reserve_device

        try:
            reserve_device("cpu")
        except UserError as error:
            return [f"Host:              none, because {error.what}", f"                   ({error.todo})"]
    return [f"Host:              {choice.describe()}"]


def find_script() -> Path | None:
    """The script that the shell runs for `pysimt`, or the one of this environment if the shell knows none."""
    found = shutil.which("pysimt") or shutil.which("pysimt", path=sysconfig.get_path("scripts"))
    return Path(found) if found else None


def owner(script: Path) -> str:
    """Which package a script named `pysimt` belongs to. Both packages list it as theirs; its text tells them apart."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"unknown ({why(error)})"
    if re.search(r"(import|from) pysimt_sac\b|['\"]pysimt[_-]sac==", text):
        return OURS
    return THEIRS if re.search(r"(import|from) pysimt\b|['\"]pysimt==", text) else "another program"


def describe_command(script: Path | None) -> list[str]:
    """Whose the command `pysimt` is, and what to do if it is not ours."""
    if script is None:
        return ["Command `pysimt`:  not found; `pysimt-sac train` and `pysimt-sac translate` do the same"]
    whose = owner(script)
    lines = [f"Command `pysimt`:  of {whose}, {script}"]
    if script.parent.resolve() != Path(sysconfig.get_path("scripts")).resolve():
        lines.append(f"                   in another environment than this one, {sysconfig.get_path('scripts')}")
    if whose != OURS:
        lines += [
            "                   It does not know our models. Use `pysimt-sac train` and `pysimt-sac translate`, or",
            "                   install this package once more, after the other, from its folder:",
            "                   pip install --force-reinstall --no-deps .",
        ]
    return lines
