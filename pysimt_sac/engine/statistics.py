"""Figures of a batch that are to be reported: of a sharded batch, each rank keeps its share until then.

With one rank, or where nothing is sharded, a figure is simply a number.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from pysimt_sac.engine.distributed import world


@dataclass(frozen=True)
class Statistic:
    """This rank's part of a figure; `kind` says how parts become one number."""

    kind: str
    numbers: tuple[Tensor | float, ...]


Figure = Tensor | float | Statistic


def share_of(share: Tensor | float) -> Figure:
    """A figure that is the sum of all shares."""
    return Statistic("sum", (share,)) if world.sharded else share


def mean_of(values: Tensor) -> Figure:
    """The mean of all ranks' values."""
    return Statistic("mean", (values.sum(), values.numel())) if world.sharded else values.mean()


def ratio_of(part: float, whole: float) -> Figure:
    """The sum of all parts in relation to that of all wholes."""
    return Statistic("mean", (part, whole)) if world.sharded else part / whole


def largest_of(values: Tensor) -> Figure:
    """The largest of all ranks' values."""
    return Statistic("largest", (values.amax(),)) if world.sharded else values.amax()


def spread_of(values: Tensor) -> Figure:
    """The standard deviation of all ranks' values."""
    return Statistic("spread", moments(values)) if world.sharded else values.std(correction=0)


def explained_variance_of(predicted: Tensor, realised: Tensor) -> Statistic:
    """1 - Var(realised - predicted) / Var(realised) of all ranks' values, not a number without variance."""
    return Statistic("explained", (*moments(realised), *moments(realised - predicted)))


def moments(values: Tensor) -> tuple[Tensor | float, ...]:
    """How many values there are, their sum, and that of their squares."""
    values = values.double()
    return values.numel(), values.sum(), values.square().sum()


def variance(count: float, total: float, squares: float) -> float:
    """The variance, from the moments."""
    return max(0.0, squares / count - (total / count) ** 2) if count else math.nan


def explained(sums: list[float]) -> float:
    """The share of the first three moments' variance that the other three, of what is left over, do not have."""
    spread = variance(*sums[:3])
    return 1 - variance(*sums[3:]) / spread if spread > 0 else math.nan


FROM_SUMS: dict[str, Callable[[list[float]], float]] = {
    "sum": lambda sums: sums[0],
    "mean": lambda sums: sums[0] / sums[1],
    "spread": lambda sums: math.sqrt(variance(*sums)),
    "explained": explained,
}


def combine(figures: Mapping[str, Figure]) -> dict[str, float]:
    """All ranks' figures as numbers, the same everywhere; a rank may lack some. A mean over nothing is none."""
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
    """Kind and plain numbers of a figure."""
    if isinstance(figure, Statistic):
        return figure.kind, [float(number) for number in figure.numbers]
    return "same", [float(figure)]
