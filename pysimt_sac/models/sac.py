"""`SACNMT`: Soft Actor-Critic for translation (the paper's SAC BLEU, or any other reward).

The actor comes from `pretrained_file`; for `critic_pretrain_epochs` the critics learn alone, then both learn together.
The update is Haarnoja et al.'s with the expectation over actions written out as a sum over words (Christodoulou 2019).
"""

import dataclasses
import math
from typing import ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import option
from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.actor import PolicyAtSteps, policy_at_steps
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble, CriticOptions, critic_metrics, monte_carlo_returns
from pysimt_sac.rl.diagnostics import gate_lines
from pysimt_sac.rl.estimators import Temperature
from pysimt_sac.rl.replay import Experience, ReplayBuffer
from pysimt_sac.rl.setup import RLOptions, Setup


@dataclasses.dataclass(frozen=True)
class SACOptions:
    """The keys of `[model]` that only Soft Actor-Critic has."""

    alpha: float | str = option(0.01, "temperature: weight of the entropy, or learned", choices=("auto",), minimum=0)
    target_entropy: float | None = option(
        None, "`alpha: auto`: target entropy per word in nats; none: that of the pre-trained actor", above=0
    )
    alpha_lr: float = option(0.0003, "`alpha: auto`: its learning rate", above=0)
    tau: float = option(0.005, "Polyak averaging of the critics' target networks", above=0, maximum=1)
    n_critics: int = option(2, "critics; the minimum of their Q counts", minimum=1)
    target_clip: bool = option(False, "clip the critics' targets to what can still be earned")
    buffer_size: int = option(1000, "batches in the replay buffer", minimum=1)
    updates_per_batch: int = option(1, "steps of the critics for every batch that is rolled out", minimum=1)


@algorithm("SACNMT")
class SAC(Algorithm):
    """Soft Actor-Critic over the words of a vocabulary."""

    option_classes: ClassVar[tuple[type, ...]] = (RLOptions, RewardOptions, CriticOptions, SACOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options, self.critic_options = setup.read(SACOptions), setup.read(CriticOptions)
        self.collector: Collector = Collector(setup)
        self.critics = CriticEnsemble.build(setup, self.critic_options, self.options.n_critics, self.options.tau)
        self.temperature = Temperature.build(
            self.options.alpha, self.options.target_entropy, self.options.alpha_lr, self.actor.device
        )
        self.replay = ReplayBuffer(self.options.buffer_size, setup.seed)
        self.parts = {
            "collector": self.collector,
            "critics": self.critics,
            "replay": self.replay,
            "temperature": self.temperature,
        }
        setup.log(self.replay.describe_size(setup.batch_size, self.common.rollout_max_len))

    def update(self, batch: Batch, update: int, epoch: int) -> ActorLoss:
        """Collect experience; one step of the critics, the actor's loss, and the temperature on replayed experience."""
        actor, options, critics = self.actor, self.critic_options, self.critics
        stage, alpha = options.stage(epoch), self.temperature.alpha
        self.replay.add(self.collector.collect(actor, batch, float(alpha), update))
        for repetition in reversed(range(self.options.updates_per_batch)):
            train_actor = stage.trains_actor and repetition == 0
            experience = self.replay.sample().to(actor.device)

            # The current policy at the states of the experience, over its support
            with actor.training_mode(self.common.rollout_dropout), torch.set_grad_enabled(train_actor):
                encoded = actor.encode(experience.batch(actor.source, actor.target))
                lengths_B, support = experience.lengths_B.cpu(), (options.support, options.support_least)
                policy = policy_at_steps(actor, encoded, experience.words_TB, lengths_B, *support)
                nll = actor.nll(encoded, experience.reference_RB) if train_actor else None
            experience = self.collector.rescore(actor, encoded, experience)

            # Critic targets: Monte Carlo returns, or r + gamma V(s') (Eq. 7 and 8)
            returns_N = monte_carlo_returns(experience, policy, options.gamma, alpha)
            target_N = returns_N if stage.monte_carlo else self.bootstrapped_targets(experience, policy)

            # Critic step (Eq. 9); one pass of the critics, before their step, serves their own loss and the actor's
            readouts = critics.readouts(experience, policy.steps)
            with torch.no_grad():
                q_INA = critics.q_of_actions(readouts, policy.support) if train_actor else None
            q_IN = critics.q_of_taken(readouts, policy.taken_N)
            critic_loss = losses.critic_loss(q_IN, target_N)
            gradient_norm = critics.step(critic_loss, stage.critic_lr)
            self.metrics |= {"critic_loss": critic_loss.detach(), "critic_gradient": gradient_norm}
            self.metrics |= critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)

            # Target networks; without bootstrapping nobody needs them to lag behind
            critics.polyak_update(1.0 if stage.monte_carlo else None)

            # Actor loss (Eq. 10) and temperature
            terms: dict[str, Tensor] = {}
            if q_INA is not None and nll is not None:
                reinforcement = losses.actor_loss(policy.log_pi_NA, q_INA, alpha)
                terms = {"rl": self.common.lambda_rl * reinforcement, "mle": self.common.lambda_mle * nll}
                self.metrics["mle_loss"] = nll.detach()
                self.temperature.update(policy.log_pi_NA)
            else:
                self.temperature.observe(policy.log_pi_NA)
        self.metrics["alpha"] = alpha
        return ActorLoss(terms, len(policy.steps))

    def bootstrapped_targets(self, experience: Experience, policy: PolicyAtSteps) -> Tensor:
        """r_t + gamma V(s_{t+1}), clipped if `target_clip` says so."""
        alpha, steps = self.temperature.alpha, policy.steps
        target_N = self.critics.bootstrapped_targets(experience, policy, self.critic_options.gamma, alpha)
        if not self.options.target_clip:
            return target_N
        steps_left_N = (self.common.rollout_max_len - 1 - steps.times_N).clamp(min=0)
        most_entropy_N = alpha * steps_left_N * math.log(len(self.actor.tokens))
        before_N = steps.flatten(experience.potentials_before_TB)
        return losses.clip_target(target_N, before_N, steps.of_sentences(experience.scale_B), most_entropy_N)

    def stage(self, epoch: int) -> str:
        """The critics alone, then actor and critics."""
        return self.critic_options.stage(epoch).name

    def begin_stage(self, stage: str) -> list[str]:
        """Examine the critics before the actor follows them."""
        return gate_lines(self.setup, self.collector, self.critics, stage, float(self.temperature.alpha))

    def report(self, update: int) -> dict[str, float]:
        """Metrics of the rollouts, of the last update, and of the replay buffer."""
        return {**super().report(update), **self.replay.metrics(update)}
