"""The speed of a run, the time it has taken, and the time it may still take."""

import time

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.training.progress import Progress


class Pace:
    """Words per second since it was created."""

    def __init__(self) -> None:
        self.started, self.n_items, self.updates = time.monotonic(), 0, 0

    def count(self, n_items: int) -> None:
        """Count one more update."""
        self.n_items += n_items
        self.updates += 1

    @property
    def words_per_second(self) -> float:
        """The pace so far."""
        return self.n_items / max(1e-9, time.monotonic() - self.started)

    def __str__(self) -> str:
        return f"{self.updates} updates, {self.words_per_second:.0f} words/s"


class Stopwatch:
    """The time that a run has taken, across resumptions, and the most that it may still take, validations included."""

    def __init__(
        self, progress: Progress, options: TrainOptions, batches_per_epoch: int, batches_per_update: int = 1
    ) -> None:
        self.progress, self.options, self.last = progress, options, time.monotonic()
        self.batches_per_epoch, self.batches_per_update = batches_per_epoch, batches_per_update

    def read(self) -> None:
        """Add the time since the last reading to the run's progress."""
        now = time.monotonic()
        self.progress.seconds += now - self.last
        self.last = now

    def updates_left(self) -> int:
        """Return how many updates `max_iterations` and `max_epochs` still allow."""
        batches = (self.batches_per_epoch, self.progress.batch)
        per_epoch, done = (-(-number // self.batches_per_update) for number in batches)
        in_epochs = (self.options.max_epochs + 1 - self.progress.epoch) * per_epoch - done
        return max(0, min(self.options.max_iterations - self.progress.update, in_epochs))

    def time_left(self) -> str:
        """Describe the most that the run may still take, at the pace so far."""
        self.read()
        return in_words(self.updates_left() * self.progress.seconds / max(1, self.progress.timed_updates))

    def __str__(self) -> str:
        left = f", left: at most {self.time_left()} for {self.updates_left()} updates"
        return f"time spent: {in_words(self.progress.seconds)}{left if self.progress.timed_updates else ''}"


def in_words(seconds: float) -> str:
    """Format a duration in readable units."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"
