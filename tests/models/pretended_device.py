"""A device that is not there: its tensors keep their numbers in host memory, but are as strict as a GPU's.

An operation on tensors of both sides is refused, and every moment at which the host would have to wait for the device
(`.item()`, `.cpu()`, a size that depends on values) is noted with the function of ours that asked. The networks think
that it is a GPU (`is_cuda`); torch thinks that it is its `meta` device, for which it needs no driver.
"""

import sys
from collections import Counter
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import pysimt_sac

PRETENDED = torch.device("meta")
PACKAGE = str(Path(pysimt_sac.__file__).parent)
aten = torch.ops.aten
WAITS = (aten._local_scalar_dense.default, aten.nonzero.default, aten.masked_select.default, aten.equal.default)
COPIES = (aten._to_copy.default, aten.copy_.default)
PACKED = (aten._pack_padded_sequence.default, aten._pad_packed_sequence.default)  # their lengths are in host memory
waits: Counter[str] = Counter()  # how often each function of ours has let the host wait


class Elsewhere(torch.Tensor):
    """A tensor that is on the pretended device."""

    is_cuda = property(lambda self: True)

    @staticmethod
    def __new__(cls, inner):
        sizes = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), **sizes, dtype=inner.dtype, device=PRETENDED)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Elsewhere({self.inner})"

    def item(self):
        waits[asking()] += 1
        return self.inner.item()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item())

    def tolist(self):
        waits[asking()] += 1
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


class Pretending(TorchDispatchMode):
    """While it is active, `PRETENDED` works."""

    def __enter__(self):
        self.make = torch.tensor

        def tensor(data, device=None, requires_grad=False, **options):  # torch's own would have no numbers
            made = self.make(data, **options)
            return (made if device is None else made.to(device)).requires_grad_(requires_grad)

        torch.tensor = tensor
        return super().__enter__()

    def __exit__(self, *error):
        torch.tensor = self.make
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func, args, kwargs):
    """Do it in host memory, unless a device would not."""
    tensors = [part for part in tree_flatten((args, kwargs))[0] if isinstance(part, torch.Tensor)]
    wrappers = {id(part.inner): part for part in tensors if isinstance(part, Elsewhere)}
    at_host = [part for part in tensors if not isinstance(part, Elsewhere) and part.dim() > 0]
    target = kwargs.get("device")
    if wrappers and at_host and func not in (*COPIES, *PACKED):
        raise AssertionError(f"{func} mixes devices in {asking()}")
    leaves = func is aten._to_copy.default and target is not None and torch.device(target).type == "cpu"
    leaves = leaves or (func is aten.copy_.default and not isinstance(args[0], Elsewhere))
    has_mask = func in (aten.index.Tensor, aten.index_put_.default, aten.index_put.default) and any(
        part is not None and part.dtype == torch.bool for part in args[1]
    )
    if wrappers and (func in WAITS or leaves or has_mask):
        waits[asking()] += 1
    if target is not None and torch.device(target) == PRETENDED:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    result = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs))
    if leaves or not (wrappers or (target is not None and torch.device(target) == PRETENDED)):
        return result

    def wrapped(part):
        if not isinstance(part, torch.Tensor):
            return part
        return wrappers[id(part)] if id(part) in wrappers else Elsewhere(part)

    if func in PACKED:
        return wrapped(result[0]), result[1]
    return tree_map(wrapped, result)


def unwrapped(part):
    return part.inner if isinstance(part, Elsewhere) else part


def asking():
    """The function of ours that asked for it."""
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_qualname.partition(".<locals>")[0] if frame else "a test"
