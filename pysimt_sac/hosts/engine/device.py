"""Device selection."""

import ctypes
import os
import re

import torch

from pysimt_sac.core.errors import UserError


def choose_device(name: str) -> torch.device:
    """Parse the name of a device: `auto`, `cpu`, `gpu` (or pysimt's `1gpu`), `cuda` or `cuda:N`."""
    wanted = name.lower()
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        keep_freed_memory()
        return torch.device("cpu")
    match = re.fullmatch(r"(?P<count>\d*)gpu|cuda(:(?P<number>\d+))?|auto", wanted)
    if not match:
        raise UserError(f"unknown device {name!r}", "-d", "one of auto, cpu, gpu, cuda:N")
    if match["count"] not in (None, "", "1"):
        raise UserError(
            f"{name!r} asks for {match['count']} GPUs", "-d", "a process uses one; torchrun starts several processes"
        )
    if not torch.cuda.is_available():
        raise UserError("no GPU is available to torch", f"-d {name}", "use -d cpu or install a CUDA build of torch")
    number = int(match["number"] or os.environ.get("LOCAL_RANK", 0))  # torchrun assigns each process a GPU
    if number >= torch.cuda.device_count():
        raise UserError(f"there are {torch.cuda.device_count()} GPUs, numbered from 0", f"-d {name}")
    if "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(number)
    return torch.device("cuda", number)


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for later tensors, if it can (glibc).

    By default large blocks are returned to the system at once, and come back as pages that must be zeroed first:
    thousands of page faults per update.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
        mallopt(trim_threshold, 2**30)
        mallopt(mmap_threshold, 2**30)
