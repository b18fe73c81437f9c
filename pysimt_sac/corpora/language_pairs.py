"""Prepare parallel text: Moses' steps, subword units, vocabularies, references for scoring, and the record.

The folder of a language pair, OUT/en-de, contains tokenised text, the segmented sides in BPE units learned jointly on
both sides, vocabularies, and references with joined hyphens.
"""

import contextlib
import io
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder, atomic_write, stream_lines, write_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.corpora.record import TextStatistics, checksum, text_statistics, write_record
from pysimt_sac.corpora.text_files import Map, RawFile, in_chunks, map_in_processes, rewrite_file
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.text.plain_text import tokenise_lines
from pysimt_sac.text.preparation import STEPS, SidePreparation
from pysimt_sac.text.subwords import (
    FILE_NAMES,
    Segmentation,
    frequent_units,
    kind_of_model,
    make_segmenter,
    read_model,
    read_segmentation,
    require_sentencepiece,
)

Splits = dict[str, list[RawFile]]  # the raw files of both sides, source first, by split
MIN_PAIR_FREQUENCY = 2  # of units that are joined when BPE is learned
SHORT_NAMES = {"lowercase": "lc", "normalise": "norm", "tokenise": "tok"}


@dataclass(frozen=True)
class PairSettings:
    """Settings, with the paper's as defaults.

    bpe_units: units to learn, characters included; bpe_threshold: units with fewer occurrences in training are split;
    codes: a file of BPE codes or a SentencePiece model to use instead of learning codes; codes_vocabularies: the
    subword-nmt vocabulary of each side in BPE, by default counted on the training text.
    """

    split_hyphens: bool = True
    bpe_units: int = 10000
    bpe_threshold: int = 2
    bpe_sides: str = "target"
    codes: Path | None = None
    codes_vocabularies: tuple[Path, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The Moses steps."""
        return STEPS

    @property
    def kind(self) -> str:
        """The kind of segmentation: `bpe` or `sentencepiece`."""
        return kind_of_model(self.codes) if self.codes else "bpe"

    def segmented(self, pair: str) -> tuple[str, ...]:
        """Return the languages of a pair that are segmented."""
        source, target = pair.split("-")
        return {"none": (), "target": (target,), "both": (source, target)}[self.bpe_sides]

    def text_name(self, split: str, language: str, units: str = "") -> str:
        """Return the name of a prepared text file. units: `bpe` or `spm`, if not words."""
        return ".".join([split, *(SHORT_NAMES[step] for step in self.steps), *([units] if units else []), language])

    def preparation(self, language: str, units: str = "") -> SidePreparation:
        """Return the preparation of a language's text, in words or in `units`, whose files the folder contains."""
        segmentation = None
        if units:
            named = ("", 0) if self.kind == "sentencepiece" else (f"bpe.vocab.{language}", self.bpe_threshold)
            segmentation = Segmentation(self.kind, f"{units}.model", *named)
        return SidePreparation(language, self.steps, self.split_hyphens, segmentation)

    def for_record(self) -> dict[str, object]:
        """Return the settings with checksums instead of paths."""
        settings = asdict(self)
        settings["codes"] = checksum(self.codes) if self.codes else None
        settings["codes_vocabularies"] = [checksum(path) for path in self.codes_vocabularies]
        return settings


def check_codes(settings: PairSettings, pairs: Sequence[str]) -> None:
    """Check the given codes up front."""
    if settings.codes is None:
        if settings.codes_vocabularies:
            raise UserError("requires --codes", "--codes-vocab")
        return
    if len(pairs) > 1:
        raise UserError("requires a single language pair", "--codes", "give one --pair")
    if settings.bpe_sides == "none":
        raise UserError("has no effect with --bpe-sides none", "--codes", "leave one of them out")
    kind, given, sides = settings.kind, len(settings.codes_vocabularies), len(settings.segmented(pairs[0]))
    make_segmenter(Segmentation(kind, read_model(settings.codes, kind)), settings.codes)
    if given and kind == "sentencepiece":
        raise UserError("is for BPE codes; a SentencePiece model has its own", "--codes-vocab", "leave it out")
    if given not in (0, sides):
        raise UserError(f"{given} given, {sides} required", "--codes-vocab", "one per side in BPE, source first")
    for path in settings.codes_vocabularies:
        frequent_units(stream_lines(path, "BPE vocabulary"), settings.bpe_threshold, path)


def prepare_pairs(
    corpus: str, out: Path, splits: Mapping[str, Splits], settings: PairSettings, jobs: int, log: Callable[[str], None]
) -> dict[str, list[TextStatistics]]:
    """Write OUT/PAIR for each pair; return statistics of the files used for training. corpus: its name in records."""
    with atomic_folder(out) as folder, map_in_processes(jobs) as map_items:
        for pair in splits:
            (folder / pair).mkdir()
            tokenise_pair(folder / pair, splits[pair], settings, map_items, log)
        if settings.bpe_sides != "none":
            log(f"subword segmentation: {', '.join(splits)}")
            names = [(pair, list(splits[pair])) for pair in splits]
            list(map_items(partial(segment_pair, folder, settings), names))
        log("writing vocabularies and statistics")
        return {pair: finish_pair(folder / pair, corpus, splits[pair], settings) for pair in splits}


def tokenise_pair(
    folder: Path, splits: Splits, settings: PairSettings, map_chunks: Map, log: Callable[[str], None]
) -> None:
    """Tokenise both sides of all splits."""
    languages = folder.name.split("-")
    for split, files in splits.items():
        for language, raw in zip(languages, files, strict=True):
            target = folder / settings.text_name(split, language)
            log(f"tokenising {raw.path.name} ({raw.lines:,} lines)")
            rewrite_file(raw.path, target, partial(tokenise_lines, settings.preparation(language)), map_chunks)
        if split != "train":
            reference = folder / settings.text_name(split, languages[1])
            rewrite_file(reference, folder / f"{reference.name}.dehyph", FilterChain(["de-hyphen"]))


def segment_pair(root: Path, settings: PairSettings, pair_and_splits: tuple[str, Sequence[str]]) -> None:
    """Learn BPE codes, or use the given model, and apply them; can run in a worker process."""
    pair, splits = pair_and_splits
    folder, pieces = root / pair, FILE_NAMES[settings.kind]
    codes = folder / f"{pieces}.model"
    if settings.codes:
        shutil.copyfile(settings.codes, codes)
    else:
        texts = [folder / settings.text_name("train", language) for language in pair.split("-")]
        (learn_sentencepiece if settings.kind == "sentencepiece" else learn_codes)(texts, settings.bpe_units, codes)
    for side, language in enumerate(settings.segmented(pair)):
        units = folder / f"bpe.vocab.{language}"
        if settings.codes_vocabularies:
            shutil.copyfile(settings.codes_vocabularies[side], units)
        elif settings.kind == "bpe":
            write_units(folder / settings.text_name("train", language), codes, units)
        named = settings.preparation(language, pieces).segmentation
        assert named is not None
        segment = make_segmenter(read_segmentation(named, folder, folder), folder)
        for split in splits:
            words = folder / settings.text_name(split, language)
            rewrite_file(words, folder / settings.text_name(split, language, pieces), segment)


def finish_pair(folder: Path, corpus: str, splits: Splits, settings: PairSettings) -> list[TextStatistics]:
    """Write vocabularies and the record; return statistics of the files used for training."""
    pair, statistics, preparation = folder.name, [], {}
    for language in pair.split("-"):
        pieces = FILE_NAMES[settings.kind] if language in settings.segmented(pair) else ""
        for units in ("", pieces) if pieces else ("",):
            train = folder / settings.text_name("train", language, units)
            preparation[train.name] = settings.preparation(language, units)
            words = keep_frequent(count_words(stream_lines(train)))
            write_vocabulary(vocabulary_path(folder, train), words)
        # Training uses the last vocabulary.
        statistics += [text_statistics(folder / settings.text_name(split, language, pieces), words) for split in splits]
    inputs = {raw.path.name.removesuffix(".gz"): raw.checksum for files in splits.values() for raw in files}
    write_record(folder, f"{corpus} {pair}", settings.for_record(), inputs, statistics, preparation)
    return statistics


# Learning subword units


def learn_codes(texts: Sequence[Path], units: int, target: Path) -> None:
    """Learn codes jointly on several tokenised texts and write them.

    units: BPE units, characters included (subword-nmt's --symbols with --total-symbols), as in the paper.
    """
    from subword_nmt.learn_bpe import learn_bpe

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(count_words(stream_lines(text)))
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):  # subword-nmt prints every merge
        learn_bpe(
            [f"{word} {count}" for word, count in counts.items()],
            codes,
            units,
            MIN_PAIR_FREQUENCY,
            is_dict=True,
            total_symbols=True,
        )
    write_lines(target, codes.getvalue().removesuffix("\n").split("\n"))


def write_units(text: Path, codes: Path, target: Path) -> None:
    """Segment a training text without a threshold and write its subword-nmt vocabulary."""
    segment = make_segmenter(Segmentation("bpe", read_model(codes, "bpe")), codes)
    counts = count_words(line for chunk in in_chunks(stream_lines(text)) for line in segment(chunk))
    write_lines(target, [f"{unit} {count}" for unit, count in keep_frequent(counts).items()])


def learn_sentencepiece(texts: Sequence[Path], units: int, target: Path) -> None:
    """Learn a SentencePiece model of at most `units` units jointly on several texts and write it."""
    require_sentencepiece("--subwords sentencepiece")
    from sentencepiece import SentencePieceTrainer

    lines, model = (line for text in texts for line in stream_lines(text)), io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=units, hard_vocab_limit=False, minloglevel=2
    )
    with atomic_write(target, "wb") as stream:
        stream.write(model.getvalue())
