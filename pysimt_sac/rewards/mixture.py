"""From the options to the rewards of a batch: the parts by their names and weights, their sum, the scale.

`Rewarder` is all that algorithms need of this package.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pysimt_sac.engine.config.registry import REWARDS, load_plugin_modules
from pysimt_sac.engine.data.filters import FilterChain
from pysimt_sac.engine.statistics import Figure
from pysimt_sac.errors import UserError
from pysimt_sac.rewards.base import (
    UNBOUNDED,
    Bounds,
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

    potentials_TB: R_t, the weighted sum of the parts; after a sentence's end R_T stays.
    scale_B: c; the reward of a step is r_t = c (R_t - R_{t-1}).
    parts: each part's own R_T by sentence, without weight and scale, to be logged.
    learned_TB: the share in potentials_TB of the parts that learn, which changes as they do; None: there are none.
    """

    potentials_TB: Floats
    scale_B: Floats
    parts: dict[str, Floats]
    learned_TB: Floats | None = None


class Rewarder:
    """A weighted mixture of rewards; one alone is a mixture, too."""

    def __init__(self, read: ReadOptions, eval_filters: FilterChain, where: str = "[model]") -> None:
        """eval_filters: the run's, which make words of pieces where `reward_unit` is `word`. where: for messages."""
        options = read(RewardOptions)
        load_plugin_modules(options.reward_modules)
        self.unit = Words(eval_filters) if options.reward_unit == "word" else Pieces()
        self.scale = options.reward_scale
        self.weights = parse_mixture(options.reward, where)
        self.parts: dict[str, Any] = {}
        for name in self.weights:
            declared = REWARDS.get(name, f"{where} reward")
            if isinstance(declared, type):
                declared = declared(read(options_class_of(declared)))
            self.parts[name] = declared

    def __call__(self, translations: Translations, alpha: float = math.nan) -> Rewards:
        """The rewards of a batch; alpha, the current temperature, is needed for the scale `1/alpha` only."""
        potentials = self.potentials(translations, self.parts)
        mixed_TB = self.mix(potentials)
        scale_B = scales(self.scale, self.unit.whole(translations.references), alpha)
        learned_TB = self.mix({name: potentials[name] for name in self.learners}) if self.learners else None
        return Rewards(mixed_TB, scale_B, {name: values[-1] for name, values in potentials.items()}, learned_TB)

    def next_rewards(
        self, translations: Translations, candidates_TBK: Any, limits_B: Any, alpha: float = math.nan
    ) -> Floats:
        """r(s,a) for K next words of every state of a batch, (T, B, K): exactly what each would earn if it were taken.

        The state of step t is a hypothesis's first t - 1 words; r = c (R(state + word) - R(state)). `<eos>` ends the
        hypothesis, and R is its score then; any other word at the last allowed step ends it, too, by truncation.

        candidates_TBK: ids; `<pad>`, `<bos>` and what stands behind a hypothesis's end are no candidates, and get 0.
        limits_B: most steps of each sentence. alpha: as in a call.
        """
        self.refuse_learners()
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
        scale_B = scales(self.scale, self.unit.whole(translations.references), alpha)
        return np.asarray(scale_B[:, None] * growth_TBK)

    def scores(self, translations: Translations, alpha: float = math.nan) -> tuple[Floats, Floats]:
        """R_T of whole hypotheses (B) and their scale c (B); quicker than a call, which scores all their steps."""
        scores_B = np.zeros(len(translations.ended))
        for name, weight in self.weights.items():
            part, unit = self.parts[name], self.unit_of(name)
            if isinstance(part, IncrementalReward):
                scores_B += weight * part.final(
                    unit.whole(translations.references), unit.whole(translations.hypotheses)
                )
            else:
                scores_B += weight * self.potentials_of(name, translations)[-1]
        return scores_B, scales(self.scale, self.unit.whole(translations.references), alpha)

    def potentials(self, translations: Translations, names: Iterable[str]) -> dict[str, Floats]:
        """R_t of some of the parts, without their weights, (T, B) each."""
        return {name: self.potentials_of(name, translations) for name in names}

    def potentials_of(self, name: str, translations: Translations) -> Floats:
        """Those of one of them."""
        return self.unit_of(name).count(translations).potentials(self.parts[name], f"reward {name!r}")

    def unit_of(self, name: str) -> Pieces | Words:
        """What one of the parts counts."""
        return Pieces() if getattr(self.parts[name], "counts_pieces", False) else self.unit

    @property
    def learners(self) -> list[str]:
        """The parts that learn."""
        return [name for name, part in self.parts.items() if hasattr(part, "learn")]

    def refuse_learners(self) -> None:
        """For algorithms that look ahead."""
        if self.learners:
            what = f"{', '.join(self.learners)} learns from what is sampled, and cannot say what other words would earn"
            raise UserError(what, "[model] reward", "use rewards that do not learn, or another algorithm")

    @property
    def n_labels(self) -> int:
        """How many random labels the parts tell apart that want one for every word (`unsup`); 0: none does."""
        return max(getattr(part, "n_labels", 0) for part in self.parts.values())

    @property
    def bounds(self) -> Bounds:
        """The least and the most that the mixture's potentials R_t can be, before they are scaled.

        So much at most is still to be earned after step t: between c (low - R_t) and c (high - R_t).
        """
        low = high = 0.0
        for name, weight in self.weights.items():
            if weight:
                ends = [weight * bound for bound in getattr(self.parts[name], "bounds", UNBOUNDED)]
                low, high = low + min(ends), high + max(ends)
        return low, high

    def learn(self, translations: Translations, new: bool = False) -> dict[str, Figure]:
        """Let the parts learn that can; return figures to log, as `NAME_KEY`. new: the batch was not there before."""
        figures: dict[str, Figure] = {}
        for name in self.learners:
            part, examples = self.parts[name], self.unit_of(name).count(translations).translations
            if new and hasattr(part, "observe"):
                part.observe(examples)
            figures.update({f"{name}_{key}": value for key, value in part.learn(examples).items()})
        return figures

    def learned_potentials(self, translations: Translations) -> Floats:
        """The share in R_t of the parts that learn, as they are now, (T, B)."""
        return self.mix(self.potentials(translations, self.learners))

    def mix(self, potentials: dict[str, Floats]) -> Floats:
        """The weighted sum of some of the parts."""
        return np.asarray(sum(self.weights[name] * potentials[name] for name in potentials))

    def state_dict(self) -> dict[str, Any]:
        """What the parts have learned, by name."""
        return {name: part.state_dict() for name, part in self.parts.items() if hasattr(part, "state_dict")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        for name, part in state.items():
            self.parts[name].load_state_dict(part)


def scales(scale: float | str, references: Sequence[Sequence[str]], alpha: float) -> Floats:
    """c of every sentence: the reference's length, the inverse of the temperature, or a number."""
    if scale == "ref":
        return np.array([float(len(reference)) for reference in references])
    if scale == "1/alpha" and not alpha > 0:
        raise UserError("there is no inverse of alpha", "[model] reward_scale", "set alpha above 0, or another scale")
    return np.full(len(references), 1 / alpha if scale == "1/alpha" else float(scale))


def permute(rewards: Rewards, steps: Sequence[int], permutation: Sequence[int]) -> Rewards:
    """The control: sentence i earns what sentence permutation[i] has earned, at the same part of its length.

    Whatever is learned from these rewards was not learned from which translation is good; their sizes are as without
    permutation. An algorithm that uses `next_rewards` exchanges references instead (`Translations.with_references_of`).
    """
    permuted_TB = np.zeros_like(rewards.potentials_TB)
    for column, other in enumerate(permutation):
        n_steps, n_other = steps[column], steps[other]
        times = np.ceil(np.arange(1, n_steps + 1) * n_other / n_steps).astype(np.int64) - 1
        permuted_TB[:n_steps, column] = rewards.potentials_TB[times, other]
        permuted_TB[n_steps:, column] = rewards.potentials_TB[n_other - 1, other]
    return Rewards(permuted_TB, rewards.scale_B, rewards.parts)
