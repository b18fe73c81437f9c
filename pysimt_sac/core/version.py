"""The running version of this package, down to the commit if known."""

import functools
import subprocess
from pathlib import Path

from pysimt_sac import __version__

ROOT = Path(__file__).parents[2]


@functools.cache
def full_version() -> str:
    """Return the version, with the commit in a clone of the repository; `-dirty`: with uncommitted changes."""
    if not (ROOT / ".git").exists():
        return __version__
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):  # git is missing or does not answer
        return __version__
    return f"{__version__} (commit {found.stdout.strip()})" if found.returncode == 0 else __version__
