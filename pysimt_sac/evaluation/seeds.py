"""Statistics over seeds, which say whether a method helps; p over test sentences says whether these runs differ.

Run N of one system is paired with run N of another: both have the same seed, and mostly start from the same actor.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# 97.5% quantiles of Student's t distribution with 1, 2, ... 30 degrees of freedom.
T_QUANTILES = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


@dataclass(frozen=True)
class OverSeeds:
    """The mean difference of paired runs, its 95% t-interval, and how many of the seeds are better with the system."""

    mean: float
    low: float
    high: float
    better: int
    seeds: int

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low:+.2f}..{self.high:+.2f}"

    @property
    def wins(self) -> str:
        """The number of seeds as text: `2 of 3`."""
        return f"{self.better} of {self.seeds}"


def over_seeds(system: Sequence[float], baseline: Sequence[float], higher_is_better: bool = True) -> OverSeeds | None:
    """Compare the scores of runs paired by seed; None for a single run, or if the runs cannot be paired."""
    if len(system) != len(baseline) or len(system) < 2:
        return None
    differences = [own - other for own, other in zip(system, baseline, strict=True)]
    mean, n = statistics.fmean(differences), len(differences)
    quantile = T_QUANTILES[min(n - 1, len(T_QUANTILES)) - 1]  # of more runs: that of 31, which is slightly too large
    margin = quantile * statistics.stdev(differences) / math.sqrt(n)
    better = sum((own > 0) if higher_is_better else (own < 0) for own in differences)
    return OverSeeds(mean, mean - margin, mean + margin, better, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests by Holm's step-down method, in the order given."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[number] * (len(p_values) - rank)))
        corrected[number] = largest
    return corrected
