"""`SACUnsupNMT`: Soft Actor-Critic with the unsupervised reward (the paper's SAC unsuper). There is no critic.

Every sampled word gets a random label, which is stored with it in the replay buffer. A discriminator learns to predict
the labels (`rewards.discriminator`); its confidence is the reward, so rare choices earn more. Q is an oracle:

- `oracle: gold`: over the actor's likely words, the taken word and the reference word,
  Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a), u = log K - H(q(.|x,a)).
- `oracle: return`: REINFORCE on the label rewards: - (G_t - b_t) log pi(a_t), with G_t the discounted return and b_t
  the mean return of the other sentences at the same step.
"""

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import Support, entropy
from pysimt_sac.core.steps import Steps
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, reward_inputs
from pysimt_sac.rl.replay import Experience, ReplayBuffer
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class SACUnsupOptions:
    """The `[model]` keys specific to unsupervised Soft Actor-Critic."""

    oracle: str = option(
        "gold", "Q: the reference's word and rare choices, or the labels' rewards", choices=("gold", "return")
    )
    oracle_beta: float = option(0.3, "`gold`: weight of rare choices", minimum=0)
    oracle_min_probability: float = option(
        0.02, "`gold`: least probability of the words in the support", above=0, below=1
    )
    oracle_gamma: float = option(0.99, "`return`: discount factor", minimum=0, maximum=1)
    alpha: float = option(0.01, "temperature: weight of the entropy", minimum=0)
    buffer_size: int = option(1000, "batches in the replay buffer", minimum=1)
    discriminator_warmup: int = option(0, "updates in which the discriminator learns before the actor does", minimum=0)


@algorithm("SACUnsupNMT")
class SACUnsup(Algorithm):
    """Soft Actor-Critic with an oracle for Q and a discriminator for the reward."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, SACUnsupOptions)
    beside_actor = "discriminator"
    defaults: ClassVar[dict[str, Any]] = {"reward": "unsup", "reward_scale": 1.0}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(SACUnsupOptions)
        self.collector: Collector = Collector(setup)
        if "unsup" not in self.collector.rewarder.parts:
            hint = "write `unsup`, or use SACNMT for other rewards"
            raise UserError("lacks the part `unsup`", f"{setup.where} reward", hint)
        if self.options.oracle == "gold":
            self.check_rewards(setup)
        self.discriminator = self.collector.rewarder.parts["unsup"]
        self.replay: ReplayBuffer = ReplayBuffer(self.options.buffer_size, setup.seed)
        self.updates_without_actor = self.options.discriminator_warmup
        self.parts = {"collector": self.collector, "replay": self.replay}

    def check_rewards(self, setup: Setup) -> None:
        """Refuse reward mixtures and scales: the gold oracle's Q ignores both."""
        rewarder, hint = self.collector.rewarder, "set oracle: return, or use SACNMT for mixtures"
        for key, is_used in (("reward", rewarder.weights == {"unsup": 1.0}), ("reward_scale", rewarder.scale == 1)):
            if not is_used:
                raise UserError("has no effect with `oracle: gold`", f"{setup.where} {key}", hint)

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Store a rollout; on replayed experience, update the discriminator and return the actor loss."""
        actor, common = self.actor, self.common
        experience = self.collector.collect(actor, batch, step)
        self.replay.add(experience)
        if self.options.oracle == "gold":  # the policy gradient needs samples of the current policy
            experience = self.replay.sample().to(actor.device)
        steps = experience.steps
        pairs = experience.batch
        with actor.training_mode(dropout=False), torch.no_grad():
            evaluated = actor.encode(pairs)
        experience = self.collector.rescore(actor, evaluated, experience)
        self.metrics["chance_accuracy"] = 1 / self.discriminator.n_labels
        if step <= self.updates_without_actor:
            return ActorLoss({}, len(steps))
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(pairs)
            if self.options.oracle == "gold":
                reinforcement = self.oracle_loss(experience, evaluated, encoded, steps)
            else:
                n_words = int((pairs.lengths[actor.target] - 1).sum())
                reinforcement = self.return_loss(experience, encoded, steps, n_words)
            nll = actor.nll(encoded, experience.reference_RB)
        self.metrics["mle_loss"] = nll.detach()
        return ActorLoss({"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}, len(steps))

    def oracle_loss(self, experience: Experience, evaluated: Encoded, encoded: Encoded, steps: Steps) -> Tensor:
        """Return Eq. 10 with the oracle's Q.

        evaluated: the source encoded without dropout, for support and discriminator.
        """
        actor, tokens_TB = self.actor, experience.tokens_TB
        reference_N = steps.flatten(reference_words(experience))
        tokens_N2 = torch.stack((steps.flatten(tokens_TB[1:]), reference_N), 1)
        with actor.training_mode(dropout=False), torch.no_grad():
            least = self.options.oracle_min_probability
            most = int(1 / least)  # at most this many words can be that likely
            _, support = actor.policy(evaluated, tokens_TB, steps, tokens_N2, most, least)
        assert support is not None
        inputs = reward_inputs(actor, evaluated, experience.source_SB, tokens_TB, experience.z_TB)
        embedding_NKE = actor.embed(support.tokens_NK).detach()
        certainty_NK = self.discriminator.certainty_of(inputs, steps.sentences_N, support.tokens_NK, embedding_NKE)
        aligned_N = steps.flatten(aligned_steps(experience))
        q_NK = oracle_q(support, reference_N, aligned_N, certainty_NK, self.options.oracle_beta)
        log_pi_NK = actor.policy_on(encoded, tokens_TB, steps.positions_N, support)
        self.metrics |= oracle_metrics(log_pi_NK, q_NK, support)
        return losses.actor_loss(log_pi_NK, q_NK.unsqueeze(0), self.options.alpha)

    def return_loss(self, experience: Experience, encoded: Encoded, steps: Steps, n_words: int) -> Tensor:
        """Return the REINFORCE loss on the label rewards, per word of the references."""
        taken_N1 = steps.flatten(experience.tokens_TB[1:]).unsqueeze(1)
        log_pi_NV = self.actor.policy_on(encoded, experience.tokens_TB, steps.positions_N, None)
        rewards_N, entropy_N = steps.flatten(experience.rewards_TB), entropy(log_pi_NV)
        discounted = entropy_N.detach(), steps, self.options.oracle_gamma, 0.0
        returns_N = losses.lambda_returns(rewards_N, torch.zeros_like(rewards_N), *discounted, lambda_return=1.0)
        advantages_N = returns_N - mean_of_others(returns_N, steps)
        self.metrics |= {"return": returns_N.mean(), "entropy": entropy_N.detach().mean()}
        log_pi_N = log_pi_NV.gather(1, taken_N1).squeeze(1)
        bonus = self.options.alpha * entropy_N.mean()
        return losses.reinforce_loss(log_pi_N, advantages_N, n_words) - bonus


def reference_words(experience: Experience) -> Tensor:
    """Return the reference word ref_t at every step (T, B); `<pad>` after the end of the reference."""
    return as_long_as(experience.tokens_TB[1:], experience.reference_RB[1:])


def aligned_steps(experience: Experience) -> Tensor:
    """Return 1[y_{t-1} = ref_{t-1}] at every step (T, B); both start with `<bos>`."""
    before_TB = experience.tokens_TB[:-1]
    return before_TB == as_long_as(before_TB, experience.reference_RB)


def as_long_as(tokens_TB: Tensor, other_RB: Tensor) -> Tensor:
    """Return `other` with as many rows as `words`, cut or padded with `<pad>`."""
    rows = min(len(tokens_TB), len(other_RB))
    fitted_TB = torch.zeros_like(tokens_TB)
    fitted_TB[:rows] = other_RB[:rows]
    return fitted_TB


def oracle_q(support: Support, reference_N: Tensor, aligned_N: Tensor, certainty_NK: Tensor, beta: float) -> Tensor:
    """Return Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a), (N, K)."""
    gold_NK = (support.tokens_NK == reference_N.unsqueeze(1)) & aligned_N.unsqueeze(1)
    return gold_NK.to(certainty_NK.dtype) + beta * certainty_NK


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


def mean_of_others(returns_N: Tensor, steps: Steps) -> Tensor:
    """Return b_t, the mean return at step t of the other sentences that have one; 0 if there are none."""
    zeros_T = returns_N.new_zeros(steps.shape[0])
    sums_T = zeros_T.index_add(0, steps.times_N, returns_N)
    counts_T = zeros_T.index_add(0, steps.times_N, torch.ones_like(returns_N))
    others_N = counts_T[steps.times_N] - 1
    return (sums_T[steps.times_N] - returns_N) / others_N.clamp(min=1) * (others_N > 0)
