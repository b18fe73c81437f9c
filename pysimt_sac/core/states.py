"""Check what saved states hold before anything acts on it: a run's folder may come from a stranger.

All checks raise a TypeError or ValueError, which the reader of the file turns into a `UserError`.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.files import DEEPEST
from pysimt_sac.core.records import has_type


def is_plain_tensor(value: Any) -> bool:
    """Return whether this is an ordinary dense tensor that is as large in memory as it says."""
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and not (value.is_quantized or value.is_complex() or value.is_meta)
        and value.untyped_storage().nbytes() >= value.numel() * value.element_size()
    )


def check_extent(value: Any, most: int) -> None:
    """Refuse a nested value that contains itself, is very deep, or has more than `most` items.

    A file can say often, in two bytes, that an item is one it has had before: that unpacks to far more than its size.
    """
    found = [(value, 0)]
    while found:
        item, depth = found.pop()
        if isinstance(item, dict | list | tuple | set):
            most -= len(item)
            if most < 0 or depth > DEEPEST:
                raise ValueError("its values are nested without an end")
            inner = (*item.keys(), *item.values()) if isinstance(item, dict) else item
            found += [(part, depth + 1) for part in inner]


def first_not_finite(named: Iterable[tuple[str, Tensor]]) -> str:
    """Return the name of the first tensor with a value that is not a finite number, or an empty string."""
    return next((name for name, tensor in named if not bool(tensor.isfinite().all())), "")


def check_like(value: Any, example: Any, name: str) -> None:
    """Check that a saved value has the types and sizes of an example, the state of what is to be restored.

    None and empty containers in the example stand for anything of their kind. Keys that the value lacks are not missed
    here: states of earlier versions have fewer.
    """
    if example is None:
        return
    if isinstance(example, Tensor):
        fits = is_plain_tensor(value) and value.dtype == example.dtype
        fits = fits and (value.shape == example.shape or not example.numel())
    elif isinstance(example, dict):
        fits = isinstance(value, dict)
        for key in value.keys() & example.keys() if fits else ():
            check_like(value[key], example[key], f"{name}.{key}")
    elif isinstance(example, list | tuple):
        fits = isinstance(value, list | tuple)
        for item in value if fits and example else ():
            check_like(item, example[0], f"{name}[]")
    else:
        fits = has_type(value, type(example))
    if not fits:
        raise TypeError(f"{name} is not what it should be")


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Restore an optimiser's learning rates and moments; all other settings come from the configuration.

    What the moments of each parameter are, is found by a step of an optimiser of the same kind with one parameter.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    tried = torch.nn.Parameter(torch.zeros(2, 3, device=parameters[0].device))
    tried.grad = torch.zeros_like(tried)
    kind: Any = type(optimizer)
    trial = kind([{**optimizer.param_groups[0], "params": [tried]}])
    trial.step()
    expected = trial.state[tried]
    for index, moments in state["state"].items():
        if moments.keys() != expected.keys():
            raise ValueError(f"the optimiser's state has {', '.join(moments)}, not {', '.join(expected)}")
        for name, example in expected.items():
            is_large = isinstance(example, Tensor) and example.dim() > 0  # as large as the parameter
            check_like(moments[name], parameters[index] if is_large else example, f"optimizer.{name}")
    own = optimizer.state_dict()
    rates = [float(group["lr"]) for group in state["param_groups"]]
    groups = [{**group, "lr": rate} for group, rate in zip(own["param_groups"], rates, strict=True)]
    optimizer.load_state_dict({"state": state["state"], "param_groups": groups})
