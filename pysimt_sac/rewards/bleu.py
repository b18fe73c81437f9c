"""The BLEU reward: increments of sentence BLEU.

At the end, R_T is sentence BLEU between 0 and 1, minus the length penalty. BLEU is sacrebleu's with add-1 smoothing,
`smooth_method='add-k', smooth_value=1, tokenize='none'`, except that `<unk>` matches nothing.

Before the end, plain BLEU is a poor potential: without the brevity penalty a single correct word scores 1.0, with it
almost nothing. As long as t <= L, the length of the reference, `shaping: padded` divides the matches of the first t
words by the n-gram counts of a translation of length L: it never falls, and has no jump where the brevity penalty ends.

    R_t = (m_1 / L * prod_{n=2..4} (m_n + 1) / (max(L - n + 1, 0) + 1)) ^ (1/4)

For t > L it is the BLEU of the prefix itself, which equals R_t at t = L: words beyond the reference's length are
penalised at once. Otherwise the whole penalty would fall on `<eos>`, and it would pay to postpone the end.

`shaping: bp` is the BLEU of the prefix with its brevity penalty; `shaping: final` is 0 before the end.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from pysimt_sac.core.options import option
from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics, ShapingOptions
from pysimt_sac.rewards.ngrams import NgramMatches, count_ngrams

LONGEST = 4  # BLEU uses n-grams of one to four words
ORDERS = np.arange(1.0, LONGEST + 1)
SMOOTHING = np.array([0.0, 1.0, 1.0, 1.0])  # add-1, except for unigrams


@dataclasses.dataclass(frozen=True)
class BleuOptions(ShapingOptions):
    """The `[model]` keys of the BLEU reward."""

    length_penalty: float = option(
        0.0001, "`bleu`: subtract this per word longer or shorter than the reference", minimum=0
    )
    length_penalty_at: str = option(
        "end", "`bleu`: subtract it at the end, or from every step's score", choices=("end", "step")
    )


class WordMatches(PrefixStatistics):
    """N-gram matches of order one to four, and the lengths of prefix and reference; `<unk>` matches nothing."""

    def __init__(self, reference: Sequence[str]) -> None:
        words = tuple(None if word == UNKNOWN_WORD else word for word in reference)
        self.counts = NgramMatches[tuple[str | None, ...]]((), count_ngrams(words, LONGEST), LONGEST)
        self.reference_length = len(words)

    def push(self, word: str) -> None:
        """Add a word."""
        self.counts.push((word,))

    def pop(self) -> None:
        """Remove the last word."""
        self.counts.pop()

    def values(self, terminal: bool) -> Sequence[float]:
        """Return four match counts and two lengths."""
        return [*self.counts.matches, len(self.counts.hypothesis), self.reference_length]


@reward("bleu")
class BleuReward(IncrementalReward):
    """Potentials of sentence BLEU; see the module docstring."""

    options_class = BleuOptions

    def __init__(self, options: BleuOptions) -> None:
        self.shaping = options.shaping
        self.length_penalty = options.length_penalty
        self.penalise_every_step = options.length_penalty_at == "step"

    def statistics(self, reference: Sequence[str]) -> WordMatches:
        """Return the matches and lengths of the empty prefix."""
        return WordMatches(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return BLEU at the end, the shaped potential before it, both minus the length penalty."""
        matches_N4, length_N, reference_N = statistics_NS[:, :LONGEST], statistics_NS[:, -2], statistics_NS[:, -1]
        potentials_N = bleu(matches_N4, length_N, reference_N)
        if self.shaping == "padded":
            short_N = (length_N <= reference_N) & ~terminal_N
            potentials_N = np.where(short_N, padded_bleu(matches_N4, reference_N), potentials_N)
        elif self.shaping == "final":
            potentials_N = np.where(terminal_N, potentials_N, 0.0)
        penalty_N = self.length_penalty * np.abs(length_N - reference_N)
        return potentials_N - (penalty_N if self.penalise_every_step else np.where(terminal_N, penalty_N, 0.0))


def bleu(matches_N4: Floats, length_N: Floats, reference_N: Floats) -> Floats:
    """Compute sentence BLEU with add-1 smoothing and brevity penalty, between 0 and 1."""
    possible_N4 = np.maximum(length_N[:, None] - ORDERS + 1, 0) + SMOOTHING
    precisions_N4 = (matches_N4 + SMOOTHING) / np.maximum(possible_N4, 1)
    brevity_N = np.exp(np.minimum(0.0, 1 - reference_N / np.maximum(length_N, 1)))
    return np.asarray(brevity_N * precisions_N4.prod(-1) ** 0.25)


def padded_bleu(matches_N4: Floats, reference_N: Floats) -> Floats:
    """Compute BLEU with the n-gram counts of a translation as long as the reference, however short the prefix is."""
    possible_N4 = np.maximum(reference_N[:, None] - ORDERS + 1, 0) + SMOOTHING
    return np.asarray(((matches_N4 + SMOOTHING) / np.maximum(possible_N4, 1)).prod(-1) ** 0.25)
