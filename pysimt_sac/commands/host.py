"""`pysimt-sac host`: show the host, pysimt itself or the embedded engine, and who owns the `pysimt` command."""

import argparse
import os
import re
import shutil
import sysconfig
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import why
from pysimt_sac.hosts import choice

OURS, THEIRS = "pysimt_sac", "pysimt itself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run(args: argparse.Namespace) -> int:
    """Print the host and the owner of the `pysimt` command."""
    host = describe_host()
    unset = "not set (auto: pysimt if it is installed, else the embedded engine)"
    for label, lines in {
        "Host:": host,
        f"{choice.VARIABLE}:": [os.environ.get(choice.VARIABLE) or unset],
        "pysimt:": [str(choice.pysimt_folder() or "not installed in this environment")],
        "Command `pysimt`:": describe_command(),
    }.items():
        print(f"{label:19}" + f"\n{'':19}".join(lines))
    return 0


def describe_host() -> list[str]:
    """Describe the host; pysimt is one only if all of it can be imported."""
    if choice.name() == "pysimt":
        from pysimt_sac.hosts.pysimt.device import reserve_device

        try:
            reserve_device("cpu")
        except UserError as error:
            return [f"none, because {error.what}", f"({error.hint})"]
    return [choice.describe()]


def describe_command() -> list[str]:
    """Describe the owner of the script that the shell runs for `pysimt`, and what to do if it is not this package."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("pysimt") or shutil.which("pysimt", path=scripts)
    if found is None:
        return ["not found; `pysimt-sac train` and `pysimt-sac translate` do the same"]
    whose = owner(Path(found))
    lines = [f"belongs to {whose}, {found}"]
    if Path(found).parent.resolve() != Path(scripts).resolve():
        lines.append(f"in a different environment from this one, {scripts}")
    if whose != OURS:
        lines += [
            "It does not know our models. Use `pysimt-sac train` and `pysimt-sac translate`, or",
            "reinstall this package, after the other, from its folder:",
            "pip install --force-reinstall --no-deps .",
        ]
    return lines


def owner(script: Path) -> str:
    """Return the owner of a script named `pysimt`. Both packages list it as theirs; its text tells them apart."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"unknown ({why(error)})"
    if re.search(r"(import|from) pysimt_sac\b|['\"]pysimt[_-]sac==", text):
        return OURS
    return THEIRS if re.search(r"(import|from) pysimt\b|['\"]pysimt==", text) else "another program"
