"""Which version of this package is at work, down to the commit where that is known."""

import functools
import subprocess
from pathlib import Path

from pysimt_sac import __version__

ROOT = Path(__file__).parents[2]


@functools.cache
def full_version() -> str:
    """The version, and the commit if this is a clone of the repository; `-dirty`: with changes to it."""
    if not (ROOT / ".git").exists():
        return __version__
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):  # there is no git, or it does not answer
        return __version__
    return f"{__version__} (commit {found.stdout.strip()})" if found.returncode == 0 else __version__
