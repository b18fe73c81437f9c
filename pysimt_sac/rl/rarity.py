"""A bonus for correct words that are rare translations of their source word, for branched rollouts.

A bonus that depends only on the policy at a state is an entropy bonus in disguise. Here rarity is measured outside the
state: over all sentences so far, how often the policy translated the source word f by a, rho(a|f) = n(f,a) / n(f). f is
the word that the state attends to most, the same for all words of a branched state. The bonus of a word is U_M(rho)
(`rewards.count_bonus`) if the reference still wants it, else 0: rarity alone would pay wrong words, too.
"""

import dataclasses
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.vocabulary import PAD, UNK
from pysimt_sac.rewards.count_bonus import BonusOptions, PermuteOptions, expected_bonus, permute_within
from pysimt_sac.rl.branching import policy_at_choices
from pysimt_sac.rl.replay import Branches, Experience
from pysimt_sac.rl.setup import Setup


@dataclasses.dataclass(frozen=True)
class RarityOptions:
    """The `[model]` key of the bonus."""

    rarity_weight: float = option(0.0, "weight in Q of the bonus for rare correct translations; 0: none", minimum=0)


class TranslationMemory:
    """n(f,a), how often the policy translated source word f by word a, and n(f), how often f was attended to."""

    def __init__(self) -> None:
        self.translated: defaultdict[tuple[int, int], float] = defaultdict(float)
        self.visited: defaultdict[int, int] = defaultdict(int)

    def add(self, sources_N: Tensor, words_NK: Tensor, probabilities_NK: Tensor) -> None:
        """Count the likely words of some states, each as often as its probability says; `<pad>` is no word."""
        rows = zip(sources_N.tolist(), words_NK.tolist(), probabilities_NK.tolist(), strict=True)
        for source, words, probabilities in rows:
            self.visited[source] += 1
            for word, probability in zip(words, probabilities, strict=True):
                if word != PAD:
                    self.translated[source, word] += probability

    def share(self, sources_M: Tensor, words_MK: Tensor) -> Tensor:
        """Return rho(a|f) = (n(f,a) + 1) / (n(f) + 1): 1 for all words until f has been seen."""
        shares = [
            [(self.translated.get((source, word), 0.0) + 1) / (self.visited.get(source, 0) + 1) for word in words]
            for source, words in zip(sources_M.tolist(), words_MK.tolist(), strict=True)
        ]
        return torch.tensor(shares, device=words_MK.device).view(words_MK.shape).clamp(max=1)

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        pairs = torch.tensor([*self.translated], dtype=torch.int32).view(-1, 2)
        numbers = torch.tensor([*self.translated.values()], dtype=torch.float64)
        return {"pairs": pairs, "numbers": numbers, "visited": dict(self.visited)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        pairs = (tuple(pair) for pair in state["pairs"].tolist())
        self.translated = defaultdict(float, zip(pairs, state["numbers"].tolist(), strict=True))
        self.visited = defaultdict(int, state["visited"])


class RarityBonus:
    """The bonus of the words of branched states; owns the memory."""

    def __init__(self, weight: float, options: BonusOptions, permute: bool) -> None:
        self.weight, self.options, self.permute, self.memory = weight, options, permute, TranslationMemory()

    @classmethod
    def build(cls, setup: Setup) -> "RarityBonus | None":
        """Return a new one; None if its weight is 0."""
        weight = setup.read(RarityOptions).rarity_weight
        return cls(weight, setup.read(BonusOptions), setup.read(PermuteOptions).permute_bonus) if weight else None

    @torch.no_grad()
    def __call__(self, actor: Actor, batch: Batch, experience: Experience, generator: torch.Generator) -> Tensor:
        """Add the path to the memory; return the weighted bonus of the words of branched states (M, K)."""
        branches, policy = experience.branches, policy_at_choices(experience)
        assert branches is not None
        assert policy.support is not None
        with actor.training_mode(dropout=False):
            places_TB = actor.attended(actor.encode(batch), experience.tokens_TB)
        words_TB = batch[actor.source].gather(0, places_TB)
        words_NK = policy.support.tokens_NK
        self.memory.add(policy.steps.flatten(words_TB), words_NK, policy.log_pi_NA.exp())
        rho_MK = self.memory.share(words_TB[branches.times_M, branches.sentences_M], branches.tokens_MK)
        bonus_MK = expected_bonus(rho_MK, self.options.unsup_samples, self.options.n_labels)
        if self.permute:
            bonus_MK = permute_within(bonus_MK, branches.valid_MK, branches.sentences_M, generator)
        return self.weight * bonus_MK * wanted_words(experience, branches)

    def state_dict(self) -> dict[str, Any]:
        """Return the memory's state."""
        return self.memory.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.memory.load_state_dict(state)


def wanted_words(experience: Experience, branches: Branches) -> Tensor:
    """Return which words the reference has more often than the prefix (M, K); never `<eos>` or `<unk>`."""
    tokens_MK = branches.tokens_MK
    reference_RM1 = experience.reference_RB[1:, branches.sentences_M].unsqueeze(-1)
    prefix_TM1 = experience.tokens_TB[1:, branches.sentences_M].unsqueeze(-1)
    times_T11 = torch.arange(len(prefix_TM1), device=tokens_MK.device).view(-1, 1, 1)
    before_TMK = (prefix_TM1 == tokens_MK) & (times_T11 < branches.times_M.unsqueeze(-1))
    return ((reference_RM1 == tokens_MK).sum(0) > before_TMK.sum(0)) & (tokens_MK > UNK) & branches.valid_MK
