"""Prepare IWSLT14, from the official archive or from plain parallel files.

The steps are those of MIXER and later work on reinforcement learning: tokenise, then lowercase; drop training and
validation pairs with more than 50 words on a side or a length ratio above 1.5; use every 23rd remaining training pair
for validation, unless there is a validation set. The test set is the concatenation of the archive's dev and tst sets.
Words with fewer than 3 occurrences in training are unknown; no BPE.

The archive of a pair, de-en.tgz, contains train.tags.de-en.de and .en, with metadata lines, and XML files such as
IWSLT14.TED.dev2010.de-en.de.xml, with sentences in <seg> elements.
"""

import html
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder, atomic_write, make_folder, stream_lines, why, write_lines
from pysimt_sac.corpora.record import TextStatistics, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.text_files import (
    RawFile,
    find_splits,
    find_text,
    in_chunks,
    map_in_processes,
    require_folder,
)
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.text.plain_text import tokenise_lines
from pysimt_sac.text.preparation import SidePreparation

STEPS = ("tokenise", "lowercase")
VALIDATION_NAMES = ("val", "valid", "dev")
VALIDATION_EVERY = 23
MAX_RATIO = 1.5

# Metadata lines in the archive's training text.
METADATA = re.compile(r"\s*</?(url|keywords|talkid|speaker|reviewer|translator|doc)\b")
# Titles and descriptions are parallel text, so only their tags are removed.
TAGS = re.compile(r"</?(title|description)>")
SEGMENT = re.compile(r"<seg id=\"?(\d+)\"?>(.*?)</seg>")
ARCHIVE_ENDINGS = (".tgz", ".tar.gz")


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
    with (
        TemporaryDirectory(prefix="iwslt14-") as scratch,
        atomic_folder(out) as root,
        map_in_processes(jobs) as map_chunks,
    ):
        folder, languages = root / pair, pair.split("-")
        folder.mkdir()
        splits = iwslt14_splits(plain_folder(raw, pair, Path(scratch)), raw, pair)
        kept: dict[str, list[tuple[str, ...]]] = {}
        for split, files in splits.items():
            sides = []
            for language, file in zip(languages, files, strict=True):
                log(f"tokenising {file.path.name} ({file.lines:,} lines)")
                tokenise = partial(tokenise_lines, SidePreparation(language, STEPS))
                chunks = map_chunks(tokenise, in_chunks(stream_lines(file.path)))
                sides.append([line for chunk in chunks for line in chunk])
            pairs = zip(*sides, strict=True)
            kept[split] = [each for each in pairs if split == "test" or is_kept(each, settings)]
            log(f"{split}: {len(kept[split]):,} of {files[0].lines:,} pairs kept")
        if "val" not in splits:
            kept["val"] = kept["train"][VALIDATION_EVERY - 1 :: VALIDATION_EVERY]
            del kept["train"][VALIDATION_EVERY - 1 :: VALIDATION_EVERY]
        for split, sentences in kept.items():
            for side, language in enumerate(languages):
                if sentences:
                    write_lines(folder / text_name(split, language), [each[side] for each in sentences])
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


def is_kept(sentences: Sequence[str], settings: Iwslt14Settings) -> bool:
    """Return whether a pair is short enough and has a length ratio of at most MAX_RATIO."""
    lengths = [len(sentence.split()) for sentence in sentences]
    short, long = min(lengths), max(lengths)
    return short >= 1 and long <= settings.max_words and long <= MAX_RATIO * short


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
    preparation = {text_name("train", language): SidePreparation(language, STEPS) for language in pair.split("-")}
    write_record(folder, f"iwslt14 {pair}", asdict(settings), inputs, statistics, preparation)
    return statistics


def plain_folder(raw: Path, pair: str, scratch: Path) -> Path:
    """Return a folder of plain parallel files: `raw`, or one in `scratch` if `raw` is the archive or its content."""
    packed = (raw, *(raw / f"{pair}{ending}" for ending in ARCHIVE_ENDINGS))
    archive = next((path for path in packed if path.is_file()), None)
    folders = [extract(archive, make_folder(scratch / "archive"))] if archive else [raw, raw / pair]
    for folder in folders:
        if archive or any(folder.glob(f"train.tags.{pair}.*")):
            return unpack_folder(folder, pair, scratch)
    return require_folder(raw)


def extract(archive: Path, folder: Path) -> Path:
    """Extract the text files of an archive into one folder."""
    try:
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() else None
                name = Path(member.name).name
                if content is not None and (name.startswith("train.tags.") or name.endswith(".xml")):
                    with atomic_write(folder / name, "wb") as stream:
                        shutil.copyfileobj(content, stream)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError("broken archive", archive, "download it again") from error
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", archive) from error
    return folder


def unpack_folder(folder: Path, pair: str, scratch: Path) -> Path:
    """Write the archive's training text and test set in both languages as plain text."""
    plain, languages = make_folder(scratch / "plain"), pair.split("-")
    ending = f".{pair}.{languages[0]}.xml"
    sets = [path.name.removesuffix(f".{languages[0]}.xml") for path in folder.glob(f"*{ending}")]
    if not sets:
        raise UserError(f"no *{ending} here", folder, "the archive's test sets are required")
    sets.sort(key=lambda name: (name.split(".")[2:], name))  # by dev2010 in IWSLT14.TED.dev2010.de-en
    texts = {"train": read_sides(training_text, [folder / f"train.tags.{pair}.{language}" for language in languages])}
    tests = [read_sides(segments, [folder / f"{name}.{language}.xml" for language in languages]) for name in sets]
    texts["test"] = [[line for test in tests for line in test[side]] for side in (0, 1)]
    for split, sides in texts.items():
        for language, lines in zip(languages, sides, strict=True):
            write_lines(plain / f"{split}.{language}", lines)
    return plain


def read_sides(read: Callable[[Path], Iterator[str]], paths: list[Path]) -> list[list[str]]:
    """Read both sides of a text; refuse different numbers of sentences."""
    sides = [list(read(path)) for path in paths]
    if len(sides[0]) != len(sides[1]):
        counts = [f"{path.name} has {len(lines):,} sentences" for path, lines in zip(paths, sides, strict=True)]
        raise UserError(" but ".join(counts), paths[0].parent, "the archive is damaged; download it again")
    return sides


def training_text(path: Path) -> Iterator[str]:
    """Yield the sentences of a tagged training text."""
    for line in stream_lines(path):
        if not METADATA.match(line):
            yield TAGS.sub("", line).strip()


def segments(path: Path) -> Iterator[str]:
    """Yield the sentences of an XML file, which need not be well-formed."""
    for line in stream_lines(path, "test set"):
        for match in SEGMENT.finditer(line):
            # The usual scripts replace typographic apostrophes in the test sets.
            yield html.unescape(match[2]).replace("\u2019", "'").strip()
