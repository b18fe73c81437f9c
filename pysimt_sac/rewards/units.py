"""The unit that rewards count: the model's pieces, or whole words as in evaluation (`reward_unit`).

The run's evaluation filters (`de-bpe`, `de-spm`, `de-hyphen`, ...) join pieces into words. Steps remain steps of the
model: after a piece, only complete words count, those that the next piece will not continue. With subword-nmt's
markers, the piece itself shows that (`wo@@ rd`); with SentencePiece's, the next one does (`▁wo rd ▁next`). A piece can
reopen a word (`well @-@ known`): its reward is then lost until the whole word is complete. At the end all words count,
so R_T is the score of the filtered text. A word that contains an unknown piece is unknown.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, SourceTexts, Translations, by_step

UNKNOWN_PIECE, NEXT_PIECE = "\ue000", "\ue001"  # private-use characters, which no text or filter uses

Integers = np.ndarray[Any, np.dtype[np.int64]]


class Prefix(NamedTuple):
    """The first words of a hypothesis; terminal: all of them, since `<eos>` or truncation ended it there."""

    words: list[str]
    terminal: bool


@dataclasses.dataclass(frozen=True)
class Counted:
    """Translations in the reward's unit.

    translations: those of the batch. evaluated: the same, followed by prefixes with words that later pieces changed.
    rows_TB, counts_TB: for each step of the model, its row in `evaluated` and the number of steps completed there; None
    if the units are the model's own steps.
    """

    translations: Translations
    evaluated: Translations
    rows_TB: Integers | None = None
    counts_TB: Integers | None = None

    def potentials(self, part: Callable[[Translations], Any], where: str) -> Floats:
        """Return the potentials of a reward at the steps of the model, (T, B)."""
        potentials_UR = by_step(part(self.evaluated), self.evaluated.steps, where)
        if self.rows_TB is None or self.counts_TB is None:
            return potentials_UR
        from_0 = np.concatenate((np.zeros_like(potentials_UR[:1]), potentials_UR))  # R_0 = 0
        return np.asarray(from_0[self.counts_TB, self.rows_TB])


class Pieces:
    """`reward_unit: piece`: the units of the model."""

    def convert(self, prefixes: Sequence[Prefix]) -> Sequence[Prefix]:
        """Return the prefixes, which are in pieces already."""
        return prefixes

    def whole(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """Return the pieces of whole sentences."""
        return list(sentences)

    def source(self, source: SourceTexts | None) -> SourceTexts | None:
        """Return the sources, which are in pieces already."""
        return source

    def count(self, translations: Translations) -> Counted:
        """Return the translations, which are in pieces already."""
        return Counted(translations, translations)


class Words:
    """`reward_unit: word`: whole words, joined by the evaluation filters."""

    def __init__(self, filters: FilterChain) -> None:
        self.filters = filters

    def convert(self, prefixes: Sequence[Prefix]) -> Sequence[Prefix]:
        """Return the complete words of prefixes in pieces."""
        # Append a dummy piece to an open prefix: the word that it joins is incomplete, and is dropped with it.
        lines = [" ".join(pieces if terminal else [*pieces, NEXT_PIECE]) for pieces, terminal in prefixes]
        filtered = self.filters([line.replace(UNKNOWN_WORD, UNKNOWN_PIECE) for line in lines])
        converted = []
        for line, (_, terminal) in zip(filtered, prefixes, strict=True):
            words = line.split() if terminal else line.split()[:-1]
            if UNKNOWN_PIECE in line:
                words = [UNKNOWN_WORD if UNKNOWN_PIECE in word else word for word in words]
            converted.append(Prefix(words, terminal))
        return converted

    def whole(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """Return the words of whole sentences."""
        return [prefix.words for prefix in self.convert([Prefix(pieces, True) for pieces in sentences])]

    def source(self, source: SourceTexts | None) -> SourceTexts | None:
        """Return the sources in words."""
        return dataclasses.replace(source, filters=self.filters) if source else None

    def count(self, translations: Translations) -> Counted:
        """Return the translations in words, and how many of them are complete at each step."""
        hypotheses, references = self.whole(translations.hypotheses), self.whole(translations.references)
        # A hypothesis without words, such as a single `@@`, has one step, too.
        ended = [flag or not words for flag, words in zip(translations.ended, hypotheses, strict=True)]
        source = self.source(translations.source)
        own = Translations(hypotheses, references, ended, source=source, sentences=translations.sentences)
        sentences = list(translations.order)
        evaluated = Translations([*hypotheses], [*references], [*ended], source=source, sentences=sentences)
        rows_TB = np.tile(np.arange(len(ended)), (max(translations.steps), 1))
        counts_TB = np.tile(np.array(own.steps), (max(translations.steps), 1))
        for column, (pieces, n_steps) in enumerate(zip(translations.hypotheses, translations.steps, strict=True)):
            prefixes = self.convert([Prefix(pieces[:time], False) for time in range(1, n_steps)])
            for step, (complete, _) in enumerate(prefixes):
                counts_TB[step, column] = len(complete)
                if len(complete) >= own.steps[column] or complete != own.hypotheses[column][: len(complete)]:
                    rows_TB[step, column] = len(evaluated.hypotheses)
                    evaluated.hypotheses.append(complete)
                    evaluated.references.append(own.references[column])
                    evaluated.ended.append(True)
                    sentences.append(sentences[column])
        return Counted(own, evaluated, rows_TB, counts_TB)
