"""Several processes that work on one run together, as `torchrun` starts them; usually there is one, and all is simple.

Every process reads the same batches and takes its own sentences of each: neighbours, so that the sentences of all
processes, one after the other, are the batch. Whatever it computes is its *share*: what the shares of all processes add
up to is what one process would have computed. Random numbers are drawn for the whole batch by everybody, and each takes
those of its own sentences, so that a run does not depend on the number of processes.

A batch with fewer sentences than processes is not divided: all of them work on the whole of it.
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

from pysimt_sac.errors import UserError

T = TypeVar("T")
PATIENCE = datetime.timedelta(hours=2)  # for one process that validates, saves or loads longer than the others


class World:
    """The processes of a run, and which of them this one is.

    whole: the sentences that all processes together work on now, if these are divided among them, so that numbers are
    shares; 0 if everybody works on the same. It is set where a batch or an experience is taken up.
    """

    def __init__(self) -> None:
        self.rank, self.size, self.whole = 0, 1, 0
        self.store: Any = None
        self.group: Any = None  # torch's; none: all that were started

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes files and talks to people."""
        return self.rank == 0

    @property
    def divided(self) -> bool:
        """Whether what is worked on now is divided among the processes."""
        return self.whole > 0

    # Beginning and end

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Work together with the processes that torchrun has started, if it has; of several errors one is told."""
        if not several_were_started():
            yield
            return
        self.begin()
        try:
            yield
            self.wait()
        except BaseException as error:
            if not self.is_first_to_tell():
                raise SystemExit(2 if isinstance(error, UserError) else 1) from error
            raise
        self.end()

    def begin(self) -> None:
        """Find the other processes."""
        try:
            found, self.rank, self.size = next(iter(rendezvous("env://", timeout=PATIENCE)))
            self.store = dist.PrefixStore("pysimt_sac", found)  # type: ignore[attr-defined]
            # Numbers in host memory go by gloo, those on GPUs by nccl: counting never waits for a GPU.
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, store=found, rank=self.rank, world_size=self.size, timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the processes cannot find each other: {error}", "torchrun", "see its options") from error

    def end(self) -> None:
        """Be alone again."""
        if self.size > 1:
            dist.destroy_process_group()
        self.rank, self.size, self.whole, self.store = 0, 1, 0, None

    def is_first_to_tell(self) -> bool:
        """Whether no other process has told of an error; most are the same everywhere, or follow from the first."""
        try:
            return bool(self.store is None or self.store.add("told", 1) == 1)
        except RuntimeError:
            return True

    def wait(self) -> None:
        """Until all processes are here."""
        self.agree(0)

    # What is divided

    def bounds(self, n_sentences: int) -> slice:
        """Which of so many sentences are this process's."""
        return slice(n_sentences * self.rank // self.size, n_sentences * (self.rank + 1) // self.size)

    def divides(self, n_sentences: int) -> bool:
        """Whether there is a sentence for every process, and more than one process."""
        return 1 < self.size <= n_sentences

    @contextlib.contextmanager
    def working_undivided(self) -> Iterator[None]:
        """Inside, everybody works on the same."""
        before, self.whole = self.whole, 0
        try:
            yield
        finally:
            self.whole = before

    def places_of_sentences(self, n_steps: int) -> tuple[Tensor, int]:
        """`places` of all sentences' rows, sorted by time step; that is known without a message to the others."""
        own = self.bounds(self.whole)
        columns_B = torch.arange(own.start, own.stop)
        rows_TB = torch.arange(n_steps).unsqueeze(1) * self.whole + columns_B
        return rows_TB.flatten(), n_steps * self.whole

    def places(self, order_N: Tensor) -> tuple[Tensor, int]:
        """Where this process's rows are among all processes' rows, and how many those are.

        Rows are sorted by `order`, such as their time steps, which must not fall, then by sentence.
        """
        order_N = order_N.cpu()
        longest = self.largest(int(order_N[-1]) + 1 if len(order_N) else 0)
        own_T = torch.bincount(order_N, minlength=longest)
        all_RT = [torch.empty_like(own_T) for _ in range(self.size)]
        with self.together():
            dist.all_gather(all_RT, own_T, group=self.group)
        total_T = torch.stack(all_RT).sum(0)
        before_T = torch.stack([torch.zeros_like(own_T), *all_RT[: self.rank]]).sum(0)
        first_T = total_T.cumsum(0) - total_T + before_T - (own_T.cumsum(0) - own_T)
        return first_T[order_N] + torch.arange(len(order_N)), int(total_T.sum())

    def draw(
        self, make: Callable[[tuple[int, int]], Tensor], n_steps: int, n_columns: int, order: Tensor | None = None
    ) -> Tensor:
        """Random numbers (T, B) from a function of the shape, which one process would call for the whole batch.

        order: as in `places`, if columns are not simply those of one process after those of another.
        """
        if not self.divided:
            return make((n_steps, n_columns))
        places_B, total = self.places(torch.zeros(n_columns, dtype=torch.long) if order is None else order)
        return make((self.largest(n_steps), total))[:n_steps].index_select(1, places_B)

    # Numbers

    def count(self, number: int) -> int:
        """The sum of all processes' numbers."""
        return int(self.total(torch.tensor(number))) if self.divided else number

    def largest(self, number: int) -> int:
        """The largest of all processes' numbers."""
        return self.agree(number) if self.divided else number

    def total(self, share: Tensor) -> Tensor:
        """What all shares add up to, without gradient."""
        if not self.divided:
            return share
        total = share.detach().clone()
        with self.together():
            dist.all_reduce(total, group=self.group)
        return total

    def mean(self, values: Tensor, dim: int | None = None) -> Tensor:
        """This process's share of the mean over all processes' values; 0 if there are none."""
        count = values.numel() if dim is None else values.size(dim)
        if self.divided or not count:
            return (values.sum() if dim is None else values.sum(dim)) / max(1, self.count(count))
        return values.mean() if dim is None else values.mean(dim)

    def agree(self, number: int) -> int:
        """The largest of all processes' numbers, whatever is worked on."""
        if self.size == 1:
            return number
        largest = torch.tensor(number)
        with self.together():
            dist.all_reduce(largest, dist.ReduceOp.MAX, group=self.group)
        return int(largest)

    # Gradients

    def backward(self, loss: Tensor, parameters: Iterable[Tensor]) -> None:
        """Leave in parameters the gradient of what all processes' losses add up to."""
        self.own_part(loss).backward()
        self.sum_gradients(parameters)

    def own_part(self, loss: Tensor) -> Tensor:
        """What a process adds to the sum over all; of what is not divided, everybody adds the same part."""
        return loss if self.divided or self.size == 1 else loss / self.size

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Leave in parameters what all processes' gradients add up to."""
        held = [parameter for parameter in parameters if parameter.grad is not None]
        totals = self.totals([parameter.grad for parameter in held if parameter.grad is not None])
        for parameter, total in zip(held, totals, strict=True):
            parameter.grad = total

    def totals(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """What all processes' tensors add up to, by one message: many take twice as long."""
        if self.size == 1 or not tensors:
            return tensors
        row = torch.cat([tensor.flatten() for tensor in tensors])
        with self.together():
            dist.all_reduce(row, group=self.group)
        pieces = row.split([tensor.numel() for tensor in tensors])
        return [piece.view_as(tensor) for piece, tensor in zip(pieces, tensors, strict=True)]

    # Objects

    def gather(self, thing: T) -> list[T]:
        """Every process's own, in their order."""
        if self.size == 1:
            return [thing]
        found: list[Any] = [None] * self.size
        with self.together():
            dist.all_gather_object(found, thing, group=self.group)
        return found

    def gather_in_first(self, thing: T) -> list[T]:
        """Every process's own, in the first one; nothing in the others."""
        if self.size == 1:
            return [thing]
        found: list[Any] | None = [None] * self.size if self.leads else None
        with self.together():
            dist.gather_object(thing, found, dst=0, group=self.group)
        return found or []

    def from_first(self, function: Callable[[], T]) -> T:
        """What a function returns in the first process, which alone calls it; its mistakes are everybody's, too."""
        if self.size == 1:
            return function()
        answer: list[Any] = [None, None]
        if self.leads:
            try:
                answer[0] = function()
            except UserError as error:
                answer[1] = error
        with self.together():
            dist.broadcast_object_list(answer, src=0, group=self.group)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Say it in words if another process is no longer there to talk to."""
        try:
            yield
        except RuntimeError as error:
            what, where = "another process of this run has ended", f"process {self.rank} of {self.size}"
            raise UserError(what, where, "the same command goes on from the last saved state") from error


def refuse_several() -> None:
    """For what is done by one process."""
    if world.size > 1:
        what = f"trains and translates with one process, not with {world.size}"
        raise UserError(what, "pysimt", "set PYSIMT_SAC_HOST=embedded, or start it without torchrun")


def several_were_started() -> bool:
    """Whether torchrun has started this process, and others."""
    return dist.is_available() and dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1


world = World()
