"""The speed of a run, the time it has taken, and the time it may still take."""

import time

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.training.progress import Progress


class Pace:
    """Words per second since it was created."""

    def __init__(self) -> None:
        self.started, self.n_items, self.updates = time.time(), 0, 0

    def count(self, n_items: int) -> None:
        """Count one more update."""
        self.n_items += n_items
        self.updates += 1

    @property
    def words_per_second(self) -> float:
        """The pace so far."""
        return self.n_items / max(1e-9, time.time() - self.started)

    def __str__(self) -> str:
        return f"{self.updates} updates, {self.words_per_second:.0f} words/s"


class Stopwatch:
    """Adds elapsed time to the progress of a run, which keeps counting when it is resumed."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.last = progress, time.monotonic()

    def read(self) -> float:
        """Return the seconds that the run has taken so far, across resumptions."""
        now = time.monotonic()
        self.progress.seconds += now - self.last
        self.last = now
        return self.progress.seconds


def updates_left(progress: Progress, options: TrainOptions, batches_per_epoch: int, batches_per_update: int) -> int:
    """Return how many updates `max_iterations` and `max_epochs` still allow."""
    per_epoch, done = (-(-batches // batches_per_update) for batches in (batches_per_epoch, progress.batch))
    in_epochs = (options.max_epochs + 1 - progress.epoch) * per_epoch - done
    return max(0, min(options.max_iterations - progress.update, in_epochs))


def describe_time(progress: Progress, n_left: int) -> str:
    """Describe the time a run has taken, and the most it may still take, validations included."""
    spent = f"time spent: {in_words(progress.seconds)}"
    if not progress.timed_updates:
        return spent
    return f"{spent}, left: at most {in_words(seconds_left(progress, n_left))} for {n_left} updates"


def time_left(progress: Progress, n_left: int) -> str:
    """Describe the most time that `n_left` updates take."""
    return f"up to {in_words(seconds_left(progress, n_left))}"


def seconds_left(progress: Progress, n_left: int) -> float:
    """Estimate the seconds that `n_left` updates take at the pace so far."""
    return n_left * progress.seconds / max(1, progress.timed_updates)


def in_words(seconds: float) -> str:
    """Format a duration in readable units."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"
