"""`SACUnsupNMT`: Soft Actor-Critic with the unsupervised reward (the paper's SAC unsuper). There is no critic.

Every update draws `unsup_samples` samples of each source; the actor learns on the first of them. Q is an oracle over
the actor's likely words, the word taken and the reference's:

    Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a).

The bonus u is high for words that are rare among the samples of a source (`rewards.count_bonus` says why):

- `network`: random labels of the sampled words are learned by a discriminator, and u = log K - H(q(.|x,a));
- `counts`: u = g(n), what one more draw of a word drawn n times would earn on average;
- `policy`: u = U_M(pi(a|s)), the mean of g over samples that are not drawn;
- `frequency`: a control, the logarithm of the word's rank in the vocabulary, blind to source and policy.
"""

import dataclasses
import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import Support, entropy
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rewards.count_bonus import BonusOptions, PermuteOptions, count_bonuses, expected_bonus, permute_within
from pysimt_sac.rewards.discriminator import (
    DiscriminatorOptions,
    LabelledDraws,
    certainty,
    fit_discriminator,
    label_metrics,
)
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, mean_state
from pysimt_sac.rl.policy import PolicyAtSteps
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class SACUnsupOptions:
    """The `[model]` keys specific to unsupervised Soft Actor-Critic."""

    bonus: str = option(
        "network",
        "what makes a word rare: labels that a network has learned, counts in the samples, its probability, or, as a "
        "control, its rank in the vocabulary",
        choices=("network", "counts", "policy", "frequency"),
    )
    oracle_beta: float = option(0.3, "weight of the bonus in Q", minimum=0)
    oracle_min_probability: float = option(0.02, "least probability of the words in the support", above=0, below=1)
    alpha: float = option(0.01, "temperature: weight of the entropy", minimum=0)


@algorithm("SACUnsupNMT")
class SACUnsup(Algorithm):
    """Soft Actor-Critic with an oracle for Q."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, DiscriminatorOptions, PermuteOptions, SACUnsupOptions)
    defaults: ClassVar[dict[str, Any]] = {"reward": "unsup"}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options, self.bonus_options = setup.read(SACUnsupOptions), setup.read(BonusOptions)
        self.permute = setup.read(PermuteOptions).permute_bonus
        self.discriminator_options = setup.read(DiscriminatorOptions)
        self.collector: Collector = Collector(setup)
        if list(self.collector.rewarder.weights) != ["unsup"]:
            hint = "write `unsup`; VineNMT and SACNMT take mixtures"
            raise UserError("must be `unsup`: Q ignores any other", f"{setup.where} reward", hint)
        self.parts = {"collector": self.collector}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Sample, and return Eq. 10 with the oracle's Q, and the likelihood."""
        actor, common, options = self.actor, self.common, self.options
        with actor.training_mode(dropout=False), torch.no_grad():
            encoded = actor.encode(batch)
        self.collector.learn(actor, batch, encoded)
        path = self.collector.samples.first(self.bonus_options.unsup_samples)
        experience = self.collector.score(actor, batch, path, step, self.collector.generator, learning=True)
        tokens_TB, steps = experience.tokens_TB, experience.steps
        reference_N = steps.flatten(experience.reference_words_TB)
        taken_N = steps.flatten(tokens_TB[1:])

        # The likely words, and the bonus of each, without dropout
        with actor.training_mode(dropout=False), torch.no_grad():
            least, words_N2 = options.oracle_min_probability, torch.stack((taken_N, reference_N), 1)
            most = int(1 / least)  # no more words can be that likely
            log_pi_NK, support = actor.policy(encoded, tokens_TB, steps, words_N2, most, least)
            assert support is not None
            policy = PolicyAtSteps(steps, taken_N, log_pi_NK, support)
            bonus_NK = self.bonus(encoded, policy, support)
            if self.permute:
                generator = self.collector.generator
                bonus_NK = permute_within(bonus_NK, support.valid_NK, steps.sentences_N, generator)
        aligned_N = steps.flatten(experience.aligned_TB)
        q_NK = oracle_q(support, reference_N, aligned_N, bonus_NK, options.oracle_beta)

        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            log_pi_NK = actor.policy_on(encoded, tokens_TB, steps.positions_N, support)
            nll = actor.nll(encoded, experience.reference_RB)
        self.metrics |= {**oracle_metrics(log_pi_NK, q_NK, support), "mle_loss": nll.detach()}
        reinforcement = losses.actor_loss(log_pi_NK, q_NK.unsqueeze(0), options.alpha)
        return ActorLoss({"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}, len(steps))

    def bonus(self, encoded: Encoded, policy: PolicyAtSteps, support: Support) -> Tensor:
        """Return u(x,a) (N, K) of the words of the support."""
        sentences_N, tokens_NK = policy.steps.sentences_N, support.tokens_NK
        n_labels, n_samples = self.bonus_options.n_labels, self.bonus_options.unsup_samples
        if self.options.bonus == "policy":
            return expected_bonus(policy.log_pi_NA.exp(), n_samples, n_labels)
        n_words = len(self.actor.tokens)
        if self.options.bonus == "frequency":  # a vocabulary is sorted by frequency
            return math.log(n_labels) * (tokens_NK + 1).log() / math.log(n_words)
        draws = self.label_samples(n_labels, n_samples, n_words)
        if self.options.bonus == "counts":
            self.metrics |= label_metrics(draws, draws.log_frequencies())
            return count_bonuses(draws.numbers(sentences_N, tokens_NK), n_labels)
        source_BC, embedding_PE = mean_state(encoded), self.actor.embed(draws.words_P)
        network = fit_discriminator(draws, source_BC, embedding_PE, self.discriminator_options)
        self.metrics |= label_metrics(draws, network(source_BC, draws.sources_P, embedding_PE))
        sentences = sentences_N.repeat_interleave(tokens_NK.size(1))
        log_q = network(source_BC, sentences, self.actor.embed(tokens_NK.flatten()))
        return certainty(log_q).view_as(tokens_NK)

    def label_samples(self, n_labels: int, n_samples: int, n_words: int) -> LabelledDraws:
        """Give every sampled word a random label."""
        tokens_TC = self.collector.samples.tokens_TB
        z_TC = torch.randint(n_labels, tokens_TC[1:].shape, generator=self.collector.generator).to(tokens_TC.device)
        return LabelledDraws.of(tokens_TC, z_TC, n_samples, n_labels, n_words)


def oracle_q(support: Support, reference_N: Tensor, aligned_N: Tensor, bonus_NK: Tensor, beta: float) -> Tensor:
    """Return Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a), (N, K)."""
    gold_NK = (support.tokens_NK == reference_N.unsqueeze(1)) & aligned_N.unsqueeze(1)
    return gold_NK.to(bonus_NK.dtype) + beta * bonus_NK


@torch.no_grad()
def oracle_metrics(log_pi_NK: Tensor, q_NK: Tensor, support: Support) -> dict[str, Tensor | float]:
    """Summarise policy and Q over the support; with a `q_spread` of 0, the reward would not reach the actor."""
    missing_NK = ~support.valid_NK
    spread_N = q_NK.masked_fill(missing_NK, -torch.inf).amax(1) - q_NK.masked_fill(missing_NK, torch.inf).amin(1)
    return {
        "entropy": entropy(log_pi_NK).mean(),
        "max_probability": log_pi_NK.exp().amax(-1).mean(),
        "support_size": support.valid_NK.sum(1).float().mean(),
        "q_spread": spread_N.mean(),
    }
