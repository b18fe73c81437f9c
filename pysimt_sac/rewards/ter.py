"""The TER reward: 1 - TER at the end, 1 - WER before it.

TER counts edits and block shifts per reference word. It is 1.0 for the empty hypothesis, so 1 - TER starts at 0. TER of
every prefix would take seconds per batch, because of the search for shifts. Without shifts it is the word error rate,
whose table of edit distances grows by one row per word; the last step earns what the shifts save. `shaping: final`
gives nothing before the end. A translation with more edits than the reference has words scores below 0.
"""

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.lib_ter import translation_edit_rate

from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, reward
from pysimt_sac.rewards.incremental import Flags, IncrementalReward, PrefixStatistics


class Edits(PrefixStatistics):
    """The number of edits from prefix to reference, and the reference's length."""

    def __init__(self, reference: Sequence[str]) -> None:
        self.reference, self.words = [word.lower() for word in reference], list[str]()
        self.table = [list(range(len(reference) + 1))]  # rows: prefix lengths; columns: reference lengths

    def push(self, word: str) -> None:
        """Add a row of edit distances, ignoring case like sacrebleu's TER."""
        word, above = word.lower(), self.table[-1]
        row = [above[0] + 1]
        for place, other in enumerate(self.reference):
            change = above[place] + (word != other or word == UNKNOWN_WORD)
            row.append(min(change, above[place + 1] + 1, row[place] + 1))
        self.table.append(row)
        self.words.append(word)

    def pop(self) -> None:
        """Remove the last row."""
        self.table.pop()
        self.words.pop()

    def values(self, terminal: bool) -> Sequence[float]:
        """Return edits and reference length; shifts are searched for only at the end."""
        edits = ter_edits(self.words, self.reference) if terminal else self.table[-1][-1]
        return [edits, len(self.reference)]


@reward("ter")
class TerReward(IncrementalReward):
    """Potentials of 1 - TER; see the module docstring."""

    def statistics(self, reference: Sequence[str]) -> Edits:
        """Return the edits and length of the empty prefix."""
        return Edits(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return 1 - edits / length."""
        edits_N, length_N = statistics_NS.T
        return np.asarray(1 - edits_N / np.maximum(1, length_N))


def ter_edits(words: Sequence[str], reference: Sequence[str]) -> float:
    """Return sacrebleu's count of edits and shifts; `<unk>` matches nothing."""
    edits, _ = translation_edit_rate(
        [f"{word} 1" if word == UNKNOWN_WORD else word for word in words],
        [f"{word} 2" if word == UNKNOWN_WORD else word for word in reference],
    )
    return float(edits)
