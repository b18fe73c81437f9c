"""The unsupervised reward as a count bonus (`unsup`): a word that is rare among the samples of its source earns more.

The paper gives every sampled word a of a source x a random label z, one of K, and rewards log q(z|x,a) - log p(z),
where q has learned the labels of what was sampled. z depends on neither x nor a, so q beats chance only by what it has
memorised. After n labelled draws of a word, one more draw of it earns on average

    g(n) = sum_m Bin(m; n, 1/K) log[K (m + 1) / (n + 1)],

which is log K for n = 0, and about (K - 1) / (2n) for large n. `rewards.discriminator` learns q itself. Over M draws
of a word with probability rho, the mean is U_M(rho) = sum_n Bin(n; M, rho) g(n).

As a reward, each update draws M samples of every source, and a word earns g(n) / log K, which is from 0 to 1. The
potential is the mean over the words so far, or over as many as the reference has if that is more: so it mixes with
BLEU on one scale, and longer hypotheses do not earn more.
"""

import dataclasses
import functools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pysimt_sac.core.options import option
from pysimt_sac.rewards.base import UNKNOWN_WORD, Floats, Translations, reward


@dataclasses.dataclass(frozen=True)
class BonusOptions:
    """The `[model]` keys of the unsupervised reward."""

    n_labels: int = option(4, "`unsup`: number K of random labels z of sampled words", minimum=2)
    unsup_samples: int = option(4, "`unsup`: samples M of each source in which words are counted", minimum=1)


@dataclasses.dataclass(frozen=True)
class PermuteOptions:
    """The `[model]` key of the control."""

    permute_bonus: bool = option(False, "a control: the bonuses of a sentence are permuted among its likely words")


@functools.cache
def count_bonus(n: int, n_labels: int) -> float:
    """Return g(n), the mean reward of one more draw of a word that was drawn n times."""
    p = 1 / n_labels
    return sum(
        math.comb(n, m) * p**m * (1 - p) ** (n - m) * math.log(n_labels * (m + 1) / (n + 1)) for m in range(n + 1)
    )


def count_bonuses(draws: Tensor, n_labels: int) -> Tensor:
    """Return g(n) of many counts."""
    most = int(draws.max()) if draws.numel() else 0
    return torch.tensor([count_bonus(n, n_labels) for n in range(most + 1)], device=draws.device)[draws]


def expected_bonus(rho: Tensor, n_samples: int, n_labels: int) -> Tensor:
    """Return U_M(rho), the mean bonus over M draws of a choice with probability rho."""
    terms = (
        math.comb(n_samples, n) * count_bonus(n, n_labels) * rho**n * (1 - rho) ** (n_samples - n)
        for n in range(n_samples + 1)
    )
    return torch.stack([*terms]).sum(0)


def permute_within(values_NK: Tensor, valid_NK: Tensor, groups_N: Tensor, generator: torch.Generator) -> Tensor:
    """Permute the valid values of each group at random: a control, which pays no word more than another on average."""
    rows_E, columns_E = valid_NK.nonzero().unbind(1)
    groups_E = groups_N[rows_E]
    draws_E = torch.rand(len(groups_E), generator=generator, dtype=torch.float64).to(groups_E.device)
    to_E, from_E = groups_E.argsort(stable=True), (groups_E + draws_E).argsort()
    permuted_NK = values_NK.clone()
    permuted_NK[rows_E[to_E], columns_E[to_E]] = values_NK[rows_E[from_E], columns_E[from_E]]
    return permuted_NK


@reward("unsup")
class CountBonus:
    """The mean count bonus of a hypothesis's words; 0 for sources of which there are no samples."""

    options_class = BonusOptions

    def __init__(self, options: BonusOptions) -> None:
        self.n_labels, self.n_samples = options.n_labels, options.unsup_samples
        self.draws: dict[str, dict[str, int]] = {}  # of each source, in its last samples

    def learn(self, samples: Translations) -> dict[str, float]:
        """Count the words in new samples of some sources; return the mean bonus of these words."""
        sources = samples.sources
        counts = {source: Counter[str]() for source in sources}
        for source, words in zip(sources, samples.hypotheses, strict=True):
            counts[source].update(words)
        self.draws.update(counts)
        bonuses = [
            self.bonus(source, word)
            for source, words in zip(sources, samples.hypotheses, strict=True)
            for word in words
        ]
        return {"mean": sum(bonuses) / max(1, len(bonuses))}

    def bonus(self, source: str, word: str) -> float:
        """Return g(n) of a word of a source."""
        draws = self.draws.get(source)
        return 0.0 if draws is None or word == UNKNOWN_WORD else count_bonus(draws.get(word, 0), self.n_labels)

    def __call__(self, translations: Translations) -> list[Floats]:
        """Return R_1 ... R_T of every sentence."""
        return [
            self.potentials(source, words, len(reference), n_steps)
            for source, words, reference, n_steps in zip(
                translations.sources,
                translations.hypotheses,
                translations.references,
                translations.steps,
                strict=True,
            )
        ]

    def potentials(self, source: str, words: list[str], reference_length: int, n_steps: int) -> Floats:
        """Return the potentials of one sentence; `<eos>` earns nothing."""
        bonuses = [self.bonus(source, word) / math.log(self.n_labels) for word in words]
        sums = np.cumsum(bonuses + [0.0] * (n_steps - len(words)))
        lengths = np.minimum(np.arange(1, n_steps + 1), max(1, len(words)))
        return np.asarray(sums / np.maximum(lengths, max(1, reference_length)))

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        return {"draws": json.dumps(self.draws)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.draws = json.loads(state["draws"])
