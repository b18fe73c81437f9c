"""Distance of test sets from a training text: out-of-vocabulary rates, and perplexities of an n-gram language model.

The model has interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998). Counts are adjusted: n-grams of the
highest order, and those that begin with `<s>`, keep their counts; the count of others is the number of distinct words
that precede them. Discounts of counts 1, 2 and 3+ are estimated from the numbers of n-grams with counts 1 to 4. The
discounted mass goes to the next lower order, and from unigrams to the uniform distribution over the vocabulary:
training words, `</s>` and one `<unk>`. Sentences begin with one `<s>`, which is never predicted. An empty line is a
sentence, `<s> </s>`. The training text must not contain `<s>`, `</s>` or `<unk>`. These are the conventions of KenLM's
`lmplz`. Perplexities of test sets can be compared only under the same language model.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pysimt_sac.core.errors import UserError

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
SMOOTHING = "interpolated modified Kneser-Ney"
FALLBACK = (0.5, 1.0, 1.5)  # discounts where they cannot be estimated, as in KenLM's --discount_fallback

Gram = tuple[str, ...]


@dataclass(frozen=True)
class DomainDistance:
    """Results for one test set; unknown words and types are not in the training text."""

    name: str
    sentences: int
    words: int
    types: int
    unknown_words: int
    unknown_types: int
    perplexity: float
    perplexity_known: float  # of known words only

    @property
    def unknown_rate(self) -> float:
        """Out-of-vocabulary rate of tokens."""
        return self.unknown_words / self.words if self.words else float("nan")

    @property
    def unknown_type_rate(self) -> float:
        """Out-of-vocabulary rate of types."""
        return self.unknown_types / self.types if self.types else float("nan")


@dataclass(frozen=True)
class DomainAnalysis:
    """Results for all test sets under the language model of one training text."""

    training_sentences: int
    training_types: int
    order: int
    discounts_estimated: bool
    sets: tuple[DomainDistance, ...]


def domain_distances(
    training: Sequence[str], test_sets: Sequence[tuple[str, Sequence[str]]], order: int = 3
) -> DomainAnalysis:
    """Measure each test set, given with its name."""
    model = NgramModel(training, order)
    found = []
    for name, lines in test_sets:
        words = [word for line in lines for word in line.split()]
        unknown = [word for word in words if word not in model.vocabulary]
        found.append(
            DomainDistance(
                name, len(lines), len(words), len(set(words)), len(unknown), len(set(unknown)), *model.perplexity(lines)
            )
        )
    return DomainAnalysis(len(training), len(model.vocabulary) - 1, order, all(model.estimated), tuple(found))


@dataclass(frozen=True)
class History:
    """The words after a history: adjusted counts, their sum, and the interpolation weight of the lower order."""

    counts: dict[str, int]
    total: int
    backoff: float


class NgramModel:
    """A language model estimated from the lines given to its constructor."""

    def __init__(self, lines: Iterable[str], order: int = 3) -> None:
        if order < 1:
            raise UserError(f"{order} is not an n-gram order", hint="at least 1")
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
        """Return P(word | history); all words that are not in the training text are the same `<unk>`."""
        probability = 1 / (len(self.vocabulary) + 1)  # + 1 for <unk>
        for length, (histories, discounts) in enumerate(zip(self.histories, self.discounts, strict=True)):
            if length > len(history):
                break
            found = histories.get(tuple(history[len(history) - length :]))
            if found is None:
                break
            count = found.counts.get(word, 0)
            kept = count - discounts[min(count, 3) - 1] if count else 0.0
            probability = kept / found.total + found.backoff * probability
        return probability

    def sentence_logs(self, line: str) -> Iterator[tuple[str, float]]:
        """Yield the words of a sentence and `</s>` with their log-probabilities."""
        words = [BEGIN, *line.split(), END]
        for place in range(1, len(words)):
            history = words[max(0, place - self.order + 1) : place]
            yield words[place], math.log(self.probability(words[place], history))

    def perplexity(self, lines: Iterable[str]) -> tuple[float, float]:
        """Compute the perplexity of a text, `</s>` included: of all words, and of known words only."""
        logs = [pair for line in lines for pair in self.sentence_logs(line)]
        known = [log for word, log in logs if word in self.vocabulary]
        return mean_perplexity([log for _, log in logs]), mean_perplexity(known)


def mean_perplexity(logs: Sequence[float]) -> float:
    """Compute the perplexity from log-probabilities."""
    return math.exp(-math.fsum(logs) / len(logs)) if logs else float("nan")


def raw_counts(lines: Iterable[str], order: int) -> list[Counter[Gram]]:
    """Count n-grams for n from 1 to `order`."""
    counts: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for number, line in enumerate(lines, 1):
        words = (BEGIN, *line.split(), END)
        for word in words[1:-1]:
            if word in (BEGIN, END, UNKNOWN):
                what = f"line {number} of the training text has {word}, which the language model reserves"
                raise UserError(what, hint=f"remove it: sed 's#{word}##g'")
        for length, own in enumerate(counts, 1):
            own.update(words[start : start + length] for start in range(len(words) - length + 1))
    return counts


def adjusted_counts(raw: Sequence[Counter[Gram]]) -> list[dict[Gram, int]]:
    """Compute Kneser-Ney's adjusted counts, without the unigram `<s>`."""
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
    """Estimate the discounts of counts 1, 2 and 3+; None if they cannot be estimated."""
    having = Counter(count for count in counts if count <= 4)
    if not all(having[count] for count in (1, 2, 3, 4)):
        return None
    y = having[1] / (having[1] + 2 * having[2])
    one, two, more = (count - (count + 1) * y * having[count + 1] / having[count] for count in (1, 2, 3))
    return (one, two, more) if 0 <= one <= 1 and 0 <= two <= 2 and 0 <= more <= 3 else None


def group_by_history(counts: dict[Gram, int], discounts: tuple[float, float, float]) -> dict[Gram, History]:
    """Group the n-grams of one order by their history, all but the last word."""
    grouped: dict[Gram, dict[str, int]] = defaultdict(dict)
    for gram, count in counts.items():
        grouped[gram[:-1]][gram[-1]] = count
    histories = {}
    for history, followers in grouped.items():
        total = sum(followers.values())
        taken = math.fsum(discounts[min(count, 3) - 1] for count in followers.values())
        histories[history] = History(followers, total, taken / total)
    return histories
