"""Parallel text on its way from files to batches.

`Text` holds one side of a corpus as indices, `ParallelCorpus` pairs the sides and cuts them into batches. Which
sentences share a batch is a pure function of the seed and the epoch, so that a resumed run sees the same batches.
"""

import shlex
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import kind_of, read_lines
from pysimt_sac.core.vocabulary import PAD, Vocabulary

# A command that copies the pairs of two files without an empty side to side.1 and side.2.
WITHOUT_EMPTY = """awk 'NR==FNR {a[NR]=$0; next} NF && split(a[FNR], w) {print a[FNR] > "side.1"; print > "side.2"}'"""
MAX_WORDS = 5000  # a longer line means a file without line breaks, not a sentence

Indices = np.ndarray[Any, np.dtype[np.int64]]


def find_files(path: str | Path) -> list[Path]:
    """Return the file itself, or those that match a pattern such as `val.*.de`, in order."""
    path = Path(path)
    if not any(sign in path.name for sign in "*?[") or kind_of(path):
        return [path]
    found = [] if "**" in path.name else sorted(path.parent.glob(path.name))  # `**` would search all folders below
    if not found:
        raise UserError("no file matches this pattern", path)
    return found


def read_sentences(path: Path) -> list[str]:
    """Return the lines of a corpus file; an empty file, an empty line or an absurdly long one is an error."""
    lines = read_lines(path, "corpus file")
    if not lines:
        raise UserError("is empty", path, "a corpus file has one sentence per line")
    empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if empty:
        hint = f"remove them and their translations: {WITHOUT_EMPTY} {shlex.quote(str(path))} OTHER_SIDE"
        raise UserError(f"{len(empty):,} of {len(lines):,} lines are empty, the first is line {empty[0]}", path, hint)
    for number, line in enumerate(lines, 1):
        check_length(line, number, path)
    return lines


def check_length(line: str, number: int, where: object) -> None:
    """Refuse what cannot be a sentence before it exhausts memory."""
    if len(line) > 2 * MAX_WORDS and len(line.split()) > MAX_WORDS:
        raise UserError(f"line {number} has {len(line.split())} words", where, "write one sentence per line")


class Text:
    """One side of a corpus: all sentences in one array of indices, so that millions of them stay small."""

    def __init__(self, sentences: Sequence[str], vocab: Vocabulary, is_target: bool, name: object = "text") -> None:
        rows = [np.asarray(vocab.sent_to_idxs(line, explicit_bos=is_target), dtype=np.int32) for line in sentences]
        self.name = str(name)
        self.lengths = np.asarray([len(row) for row in rows], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.ids = np.concatenate(rows)

    def __len__(self) -> int:
        return len(self.lengths)

    def pad(self, indices: Sequence[int]) -> Tensor:
        """Return some sentences as a (time, batch) tensor."""
        padded = np.full((int(self.lengths[indices].max()), len(indices)), PAD, dtype=np.int64)
        for column, index in enumerate(indices):
            padded[: self.lengths[index], column] = self.ids[self.starts[index] : self.starts[index + 1]]
        return torch.from_numpy(padded)


def order_by_length(lengths: Indices, tie_lengths: Indices, rng: np.random.Generator) -> Indices:
    """Sort sentences by the length of one side, then by that of the other.

    Grouping by source length alone wastes a third of the target positions on padding. Sentences of the same two
    lengths are shuffled, so that no two epochs have the same batches.
    """
    order = rng.permutation(len(lengths))
    return order[np.lexsort((tie_lengths[order], lengths[order]))]


def cut_by_tokens(order: Indices, lengths: Indices, most: int) -> list[Indices]:
    """Cut into batches of at most `most` tokens, padding included; a longer sentence is a batch of its own."""
    edges, first, longest = [], 0, 0
    for place, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        if place > first and longest * (place + 1 - first) > most:
            edges.append(place)
            first, longest = place, length
    return np.split(order, edges)


class ParallelCorpus(Dataset[Batch]):
    """Sentence pairs (or sources alone) and the batches they form.

    batch_tokens: if not 0, the limit of a batch in place of `batch_size`: predicted words of the last side, `<eos>`
    and padding counted, `<bos>` not.
    """

    def __init__(
        self,
        sides: dict[str, Text],
        batch_size: int,
        *,
        batch_tokens: int = 0,
        training: bool = False,
        bucket_by: str | None = None,
        bucket_order: str | None = None,
        sampler_type: str = "bucket",
        max_len: int | None = None,
        seed: int = 0,
    ) -> None:
        self.sides, self.training, self.seed = sides, training, seed
        self.batch_size, self.batch_tokens = batch_size, batch_tokens
        self.bucket_by, self.bucket_order, self.sampler_type = bucket_by, bucket_order, sampler_type
        names, sizes = list(sides), {side.name: len(side) for side in sides.values()}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise UserError(f"unequal numbers of lines: {counts}", "", "the sides of a corpus must be parallel")
        if bucket_by not in (None, *names):
            hint = f"one of {', '.join(names)}"
            raise UserError(f"{bucket_by!r} is not a side of the corpus", "[model] bucket_by", hint)
        bucket_side = bucket_by or names[0]
        tie_side = next((name for name in reversed(names) if name != bucket_side), bucket_side)
        self.bucket_lengths, self.tie_lengths = sides[bucket_side].lengths, sides[tie_side].lengths
        kept = np.arange(len(self.bucket_lengths))
        if training and max_len is not None and bucket_by is not None:
            kept = kept[self.bucket_lengths <= max_len]
        if not len(kept):
            raise UserError(f"all sentences are longer than max_len = {max_len}", sides[names[0]].name, "raise max_len")
        self.kept = kept
        self.n_predicted = sides[names[-1]].lengths[kept] - 1

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def left_out(self) -> int:
        """The number of sentences that were too long."""
        return len(self.bucket_lengths) - len(self.kept)

    def batches(self, epoch: int = 0) -> list[Indices]:
        """Return the sentences of each batch of an epoch, in the order of use."""
        rng = np.random.default_rng([self.seed, epoch])
        lengths, tie_lengths = self.bucket_lengths[self.kept], self.tie_lengths[self.kept]
        if self.training and self.bucket_by is None:
            order = rng.permutation(len(self.kept))
        else:
            order = order_by_length(lengths, tie_lengths, rng)
        equal_lengths_only = self.training and self.bucket_by is not None and self.sampler_type == "bucket"
        buckets = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if equal_lengths_only else [order]
        groups = [batch for bucket in buckets for batch in self.cut(bucket)]
        if self.training and self.bucket_order is None:
            groups = [groups[index] for index in rng.permutation(len(groups))]
        elif self.bucket_order == "descending":
            groups.reverse()
        return [self.kept[group] for group in groups]

    def cut(self, order: Indices) -> list[Indices]:
        """Cut sentences in a given order into batches."""
        if self.batch_tokens:
            return cut_by_tokens(order, self.n_predicted, self.batch_tokens)
        return [order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size)]

    def local_batches(self) -> Iterator[Batch | None]:
        """Yield the batches that this rank evaluates, then None until all ranks have had equally many."""
        n_batches = len(self.batches())
        yield from self.loader(start=world.rank, step=world.size)
        yield from repeat(None, -(-n_batches // world.size) - len(range(world.rank, n_batches, world.size)))

    def __getitem__(self, indices: Indices) -> Batch:
        chosen = indices.tolist()
        return Batch({name: side.pad(chosen) for name, side in self.sides.items()}, chosen)

    def loader(
        self, epoch: int = 0, start: int = 0, num_workers: int = 0, pin_memory: bool = False, step: int = 1
    ) -> Iterator[Batch]:
        """Iterate over the batches of an epoch from number `start` on, or every `step`-th of them."""
        loader: DataLoader[Batch] = DataLoader(
            self,
            batch_size=None,
            sampler=self.batches(epoch)[start::step],
            num_workers=num_workers,
            pin_memory=pin_memory,
            generator=torch.Generator(),  # its own, so that loading never advances the run's random state
        )
        return iter(loader)
