"""`SACNMT`: Soft Actor-Critic for text (the paper's SAC BLEU, or any other reward).

Haarnoja et al.'s algorithm, with exact expectations over actions, as sums over words: stochastic rollouts, a replay
buffer, twin critics with target networks, and a policy that maximises reward and entropy. The critics read the
reference. They may learn alone first, for `critic_pretrain_updates`.

With `lambda_return` above 0, the soft Bellman backup looks further ahead than one step. With `known_reward`, Q(s,a) =
r(s,a) + f(s,a): the reward r of a word is computed, and critics learn the future f only. The paper has neither option.
"""

import dataclasses
from typing import Any, ClassVar

import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import entropy
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble, CriticOptions, critic_metrics
from pysimt_sac.rl.estimators import Temperature
from pysimt_sac.rl.gate import GateOptions, check_critics, gate_lines
from pysimt_sac.rl.policy import known_rewards, policy_at_steps
from pysimt_sac.rl.replay import ReplayBuffer
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class SACOptions:
    """The `[model]` keys specific to Soft Actor-Critic."""

    alpha: float | str = option(
        0.05, "temperature: weight of the entropy, which `auto` keeps at its start", choices=("auto",), minimum=0
    )
    buffer_size: int = option(200, "batches in the replay buffer", minimum=1)


@algorithm("SACNMT")
class SAC(Algorithm):
    """Soft Actor-Critic over the words of a vocabulary."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, CriticOptions, GateOptions, SACOptions)
    beside_actor = "critics"
    defaults: ClassVar[dict[str, Any]] = {
        "actor_warmup": 50,
        "lambda_mle": 1.0,
        "reward_unit": "word",
        "known_reward": True,
        "lambda_return": 0.9,
        "support_size": 4,
        "support_min_probability": 0.02,
        "tau": 0.01,
        "critic_lr": 0.001,
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        options, self.options = setup.read(SACOptions), setup.read(CriticOptions)
        check_critics(setup, self.options)
        self.collector: Collector = Collector(setup)
        self.replay: ReplayBuffer = ReplayBuffer(options.buffer_size, setup.seed)
        self.critics = CriticEnsemble.build(setup, self.options, n_critics=2)
        self.temperature = Temperature(options.alpha, self.actor.device)
        self.updates_without_actor = self.options.critic_pretrain_updates
        self.parts = {"collector": self.collector, "replay": self.replay}
        self.parts |= {"critics": self.critics, "temperature": self.temperature}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Store a rollout; on replayed experience, update critics and temperature, and return the actor loss."""
        actor, common, options, critics = self.actor, self.common, self.options, self.critics
        alpha, actor_learns = self.temperature.alpha, step > self.updates_without_actor

        # Roll out, store, sample
        self.replay.add(self.collector.collect(actor, batch, step))
        experience = self.replay.sample().to(actor.device)

        # The policy at the visited states, without dropout, and the known part of Q
        with torch.no_grad(), actor.training_mode(dropout=False):
            policy = policy_at_steps(actor, actor.encode(experience.batch), experience, *options.support)
        steps, support = experience.steps, policy.support
        known_N, known_NA = known_rewards(self.collector, actor, experience, policy, options.known_reward)

        # Critic targets: r + gamma V(s'), with V from the target networks (Eq. 7 and 8)
        with torch.no_grad():
            q_INA = critics.q_of_actions(critics.readouts(experience, target=True), support, target=True)
            values_N = losses.soft_value(known_NA + q_INA, policy.log_pi_NA, alpha)
            soft = entropy(policy.log_pi_NA), steps, options.gamma, alpha
            rewards_N = steps.flatten(experience.rewards_TB)
            target_N = losses.lambda_returns(rewards_N, values_N, *soft, options.lambda_return)

        # Critic loss (Eq. 9); one forward pass, before the critic step, serves both critic and actor loss
        readouts = critics.readouts(experience)
        q_IN = known_N + critics.q_of_taken(readouts, policy.taken_N)
        q_INA = known_NA + critics.q_of_actions(readouts, support).detach()
        critic_loss = losses.critic_loss(q_IN, target_N)
        gradient_norm = critics.step(critic_loss, len(steps), joint=actor_learns)
        critics.polyak_update()
        returns_N = losses.lambda_returns(rewards_N, values_N, *soft, lambda_return=1.0)
        self.metrics |= {"alpha": alpha, "critic_loss": critic_loss.detach(), "critic_gradient": gradient_norm}
        self.metrics |= critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)

        # Actor loss (Eq. 10), with dropout, and temperature
        self.temperature.update(policy.log_pi_NA, actor_learns)
        if not actor_learns:
            return ActorLoss({}, len(steps))
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(experience.batch)
            log_pi_NA = actor.policy_on(encoded, experience.tokens_TB, steps.positions_N, support)
            nll = actor.nll(encoded, experience.reference_RB)
        self.metrics["mle_loss"] = nll.detach()
        reinforcement = losses.actor_loss(log_pi_NA, q_INA, alpha)
        return ActorLoss({"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}, len(steps))

    def before_actor_learns(self) -> list[str]:
        """Test the critics before the actor learns from them."""
        return gate_lines(self.setup, self.collector.rewarder, self.critics, float(self.temperature.alpha))
