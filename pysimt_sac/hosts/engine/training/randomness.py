"""All random states of a process: seeding, saving, restoring."""

import random
import secrets
from typing import Any

import numpy as np
import torch


def draw_seed() -> int:
    """Draw a seed for a run that does not set one."""
    return secrets.randbelow(2**31 - 1) + 1


def fix_seeds(seed: int) -> None:
    """Seed Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def pack(state: Any) -> list[Any]:
    """Return the state of a legacy numpy generator as a tensor and plain values."""
    kind, keys, *rest = state
    return [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest]


def unpack(packed: list[Any]) -> Any:
    """Undo `pack`."""
    kind, keys, *rest = packed
    if not 0 <= rest[0] <= len(keys):  # numpy does not check it
        raise ValueError("a random state is damaged")
    return (kind, keys.numpy().astype(np.uint32), *rest)


def random_states() -> dict[str, Any]:
    """Return the states of all generators as tensors and plain values."""
    return {
        "python": random.getstate(),
        "numpy": pack(np.random.get_state()),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_random_states(states: dict[str, Any]) -> None:
    """Restore what `random_states` returned."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(unpack(states["numpy"]))
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
