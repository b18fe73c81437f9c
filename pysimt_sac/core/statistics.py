"""Statistics of a batch for reporting: if the batch is sharded, each rank keeps its share until then.

With one rank, or without sharding, a statistic is simply a number.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from pysimt_sac.core.distributed import world


@dataclass(frozen=True)
class Statistic:
    """This rank's part of a statistic; `kind` says how the parts are combined."""

    kind: str
    numbers: tuple[Tensor | float, ...]


Figure = Tensor | float | Statistic


def share_of(share: Tensor | float) -> Figure:
    """Return a statistic that is the sum of all shares."""
    return Statistic("sum", (share,)) if world.sharded else share


def mean_of(values: Tensor) -> Figure:
    """Return the mean of all ranks' values."""
    return Statistic("mean", (values.sum(), values.numel())) if world.sharded else values.mean()


def ratio_of(part: float, whole: float) -> Figure:
    """Return the sum of all ranks' parts divided by the sum of their wholes."""
    return Statistic("mean", (part, whole)) if world.sharded else part / whole


def largest_of(values: Tensor) -> Figure:
    """Return the largest of all ranks' values."""
    return Statistic("largest", (values.amax(),)) if world.sharded else values.amax()


def spread_of(values: Tensor) -> Figure:
    """Return the standard deviation of all ranks' values."""
    return Statistic("spread", moments(values)) if world.sharded else values.std(correction=0)


def explained_variance_of(predicted: Tensor, realised: Tensor) -> Statistic:
    """Return 1 - Var(realised - predicted) / Var(realised) over all ranks' values; nan without variance."""
    return Statistic("explained", (*moments(realised), *moments(realised - predicted)))


def moments(values: Tensor) -> tuple[Tensor | float, ...]:
    """Return the number of values, their sum and the sum of their squares."""
    values = values.double()
    return values.numel(), values.sum(), values.square().sum()


def variance(count: float, total: float, squares: float) -> float:
    """Compute the variance from the moments."""
    return max(0.0, squares / count - (total / count) ** 2) if count else math.nan


def explained(sums: list[float]) -> float:
    """Compute the explained variance from the moments of the values, then those of the residuals."""
    spread = variance(*sums[:3])
    return 1 - variance(*sums[3:]) / spread if spread > 0 else math.nan


FROM_SUMS: dict[str, Callable[[list[float]], float]] = {
    "sum": lambda sums: sums[0],
    "mean": lambda sums: sums[0] / sums[1],
    "spread": lambda sums: math.sqrt(variance(*sums)),
    "explained": explained,
}


def combine(figures: Mapping[str, Figure]) -> dict[str, float]:
    """Combine all ranks' statistics, the same on every rank; a rank may lack some. Empty means are left out."""
    own = {name: as_numbers(figure) for name, figure in figures.items()}
    found: dict[str, tuple[str, list[list[float]]]] = {}
    for part in world.gather(own):
        for name, (kind, numbers) in part.items():
            found.setdefault(name, (kind, []))[1].append(numbers)
    combined = {}
    for name, (kind, parts) in found.items():
        if kind == "same":
            combined[name] = parts[0][0]
        elif kind == "largest":
            combined[name] = max(part[0] for part in parts)
        else:
            sums = [sum(column) for column in zip(*parts, strict=True)]
            if kind != "mean" or sums[1]:
                combined[name] = FROM_SUMS[kind](sums)
    return combined


def as_numbers(figure: Figure) -> tuple[str, list[float]]:
    """Return the kind and the plain numbers of a statistic."""
    if isinstance(figure, Statistic):
        return figure.kind, [float(number) for number in figure.numbers]
    return "same", [float(figure)]
