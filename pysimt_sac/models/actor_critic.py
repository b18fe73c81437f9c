"""`ACNMT`: actor-critic for sequence prediction (Bahdanau et al. 2017).

The behaviour policy is the *delayed actor* p', a target network of the actor. A single critic, which reads the
reference, regresses Q on r + E_p' Q', where Q' is its target network; a penalty keeps the Q of words that are never
sampled close to the rest. The actor maximises its expected Q. There is no entropy term and no replay buffer.
"""

import dataclasses

import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.branching import support_rewards
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble, TargetNetwork, critic_metrics, monte_carlo_returns
from pysimt_sac.rl.critic_options import CriticOptions
from pysimt_sac.rl.diagnostics import gate_lines
from pysimt_sac.rl.policy import policy_at_steps
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class ACOptions:
    """The `[model]` keys specific to this algorithm."""

    tau: float = option(0.001, "Polyak averaging of the critic's target network", above=0, maximum=1)
    actor_tau: float = option(0.001, "Polyak averaging of the delayed actor, which samples", above=0, maximum=1)
    spread_weight: float = option(0.001, "weight of the penalty on the spread of Q over the words", minimum=0)


@algorithm("ACNMT")
class ActorCritic(Algorithm):
    """Actor-critic with a delayed actor."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, CriticOptions, ACOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options, self.critic_options = setup.read(ACOptions), setup.read(CriticOptions)
        self.critic_options.check_no_branch_target()
        self.collector: Collector = Collector(setup)
        self.critics = CriticEnsemble.build(setup, self.critic_options, n_critics=1, tau=self.options.tau)
        self.delayed = TargetNetwork(self.actor.networks)
        self.behaviour = self.actor.with_networks(self.delayed.network)
        self.parts = {"collector": self.collector, "critics": self.critics, "delayed_actor": self.delayed}

    def update(self, batch: Batch, update: int, epoch: int) -> ActorLoss:
        """Roll out the delayed actor, update the critic, and return the actor loss."""
        actor, behaviour, options = self.actor, self.behaviour, self.critic_options
        stage = options.stage(epoch)
        self.delayed.polyak_update(self.options.actor_tau)
        experience = self.collector.collect(behaviour, batch, update)

        # Both policies at the visited states, without dropout, and the known rewards
        hypotheses = experience, *options.support_of_step
        with torch.no_grad(), behaviour.training_mode(dropout=False), actor.training_mode(dropout=False):
            delayed_policy = policy_at_steps(behaviour, behaviour.encode(batch), *hypotheses)
            policy = policy_at_steps(actor, actor.encode(batch), *hypotheses)
        scored = self.collector, experience
        known_N, known_NA = support_rewards(actor, *scored, policy, options.known_reward)
        _, delayed_NA = support_rewards(behaviour, *scored, delayed_policy, options.known_reward)

        # Critic targets: q_t = r_t + sum_a p'(a) Q'(s_{t+1}, a)
        returns_N = monte_carlo_returns(experience, delayed_policy, options.gamma, alpha=0.0)
        target_N = returns_N
        if not stage.monte_carlo:
            target_N = self.critics.bootstrapped_targets(experience, delayed_policy, options.gamma, 0.0, delayed_NA)

        # Critic step, with a penalty on the spread of Q over the words
        readouts = self.critics.readouts(experience, policy.steps)
        future_INA = self.critics.q_of_actions(readouts, policy.support)
        q_IN = known_N + self.critics.q_of_taken(readouts, policy.taken_N)
        penalty = self.options.spread_weight * losses.spread_penalty(future_INA[0], policy.support)
        critic_loss = losses.critic_loss(q_IN, target_N) + penalty
        gradient_norm = self.critics.step(critic_loss, len(policy.steps), stage.critic_lr)
        self.critics.polyak_update(1.0 if stage.monte_carlo else None)
        self.metrics |= {"critic_loss": critic_loss.detach(), "critic_gradient": gradient_norm}
        self.metrics |= critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)

        # Actor loss, with dropout
        if not stage.trains_actor:
            return ActorLoss({}, len(policy.steps))
        with actor.training_mode(self.common.gradient_dropout):
            encoded = actor.encode(batch)
            log_pi_NA = actor.policy_on(encoded, experience.tokens_TB, policy.steps.positions_N, policy.support)
            nll = actor.nll(encoded, experience.reference_RB)
        self.metrics["mle_loss"] = nll.detach()
        reinforcement = losses.actor_loss(log_pi_NA, known_NA + future_INA, alpha=0.0)
        terms = {"rl": self.common.lambda_rl * reinforcement, "mle": self.common.lambda_mle * nll}
        return ActorLoss(terms, len(policy.steps))

    def stage(self, epoch: int) -> str:
        """Return the stage of an epoch: critic alone, then actor and critic."""
        return self.critic_options.stage(epoch).name

    def begin_stage(self, stage: str) -> list[str]:
        """Run the gate on the critic before the actor starts to learn from it."""
        return gate_lines(self.setup, self.collector, self.critics, stage, alpha=0.0)
