"""Make the processes that a reproduction starts end with it, however it ends."""

import ctypes
import os
import signal
import sys

VARIABLE = "PYSIMT_SAC_PARENT"  # the parent's process id
PR_SET_PDEATHSIG = 1  # Linux prctl: the signal to receive when the parent dies


def end_with_parent() -> None:
    """Request SIGTERM when the parent dies, so that training saves its state and stops; Linux only.

    Elsewhere a run whose parent was killed runs to its end; the next start waits for it.
    """
    parent = os.environ.pop(VARIABLE, "")
    if not (parent and sys.platform == "linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the request
        sys.exit(128 + signal.SIGTERM)
