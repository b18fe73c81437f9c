"""The chrF reward: growth of the F-score of character n-grams.

At the end it is sacrebleu's sentence chrF (six characters, spaces left out, beta 2) between 0 and 1, except that an
`<unk>` of either side matches nothing. sacrebleu counts all characters anew for every prefix, a second per batch;
here a word adds its own n-grams to the counts. chrF weighs recall over precision, so that it grows from zero with
every right word: the prefix's own score is a good potential, and `shaping` only knows `final` and anything else.
"""

from collections.abc import Sequence

from pysimt_sac.rewards.base import UNKNOWN_WORD, RewardOptions, Translations, reward
from pysimt_sac.rewards.ngrams import count_matches_at

LONGEST = 6  # characters
BETA_SQUARED = 4.0
HYPOTHESIS_UNKNOWN, REFERENCE_UNKNOWN = "\ue000", "\ue001"  # one character each, of those that no text has


@reward("chrf")
class ChrfReward:
    """Potentials of sentence chrF; see the top of this file."""

    def __init__(self, options: RewardOptions) -> None:
        self.final_only = options.shaping == "final"

    def __call__(self, translations: Translations) -> list[float] | list[list[float]]:
        """One number per sentence, or one per step."""
        pairs = zip(translations.hypotheses, translations.references, translations.ended, strict=True)
        potentials = [[*chrf_of_prefixes(words, reference)] for words, reference, _ in pairs]
        if self.final_only:
            return [scores[-1] for scores in potentials]
        # The step of `<eos>` adds no character; a sentence without words has the potential of no word.
        return [scores[1:] + [scores[-1]] * ended for scores, ended in zip(potentials, translations.ended, strict=True)]


def chrf_of_prefixes(words: Sequence[str], reference: Sequence[str]) -> list[float]:
    """chrF of no word, of the first word, of the first two words, and so on."""
    left, in_reference = count_characters("".join(REFERENCE_UNKNOWN if w == UNKNOWN_WORD else w for w in reference))
    matches, length = [0] * LONGEST, 0
    text, scores = "", [0.0]
    for word in words:
        text += HYPOTHESIS_UNKNOWN if word == UNKNOWN_WORD else word
        for end in range(length + 1, len(text) + 1):
            count_matches_at(text, end, LONGEST, left, matches)
        length = len(text)
        scores.append(f_score(matches, length, in_reference))
    return scores


def count_characters(text: str) -> tuple[dict[str, int], int]:
    """How often each n-gram of characters is in a text, and the text's length."""
    counts: dict[str, int] = {}
    for order in range(1, LONGEST + 1):
        for start in range(len(text) - order + 1):
            ngram = text[start : start + order]
            counts[ngram] = counts.get(ngram, 0) + 1
    return counts, len(text)


def f_score(matches: Sequence[int], length: int, reference_length: int) -> float:
    """F-beta of the mean precision and the mean recall over those orders that both texts have."""
    orders = min(LONGEST, length, reference_length)
    if orders <= 0:
        return 0.0
    precision = sum(matches[order] / (length - order) for order in range(orders)) / orders
    recall = sum(matches[order] / (reference_length - order) for order in range(orders)) / orders
    if precision + recall == 0:
        return 0.0
    return (1 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
