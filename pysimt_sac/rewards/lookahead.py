"""What other words than the taken ones would have earned: r(s,a) for several next words of every state.

The environment is known: the state is a prefix, a word leads to the prefix that is longer by it, and rewards can be
computed for any hypothesis. `Lookahead` lists all prefixes that are asked for in an order in which each is like the one
before, so that rewards with incremental statistics see few words twice. Any other reward is called with all of the
longer hypotheses (`growth_by_calling`), which is slow, but the same.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pysimt_sac.engine.data.vocabulary import BOS, EOS, PAD
from pysimt_sac.rewards.base import Floats, Translations
from pysimt_sac.rewards.units import Pieces, Prefix, Words


class Extension(NamedTuple):
    """A candidate: where it stands, and the hypothesis in pieces that it leads to; ended: it is `<eos>`."""

    step: int
    sentence: int
    number: int
    hypothesis: Prefix
    ended: bool


def list_extensions(translations: Translations, candidates_TBK: Any, limits_B: Any) -> list[Extension]:
    """All candidates of all states, by sentence and step; see `Rewarder.next_rewards`."""
    if not translations.tokens:
        raise ValueError("translations without their vocabulary; make them by `Translations.from_ids`")
    candidates, limits = candidates_TBK.tolist(), limits_B.tolist()
    extensions = []
    for sentence, (pieces, n_steps) in enumerate(zip(translations.hypotheses, translations.steps, strict=True)):
        for step in range(n_steps):
            state = pieces[:step]
            for number, word in enumerate(candidates[step][sentence]):
                if word == EOS:
                    extensions.append(Extension(step, sentence, number, Prefix(state, True), True))
                elif word not in (PAD, BOS):
                    longer = Prefix([*state, translations.tokens[word]], step + 1 >= limits[sentence])
                    extensions.append(Extension(step, sentence, number, longer, False))
    return extensions


@dataclasses.dataclass(frozen=True)
class Lookahead:
    """Prefixes in the unit that is counted, states and what they can become.

    references: by sentence. prefixes: by sentence. before_N, after_N: which of all prefixes in a row are the state and
    the longer prefix of candidate n. places: where its growth belongs. shape: (T, B, K).
    """

    references: list[list[str]]
    prefixes: list[list[Prefix]]
    before_N: list[int]
    after_N: list[int]
    places: tuple[list[int], list[int], list[int]]
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls, translations: Translations, extensions: list[Extension], shape: tuple[int, ...], unit: Pieces | Words
    ) -> "Lookahead":
        """The prefixes of some extensions, which stand by sentence and step."""
        prefixes: list[Prefix] = []
        sizes, before_N, after_N = [0] * len(translations.hypotheses), [], []
        place = None
        for step, sentence, _, longer, _ in extensions:
            if place != (step, sentence):
                place, state = (step, sentence), len(prefixes)
                prefixes.append(Prefix(translations.hypotheses[sentence][:step], False))
                sizes[sentence] += 1
            before_N.append(state)
            after_N.append(len(prefixes))
            prefixes.append(longer)
            sizes[sentence] += 1
        counted, by_sentence, first = unit.convert(prefixes), [], 0
        for size in sizes:
            by_sentence.append(list(counted[first : first + size]))
            first += size
        return cls(unit.whole(translations.references), by_sentence, before_N, after_N, places_of(extensions), shape)

    def growth(self, potentials_P: Floats) -> Floats:
        """R(prefix + word) - R(prefix) of every candidate, 0 where there is none, (T, B, K)."""
        growth_TBK = np.zeros(self.shape)
        growth_TBK[self.places] = potentials_P[self.after_N] - potentials_P[self.before_N]
        return growth_TBK


def growth_by_calling(
    potentials: Callable[[Translations], Floats],
    translations: Translations,
    extensions: list[Extension],
    shape: tuple[int, ...],
) -> Floats:
    """The same for any reward, given its potentials (T, N) at the steps of any translations."""
    longer = Translations(
        [extension.hypothesis.words for extension in extensions],
        [translations.references[extension.sentence] for extension in extensions],
        # What is not terminal goes on; the reward is asked what it is worth before `<eos>`.
        [extension.ended or not extension.hypothesis.terminal for extension in extensions],
    )
    potentials_TN = potentials(longer)
    from_0 = np.concatenate((np.zeros_like(potentials_TN[:1]), potentials_TN))  # R_0 = 0
    steps, numbers = np.array([extension.step for extension in extensions]), np.arange(len(extensions))
    growth_TBK = np.zeros(shape)
    growth_TBK[places_of(extensions)] = from_0[steps + 1, numbers] - from_0[steps, numbers]
    return growth_TBK


def places_of(extensions: list[Extension]) -> tuple[list[int], list[int], list[int]]:
    """Where the candidates stand: their steps, their sentences, their numbers."""
    return (
        [extension.step for extension in extensions],
        [extension.sentence for extension in extensions],
        [extension.number for extension in extensions],
    )
