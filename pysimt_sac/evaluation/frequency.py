"""Training frequencies of the words in hypotheses.

The frequency of a word is its count in the training text, 0 if unseen. The p-th percentile of a text is the lowest
frequency that at least p percent of its words do not exceed. The paper's figure shows the percentiles of system,
baseline and reference on the sentences that the system improved over the baseline. A lower curve means rarer words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pysimt_sac.evaluation.metrics import sentence_scores
from pysimt_sac.evaluation.tables import Table
from pysimt_sac.evaluation.texts import check_lengths

PERCENTILES = tuple(range(0, 101))
RARE = 10  # maximum training count of a rare word
SHOWN_PERCENTILES = (10, 25, 50, 75, 90)
REFERENCE = "reference"
MANY_UNSEEN = 0.3  # a larger share of unseen words in the reference is probably a mistake


@dataclass(frozen=True)
class WordUse:
    """Lexical diversity and training frequencies of one text."""

    name: str
    sentences: int
    words: int
    types: int
    distinct_2: float
    distinct_3: float
    unseen: float
    rare: float
    mean_frequency: float
    percentiles: tuple[int, ...]  # for 0, 1, ... 100

    @property
    def type_token_ratio(self) -> float:
        """Types per token."""
        return self.types / self.words if self.words else float("nan")


@dataclass(frozen=True)
class SentenceGroup:
    """A group of sentences in the reference, the baseline, and one or all other systems."""

    title: str
    texts: tuple[WordUse, ...]


@dataclass(frozen=True)
class FrequencyAnalysis:
    """All sentences and, for each system but the first, the sentences that it improved, if any."""

    training_words: int
    training_types: int
    rare_limit: int
    measure: str
    all: SentenceGroup
    improved: tuple[SentenceGroup, ...]

    def groups(self) -> tuple[SentenceGroup, ...]:
        """Return all groups, beginning with all sentences."""
        return (self.all, *self.improved)

    def warnings(self) -> list[str]:
        """Warn if many words of the reference are not in the training text."""
        unseen = self.all.texts[0].unseen
        what = f"{100 * unseen:.0f}% of the reference's words are not in the training text"
        return [f"{what}; is it the same language, without BPE?"] if unseen > MANY_UNSEEN else []


def distinct(sentences: Sequence[Sequence[str]], order: int) -> float:
    """Compute distinct-n: distinct n-grams per n-gram, within sentences."""
    grams = [tuple(words[start : start + order]) for words in sentences for start in range(len(words) - order + 1)]
    return len(set(grams)) / len(grams) if grams else float("nan")


def word_use(name: str, lines: Sequence[str], training: Counter[str], rare_limit: int = RARE) -> WordUse:
    """Compute the diversity and training frequencies of one text."""
    sentences = [line.split() for line in lines]
    words = [word for sentence in sentences for word in sentence]
    frequencies: npt.NDArray[np.int64] = np.array([training[word] for word in words], dtype=np.int64)
    found: tuple[int, ...] = ()
    if words:
        found = tuple(map(int, np.percentile(frequencies, PERCENTILES, method="inverted_cdf")))
    nothing = float("nan")
    return WordUse(
        name=name,
        sentences=len(lines),
        words=len(words),
        types=len(set(words)),
        distinct_2=distinct(sentences, 2),
        distinct_3=distinct(sentences, 3),
        unseen=float((frequencies == 0).mean()) if words else nothing,
        rare=float((frequencies <= rare_limit).mean()) if words else nothing,
        mean_frequency=float(frequencies.mean()) if words else nothing,
        percentiles=found,
    )


def analyse_frequency(
    training: Counter[str],
    references: Sequence[str],
    systems: Sequence[tuple[str, Sequence[str]]],
    rare_limit: int = RARE,
    measure: str = "bleu",
) -> FrequencyAnalysis:
    """Analyse reference and systems, on all sentences and on those improved over the first system."""
    for name, lines in systems:
        check_lengths(name, lines, "the reference", references)
    texts = [(REFERENCE, references), *systems]

    def group(title: str, members: Sequence[tuple[str, Sequence[str]]], kept: Sequence[int]) -> SentenceGroup:
        return SentenceGroup(
            title,
            tuple(word_use(name, [lines[number] for number in kept], training, rare_limit) for name, lines in members),
        )

    scores = sentence_scores([lines for _, lines in systems], references, measure)
    improved = []
    for number, system in enumerate(systems[1:], 1):
        kept = [int(line) for line in np.flatnonzero(scores[number] > scores[0])]
        if kept:
            title = f"sentences that {system[0]} improved over {systems[0][0]}"
            improved.append(group(title, [texts[0], systems[0], system], kept))
    everything = group("all sentences", texts, range(len(references)))
    return FrequencyAnalysis(training.total(), len(training), rare_limit, measure, everything, tuple(improved))


def frequency_table(analysis: FrequencyAnalysis, group: SentenceGroup) -> Table:
    """Make a table with a row for each text."""
    notes: tuple[str, ...] = ()
    if group is analysis.all:
        notes = (
            f"rare: seen at most {analysis.rare_limit} times in {analysis.training_words:,} words of training; "
            "unseen: never; TTR: type-token ratio",
            "distinct-n: types of n-grams per n-gram; mean, P10, ...: mean and percentiles of training frequencies",
            f"improved: sentence {analysis.measure.upper()} is higher than the first system's",
        )
    return Table(
        title=f"{group.title} ({group.texts[0].sentences})",
        header=("text", "words", "types", "TTR", "distinct-2", "distinct-3", "unseen", "rare", "mean",
                *(f"P{percent}" for percent in SHOWN_PERCENTILES)),
        rows=tuple(map(frequency_row, group.texts)),
        notes=notes,
    )  # fmt: skip


def frequency_row(text: WordUse) -> tuple[str, ...]:
    """Return one text's cells."""
    return (
        text.name,
        str(text.words),
        str(text.types),
        *(f"{value:.3f}" for value in (text.type_token_ratio, text.distinct_2, text.distinct_3)),
        *(f"{100 * value:.2f}%" for value in (text.unseen, text.rare)),
        f"{text.mean_frequency:.0f}",
        *(str(text.percentiles[percent]) if text.percentiles else "-" for percent in SHOWN_PERCENTILES),
    )
