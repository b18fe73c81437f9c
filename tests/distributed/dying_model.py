"""A model that sends its own process a signal in the middle of an update: SIGNAL_AT is `RANK UPDATE NAME`."""

import os
import signal

from pysimt_sac.core.registry import MODELS
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT


@MODELS.register("DyingNMT")
class DyingNMT(SimultaneousNMT):
    def forward(self, batch, uctr=0, ectr=0):
        rank, update, name = os.environ.get("SIGNAL_AT", "0 -1 SIGKILL").split()
        if self.training and os.environ.get("RANK", "0") == rank and uctr == int(update):
            os.kill(os.getpid(), getattr(signal, name))
        return super().forward(batch, uctr, ectr)
