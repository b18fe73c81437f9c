"""The rewards of a batch from the options: parts by name and weight, their sum, and the scale.

`Rewarder` is the interface of this package to the algorithms.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.registry import REWARDS, load_plugin_modules
from pysimt_sac.rewards.base import (
    Floats,
    ReadOptions,
    RewardOptions,
    Translations,
    options_class_of,
    parse_mixture,
)
from pysimt_sac.rewards.incremental import IncrementalReward
from pysimt_sac.rewards.lookahead import Candidates, Lookahead, growth_by_calling
from pysimt_sac.rewards.units import Pieces, Words


@dataclasses.dataclass(frozen=True)
class Rewards:
    """The potentials of a batch and their scale.

    potentials_TB: R_t, the weighted sum of the parts; R_T after the end of a sentence.
    scale_B: c; the reward of a step is r_t = c (R_t - R_{t-1}).
    parts: R_T of each part by sentence, without weight and scale, for the log.
    """

    potentials_TB: Floats
    scale_B: Floats
    parts: dict[str, Floats]


class Rewarder:
    """A weighted mixture of one or more rewards."""

    def __init__(self, read: ReadOptions, eval_filters: FilterChain, where: str = "[model]") -> None:
        """eval_filters: join pieces into words if `reward_unit` is `word`. where: the section, for error messages."""
        options = read(RewardOptions)
        load_plugin_modules(options.reward_modules)
        self.words = Words(eval_filters)
        self.unit = self.words if options.reward_unit == "word" else Pieces()
        self.scale = options.reward_scale
        self.weights = parse_mixture(options.reward, where)
        self.parts: dict[str, Any] = {}
        for name in self.weights:
            declared = REWARDS.get(name, f"{where} reward")
            if isinstance(declared, type):
                declared = declared(read(options_class_of(declared)))
            self.parts[name] = declared

    def __call__(self, translations: Translations) -> Rewards:
        """Compute the rewards of a batch."""
        counted = {unit: unit.count(translations) for unit in {*map(self.unit_of, self.parts)}}
        potentials = {
            name: counted[self.unit_of(name)].potentials(part, f"reward {name!r}") for name, part in self.parts.items()
        }
        mixed_TB = np.asarray(sum(self.weights[name] * potentials[name] for name in potentials))
        scale_B = self.scales(translations)
        return Rewards(mixed_TB, scale_B, {name: values[-1] for name, values in potentials.items()})

    def next_rewards(self, translations: Translations, candidates_TBK: Any, limits_B: Any) -> Floats:
        """Return r(s,a) for K next words of every state of a batch, (T, B, K): exactly what taking each would earn.

        The state of step t is the first t - 1 words of a hypothesis; r = c (R(state + word) - R(state)). `<eos>` ends
        the hypothesis, and R is then its score; so does any other word at the last allowed step, by truncation.

        candidates_TBK: ids; `<pad>`, `<bos>` and entries after the end of a hypothesis are no candidates, and get 0.
        limits_B: maximum number of steps of each sentence.
        """
        candidates = Candidates.of(translations, candidates_TBK, limits_B)
        growth_TBK = np.zeros(candidates.shape)
        if not candidates.steps:
            return growth_TBK
        for name, weight in self.weights.items():
            if hasattr(self.parts[name], "next_growth"):
                part_TBK = self.parts[name].next_growth(Lookahead.of(candidates, self.unit_of(name)))
            else:
                part_TBK = growth_by_calling(partial(self.potentials_of, name), candidates)
            growth_TBK += weight * part_TBK
        scale_B = self.scales(translations)
        return np.asarray(scale_B[:, None] * growth_TBK)

    def scores(self, translations: Translations) -> tuple[Floats, Floats]:
        """Return R_T (B) and scale c (B) of whole hypotheses; faster than `__call__`, which scores all steps."""
        scores_B = np.zeros(len(translations.ended))
        for name, weight in self.weights.items():
            part = self.parts[name]
            if isinstance(part, IncrementalReward):
                texts = (self.unit_of(name).whole(side) for side in (translations.references, translations.hypotheses))
                scores_B += weight * part.final(*texts)
            else:
                scores_B += weight * self.potentials_of(name, translations)[-1]
        return scores_B, self.scales(translations)

    def potentials_of(self, name: str, translations: Translations) -> Floats:
        """Return R_t of one part, without its weight, (T, B)."""
        return self.unit_of(name).count(translations).potentials(self.parts[name], f"reward {name!r}")

    def unit_of(self, name: str) -> Pieces | Words:
        """Return the unit that a part counts."""
        return self.words if getattr(self.parts[name], "counts_words", False) else self.unit

    @property
    def learners(self) -> list[str]:
        """The parts that learn."""
        return [name for name, part in self.parts.items() if hasattr(part, "learn")]

    @property
    def n_samples(self) -> int:
        """The number of samples of each source that the parts that learn look at; 0 if none does."""
        return max((getattr(self.parts[name], "n_samples", 1) for name in self.learners), default=0)

    def scales(self, translations: Translations) -> Floats:
        """Return c of every sentence: the reference's length, or a number."""
        references = self.unit.whole(translations.references)
        if self.scale == "ref":
            return np.array([float(len(reference)) for reference in references])
        return np.full(len(references), float(self.scale))

    def learn(self, samples: Translations) -> dict[str, float]:
        """Update the parts that learn; return metrics to log, as `NAME_KEY`."""
        in_unit = self.unit.count(samples).translations
        found = {name: self.parts[name].learn(in_unit) for name in self.learners}
        return {f"{name}_{key}": value for name, values in found.items() for key, value in values.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the parts that have one, by name."""
        return {name: part.state_dict() for name, part in self.parts.items() if hasattr(part, "state_dict")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        for name, part in state.items():
            self.parts[name].load_state_dict(part)


def permute(rewards: Rewards, steps: Sequence[int], permutation: Sequence[int]) -> Rewards:
    """Give sentence i the rewards of sentence permutation[i], at the same relative position: the permuted control.

    The rewards keep their distribution, but carry no information on which translation is good. Algorithms that use
    `next_rewards` permute references instead (`Collector.references`).
    """
    permuted_TB = np.zeros_like(rewards.potentials_TB)
    for column, other in enumerate(permutation):
        n_steps, n_other = steps[column], steps[other]
        times = np.ceil(np.arange(1, n_steps + 1) * n_other / n_steps).astype(np.int64) - 1
        permuted_TB[:n_steps, column] = rewards.potentials_TB[times, other]
        permuted_TB[n_steps:, column] = rewards.potentials_TB[n_other - 1, other]
    return Rewards(permuted_TB, rewards.scale_B, rewards.parts)
