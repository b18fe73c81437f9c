"""Data parallelism over the ranks that `torchrun` starts; with one rank, as usual, everything is local.

Every rank reads the same global batches and keeps its shard of each: a contiguous slice, so that the shards in rank
order make up the batch. Losses are *shares*: their sum over all ranks is what a single process would compute. Every
rank draws the random numbers of the global batch and keeps those of its own sentences, so that the outcome of a run
does not depend on the number of ranks.

A batch with fewer sentences than ranks is not sharded: every rank computes all of it.
"""

import contextlib
import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from pysimt_sac.core.errors import UserError

T = TypeVar("T")
TIMEOUT = datetime.timedelta(hours=2)  # a rank may validate, save or load for longer than the others


class World:
    """The ranks of a run, and collective operations among them.

    global_batch_size: sentences in the batch or experience being processed if it is sharded, so that numbers are
    shares; 0 if every rank processes the same. It is set whenever a new batch or experience is started.
    """

    def __init__(self) -> None:
        self.rank, self.size, self.global_batch_size = 0, 1, 0
        self.store: Any = None
        self.group: Any = None  # torch's process group; None: the default one

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes files and prints."""
        return self.rank == 0

    @property
    def sharded(self) -> bool:
        """Whether each rank holds a part of what is being processed."""
        return self.global_batch_size > 0

    # Setup and teardown

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Join torchrun's process group, if it started this process; only one rank reports an error."""
        if not several_were_started():
            yield
            return
        self.begin()
        try:
            yield
            self.barrier()
        except BaseException as error:
            if not self.is_first_to_report():
                raise SystemExit(2 if isinstance(error, UserError) else 1) from error
            raise
        self.end()

    def begin(self) -> None:
        """Initialise the process group."""
        try:
            found, self.rank, self.size = next(iter(rendezvous("env://", timeout=TIMEOUT)))
            self.store = dist.PrefixStore("pysimt_sac", found)  # type: ignore[attr-defined]
            # CPU tensors use gloo, GPU tensors nccl, so that counting never waits for a GPU.
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, store=found, rank=self.rank, world_size=self.size, timeout=TIMEOUT)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the processes cannot find each other: {error}", "torchrun", "see its options") from error

    def end(self) -> None:
        """Destroy the process group and reset to a single rank."""
        if self.size > 1:
            dist.destroy_process_group()
        self.rank, self.size, self.global_batch_size, self.store = 0, 1, 0, None

    def is_first_to_report(self) -> bool:
        """Return whether no other rank has reported an error; most errors are shared or follow from the first."""
        try:
            return bool(self.store is None or self.store.add("errors", 1) == 1)
        except RuntimeError:
            return True

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.all_reduce_max(0)

    # Sharding

    def local_slice(self, n_sentences: int) -> slice:
        """Return this rank's shard of `n_sentences` sentences."""
        return slice(n_sentences * self.rank // self.size, n_sentences * (self.rank + 1) // self.size)

    def can_shard(self, n_sentences: int) -> bool:
        """Return whether there are several ranks and a sentence for each."""
        return 1 < self.size <= n_sentences

    @contextlib.contextmanager
    def unsharded(self) -> Iterator[None]:
        """Let every rank process the same data inside the block."""
        before, self.global_batch_size = self.global_batch_size, 0
        try:
            yield
        finally:
            self.global_batch_size = before

    def global_rows_of_batch(self, n_steps: int) -> tuple[Tensor, int]:
        """Return `global_rows` for the rows (T, B) of all sentences, without communication."""
        own = self.local_slice(self.global_batch_size)
        columns_B = torch.arange(own.start, own.stop)
        rows_TB = torch.arange(n_steps).unsqueeze(1) * self.global_batch_size + columns_B
        return rows_TB.flatten(), n_steps * self.global_batch_size

    def global_rows(self, order_N: Tensor) -> tuple[Tensor, int]:
        """Return the indices of this rank's rows among the rows of all ranks, and the number of the latter.

        Global rows are sorted by `order`, such as their time step, then by sentence; `order` must be ascending.
        """
        order_N = order_N.cpu()
        longest = self.global_max(int(order_N[-1]) + 1 if len(order_N) else 0)
        own_T = torch.bincount(order_N, minlength=longest)
        all_RT = [torch.empty_like(own_T) for _ in range(self.size)]
        with self.lost_peers_as_user_error():
            dist.all_gather(all_RT, own_T, group=self.group)
        total_T = torch.stack(all_RT).sum(0)
        before_T = torch.stack([torch.zeros_like(own_T), *all_RT[: self.rank]]).sum(0)
        first_T = total_T.cumsum(0) - total_T + before_T - (own_T.cumsum(0) - own_T)
        return first_T[order_N] + torch.arange(len(order_N)), int(total_T.sum())

    def draw(
        self, make: Callable[[tuple[int, int]], Tensor], n_steps: int, n_columns: int, order: Tensor | None = None
    ) -> Tensor:
        """Draw random numbers (T, B) for the global batch with `make(shape)`; return this rank's columns.

        order: as in `global_rows`, if global columns are not simply in rank order.
        """
        if not self.sharded:
            return make((n_steps, n_columns))
        places_B, total = self.global_rows(torch.zeros(n_columns, dtype=torch.long) if order is None else order)
        return make((self.global_max(n_steps), total))[:n_steps].index_select(1, places_B)

    # Sums, means and maxima

    def global_count(self, number: int) -> int:
        """Return the sum of all ranks' counts, if sharded."""
        return int(self.global_sum(torch.tensor(number))) if self.sharded else number

    def global_max(self, number: int) -> int:
        """Return the largest of all ranks' numbers, if sharded."""
        return self.all_reduce_max(number) if self.sharded else number

    def global_sum(self, share: Tensor) -> Tensor:
        """Return the sum of all ranks' shares, if sharded; without gradient."""
        if not self.sharded:
            return share
        total = share.detach().clone()
        with self.lost_peers_as_user_error():
            dist.all_reduce(total, group=self.group)
        return total

    def mean(self, values: Tensor, dim: int | None = None) -> Tensor:
        """Return this rank's share of the mean over all ranks' values; 0 if there are none."""
        count = values.numel() if dim is None else values.size(dim)
        if self.sharded or not count:
            return (values.sum() if dim is None else values.sum(dim)) / max(1, self.global_count(count))
        return values.mean() if dim is None else values.mean(dim)

    def all_reduce_max(self, number: int) -> int:
        """Return the largest of all ranks' numbers, sharded or not."""
        if self.size == 1:
            return number
        largest = torch.tensor(number)
        with self.lost_peers_as_user_error():
            dist.all_reduce(largest, dist.ReduceOp.MAX, group=self.group)
        return int(largest)

    # Gradients

    def backward(self, loss: Tensor, parameters: Iterable[Tensor]) -> None:
        """Backpropagate the sum of all ranks' losses."""
        self.local_share(loss).backward()
        self.all_reduce_gradients(parameters)

    def local_share(self, loss: Tensor) -> Tensor:
        """Return what this rank adds to the sum over all ranks; if not sharded, all add the same part."""
        return loss if self.sharded or self.size == 1 else loss / self.size

    def all_reduce_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace each parameter's gradient by the sum over all ranks."""
        held = [parameter for parameter in parameters if parameter.grad is not None]
        totals = self.all_reduce([parameter.grad for parameter in held if parameter.grad is not None])
        for parameter, total in zip(held, totals, strict=True):
            parameter.grad = total

    def all_reduce(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the sums of all ranks' tensors, sharded or not, in one message: one per tensor takes twice as long."""
        if self.size == 1 or not tensors:
            return tensors
        row = torch.cat([tensor.flatten() for tensor in tensors])
        with self.lost_peers_as_user_error():
            dist.all_reduce(row, group=self.group)
        pieces = row.split([tensor.numel() for tensor in tensors])
        return [piece.view_as(tensor) for piece, tensor in zip(pieces, tensors, strict=True)]

    # Objects

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in rank order."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with self.lost_peers_as_user_error():
            dist.all_gather_object(found, value, group=self.group)
        return found

    def gather_on_main(self, value: T) -> list[T]:
        """Return the values of all ranks on rank 0, an empty list on the others."""
        if self.size == 1:
            return [value]
        found: list[Any] | None = [None] * self.size if self.is_main else None
        with self.lost_peers_as_user_error():
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
        with self.lost_peers_as_user_error():
            dist.broadcast_object_list(answer, src=0, group=self.group)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def lost_peers_as_user_error(self) -> Iterator[None]:
        """Turn a failed collective operation into a `UserError`: another rank has ended."""
        try:
            yield
        except RuntimeError as error:
            what, where = "another process of this run has ended", f"process {self.rank} of {self.size}"
            raise UserError(what, where, "the same command resumes from the last saved state") from error


def check_single_process() -> None:
    """Refuse several processes, for hosts that train in a single one."""
    if world.size > 1:
        what = f"trains and translates with one process, not with {world.size}"
        raise UserError(what, "pysimt", "set PYSIMT_SAC_HOST=embedded, or start it without torchrun")


def several_were_started() -> bool:
    """Return whether torchrun started this process and others."""
    return dist.is_available() and dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1


world = World()
