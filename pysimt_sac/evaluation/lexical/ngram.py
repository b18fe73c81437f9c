"""An n-gram language model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998).

Counts are *adjusted*: an n-gram of the highest order counts as often as it occurs, a shorter one as often as different
words precede it, since it is asked for only where the longer one was not seen (one that begins a sentence has nothing
before it and keeps its own count). From each count a discount is taken, by whether it is 1, 2 or more, estimated from
how many n-grams have the counts 1 to 4; what is taken goes to the model of the next lower order, and below the
unigrams to the uniform distribution over the vocabulary: all training words, the end of a sentence and one unknown
word. Sentences begin with one `<s>`, which is never predicted. These are the conventions of KenLM's `lmplz`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pysimt_sac.errors import UserError

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
NAME = "interpolated modified Kneser-Ney"
FALLBACK = (0.5, 1.0, 1.5)  # where a text is too regular to estimate discounts from

Gram = tuple[str, ...]


@dataclass(frozen=True)
class Perplexity:
    """Of a text: with the ends of sentences, of all words and of those only that are known."""

    all: float
    known: float


@dataclass(frozen=True)
class History:
    """What may follow some words: adjusted counts, their sum, and the share that goes to the shorter history."""

    counts: dict[str, int]
    total: int
    left_over: float


class NgramModel:
    """Trained by its constructor; `probability` and `perplexity` ask it."""

    def __init__(self, lines: Iterable[str], order: int = 3) -> None:
        if order < 1:
            raise UserError(f"{order} is no order of an n-gram model", todo="at least 1")
        self.order = order
        by_order = adjusted_counts(raw_counts(lines, order))
        self.vocabulary = {word for (word,) in by_order[0]}
        if self.vocabulary <= {END}:
            raise UserError("the training text has no words")
        self.discounts: list[tuple[float, float, float]] = []
        self.estimated: list[bool] = []
        self.histories: list[dict[Gram, History]] = []
        for counts in by_order:
            found = estimate_discounts(counts.values())
            self.estimated.append(found is not None)
            self.discounts.append(found or FALLBACK)
            self.histories.append(group_by_history(counts, self.discounts[-1]))

    def probability(self, word: str, history: Sequence[str]) -> float:
        """Of a word after others, the nearest last; any word that training did not have is the same unknown one."""
        probability = 1 / (len(self.vocabulary) + 1)  # the one that is unknown
        for length, (histories, discounts) in enumerate(zip(self.histories, self.discounts, strict=True)):
            if length > len(history):
                break
            found = histories.get(tuple(history[len(history) - length :]))
            if found is None:
                break
            count = found.counts.get(word, 0)
            kept = count - discounts[min(count, 3) - 1] if count else 0.0
            probability = kept / found.total + found.left_over * probability
        return probability

    def sentence_logs(self, line: str) -> Iterator[tuple[str, float]]:
        """Each word of a sentence and its end, with the natural logarithm of its probability."""
        words = [BEGIN, *line.split(), END]
        for place in range(1, len(words)):
            history = words[max(0, place - self.order + 1) : place]
            yield words[place], math.log(self.probability(words[place], history))

    def perplexity(self, lines: Iterable[str]) -> Perplexity:
        """How many words, on average, the model hesitates between."""
        logs = [pair for line in lines for pair in self.sentence_logs(line)]
        return Perplexity(
            all=mean_perplexity([log for _, log in logs]),
            known=mean_perplexity([log for word, log in logs if word in self.vocabulary]),
        )


def mean_perplexity(logs: Sequence[float]) -> float:
    """The perplexity of predictions by their natural logarithms."""
    return math.exp(-math.fsum(logs) / len(logs)) if logs else float("nan")


def raw_counts(lines: Iterable[str], order: int) -> list[Counter[Gram]]:
    """How often each n-gram occurs, for n from 1 to the order; empty lines are no sentences."""
    counts: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for line in lines:
        words = (BEGIN, *line.split(), END)
        if len(words) > 2:
            for length, own in enumerate(counts, 1):
                own.update(words[start : start + length] for start in range(len(words) - length + 1))
    return counts


def adjusted_counts(raw: Sequence[Counter[Gram]]) -> list[dict[Gram, int]]:
    """Raw counts at the top and at the beginning of sentences, else numbers of preceding words; without `<s>` alone."""
    adjusted: list[dict[Gram, int]] = []
    for length, own in enumerate(raw, 1):
        if length == len(raw):
            counts = dict(own)
        else:
            preceded = Counter(gram[1:] for gram in raw[length])
            counts = {gram: count if gram[0] == BEGIN else preceded[gram] for gram, count in own.items()}
        counts.pop((BEGIN,), None)
        adjusted.append(counts)
    return adjusted


def estimate_discounts(counts: Iterable[int]) -> tuple[float, float, float] | None:
    """What to take from counts of 1, of 2 and of more; None if they cannot be estimated."""
    having = Counter(count for count in counts if count <= 4)
    if not all(having[count] for count in (1, 2, 3, 4)):
        return None
    y = having[1] / (having[1] + 2 * having[2])
    one, two, more = (count - (count + 1) * y * having[count + 1] / having[count] for count in (1, 2, 3))
    return (one, two, more) if 0 <= one <= 1 and 0 <= two <= 2 and 0 <= more <= 3 else None


def group_by_history(counts: dict[Gram, int], discounts: tuple[float, float, float]) -> dict[Gram, History]:
    """The n-grams of one order by all but their last word."""
    grouped: dict[Gram, dict[str, int]] = defaultdict(dict)
    for gram, count in counts.items():
        grouped[gram[:-1]][gram[-1]] = count
    histories = {}
    for history, followers in grouped.items():
        total = sum(followers.values())
        taken = math.fsum(discounts[min(count, 3) - 1] for count in followers.values())
        histories[history] = History(followers, total, taken / total)
    return histories
