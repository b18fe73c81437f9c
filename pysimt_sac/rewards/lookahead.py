"""Rewards of words that were not taken: r(s,a) for several candidate next words of every state.

The environment is known: the state is a prefix, an action appends a word to it, and the reward of any hypothesis can be
computed. `Lookahead` lists all required prefixes in an order in which each is similar to the previous one, so that
incremental rewards process few words twice. Any other reward is called with all the extended hypotheses
(`growth_by_calling`), which is slow but gives the same result.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pysimt_sac.core.vocabulary import BOS, EOS, PAD
from pysimt_sac.rewards.base import Floats, Translations
from pysimt_sac.rewards.units import Pieces, Prefix, Words


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Candidate next words of the states of translations, sorted by sentence, then by step.

    steps, sentences, numbers: indices of each candidate in an array of `shape`, (T, B, K). hypotheses: the prefix that
    it leads to, in pieces. ended: whether it is `<eos>`.
    """

    translations: Translations
    shape: tuple[int, ...]
    steps: list[int] = dataclasses.field(default_factory=list)
    sentences: list[int] = dataclasses.field(default_factory=list)
    numbers: list[int] = dataclasses.field(default_factory=list)
    hypotheses: list[Prefix] = dataclasses.field(default_factory=list)
    ended: list[bool] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, translations: Translations, candidates_TBK: Any, limits_B: Any) -> "Candidates":
        """List all candidates in the array; see `Rewarder.next_rewards`."""
        if not translations.tokens:
            raise ValueError("translations without their vocabulary; build them with `Translations.from_ids`")
        found, words, limits = (
            cls(translations, tuple(candidates_TBK.shape)),
            candidates_TBK.tolist(),
            limits_B.tolist(),
        )
        for sentence, (pieces, n_steps) in enumerate(zip(translations.hypotheses, translations.steps, strict=True)):
            for step in range(n_steps):
                state, last = pieces[:step], step + 1 >= limits[sentence]
                for number, word in enumerate(words[step][sentence]):
                    if word not in (PAD, BOS):
                        found.steps.append(step)
                        found.sentences.append(sentence)
                        found.numbers.append(number)
                        is_end = word == EOS
                        longer = Prefix(state, True) if is_end else Prefix([*state, translations.tokens[word]], last)
                        found.hypotheses.append(longer)
                        found.ended.append(is_end)
        return found

    def spread(self, values_N: Floats) -> Floats:
        """Place one number per candidate in an array (T, B, K); 0 elsewhere."""
        values_TBK = np.zeros(self.shape)
        values_TBK[self.steps, self.sentences, self.numbers] = values_N
        return values_TBK


@dataclasses.dataclass(frozen=True)
class Lookahead:
    """Candidates in the reward's unit: the reference of each sentence, its states and their extensions.

    before_N, after_N: indices, among all prefixes, of candidate n's state and of its extended prefix.
    """

    candidates: Candidates
    references: list[list[str]]
    prefixes: list[list[Prefix]]
    before_N: list[int]
    after_N: list[int]

    @classmethod
    def of(cls, candidates: Candidates, unit: Pieces | Words) -> "Lookahead":
        """List the prefixes that the candidates need."""
        translations, prefixes = candidates.translations, list[Prefix]()
        translations = dataclasses.replace(translations, source=unit.source(translations.source))
        candidates = dataclasses.replace(candidates, translations=translations)
        sizes, before_N, after_N = [0] * len(translations.hypotheses), [], []
        state, place = 0, (-1, -1)
        for step, sentence, longer in zip(candidates.steps, candidates.sentences, candidates.hypotheses, strict=True):
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
        return cls(candidates, unit.whole(translations.references), by_sentence, before_N, after_N)

    def growth(self, potentials_P: Floats) -> Floats:
        """Return R(prefix + word) - R(prefix) of every candidate (T, B, K), from R of all prefixes in order."""
        return self.candidates.spread(potentials_P[self.after_N] - potentials_P[self.before_N])


def growth_by_calling(potentials: Callable[[Translations], Floats], candidates: Candidates) -> Floats:
    """Like `Lookahead.growth`, for any reward: potentials computes R_t (T, N) of any N translations."""
    translations = candidates.translations
    references, order = translations.references, translations.order
    longer = Translations(
        [prefix.words for prefix in candidates.hypotheses],
        [references[sentence] for sentence in candidates.sentences],
        # Prefixes that are not terminal get an `<eos>` step, so that R before it is their potential.
        [ended or not prefix.terminal for ended, prefix in zip(candidates.ended, candidates.hypotheses, strict=True)],
        source=translations.source,
        sentences=[order[sentence] for sentence in candidates.sentences],
    )
    potentials_TN = potentials(longer)
    from_0 = np.concatenate((np.zeros_like(potentials_TN[:1]), potentials_TN))  # R_0 = 0
    steps_N, columns_N = np.array(candidates.steps), np.arange(len(candidates.steps))
    return candidates.spread(from_0[steps_N + 1, columns_N] - from_0[steps_N, columns_N])
