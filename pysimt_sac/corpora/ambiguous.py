"""Write a test set's list of ambiguous words: a tab-separated file, `word correct candidates line rare`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.core.files import write_lines

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
