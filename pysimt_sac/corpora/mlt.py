"""Align MLT, the ambiguous words of Multi30K and their translations, with a prepared corpus.

MLT has two kinds of lists. `later`: one file per test set, `word | translation | source | reference | image`, aligned
by source sentence. `full`: `word translation line` over all splits, aligned by line number. Which translations are rare
depends on the counts of forms in the training part of the full list; inflected forms are separate candidates.

A test set's list is a tab-separated file, `word correct candidates line rare`, which `evaluation.lexical` reads.
"""

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder, stream_lines, write_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.corpora.language_pairs import PairSettings
from pysimt_sac.corpora.multi30k import PAPER_PAIRS
from pysimt_sac.corpora.record import require_own_folder, write_record
from pysimt_sac.corpora.text_files import require_folder, scan_text

# Names of the test sets in the later lists.
LATER_NAMES = {
    "test_2016_flickr": "test2016",
    "test_2017_flickr": "test2017flickr",
    "test_2017_mscoco": "test2017mscoco",
}
# Line numbers of each split in the full list.
FULL_RANGES = {
    "test_2017_flickr": range(0, 1000),
    "train": range(1000, 30000),
    "val": range(30000, 31014),
    "test_2016_flickr": range(31014, 32014),
}
NOT_ALIGNED = "not_aligned.tsv"
HEADER = ("word", "correct", "candidates", "line", "rare")


@dataclass(frozen=True)
class AmbiguousWord:
    """An ambiguous source word in a sentence (`line`, from 0) and its correct translations."""

    word: str
    correct: tuple[str, ...]
    line: int


class TranslationCounts:
    """Counts of the translations of each source word in the training split."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.by_word: dict[str, Counter[str]] = {}
        for word, translation in pairs:
            self.by_word.setdefault(word, Counter())[translation] += 1

    def candidates(self, word: str) -> list[tuple[str, int]]:
        """Return a word's translations with their counts, most frequent first, ties in alphabetical order."""
        return sorted(self.by_word.get(word, Counter()).items(), key=lambda item: (-item[1], item[0]))

    def is_rare(self, row: AmbiguousWord) -> bool:
        """Return whether no correct translation is the most frequent one in training, ties included."""
        candidates = self.candidates(row.word)
        most_frequent = {form for form, count in candidates if count == candidates[0][1]}
        return most_frequent.isdisjoint(row.correct)


def write_ambiguous_words(path: Path, rows: Iterable[AmbiguousWord], counts: TranslationCounts) -> None:
    """Write a test set's list; forms are separated by `|`."""
    lines = ["\t".join(HEADER)]
    for row in rows:
        candidates = "|".join(f"{form}:{count}" for form, count in counts.candidates(row.word))
        rare = "1" if counts.is_rare(row) else "0"
        lines.append("\t".join((row.word, "|".join(row.correct), candidates, str(row.line), rare)))
    write_lines(path, lines)


class NotAligned(NamedTuple):
    """A row of MLT that cannot be aligned with the corpus."""

    file: str
    row: int
    reason: str
    text: str


class ListSummary(NamedTuple):
    """Numbers of rows, aligned rows and rare cases of a test set."""

    pair: str
    split: str
    rows: int
    aligned: int
    rare: int


def full_list_path(raw: Path, pair: str) -> Path:
    """Return the path of a pair's full list: ENDE_MLTD_full.txt."""
    return raw / f"{pair.replace('-', '').upper()}_MLTD_full.txt"


def later_list_path(raw: Path, pair: str, split: str) -> Path:
    """Return the path of a later list: test_sets/ende_test2016.txt."""
    return raw / "test_sets" / f"{pair.replace('-', '')}_{LATER_NAMES[split]}.txt"


def read_full_list(path: Path) -> Iterator[AmbiguousWord]:
    """Yield the rows of the full list; their lines are counted over all splits."""
    for number, text in enumerate(stream_lines(path, "full list of MLT"), start=1):
        fields = [html.unescape(field) for field in text.split()]
        if len(fields) != 3 or not fields[2].isdecimal():
            raise UserError(f"line {number} is not `word translation line`", path, "download it again")
        yield AmbiguousWord(fields[0], (fields[1],), int(fields[2]))


def prepared_texts(folder: Path, split: str) -> list[Path]:
    """Return the paths of both sides of a split in the prepared folder of a language pair."""
    return [folder / PairSettings().text_name(split, language) for language in folder.name.split("-")]


def has_split(folder: Path, split: str) -> bool:
    """Return whether both sides of a split exist."""
    return all(path.is_file() for path in prepared_texts(folder, split))


def align_later(path: Path, corpus: Path, split: str) -> tuple[list[AmbiguousWord], list[NotAligned]]:
    """Align rows by source sentence, repeated sources also by reference."""
    # In MLT's form: hyphens joined, entities unescaped.
    texts = [FilterChain(["de-hyphen"])(stream_lines(text)) for text in prepared_texts(corpus, split)]
    sources, references = ([html.unescape(line) for line in lines] for lines in texts)
    places: dict[str, list[int]] = {}
    for line, source in enumerate(sources):
        places.setdefault(source, []).append(line)
    words, unaligned = [], []
    for number, text in enumerate(stream_lines(path, "list of MLT"), start=1):
        fields = [html.unescape(field.strip()) for field in text.split(" | ")]
        if len(fields) != 5:
            raise UserError(f"line {number} has {len(fields)} fields instead of 5", path, "download it again")
        word, translations, source, reference, _ = fields
        found = places.get(source, [])
        if not found:
            unaligned.append(NotAligned(path.name, number, f"source sentence not in {split}", text))
            continue
        line = next((line for line in found if references[line] == reference), found[0])
        words.append(AmbiguousWord(word, tuple(form.strip() for form in translations.split(",")), line))
    return words, unaligned


def align_full(rows: list[AmbiguousWord], corpus: Path, split: str) -> list[AmbiguousWord]:
    """Select the rows whose line number is in the test set."""
    lines = FULL_RANGES[split]
    length = sum(1 for _ in stream_lines(prepared_texts(corpus, split)[0]))
    if length != len(lines):
        hint = "the line numbers of the full list do not fit"
        raise UserError(f"{split} has {length:,} lines instead of {len(lines):,}", corpus, hint)
    return [replace(row, line=row.line - lines.start) for row in rows if row.line in lines]


def find_corpora(corpus: Path) -> list[Path]:
    """Return the folders of prepared pairs: the given folder, or its subfolders en-de and en-fr."""
    corpus = require_folder(corpus).resolve()
    folders = [corpus] if corpus.name in PAPER_PAIRS else [corpus / pair for pair in PAPER_PAIRS]
    found = [folder for folder in folders if any(has_split(folder, split) for split in LATER_NAMES)]
    if not found:
        hint = "expected what `prepare multi30k` writes: en-de/test_2016_flickr.lc.norm.tok.en and so on"
        raise UserError("no prepared Multi30K corpus here", corpus, hint)
    return found


def prepare(
    raw: Path, corpus: Path, out: Path, which: str, log: Callable[[str], None]
) -> tuple[list[ListSummary], list[NotAligned]]:
    """Write OUT/PAIR/SPLIT.mlt.tsv for every prepared pair and test set; `which` list: later or full."""
    require_folder(raw)
    corpora = find_corpora(corpus)
    for prepared in corpora:
        require_own_folder(out / prepared.name, f"mlt {prepared.name} {which}")
    lists: list[ListSummary] = []
    not_aligned: list[NotAligned] = []
    with atomic_folder(out) as root:
        for prepared in corpora:
            (root / prepared.name).mkdir()
            summaries, unaligned = prepare_pair(raw, prepared, root / prepared.name, which, log)
            lists += summaries
            not_aligned += unaligned
    return lists, not_aligned


def prepare_pair(
    raw: Path, corpus: Path, folder: Path, which: str, log: Callable[[str], None]
) -> tuple[list[ListSummary], list[NotAligned]]:
    """Write the lists of one pair."""
    pair, full = folder.name, full_list_path(raw, folder.name)
    rows = list(read_full_list(full))
    counts = TranslationCounts((row.word, row.correct[0]) for row in rows if row.line in FULL_RANGES["train"])
    paths = {split: full if which == "full" else later_list_path(raw, pair, split) for split in LATER_NAMES}
    summaries: list[ListSummary] = []
    not_aligned: list[NotAligned] = []
    if which == "full":
        not_aligned += [
            NotAligned(full.name, number, "line in no split", f"{row.word} {row.correct[0]} {row.line}")
            for number, row in enumerate(rows, start=1)
            if not any(row.line in lines for lines in FULL_RANGES.values())
        ]
    for split, path in paths.items():
        if which == "full" and split not in FULL_RANGES:
            continue
        if not has_split(corpus, split):
            log(f"{pair}: the corpus has no {split}; its rows in {path.name} are left out")
            continue
        words, unaligned = (
            (align_full(rows, corpus, split), []) if which == "full" else align_later(path, corpus, split)
        )
        write_ambiguous_words(folder / f"{split}.mlt.tsv", words, counts)
        rare = sum(map(counts.is_rare, words))
        summaries.append(ListSummary(pair, split, len(words) + len(unaligned), len(words), rare))
        not_aligned += unaligned
    # Written even without rows, to replace an old one.
    table = [NotAligned._fields, *not_aligned]
    write_lines(folder / NOT_ALIGNED, ["\t".join(map(str, row)) for row in table])
    inputs = {path.name: scan_text(path).checksum for path in (full, *paths.values()) if path.is_file()}
    write_record(folder, f"mlt {pair} {which}", {"list": which}, inputs, [])
    return summaries, not_aligned
