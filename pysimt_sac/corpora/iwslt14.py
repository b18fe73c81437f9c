"""IWSLT14 from the official archive, or from plain parallel files, to what training reads. Called by `prepare`.

The steps are those of the work on reinforcement learning for translation since MIXER: tokenise, then lower-case;
leave out training pairs with a side of more than 50 words or more than 1.5 times as long as the other; every 23rd of
the pairs left is validation; the test set is all of the archive's dev and tst sets together, uncut. Words that occur
fewer than 3 times in the training text are unknown; no BPE.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from pysimt_sac.corpora.iwslt14_archive import plain_folder
from pysimt_sac.corpora.processes import Workers
from pysimt_sac.corpora.raw_files import RawFile, find_text, split_pair
from pysimt_sac.corpora.record import TextStatistics, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.tokenisation import Style, tokenise_file
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.errors import UserError
from pysimt_sac.files import atomic_folder, atomic_write, stream_lines

STYLE = Style(normalise=False, split_hyphens=False)
VALIDATION_NAMES = ("val", "valid", "dev")
VALIDATION_EVERY = 23
MAX_RATIO = 1.5


@dataclass(frozen=True)
class Iwslt14Settings:
    """How to prepare; the defaults are those of this line of work."""

    max_words: int = 50
    min_frequency: int = 3


def prepare(
    raw: Path, out: Path, pair: str, settings: Iwslt14Settings, jobs: int, say: Callable[[str], None]
) -> list[TextStatistics]:
    """Write OUT/PAIR and describe it."""
    require_own_folder(out / pair, f"iwslt14 {pair}")
    say(f"reading {raw}")
    with TemporaryDirectory(prefix="iwslt14-") as scratch_name, atomic_folder(out) as root, Workers(jobs) as workers:
        scratch, folder = Path(scratch_name), root / pair
        folder.mkdir()
        splits = look_at_splits(plain_folder(raw, pair, scratch), raw, pair)
        for split, files in splits.items():
            for language, file in zip(pair.split("-"), files, strict=True):
                say(f"tokenising {file.path.name} ({file.lines:,} lines)")
                tokenise_file(file.path, scratch / text_name(split, language), language, STYLE, workers)
        for split in splits:
            placed = place(split, read_pairs(scratch, split, pair), "val" not in splits, settings)
            written = write_pairs(folder, pair, placed)
            say(f"{split}: {written:,} of {splits[split][0].lines:,} pairs kept")
        return finish(folder, pair, splits, settings, say)


def text_name(split: str, language: str) -> str:
    """The name of a prepared text file."""
    return f"{split}.tok.lc.{language}"


def look_at_splits(folder: Path, raw: Path, pair: str) -> dict[str, list[RawFile]]:
    """Both sides of the splits that are there: a training text, if any, comes with or without a validation set."""
    source = pair.split("-")[0]
    validation = next((name for name in VALIDATION_NAMES if find_text(folder, f"{name}.{source}")), "val")
    names = {"train": "train", "val": validation, "test": "test"}
    found = {split: split_pair(name, pair.split("-"), folder, required=False) for split, name in names.items()}
    splits = {split: files for split, files in found.items() if files}
    if not splits:
        todo = f"expected train.tags.{pair}.* and IWSLT14.*.xml, {pair}.tgz, or train, val, test.{source} and so on"
        raise UserError("nothing of IWSLT14 here", raw, todo)
    if "train" not in splits and "val" not in splits:
        raise UserError("neither a training text nor a validation set here", raw, "a test set alone is not enough")
    return splits


def read_pairs(folder: Path, split: str, pair: str) -> Iterator[tuple[str, str]]:
    """The sentence pairs of a tokenised split."""
    source, target = (stream_lines(folder / text_name(split, language)) for language in pair.split("-"))
    yield from zip(source, target, strict=True)


def is_kept(sentences: tuple[str, str], settings: Iwslt14Settings) -> bool:
    """Whether a pair is short enough and its sides are about equally long."""
    lengths = [len(sentence.split()) for sentence in sentences]
    short, long = min(lengths), max(lengths)
    return short >= 1 and long <= settings.max_words and long <= MAX_RATIO * short


def place(
    split: str, pairs: Iterable[tuple[str, str]], split_off: bool, settings: Iwslt14Settings
) -> Iterator[tuple[str, tuple[str, str]]]:
    """The pairs to keep, each with the split it goes to; `split_off`: training gives every 23rd pair to validation."""
    kept = 0
    for sentences in pairs:
        if split != "test" and not is_kept(sentences, settings):
            continue
        kept += 1
        goes_to_validation = split == "train" and split_off and kept % VALIDATION_EVERY == 0
        yield "val" if goes_to_validation else split, sentences


def write_pairs(folder: Path, pair: str, placed: Iterable[tuple[str, tuple[str, str]]]) -> int:
    """Write sentence pairs to the files of their splits; how many there were."""
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


def finish(
    folder: Path, pair: str, splits: dict[str, list[RawFile]], settings: Iwslt14Settings, say: Callable[[str], None]
) -> list[TextStatistics]:
    """Write vocabularies, if there is a training text, and the record; describe what was written."""
    if "train" not in splits:
        say("there is no training text: no vocabularies are written")
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
    write_record(folder, f"iwslt14 {pair}", asdict(settings), inputs, statistics)
    return statistics
