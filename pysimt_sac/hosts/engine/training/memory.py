"""The memory and disk space that a run needs."""

import resource
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.hosts.engine.training.average import WeightAverage
from pysimt_sac.hosts.engine.training.optim import Optimizer


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes that training needs, by purpose; `learner` is what a model keeps besides its weights, such as critics."""

    weights: int
    gradients: int
    optimizer: int
    learner: int
    activations: int

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {in_units(size)}" for name, size in vars(self).items())
        return f"{in_units(sum(vars(self).values()))} ({parts})"


def in_units(n_bytes: float) -> str:
    """Format a number of bytes in readable units."""
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """Within a `with` block, measures the peak bytes that forward passes keep for their backward passes."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self.weights = {weight.untyped_storage().data_ptr() for weight in weights}
        self.holders: Counter[int] = Counter()  # of each storage: how many kept tensors are views of it
        self.now = self.bytes = 0
        super().__init__(lambda tensor: Saved(self, tensor), lambda saved: saved.tensor)

    def add(self, storage: torch.UntypedStorage) -> None:
        """Count a storage once, however many views of it are kept; weights are counted elsewhere."""
        if storage.data_ptr() not in self.weights:
            self.holders[storage.data_ptr()] += 1
            if self.holders[storage.data_ptr()] == 1:
                self.now += storage.nbytes()
                self.bytes = max(self.bytes, self.now)

    def remove(self, storage: torch.UntypedStorage) -> None:
        """Discount a view that is no longer kept."""
        if storage.data_ptr() not in self.weights:
            self.holders[storage.data_ptr()] -= 1
            if self.holders[storage.data_ptr()] == 0:
                self.now -= storage.nbytes()


class Saved:
    """A tensor kept by a graph, for as long as it keeps it."""

    def __init__(self, kept: SavedTensors, tensor: Tensor) -> None:
        self.kept, self.tensor = kept, tensor
        kept.add(tensor.untyped_storage())

    def __del__(self) -> None:
        self.kept.remove(self.tensor.untyped_storage())


def measure_memory(model: Any, optimizer: Optimizer, activations: int) -> TrainingMemory:
    """Measure the memory of the last update; averaged weights count towards the optimiser."""
    average = WeightAverage(model, model.recipe.ema_decay)
    return TrainingMemory(
        weights=n_bytes_of(list(model.parameters())),
        gradients=n_bytes_of([parameter.grad for parameter in model.parameters()]),
        optimizer=n_bytes_of([*optimizer.torch_optimizer.state.values(), average.state_dict()]),
        learner=n_bytes_of(model.training_state()),
        activations=activations,
    )


def n_bytes_of(value: Any) -> int:
    """Return the memory of all tensors in nested lists and dictionaries."""
    if isinstance(value, dict):
        return n_bytes_of(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(n_bytes_of(item) for item in value)
    return value.nbytes if isinstance(value, Tensor) else 0


def peak_memory(device: torch.device) -> str:
    """Return the peak memory used so far."""
    if device.type == "cuda":
        return in_units(torch.cuda.max_memory_allocated(device))
    return in_units(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def free_space(path: Path) -> str:
    """Return the free space on the disk that a folder is, or will be, on."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return in_units(shutil.disk_usage(path).free)
