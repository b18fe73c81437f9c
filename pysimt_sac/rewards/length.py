"""The length reward: minus the difference in length, in parts of the reference's length; for mixtures.

A word beyond the reference's length costs 1/L at its own step; words that are missing can only be charged at the end.
"""

from pysimt_sac.rewards.base import Translations, reward


@reward("length")
def length(translations: Translations) -> list[list[float]]:
    """-max(0, t - L) / L on the way, -|y - L| / L at the end."""
    potentials = []
    for words, reference, ended in zip(
        translations.hypotheses, translations.references, translations.ended, strict=True
    ):
        size = max(1, len(reference))
        scores = [-max(0, time - len(reference)) / size for time in range(1, len(words) + 1)]
        final = -abs(len(words) - len(reference)) / size
        potentials.append((scores if ended else scores[:-1]) + [final])
    return potentials
