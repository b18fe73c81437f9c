"""The GLEU reward: increments of Google's sentence BLEU (Wu et al. 2016).

GLEU is the minimum of precision and recall over all n-grams of one to four words: clipped matches divided by the number
of n-grams of the hypothesis or of the reference, whichever is larger. Unlike BLEU it needs neither smoothing nor a
brevity penalty, and is its own potential: a matching word raises it, a surplus word lowers it, and `<eos>` does not
change it. `shaping: final` gives nothing before the end. `<unk>` matches nothing.
"""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.rewards.base import Floats, reward
from pysimt_sac.rewards.bleu import LONGEST, ORDERS, WordMatches
from pysimt_sac.rewards.incremental import Flags, IncrementalReward


@reward("gleu")
class GleuReward(IncrementalReward):
    """Potentials of sentence GLEU; see the module docstring."""

    def statistics(self, reference: Sequence[str]) -> WordMatches:
        """Return the matches and lengths of the empty prefix."""
        return WordMatches(reference)

    def potentials(self, statistics_NS: Floats, terminal_N: Flags) -> Floats:
        """Return matches / max(n-grams of the prefix, n-grams of the reference)."""
        matches_N = statistics_NS[:, :LONGEST].sum(1)
        longer_N = np.maximum(statistics_NS[:, -2], statistics_NS[:, -1])
        return np.asarray(matches_N / np.maximum(number_of_ngrams(longer_N), 1))


def number_of_ngrams(length_N: Floats) -> Floats:
    """Return how many n-grams of one to four words texts of these lengths have."""
    return np.asarray(np.maximum(length_N[:, None] - ORDERS + 1, 0).sum(1))
