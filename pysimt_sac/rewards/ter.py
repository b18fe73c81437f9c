"""The TER reward: 1 - TER at the end, growth of 1 - WER on the way there.

TER counts edits and shifts of blocks per word of the reference, 1.0 for no words at all, so that 1 - TER begins at 0.
Every prefix's own TER would take seconds per batch, since each looks for shifts. Without shifts it is the word error
rate, and one table of edit distances has that of all prefixes; the last step earns what the shifts save. `shaping:
final` gives nothing on the way. A translation with more edits than the reference has words scores below 0.
"""

from collections.abc import Sequence

from sacrebleu.metrics.lib_ter import translation_edit_rate

from pysimt_sac.rewards.base import UNKNOWN_WORD, RewardOptions, Translations, reward


@reward("ter")
class TerReward:
    """Potentials of 1 - TER; see the top of this file."""

    def __init__(self, options: RewardOptions) -> None:
        self.final_only = options.shaping == "final"

    def __call__(self, translations: Translations) -> list[float] | list[list[float]]:
        """One number per sentence, or one per step."""
        pairs = list(zip(translations.hypotheses, translations.references, strict=True))
        final = [one_minus_ter(words, reference) for words, reference in pairs]
        if self.final_only:
            return final
        before = [one_minus_wer_of_prefixes(words, reference) for words, reference in pairs]
        return [
            (scores if ended else scores[:-1]) + [score]
            for scores, score, ended in zip(before, final, translations.ended, strict=True)
        ]


def one_minus_ter(words: Sequence[str], reference: Sequence[str]) -> float:
    """sacrebleu's, with an `<unk>` that equals nothing."""
    edits, length = translation_edit_rate(
        [f"{word} 1" if word == UNKNOWN_WORD else word for word in words],
        [f"{word} 2" if word == UNKNOWN_WORD else word for word in reference],
    )
    return 1 - edits / max(1, length)


def one_minus_wer_of_prefixes(words: Sequence[str], reference: Sequence[str]) -> list[float]:
    """Of the first word, of the first two words, and so on: 1 - edit distance to the whole reference / its length."""
    row, scores = list(range(len(reference) + 1)), []
    for number, word in enumerate(words, 1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(reference, 1):
            change = diagonal + (word != other or word == UNKNOWN_WORD)
            diagonal = row[place]
            row[place] = min(change, diagonal + 1, row[place - 1] + 1)
        scores.append(1 - row[-1] / max(1, len(reference)))
    return scores
