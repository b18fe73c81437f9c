"""What other words than the taken ones would have earned: r(s,a) for several next words of every state.

The environment is known: the state is a prefix, a word leads to the prefix that is longer by it, and rewards can be
computed for any hypothesis. `Lookahead` lists all prefixes that are asked for in an order in which each is like the one
before, so that rewards with incremental statistics see few words twice. Any other reward is called with all of the
longer hypotheses (`growth_by_calling`), which is slow, but the same.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pysimt_sac.engine.data.vocabulary import BOS, EOS, PAD
from pysimt_sac.rewards.base import Floats, Translations
from pysimt_sac.rewards.units import Pieces, Prefix, Words


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Candidates for the next words of the states of some translations, by sentence, then by step.

    steps, sentences, numbers: where each of them stands in an array of `shape`, (T, B, K). hypotheses: the prefix, in
    pieces, that it leads to. ended: whether it is `<eos>`.
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
        """All that are there; see `Rewarder.next_rewards`."""
        if not translations.tokens:
            raise ValueError("translations without their vocabulary; make them by `Translations.from_ids`")
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
        """One number per candidate, where it stands; 0 elsewhere, (T, B, K)."""
        values_TBK = np.zeros(self.shape)
        values_TBK[self.steps, self.sentences, self.numbers] = values_N
        return values_TBK


@dataclasses.dataclass(frozen=True)
class Lookahead:
    """Candidates in the unit that is counted: each sentence's reference, its states and what they can become.

    before_N, after_N: which of all prefixes in a row are the state and the longer prefix of candidate n.
    """

    candidates: Candidates
    references: list[list[str]]
    prefixes: list[list[Prefix]]
    before_N: list[int]
    after_N: list[int]

    @classmethod
    def of(cls, candidates: Candidates, unit: Pieces | Words) -> "Lookahead":
        """The prefixes behind some candidates."""
        translations, prefixes = candidates.translations, list[Prefix]()
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
        """R(prefix + word) - R(prefix) of every candidate, from R of all prefixes in a row, (T, B, K)."""
        return self.candidates.spread(potentials_P[self.after_N] - potentials_P[self.before_N])


def growth_by_calling(potentials: Callable[[Translations], Floats], candidates: Candidates) -> Floats:
    """The same for any reward, given its potentials (T, N) at the steps of any N translations."""
    translations = candidates.translations
    references, order = translations.references, translations.order
    longer = Translations(
        [prefix.words for prefix in candidates.hypotheses],
        [references[sentence] for sentence in candidates.sentences],
        # What is not terminal goes on; the reward is asked what it is worth before `<eos>`.
        [ended or not prefix.terminal for ended, prefix in zip(candidates.ended, candidates.hypotheses, strict=True)],
        source=translations.source,
        sentences=[order[sentence] for sentence in candidates.sentences],
    )
    potentials_TN = potentials(longer)
    from_0 = np.concatenate((np.zeros_like(potentials_TN[:1]), potentials_TN))  # R_0 = 0
    steps_N, columns_N = np.array(candidates.steps), np.arange(len(candidates.steps))
    return candidates.spread(from_0[steps_N + 1, columns_N] - from_0[steps_N, columns_N])
