"""Ctrl-C and SIGTERM: the first signal asks the loop to save and stop, the second stops at once."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar

from pysimt_sac.core.distributed import world

T = TypeVar("T")


class Interrupted(Exception):
    """A request by the user or the job scheduler to stop the run; `status` is the exit status to end with."""

    def __init__(self, signal_number: int) -> None:
        self.status = 128 + signal_number
        super().__init__(signal.Signals(signal_number).name)


class Interrupts:
    """Within a `with` block, remembers a signal until the loop calls `check` at a convenient moment."""

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received and world.size == 1:  # stop at once; torchrun sends two signals, and has its own patience
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.received = number
        if world.size > 1:  # rank 0 reports when the run has stopped
            return
        with contextlib.suppress(OSError, ValueError):  # not `print`: the signal may have interrupted one
            os.write(sys.stderr.fileno(), b"\nSaving, then stopping; a second signal stops at once.\n")

    def check(self) -> None:
        """Raise `Interrupted` if this or another rank has received a signal."""
        if received := world.all_reduce_max(self.received):
            raise Interrupted(received)

    def interruptible(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, checking for signals before each."""
        for item in items:
            self.check()
            yield item
