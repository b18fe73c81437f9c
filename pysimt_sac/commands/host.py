"""`pysimt-sac host`: show the host, pysimt itself or the embedded engine, and who owns the `pysimt` command."""

import argparse
import importlib.metadata
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
    """Describe the host; pysimt is one only if all of it can be imported."""
    if choice.name() == "pysimt":
        from pysimt_sac.hosts.pysimt.device import reserve_device

        try:
            reserve_device("cpu")
        except UserError as error:
            return [f"Host:              none, because {error.what}", f"                   ({error.hint})"]
    return [f"Host:              {choice.describe()}"]


def find_script() -> Path | None:
    """Return the script that the shell runs for `pysimt`, else the one in this environment."""
    found = shutil.which("pysimt") or shutil.which("pysimt", path=sysconfig.get_path("scripts"))
    return Path(found) if found else None


def owner(script: Path) -> str:
    """Return the owner of a script named `pysimt`. Both packages list it as theirs; its text tells them apart."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"unknown ({why(error)})"
    if re.search(r"(import|from) pysimt_sac\b|['\"]pysimt[_-]sac==", text):
        return OURS
    return THEIRS if re.search(r"(import|from) pysimt\b|['\"]pysimt==", text) else "another program"


def describe_command(script: Path | None) -> list[str]:
    """Describe the owner of the command `pysimt`, and what to do if it is not this package."""
    reinstall = "pip install --force-reinstall --no-deps ."
    if script is None:
        lines = ["Command `pysimt`:  not found; `pysimt-sac` does the same and more, always"]
        return [
            *lines,
            f"                   To get it: {reinstall} in this package's folder (pysimt's to have its own)",
        ]
    whose = owner(script)
    lines = [f"Command `pysimt`:  belongs to {whose}, {script}"]
    if script.parent.resolve() != Path(sysconfig.get_path("scripts")).resolve():
        lines.append(f"                   in a different environment from this one, {sysconfig.get_path('scripts')}")
    if whose != OURS:
        lines += [
            "                   It does not know our models. Use `pysimt-sac train` and `pysimt-sac translate`, or",
            "                   reinstall this package, after the other, from its folder:",
            f"                   {reinstall}",
        ]
    elif is_distribution("pysimt"):
        lines += [
            "                   pysimt lists this file as its own, too: whichever you uninstall takes it away. Then",
            f"                   run {reinstall} in the folder of the one you keep.",
        ]
    return lines


def is_distribution(name: str) -> bool:
    """Return whether pip has installed a package of that name."""
    try:
        return bool(importlib.metadata.distribution(name))
    except importlib.metadata.PackageNotFoundError:
        return False
