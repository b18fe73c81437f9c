"""How frequent in training are the words that systems produce? What `pysimt-sac frequency` shows.

Every produced word is looked up in the training text; a word that is not there has frequency 0. The frequencies of all
words of an output, sorted, are its *percentiles*: the p-th is the lowest frequency that at least p percent of its words
do not exceed. The paper's figure shows them for the sentences that a system improved over the baseline, beside the
baseline's and the reference's words for the same sentences. The lower a curve, the rarer the words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pysimt_sac.evaluation.scoring.sentences import sentence_scores
from pysimt_sac.evaluation.scoring.texts import check_lengths

PERCENTILES = tuple(range(0, 101))
RARE = 10  # words seen at most so often in training are called rare
REFERENCE = "reference"


@dataclass(frozen=True)
class WordUse:
    """The words of one text: how varied they are, and how frequent in training."""

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
        """Different words per word; the longer the text, the lower."""
        return self.types / self.words if self.words else float("nan")


@dataclass(frozen=True)
class SentenceGroup:
    """The same sentences in all texts: the reference, the baseline, and one or all other systems."""

    title: str
    texts: tuple[WordUse, ...]


@dataclass(frozen=True)
class FrequencyAnalysis:
    """All sentences, and for each system but the first those that it improved (no group without any)."""

    training_words: int
    training_types: int
    rare_limit: int
    measure: str
    all: SentenceGroup
    improved: tuple[SentenceGroup, ...]

    def groups(self) -> tuple[SentenceGroup, ...]:
        """Every group, all sentences first."""
        return (self.all, *self.improved)


def distinct(sentences: Sequence[Sequence[str]], order: int) -> float:
    """Different n-grams per n-gram, counted within sentences."""
    grams = [tuple(words[start : start + order]) for words in sentences for start in range(len(words) - order + 1)]
    return len(set(grams)) / len(grams) if grams else float("nan")


def word_use(name: str, lines: Sequence[str], training: Counter[str], rare_limit: int = RARE) -> WordUse:
    """Describe the words of one text."""
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
    """Word use of reference and systems, on all sentences and on those improved over the first system."""
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
