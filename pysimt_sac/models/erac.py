"""`ERACNMT`: entropy-regularised actor-critic (Dai et al. 2018).

As in Soft Actor-Critic, the value of a state includes the entropy of the policy; but there is a single critic and no
replay buffer, and every update is on-policy. A variance penalty keeps the Q of words that are never sampled close to
the rest. The paper's tau is `alpha` here, as in Soft Actor-Critic; `tau` is the rate of the target network.
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
from pysimt_sac.rl.critic import CriticEnsemble, critic_metrics, monte_carlo_returns
from pysimt_sac.rl.critic_options import CriticOptions
from pysimt_sac.rl.diagnostics import gate_lines
from pysimt_sac.rl.policy import policy_at_steps
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class ERACOptions:
    """The `[model]` keys specific to this algorithm."""

    alpha: float = option(0.045, "temperature: weight of the entropy", minimum=0)
    tau: float = option(0.001, "Polyak averaging of the critic's target network", above=0, maximum=1)
    variance_weight: float = option(0.001, "weight of the variance of Q over the words", minimum=0)


@algorithm("ERACNMT")
class ERAC(Algorithm):
    """Entropy-regularised actor-critic."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, CriticOptions, ERACOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options, self.critic_options = setup.read(ERACOptions), setup.read(CriticOptions)
        self.critic_options.check_no_branch_target()
        self.collector: Collector = Collector(setup)
        self.critics = CriticEnsemble.build(setup, self.critic_options, n_critics=1, tau=self.options.tau)
        self.parts = {"collector": self.collector, "critics": self.critics}

    def update(self, batch: Batch, update: int, epoch: int) -> ActorLoss:
        """Roll out the actor, update the critic, and return the actor loss."""
        actor, options, alpha = self.actor, self.critic_options, self.options.alpha
        stage = options.stage(epoch)
        experience = self.collector.collect(actor, batch, update)

        # The policy at the visited states, without dropout, over its support; the known rewards
        with torch.no_grad(), actor.training_mode(dropout=False):
            hypotheses = experience, *options.support_of_step
            policy = policy_at_steps(actor, actor.encode(batch), *hypotheses)
        known_N, known_NA = support_rewards(actor, self.collector, experience, policy, options.known_reward)

        # Critic targets: r_t + sum_a pi(a) [Qbar(s_{t+1}, a) - alpha log pi(a)]
        returns_N = monte_carlo_returns(experience, policy, options.gamma, alpha)
        target_N = returns_N
        if not stage.monte_carlo:
            target_N = self.critics.bootstrapped_targets(experience, policy, options.gamma, alpha, known_NA)

        # Critic step, with a penalty on the variance of Q over the words
        readouts = self.critics.readouts(experience, policy.steps)
        future_INA = self.critics.q_of_actions(readouts, policy.support)
        q_IN = known_N + self.critics.q_of_taken(readouts, policy.taken_N)
        variance = self.options.variance_weight * losses.variance_penalty(future_INA[0], policy.support)
        critic_loss = 0.5 * losses.critic_loss(q_IN, target_N) + variance
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
        reinforcement = losses.actor_loss(log_pi_NA, known_NA + future_INA, alpha)
        terms = {"rl": self.common.lambda_rl * reinforcement, "mle": self.common.lambda_mle * nll}
        return ActorLoss(terms, len(policy.steps))

    def stage(self, epoch: int) -> str:
        """Return the stage of an epoch: critic alone, then actor and critic."""
        return self.critic_options.stage(epoch).name

    def begin_stage(self, stage: str) -> list[str]:
        """Run the gate on the critic before the actor starts to learn from it."""
        return gate_lines(self.setup, self.collector, self.critics, stage, self.options.alpha)
