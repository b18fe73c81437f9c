"""Data parallelism over the ranks that `torchrun` starts; with one rank, as usual, everything is local.

Every rank reads the same global batches and computes its shard of each: it samples for its own sentences, with its own
random stream and its own replay buffer. Ranks meet in two places only: gradients are averaged where an optimiser steps
(`optimizer_step`, `World.average_gradients`), metrics where they are reported (`World.average_metrics`). So weights are
the same everywhere, and algorithms, losses and rewards do not know about ranks.
"""

import contextlib
import datetime
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from pysimt_sac.core.errors import UserError

T = TypeVar("T")
MINUTES = 120.0  # until a rank gives up: another may validate, save or load for longer than it
SLOW = 60.0  # seconds until a rank says for which others it waits


class World:
    """The ranks of a run, and collective operations among them."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self.store: Any = None
        self.group: Any = None  # torch's process group; None: the default one
        self.minutes, self.ended = MINUTES, threading.Event()
        self.meetings, self.waits_since = 0, 0.0  # collective operations so far; 0.0: this rank waits for no other

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes files and prints."""
        return self.rank == 0

    # Setup and teardown

    @contextlib.contextmanager
    def joined(self, minutes: float = MINUTES) -> Iterator[None]:
        """Join torchrun's process group, if it started this process; only one rank reports an error.

        minutes: how long to wait for another rank before giving up.
        """
        if not several_were_started():
            yield
            return
        self.begin(minutes)
        try:
            yield
            self.barrier()
        except BaseException as error:
            if not self.is_first_to_report():
                raise SystemExit(2 if isinstance(error, UserError) else 1) from error
            raise
        self.end()

    def begin(self, minutes: float = MINUTES) -> None:
        """Initialise the process group."""
        self.minutes, timeout = minutes, datetime.timedelta(minutes=minutes)
        try:
            found, self.rank, self.size = next(iter(rendezvous("env://", timeout=timeout)))
            self.store = dist.PrefixStore("pysimt_sac", found)
            # CPU tensors use gloo, GPU tensors nccl, so that counting never waits for a GPU.
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, store=found, rank=self.rank, world_size=self.size, timeout=timeout)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the processes cannot find each other: {error}", "torchrun", "see its options") from error
        self.ended.clear()
        threading.Thread(target=self.name_late_ranks, daemon=True).start()

    def end(self) -> None:
        """Destroy the process group and reset to a single rank."""
        self.ended.set()
        if self.size > 1:
            dist.destroy_process_group()
        self.rank, self.size, self.store = 0, 1, None

    def is_first_to_report(self) -> bool:
        """Return whether no other rank has reported an error; most errors are shared or follow from the first."""
        try:
            return bool(self.store is None or self.store.add("errors", 1) == 1)
        except RuntimeError:
            return True

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.all_reduce_max(0)

    # Numbers

    def all_reduce_max(self, number: int) -> int:
        """Return the largest of all ranks' numbers."""
        return int(self.all_reduce(torch.tensor(number), dist.ReduceOp.MAX))

    def all_reduce(self, values: Tensor, operation: Any = dist.ReduceOp.SUM) -> Tensor:
        """Return the sum, or the result of another operation, of all ranks' tensors; without gradient."""
        if self.size == 1:
            return values
        total = values.detach().clone()
        with self.meeting():
            dist.all_reduce(total, operation, group=self.group)
        return total

    def average_gradients(self, parameters: Iterable[Tensor], weight: float) -> None:
        """Replace gradients by their mean over all ranks, each weighted by its `weight`: the items it is a mean over.

        All gradients go in one message: one for each would take twice as long.
        """
        if self.size == 1:
            return
        parameters = [parameter for parameter in parameters if parameter.requires_grad]
        if not self.all_reduce_max(any(parameter.grad is not None for parameter in parameters)):
            return
        gradients = [torch.zeros_like(part) if part.grad is None else part.grad for part in parameters]
        row = torch.cat([*(gradient.flatten() for gradient in gradients), gradients[0].new_ones(1)])
        row = self.all_reduce(row * weight)
        pieces = (row[:-1] / row[-1].clamp(min=1)).split([gradient.numel() for gradient in gradients])
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)

    def average_metrics(self, metrics: Mapping[str, Tensor | float]) -> dict[str, float]:
        """Return the mean of every metric over the ranks that have it, as numbers."""
        found: dict[str, list[float]] = {}
        for own in self.gather({name: float(value) for name, value in metrics.items()}):
            for name, value in own.items():
                found.setdefault(name, []).append(value)
        return {name: sum(values) / len(values) for name, values in found.items()}

    # Objects

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in rank order."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with self.meeting():
            dist.all_gather_object(found, value, group=self.group)
        return found

    def gather_on_main(self, value: T) -> list[T]:
        """Return the values of all ranks on rank 0, an empty list on the others."""
        if self.size == 1:
            return [value]
        found: list[Any] | None = [None] * self.size if self.is_main else None
        with self.meeting():
            dist.gather_object(value, found, dst=0, group=self.group)
        return found or []

    def broadcast_from_main(self, function: Callable[[], T]) -> T:
        """Call a function on rank 0 only and broadcast its result or its `UserError`."""
        if self.size == 1:
            return function()
        answer: list[Any] = [None, None]
        if self.is_main:
            try:
                answer[0] = function()
            except UserError as error:
                answer[1] = error
        with self.meeting():
            dist.broadcast_object_list(answer, src=0, group=self.group)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]  # type: ignore[no-any-return]

    # Waiting

    @contextlib.contextmanager
    def meeting(self) -> Iterator[None]:
        """Note that this rank waits for the others in the block, and turn a failure into a `UserError`."""
        self.meetings, self.waits_since = self.meetings + 1, time.monotonic()
        try:
            yield
        except RuntimeError as error:
            is_late = "timed out" in str(error).lower()
            what = f"has not answered for {self.minutes:g} minutes" if is_late else "has ended"
            where = f"process {self.rank} of {self.size}"
            hint = "the same command resumes from the last saved state"
            raise UserError(f"another process of this run {what}", where, hint) from error
        finally:
            self.waits_since = 0.0

    def name_late_ranks(self) -> None:
        """Say, once for every meeting, for which ranks the others have been waiting for a minute; runs in a thread."""
        posted = told = 0
        with contextlib.suppress(RuntimeError):  # the others have ended
            while not self.ended.wait(SLOW / 10):
                number, since = self.meetings, self.waits_since
                if not since or number == told:
                    continue
                self.store.add(f"meeting of {self.rank}", number - posted)
                posted = number
                if time.monotonic() - since < SLOW:
                    continue
                reached = [self.store.add(f"meeting of {rank}", 0) for rank in range(self.size)]
                late, told = [str(rank) for rank, last in enumerate(reached) if last < number], number
                if late and self.rank == next(rank for rank, last in enumerate(reached) if last >= number):
                    logging.getLogger("pysimt_sac").critical(
                        f"Waiting for process {', '.join(late)} of {self.size} for {SLOW:.0f} s: is it stopped, or "
                        f"slow? The others give up after {self.minutes:g} minutes"
                    )


def check_single_process() -> None:
    """Refuse several processes, for hosts that train in a single one."""
    if world.size > 1:
        what = f"trains and translates with one process, not with {world.size}"
        raise UserError(what, "pysimt", "set PYSIMT_SAC_HOST=embedded, or start it without torchrun")


def several_were_started() -> bool:
    """Return whether torchrun started this process and others."""
    return dist.is_available() and dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1


def optimizer_step(optimizer: torch.optim.Optimizer, loss: Tensor, n_items: int, max_norm: float = math.inf) -> Tensor:
    """Take one step on a loss, a mean over `n_items`; return the gradient norm before it is clipped at `max_norm`."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    optimizer.zero_grad()
    loss.backward()
    world.average_gradients(parameters, n_items)
    norm = nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    return norm


def seed_of_rank(seed: int) -> int:
    """Return the seed of this rank's random streams; with one process, the run's seed."""
    return seed + 1_000_003 * world.rank


world = World()
