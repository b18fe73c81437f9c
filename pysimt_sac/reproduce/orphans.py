"""Processes that a reproduction starts end with it, however it ends."""

import ctypes
import os
import signal
import sys

VARIABLE = "PYSIMT_SAC_PARENT"  # the process id of the one that started this one
PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal to get when the parent dies


def end_with_parent() -> None:
    """Ask for SIGTERM when the parent dies, so that training saves its state and stops; only Linux can do that.

    Elsewhere a run whose parent was killed goes on to its end; the next start waits for it.
    """
    parent = os.environ.pop(VARIABLE, "")
    if not (parent and sys.platform == "linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before we could ask
        sys.exit(128 + signal.SIGTERM)
