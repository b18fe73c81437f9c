"""Distance of test sets from a training text: out-of-vocabulary rates and perplexities.

Perplexities of test sets can be compared only under the same language model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pysimt_sac.evaluation.lexical.ngram import NgramModel


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
    perplexity_known: float
    neural_perplexity: float | None = None

    @property
    def unknown_rate(self) -> float:
        """Out-of-vocabulary rate of tokens."""
        return self.unknown_words / self.words if self.words else float("nan")

    @property
    def unknown_type_rate(self) -> float:
        """Out-of-vocabulary rate of types."""
        return self.unknown_types / self.types if self.types else float("nan")


@dataclass(frozen=True)
class NeuralOptions:
    """Size and training of the neural language model."""

    size: int = 128
    epochs: int = 6
    seed: int = 1


@dataclass(frozen=True)
class DomainAnalysis:
    """Results for all test sets under the language models of one training text."""

    training_sentences: int
    training_types: int
    order: int
    discounts_estimated: bool
    sets: tuple[DomainDistance, ...]
    neural: NeuralOptions | None = None


def domain_distances(
    training: Sequence[str],
    test_sets: Sequence[tuple[str, Sequence[str]]],
    order: int = 3,
    neural: NeuralOptions | None = None,
) -> DomainAnalysis:
    """Measure each test set; with `neural`, also train a small GRU language model, which takes minutes."""
    model = NgramModel(training, order)
    neural_perplexities: list[float | None] = [None] * len(test_sets)
    if neural:
        from pysimt_sac.evaluation.lexical.neural import NeuralModel  # torch takes seconds to load

        recurrent = NeuralModel(training, neural.size, neural.epochs, neural.seed)
        neural_perplexities = [recurrent.perplexity(lines) for _, lines in test_sets]
    found = []
    for (name, lines), neural_perplexity in zip(test_sets, neural_perplexities, strict=True):
        words = [word for line in lines for word in line.split()]
        types = set(words)
        perplexity = model.perplexity(lines)
        found.append(
            DomainDistance(
                name=name,
                sentences=len(lines),
                words=len(words),
                types=len(types),
                unknown_words=sum(word not in model.vocabulary for word in words),
                unknown_types=len(types - model.vocabulary),
                perplexity=perplexity.all,
                perplexity_known=perplexity.known,
                neural_perplexity=neural_perplexity,
            )
        )
    return DomainAnalysis(len(training), len(model.vocabulary) - 1, order, all(model.estimated), tuple(found), neural)
