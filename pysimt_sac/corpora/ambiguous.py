"""The list of ambiguous words that lexical evaluation reads: one row per ambiguous word of a test set.

A tab-separated file with the header `word correct candidates line rare`. Called by `demo` and `mlt`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.files import write_lines

HEADER = ("word", "correct", "candidates", "line", "rare")


@dataclass(frozen=True)
class AmbiguousWord:
    """An ambiguous source word in one sentence (`line`, counted from 0) and the translations that are right there."""

    word: str
    correct: tuple[str, ...]
    line: int


class TranslationCounts:
    """How often each source word was translated by each form in the training part."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.by_word: dict[str, Counter[str]] = {}
        for word, translation in pairs:
            self.by_word.setdefault(word, Counter())[translation] += 1

    def candidates(self, word: str) -> list[tuple[str, int]]:
        """Forms and counts, most frequent first, equals in alphabetical order."""
        return sorted(self.by_word.get(word, Counter()).items(), key=lambda item: (-item[1], item[0]))

    def is_rare(self, row: AmbiguousWord) -> bool:
        """Whether no correct translation is the most frequent one in training, or among the most frequent."""
        candidates = self.candidates(row.word)
        most_frequent = {form for form, count in candidates if count == candidates[0][1]}
        return most_frequent.isdisjoint(row.correct)


def write_ambiguous_words(path: Path, rows: Iterable[AmbiguousWord], counts: TranslationCounts) -> None:
    """Write the list of one test set; several forms are separated by `|`."""
    lines = ["\t".join(HEADER)]
    for row in rows:
        candidates = "|".join(f"{form}:{count}" for form, count in counts.candidates(row.word))
        rare = "1" if counts.is_rare(row) else "0"
        lines.append("\t".join((row.word, "|".join(row.correct), candidates, str(row.line), rare)))
    write_lines(path, lines)
