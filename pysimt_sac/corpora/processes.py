"""Process text files in several processes, in order and with bounded memory."""

import itertools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pysimt_sac.core.files import atomic_write, stream_lines

Item = TypeVar("Item")
Result = TypeVar("Result")

LINES_PER_CHUNK = 1000


class Workers:
    """A context manager for a pool of `jobs` processes; a single job runs in this process."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        # Not fork: the parent may have threads, and a fork would inherit their locks.
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(jobs, mp_context=context) if jobs > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items, with only a few items in memory."""
        if self.pool is None:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(self.pool.submit(function, item))
            if len(pending) > 2 * self.jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def in_chunks(lines: Iterable[str], size: int = LINES_PER_CHUNK) -> Iterator[list[str]]:
    """Split lines into lists of at most `size`."""
    iterator = iter(lines)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def rewrite_file(
    source: Path, target: Path, function: Callable[[Sequence[str]], list[str]], workers: Workers | None = None
) -> None:
    """Apply a function to the chunks of a text file, by default in this process."""
    with atomic_write(target) as stream:
        for chunk in (workers or Workers()).map(function, in_chunks(stream_lines(source))):
            stream.writelines(f"{line}\n" for line in chunk)
