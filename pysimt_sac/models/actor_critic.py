"""`ACNMT` and `ERACNMT`: two actor-critics with a single critic, on-policy, without a replay buffer.

Actor-critic for sequence prediction (Bahdanau et al. 2017): the *delayed actor* p', a target network of the actor,
samples and gives the critic's targets r + E_p' Q'. There is no entropy term.

Entropy-regularised actor-critic (Dai et al. 2018): the actor itself samples, and the value of a state includes its
entropy, as in Soft Actor-Critic. The paper's tau is `alpha` here; `tau` is the rate of the target network.

In both, a penalty keeps the Q of words that are never sampled close to the rest.
"""

import dataclasses

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import entropy
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble, CriticOptions, TargetNetwork, critic_metrics
from pysimt_sac.rl.gate import GateOptions, check_critics, gate_lines
from pysimt_sac.rl.policy import PolicyAtSteps, known_rewards, policy_at_steps
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.setup import RL_OPTIONS, Setup

OPTIONS = (*RL_OPTIONS, *REWARD_OPTIONS, CriticOptions, GateOptions)


@dataclasses.dataclass(frozen=True)
class ACOptions:
    """The `[model]` keys specific to actor-critic."""

    actor_tau: float = option(0.001, "Polyak averaging of the delayed actor, which samples", above=0, maximum=1)
    spread_weight: float = option(0.001, "weight of the penalty on the spread of Q over the words", minimum=0)


@dataclasses.dataclass(frozen=True)
class ERACOptions:
    """The `[model]` keys specific to entropy-regularised actor-critic."""

    alpha: float = option(0.045, "temperature: weight of the entropy", minimum=0)
    variance_weight: float = option(0.001, "weight of the variance of Q over the words", minimum=0)


@algorithm("ACNMT")
class ActorCritic(Algorithm):
    """Actor-critic with a delayed actor."""

    option_classes = (*OPTIONS, ACOptions)
    beside_actor = "critic"
    defaults = {"tau": 0.001}  # noqa: RUF012 - never changed

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(ACOptions)
        self.collector: Collector = Collector(setup)
        self.critic = SingleCritic(setup, self.collector, alpha=0.0, beta1=0.9)
        self.delayed = TargetNetwork(self.actor.networks)
        self.behaviour = self.actor.with_networks(self.delayed.network)
        self.updates_without_actor = self.critic.options.critic_pretrain_updates
        self.parts = {"collector": self.collector, "critics": self.critic.critics, "delayed_actor": self.delayed}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Roll out the delayed actor, update the critic, and return the actor loss."""
        self.delayed.polyak_update(self.options.actor_tau)
        experience = self.collector.collect(self.behaviour, batch, step)
        policy = self.critic.policy(self.actor, experience)
        target_N = self.critic.targets(self.behaviour, experience, self.critic.policy(self.behaviour, experience))
        q_IN, future_INA, known_NA = self.critic.values(experience, policy)
        penalty = self.options.spread_weight * losses.spread_penalty(future_INA[0], policy.support)
        loss, actor_learns = losses.critic_loss(q_IN, target_N) + penalty, step > self.updates_without_actor
        self.metrics |= self.critic.step(loss, q_IN, target_N, experience, policy, actor_learns)
        if not actor_learns:
            return ActorLoss({}, len(experience.steps))
        return actor_loss(self, experience, policy, known_NA + future_INA, alpha=0.0)

    def before_actor_learns(self) -> list[str]:
        """Test the critic before the actor learns from it."""
        return gate_lines(self.setup, self.collector.rewarder, self.critic.critics, alpha=0.0)


@algorithm("ERACNMT")
class ERAC(Algorithm):
    """Entropy-regularised actor-critic."""

    option_classes = (*OPTIONS, ERACOptions)
    beside_actor = "critic"
    defaults = {"tau": 0.001}  # noqa: RUF012 - never changed

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(ERACOptions)
        self.collector: Collector = Collector(setup)
        self.critic = SingleCritic(setup, self.collector, self.options.alpha, beta1=0.0)
        self.updates_without_actor = self.critic.options.critic_pretrain_updates
        self.parts = {"collector": self.collector, "critics": self.critic.critics}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Roll out the actor, update the critic, and return the actor loss."""
        experience = self.collector.collect(self.actor, batch, step)
        policy = self.critic.policy(self.actor, experience)
        target_N = self.critic.targets(self.actor, experience, policy)
        q_IN, future_INA, known_NA = self.critic.values(experience, policy)
        penalty = self.options.variance_weight * losses.variance_penalty(future_INA[0], policy.support)
        loss, actor_learns = 0.5 * losses.critic_loss(q_IN, target_N) + penalty, step > self.updates_without_actor
        self.metrics |= self.critic.step(loss, q_IN, target_N, experience, policy, actor_learns)
        if not actor_learns:
            return ActorLoss({}, len(experience.steps))
        return actor_loss(self, experience, policy, known_NA + future_INA, self.options.alpha)

    def before_actor_learns(self) -> list[str]:
        """Test the critic before the actor learns from it."""
        return gate_lines(self.setup, self.collector.rewarder, self.critic.critics, self.options.alpha)


class SingleCritic:
    """What both do with their critic; its targets are r_t + sum_a pi(a) [Q'(s_{t+1}, a) - alpha log pi(a)]."""

    def __init__(self, setup: Setup, collector: Collector, alpha: float, beta1: float) -> None:
        self.collector, self.alpha, self.actor = collector, alpha, setup.actor
        self.options = setup.read(CriticOptions)
        check_critics(setup, self.options)
        self.critics = CriticEnsemble.build(setup, self.options, n_critics=1, beta1=beta1)

    @torch.no_grad()
    def policy(self, actor: Actor, experience: Experience) -> PolicyAtSteps:
        """Return an actor's policy at the visited states, without dropout."""
        with actor.training_mode(dropout=False):
            return policy_at_steps(actor, actor.encode(experience.batch), experience, *self.options.support)

    @torch.no_grad()
    def targets(self, actor: Actor, experience: Experience, policy: PolicyAtSteps) -> Tensor:
        """Return the critic's targets under a policy, with Q' of the target network."""
        _, known_NA = known_rewards(self.collector, actor, experience, policy, self.options.known_reward)
        readouts = self.critics.readouts(experience, target=True)
        q_INA = known_NA + self.critics.q_of_actions(readouts, policy.support, target=True)
        values_N = losses.soft_value(q_INA, policy.log_pi_NA, self.alpha)
        return self.returns(experience, policy, values_N, self.options.lambda_return)

    def returns(self, experience: Experience, policy: PolicyAtSteps, values_N: Tensor, lambda_return: float) -> Tensor:
        """Return the lambda-returns of an experience."""
        rewards_N = experience.steps.flatten(experience.rewards_TB)
        soft = entropy(policy.log_pi_NA), experience.steps, self.options.gamma, self.alpha
        return losses.lambda_returns(rewards_N, values_N, *soft, lambda_return)

    def values(self, experience: Experience, policy: PolicyAtSteps) -> tuple[Tensor, Tensor, Tensor]:
        """Return Q of the taken words (I, N), the learned part f of all words (I, N, A), and their known part."""
        known = self.collector, self.actor, experience, policy, self.options.known_reward
        known_N, known_NA = known_rewards(*known)
        readouts = self.critics.readouts(experience)
        q_IN = known_N + self.critics.q_of_taken(readouts, policy.taken_N)
        return q_IN, self.critics.q_of_actions(readouts, policy.support), known_NA

    def step(
        self, loss: Tensor, q_IN: Tensor, target_N: Tensor, experience: Experience, policy: PolicyAtSteps, joint: bool
    ) -> dict[str, Tensor | float]:
        """Take one step of the critic and its target network; return metrics."""
        norm = self.critics.step(loss, len(experience.steps), joint)
        self.critics.polyak_update()
        returns_N = self.returns(experience, policy, torch.zeros_like(target_N), lambda_return=1.0)
        metrics = critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)
        return {"critic_loss": loss.detach(), "critic_gradient": norm, **metrics}


def actor_loss(
    algorithm: Algorithm, experience: Experience, policy: PolicyAtSteps, q_INA: Tensor, alpha: float
) -> ActorLoss:
    """Return - sum_a pi(a) [Q(a) - alpha log pi(a)], with dropout, beside the likelihood of the references."""
    actor, common = algorithm.actor, algorithm.common
    with actor.training_mode(common.gradient_dropout):
        encoded = actor.encode(experience.batch)
        log_pi_NA = actor.policy_on(encoded, experience.tokens_TB, policy.steps.positions_N, policy.support)
        nll = actor.nll(encoded, experience.reference_RB)
    algorithm.metrics["mle_loss"] = nll.detach()
    reinforcement = losses.actor_loss(log_pi_NA, q_INA, alpha)
    return ActorLoss({"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}, len(policy.steps))
