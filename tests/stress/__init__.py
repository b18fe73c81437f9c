"""Attacks on purpose: kills at random moments, drawn files, full disks, stopped processes, long runs.

`make test` runs a small form of each, always with the same draws; `make stress` runs SCALE times as much, with other
draws each time.
"""

import os

SCALE = int(os.environ.get("PYSIMT_SAC_STRESS", "0"))
SEED = int(os.environ.get("PYSIMT_SAC_SEED", "1"))  # of what is random, other than hypothesis's draws


def times(number: int) -> int:
    """How often to do what `make test` does `number` times."""
    return number * max(1, SCALE)
