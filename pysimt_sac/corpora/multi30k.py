"""Prepare Multi30K from its raw files, as in the paper.

The folder of a language pair, OUT/en-de, contains lowercased, normalised and tokenised text with split hyphens, the
target side in BPE units learned jointly on both sides, vocabularies, and references with joined hyphens.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder, stream_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.corpora.bpe import learn_codes, read_units, write_units
from pysimt_sac.corpora.processes import Workers, rewrite_file
from pysimt_sac.corpora.raw_files import RawFile, find_splits, find_text, require_folder
from pysimt_sac.corpora.record import TextStatistics, checksum, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.segmentation import FILE_NAMES, check_model, kind_of_model, make_segmenter
from pysimt_sac.corpora.tokenisation import Style, tokenise_file
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.hosts.engine.data.text_preparation import STEPS, Segmentation, SidePreparation, read_segmentation

REQUIRED_SPLITS = ("train", "val")
TEST_SPLITS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
PAPER_PAIRS = ("en-de", "en-fr")
PLACE_IN_CLONE = Path("data/task1/raw")


@dataclass(frozen=True)
class Multi30kSettings:
    """Settings, with the paper's as defaults.

    bpe_units: units to learn, characters included; bpe_threshold: split units with fewer occurrences in training;
    codes: a file of BPE codes or a SentencePiece model to use instead of learning codes; codes_vocabularies: the
    subword-nmt vocabulary of each side in BPE, by default counted on the training text.
    """

    split_hyphens: bool = True
    bpe_units: int = 10000
    bpe_threshold: int = 2
    bpe_sides: str = "target"
    codes: Path | None = None
    codes_vocabularies: tuple[Path, ...] = ()

    def bpe_languages(self, pair: str) -> tuple[str, ...]:
        """Return the languages of a pair that are segmented."""
        source, target = pair.split("-")
        return {"none": (), "target": (target,), "both": (source, target)}[self.bpe_sides]

    @property
    def kind(self) -> str:
        """The kind of segmentation: `bpe` or `sentencepiece`."""
        return kind_of_model(self.codes) if self.codes else "bpe"

    def pieces(self, pair: str, language: str) -> str:
        """Return how the file names of a language call its units; empty for words."""
        return FILE_NAMES[self.kind] if language in self.bpe_languages(pair) else ""

    def segmentation(self, pair: str, language: str) -> Segmentation | None:
        """Return the segmentation of a language, with file names relative to the pair's folder; None for words."""
        if language not in self.bpe_languages(pair):
            return None
        model = f"{FILE_NAMES[self.kind]}.model"
        if self.kind == "sentencepiece":
            return Segmentation(self.kind, model)
        return Segmentation(self.kind, model, f"bpe.vocab.{language}", self.bpe_threshold)

    def preparation(self, pair: str, language: str, in_pieces: bool = True) -> SidePreparation:
        """Return the preparation of a language's text, in subword units or, without `in_pieces`, in words."""
        segmentation = self.segmentation(pair, language) if in_pieces else None
        return SidePreparation(language, STEPS, self.split_hyphens, segmentation)

    def for_record(self) -> dict[str, object]:
        """Return the settings with checksums instead of paths."""
        settings = asdict(self)
        settings["codes"] = checksum(self.codes) if self.codes else None
        settings["codes_vocabularies"] = [checksum(path) for path in self.codes_vocabularies]
        return settings


def text_name(split: str, language: str, pieces: str = "") -> str:
    """Return the name of a prepared text file. pieces: its units, `bpe` or `spm`, if not words."""
    return f"{split}.lc.norm.tok{'.' + pieces if pieces else ''}.{language}"


def raw_folder(path: Path) -> Path:
    """Return the folder of raw files: the given one, or data/task1/raw in a clone of multi30k/dataset."""
    require_folder(path)
    return path / PLACE_IN_CLONE if (path / PLACE_IN_CLONE).is_dir() else path


def default_pairs(raw: Path) -> list[str]:
    """Return the paper's pairs whose training text exists."""
    pairs = [pair for pair in PAPER_PAIRS if all(find_text(raw, f"train.{language}") for language in pair.split("-"))]
    if not pairs:
        hint = "expected train.en.gz with train.de.gz or train.fr.gz; use --download"
        raise UserError("no Multi30K training text here", raw, hint)
    return pairs


def check_settings(settings: Multi30kSettings, pairs: Sequence[str]) -> None:
    """Check the codes up front."""
    if settings.codes is None:
        if settings.codes_vocabularies:
            raise UserError("requires --codes", "--codes-vocab")
        return
    if len(pairs) > 1:
        raise UserError("requires a single language pair", "--codes", "give one --pair")
    if settings.bpe_sides == "none":
        raise UserError("has no effect with --bpe-sides none", "--codes", "leave one of them out")
    if check_model(settings.codes) == "sentencepiece" and settings.codes_vocabularies:
        raise UserError("is for BPE codes; a SentencePiece model has its own", "--codes-vocab", "leave it out")
    sides = len(settings.bpe_languages(pairs[0]))
    if settings.codes_vocabularies and len(settings.codes_vocabularies) != sides:
        given = len(settings.codes_vocabularies)
        raise UserError(f"{given} given, {sides} required", "--codes-vocab", "one per side in BPE, source first")
    for path in settings.codes_vocabularies:
        read_units(path, settings.bpe_threshold)


def prepare(
    raw: Path, out: Path, pairs: Sequence[str], settings: Multi30kSettings, jobs: int, log: Callable[[str], None]
) -> dict[str, list[TextStatistics]]:
    """Write a folder for each pair and return statistics of the files used for training."""
    raw = raw_folder(raw)
    pairs = list(dict.fromkeys(pairs)) or default_pairs(raw)
    check_settings(settings, pairs)
    for pair in pairs:
        require_own_folder(out / pair, f"multi30k {pair}")
    log(f"reading {raw}")
    names = {split: split for split in (*REQUIRED_SPLITS, *TEST_SPLITS)}
    splits = {pair: find_splits(raw, pair, names, REQUIRED_SPLITS) for pair in pairs}
    with atomic_folder(out) as folder, Workers(jobs) as workers:
        done: dict[Path, Path] = {}
        for pair in pairs:
            (folder / pair).mkdir()
            tokenise_pair(folder / pair, splits[pair], settings, workers, done, log)
        if settings.bpe_sides != "none":
            log(f"subword segmentation: {', '.join(pairs)}")
            for _ in workers.map(
                partial(segment_pair, folder, settings), [(pair, list(splits[pair])) for pair in pairs]
            ):
                pass
        log("writing vocabularies and statistics")
        return {pair: finish_pair(folder / pair, pair, splits[pair], settings) for pair in pairs}


def tokenise_pair(
    folder: Path,
    splits: dict[str, list[RawFile]],
    settings: Multi30kSettings,
    workers: Workers,
    done: dict[Path, Path],
    log: Callable[[str], None],
) -> None:
    """Tokenise both sides of all splits; copy files already tokenised for another pair."""
    languages = folder.name.split("-")
    for split, files in splits.items():
        for language, raw in zip(languages, files, strict=True):
            target = folder / text_name(split, language)
            if raw.path in done:
                shutil.copyfile(done[raw.path], target)
            else:
                log(f"tokenising {raw.path.name} ({raw.lines:,} lines)")
                tokenise_file(raw.path, target, language, Style(STEPS, settings.split_hyphens), workers)
                done[raw.path] = target
        if split != "train":
            reference = folder / text_name(split, languages[1])
            rewrite_file(reference, folder / f"{reference.name}.dehyph", FilterChain(["de-hyphen"]))


def segment_pair(root: Path, settings: Multi30kSettings, pair_and_splits: tuple[str, Sequence[str]]) -> None:
    """Learn BPE codes, or use the given model, and apply them; runs in a worker process."""
    pair, splits = pair_and_splits
    folder = root / pair
    codes = folder / f"{FILE_NAMES[settings.kind]}.model"
    if settings.codes:
        shutil.copyfile(settings.codes, codes)
    else:
        texts = [folder / text_name("train", language) for language in pair.split("-")]
        learn_codes(texts, settings.bpe_units, codes)
    for side, language in enumerate(settings.bpe_languages(pair)):
        units = folder / f"bpe.vocab.{language}"
        if settings.codes_vocabularies:
            shutil.copyfile(settings.codes_vocabularies[side], units)
        elif settings.kind == "bpe":
            write_units(folder / text_name("train", language), codes, units)
        segment, pieces = segmenter(folder, settings, pair, language), settings.pieces(pair, language)
        for split in splits:
            rewrite_file(folder / text_name(split, language), folder / text_name(split, language, pieces), segment)


def segmenter(
    folder: Path, settings: Multi30kSettings, pair: str, language: str
) -> Callable[[Iterable[str]], list[str]]:
    """Return the segmenter of a language, from the files in the folder."""
    named = settings.segmentation(pair, language)
    assert named is not None
    return make_segmenter(read_segmentation(asdict(named), str(folder), folder), folder)


def finish_pair(
    folder: Path, pair: str, splits: dict[str, list[RawFile]], settings: Multi30kSettings
) -> list[TextStatistics]:
    """Write vocabularies and the record; return statistics of the files used for training."""
    statistics, preparation = [], {}
    for language in pair.split("-"):
        pieces = settings.pieces(pair, language)
        for units in ("", pieces) if pieces else ("",):
            train = folder / text_name("train", language, units)
            preparation[train.name] = settings.preparation(pair, language, bool(units))
            words = keep_frequent(count_words(stream_lines(train)))
            write_vocabulary(vocabulary_path(folder, train), words)
        # Training uses the last vocabulary.
        statistics += [text_statistics(folder / text_name(split, language, pieces), words) for split in splits]
    inputs = {raw.path.name.removesuffix(".gz"): raw.checksum for files in splits.values() for raw in files}
    write_record(folder, f"multi30k {pair}", settings.for_record(), inputs, statistics, preparation)
    return statistics
