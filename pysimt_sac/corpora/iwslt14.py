"""Prepare IWSLT14, from the official archive or from plain parallel files.

The steps are those of MIXER and later work on reinforcement learning: tokenise, then lowercase; drop training and
validation pairs with more than 50 words on a side or a length ratio above 1.5; use every 23rd remaining training pair
for validation, unless there is a validation set. The test set is the concatenation of the archive's dev and tst sets.
Words with fewer than 3 occurrences in training are unknown; no BPE.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder, atomic_write, stream_lines
from pysimt_sac.corpora.iwslt14_archive import plain_folder
from pysimt_sac.corpora.processes import Workers
from pysimt_sac.corpora.raw_files import RawFile, find_splits, find_text
from pysimt_sac.corpora.record import TextStatistics, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.tokenisation import Style, tokenise_file
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.hosts.engine.data.text_preparation import SidePreparation

STYLE = Style(("tokenise", "lowercase"))
VALIDATION_NAMES = ("val", "valid", "dev")
VALIDATION_EVERY = 23
MAX_RATIO = 1.5


@dataclass(frozen=True)
class Iwslt14Settings:
    """Maximum sentence length and minimum word frequency."""

    max_words: int = 50
    min_frequency: int = 3


def prepare(
    raw: Path, out: Path, pair: str, settings: Iwslt14Settings, jobs: int, log: Callable[[str], None]
) -> list[TextStatistics]:
    """Write OUT/PAIR and return its statistics."""
    require_own_folder(out / pair, f"iwslt14 {pair}")
    log(f"reading {raw}")
    with TemporaryDirectory(prefix="iwslt14-") as scratch_name, atomic_folder(out) as root, Workers(jobs) as workers:
        scratch, folder = Path(scratch_name), root / pair
        folder.mkdir()
        splits = iwslt14_splits(plain_folder(raw, pair, scratch), raw, pair)
        for split, files in splits.items():
            for language, file in zip(pair.split("-"), files, strict=True):
                log(f"tokenising {file.path.name} ({file.lines:,} lines)")
                tokenise_file(file.path, scratch / text_name(split, language), language, STYLE, workers)
        for split in splits:
            placed = assign_splits(split, read_pairs(scratch, split, pair), "val" not in splits, settings)
            written = write_pairs(folder, pair, placed)
            log(f"{split}: {written:,} of {splits[split][0].lines:,} pairs kept")
        return write_vocabularies(folder, pair, splits, settings, log)


def text_name(split: str, language: str) -> str:
    """Return the name of a prepared text file."""
    return f"{split}.tok.lc.{language}"


def iwslt14_splits(folder: Path, raw: Path, pair: str) -> dict[str, list[RawFile]]:
    """Find both sides of all splits that exist; a test set alone is not enough."""
    source = pair.split("-")[0]
    validation = next((name for name in VALIDATION_NAMES if find_text(folder, f"{name}.{source}")), "val")
    splits = find_splits(folder, pair, {"train": "train", "val": validation, "test": "test"})
    if not splits:
        hint = f"expected train.tags.{pair}.* and IWSLT14.*.xml, {pair}.tgz, or train, val, test.{source} and so on"
        raise UserError("no IWSLT14 data here", raw, hint)
    if "train" not in splits and "val" not in splits:
        raise UserError("neither training text nor validation set here", raw, "a test set alone is not enough")
    return splits


def read_pairs(folder: Path, split: str, pair: str) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of a tokenised split."""
    source, target = (stream_lines(folder / text_name(split, language)) for language in pair.split("-"))
    yield from zip(source, target, strict=True)


def is_kept(sentences: tuple[str, str], settings: Iwslt14Settings) -> bool:
    """Return whether a pair is short enough and has a length ratio of at most MAX_RATIO."""
    lengths = [len(sentence.split()) for sentence in sentences]
    short, long = min(lengths), max(lengths)
    return short >= 1 and long <= settings.max_words and long <= MAX_RATIO * short


def assign_splits(
    split: str, pairs: Iterable[tuple[str, str]], split_off: bool, settings: Iwslt14Settings
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the pairs to keep with their splits; `split_off`: move every 23rd training pair to validation."""
    kept = 0
    for sentences in pairs:
        if split != "test" and not is_kept(sentences, settings):
            continue
        kept += 1
        goes_to_validation = split == "train" and split_off and kept % VALIDATION_EVERY == 0
        yield "val" if goes_to_validation else split, sentences


def write_pairs(folder: Path, pair: str, placed: Iterable[tuple[str, tuple[str, str]]]) -> int:
    """Write sentence pairs to the files of their splits and return their number."""
    written = 0
    with contextlib.ExitStack() as stack:
        streams: dict[str, list[IO[str]]] = {}
        for split, sentences in placed:
            if split not in streams:
                paths = [folder / text_name(split, language) for language in pair.split("-")]
                streams[split] = [stack.enter_context(atomic_write(path)) for path in paths]
            for stream, sentence in zip(streams[split], sentences, strict=True):
                stream.write(f"{sentence}\n")
            written += 1
    return written


def write_vocabularies(
    folder: Path, pair: str, splits: dict[str, list[RawFile]], settings: Iwslt14Settings, log: Callable[[str], None]
) -> list[TextStatistics]:
    """Write vocabularies, if there is training text, and the record; return statistics."""
    if "train" not in splits:
        log("no training text, no vocabularies")
    statistics = []
    for language in pair.split("-"):
        words = None
        train = folder / text_name("train", language)
        if train.exists():
            words = keep_frequent(count_words(stream_lines(train)), settings.min_frequency)
            write_vocabulary(vocabulary_path(folder, train, settings.min_frequency), words)
        paths = [folder / text_name(split, language) for split in ("train", "val", "test")]
        statistics += [text_statistics(path, words) for path in paths if path.exists()]
    inputs = {file.path.name.removesuffix(".gz"): file.checksum for files in splits.values() for file in files}
    preparation = {
        text_name("train", language): SidePreparation(language, STYLE.steps, STYLE.split_hyphens)
        for language in pair.split("-")
    }
    write_record(folder, f"iwslt14 {pair}", asdict(settings), inputs, statistics, preparation)
    return statistics
