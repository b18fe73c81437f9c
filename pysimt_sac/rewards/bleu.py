"""The BLEU reward: growth of sentence BLEU, computed over all prefixes in one pass.

At the end, R_T is BLEU with add-1 smoothing between 0 and 1, minus the length penalty: sacrebleu's sentence BLEU with
`smooth_method='add-k', smooth_value=1, tokenize='none'`, with one difference: `<unk>` matches nothing.

Before the end, plain BLEU is a poor guide: without the brevity penalty one right word is worth 1.0, with it nearly
nothing. `shaping: padded` counts the matches of the first t words against the n-grams of a full translation of the
reference's length L, as long as t <= L: it never falls, and has no jump where the brevity penalty ends.

    R_t = (m_1 / L * prod_{n=2..4} (m_n + 1) / (max(L - n + 1, 0) + 1)) ^ (1/4)

For t > L it is the prefix's own BLEU, which equals this one at t = L: words beyond the reference's length cost at once.
Otherwise their whole price would fall on `<eos>`, and it would pay to put off the end.

`shaping: bp` is the prefix's own BLEU with its brevity penalty, `shaping: final` is 0 before the end.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, RewardOptions, Translations, reward
from pysimt_sac.rewards.ngrams import count_matches_at

ORDERS = np.arange(1.0, 5.0)  # BLEU's n-grams have one to four words
SMOOTHING = np.array([0.0, 1.0, 1.0, 1.0])  # add-1, but not to single words

NGram = tuple[str | None, ...]


@reward("bleu")
class BleuReward:
    """Potentials of sentence BLEU; see the top of this file."""

    def __init__(self, options: RewardOptions) -> None:
        self.shaping = options.shaping
        self.length_penalty = options.length_penalty
        self.penalise_every_step = options.length_penalty_at == "step"

    def __call__(self, translations: Translations) -> Floats:
        """Potentials (T, B)."""
        steps_B, reference_B = np.array(translations.steps), np.array([len(r) for r in translations.references])
        words_B = np.array([len(words) for words in translations.hypotheses])
        # After t steps there are t words, but `<eos>` and what is behind it add none.
        times_T1 = np.arange(1, steps_B.max() + 1)[:, None]
        length_TB = np.minimum(times_T1, words_B)
        last_TB = times_T1 >= steps_B
        matches_TB4 = matches_of_prefixes(translations, length_TB)
        potentials_TB = bleu(matches_TB4, length_TB, reference_B)
        if self.shaping == "padded":
            short_TB = (length_TB <= reference_B) & ~last_TB
            potentials_TB = np.where(short_TB, padded_bleu(matches_TB4, reference_B), potentials_TB)
        elif self.shaping == "final":
            potentials_TB = np.where(last_TB, potentials_TB, 0.0)
        penalty_TB = self.length_penalty * np.abs(length_TB - reference_B)
        return potentials_TB - (penalty_TB if self.penalise_every_step else np.where(last_TB, penalty_TB, 0.0))


def bleu(matches_TB4: Floats, length_TB: Floats, reference_B: Floats) -> Floats:
    """Sentence BLEU with add-1 smoothing and brevity penalty, between 0 and 1."""
    possible_TB4 = np.maximum(length_TB[..., None] - ORDERS + 1, 0) + SMOOTHING
    precisions_TB4 = (matches_TB4 + SMOOTHING) / np.maximum(possible_TB4, 1)
    brevity_TB = np.exp(np.minimum(0.0, 1 - reference_B / np.maximum(length_TB, 1)))
    return np.asarray(brevity_TB * precisions_TB4.prod(-1) ** 0.25)


def padded_bleu(matches_TB4: Floats, reference_B: Floats) -> Floats:
    """The same with the n-grams of a translation as long as the reference, however few words there are yet."""
    possible_B4 = np.maximum(reference_B[:, None] - ORDERS + 1, 0) + SMOOTHING
    return np.asarray(((matches_TB4 + SMOOTHING) / np.maximum(possible_B4, 1)).prod(-1) ** 0.25)


def matches_of_prefixes(translations: Translations, counted_TB: Floats) -> Floats:
    """How many n-grams (T, B, 4) of each sentence's first `counted` words are in its reference."""
    longest = max(map(len, translations.hypotheses))
    counts = np.zeros((longest + 1, len(translations.hypotheses), 4))
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        if words:
            counts[1 : len(words) + 1, column] = cumulative_matches(words, reference)
    return np.asarray(np.take_along_axis(counts, counted_TB[..., None].astype(np.int64), axis=0))


def cumulative_matches(words: Sequence[str], reference: Sequence[str]) -> list[list[int]]:
    """The clipped n-gram matches of the first word, the first two words, and so on."""
    left = count_ngrams(reference)
    matches, found = [0, 0, 0, 0], []
    words = tuple(words)
    for end in range(1, len(words) + 1):
        count_matches_at(words, end, len(ORDERS), left, matches)
        found.append(matches.copy())
    return found


def count_ngrams(reference: Sequence[str]) -> dict[NGram, int]:
    """How often each n-gram of one to four words is in the reference; `<unk>` is made equal to nothing."""
    words = [None if word == UNKNOWN_WORD else word for word in reference]
    counts: dict[NGram, int] = {}
    for order in range(1, 5):
        for ngram in zip(*(words[start:] for start in range(order)), strict=False):
            counts[ngram] = counts.get(ngram, 0) + 1
    return counts
