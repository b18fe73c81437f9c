"""How fast a run is."""

import time


class Pace:
    """Words per second since it was created."""

    def __init__(self) -> None:
        self.started, self.n_items, self.updates = time.time(), 0, 0

    def count(self, n_items: int) -> None:
        """One more update."""
        self.n_items += n_items
        self.updates += 1

    def __str__(self) -> str:
        seconds = max(1e-9, time.time() - self.started)
        return f"{self.updates} updates, {self.n_items / seconds:.0f} words/s"
