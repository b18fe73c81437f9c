"""`SACNMT`: Soft Actor-Critic for translation (the paper's SAC BLEU, or any other reward).

The critics learn alone for `critic_pretrain_epochs`, then jointly with the actor. The update is Haarnoja et al.'s, with
the expectation over actions computed exactly, as a sum over words. With `known_reward`, Q(s,a) = r(s,a) + w f(s,a): the
reward of a word is computed, not learned, and the critics learn only the future f. With `branch_states`, the likeliest
words of some states are continued to the end; their returns replace Q there, and teach the critics to rank words.
With neither, and with `critic_target: td`, this is the paper's algorithm (`experiments/sac_paper.conf`).
"""

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.branching import (
    BranchOptions,
    branch_metrics,
    collect_experience,
    known_rewards,
    policy_on_experience,
)
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import (
    CriticEnsemble,
    TargetNetwork,
    critic_metrics,
    monte_carlo_returns,
)
from pysimt_sac.rl.critic_options import CriticOptions
from pysimt_sac.rl.diagnostics import gate_lines
from pysimt_sac.rl.estimators import FutureWeight, Temperature
from pysimt_sac.rl.policy import PolicyAtSteps
from pysimt_sac.rl.replay import Experience, ReplayBuffer
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class SACOptions:
    """The `[model]` keys specific to Soft Actor-Critic."""

    alpha: float | str = option(0.01, "temperature: weight of the entropy, or learned", choices=("auto",), minimum=0)
    target_entropy: float | None = option(
        None, "`alpha: auto`: target entropy per word in nats; none: that of the pre-trained actor", above=0
    )
    alpha_lr: float = option(0.0003, "`alpha: auto`: its learning rate", above=0)
    tau: float = option(0.005, "Polyak averaging of the critics' target networks", above=0, maximum=1)
    n_critics: int = option(2, "number of critics; the minimum of their Q is used", minimum=1)
    critic_weight: float | str = option(
        "auto", "w in Q = r + w f; `auto`: fitted on held-out branches; 1 without any", choices=("auto",), minimum=0
    )
    buffer_size: int = option(1000, "batches in the replay buffer", minimum=1)
    critic_every: int = option(1, "in joint training, update the critics once every this many updates", minimum=1)
    kl_weight: float = option(0.0, "weight of the KL divergence from the pre-trained actor", minimum=0)


@algorithm("SACNMT")
class SAC(Algorithm):
    """Soft Actor-Critic over the words of a vocabulary."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, CriticOptions, BranchOptions, SACOptions)
    defaults: ClassVar[dict[str, Any]] = {"branch_states": 0, "branch_path": "sample"}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        options = self.options = setup.read(SACOptions)
        self.critic_options, self.branch_options = setup.read(CriticOptions), setup.read(BranchOptions)
        self.collector: Collector = Collector(setup)
        if not self.branch_options.branch_states:
            self.critic_options.check_no_branch_target()
        elif self.critic_options.gamma < 1:
            hint = "set gamma: 1.0, or branch_states: 0"
            raise UserError("the returns of branches are not discounted", f"{setup.where} gamma", hint)
        if self.critic_options.known_reward or self.branch_options.branch_states:
            self.collector.rewarder.check_no_learners()
        self.critics = CriticEnsemble.build(setup, self.critic_options, options.n_critics, options.tau)
        device, max_len = self.actor.device, self.common.rollout_max_len
        self.temperature = Temperature.build(options.alpha, options.target_entropy, options.alpha_lr, device)
        self.future_weight = FutureWeight(options.critic_weight, self.branch_options.branch_states > 0, device)
        self.replay: ReplayBuffer = ReplayBuffer(options.buffer_size, setup.seed)
        self.parts = {"collector": self.collector, "critics": self.critics, "replay": self.replay}
        self.parts |= {"temperature": self.temperature, "future_weight": self.future_weight}
        if options.kl_weight:
            frozen = self.parts["pretrained"] = TargetNetwork(self.actor.networks)
            self.pretrained = self.actor.with_networks(frozen.network)
        n_states, n_words = self.branch_options.branch_states, self.branch_options.branch_words
        n_words = n_words if n_states or self.critic_options.known_reward else 0
        labels = bool(self.collector.rewarder.learners)
        setup.log(self.replay.describe_size(setup.batch_size, max_len, labels, n_words, n_states))

    def update(self, batch: Batch, update: int, epoch: int) -> ActorLoss:
        """Store a rollout; on replayed experience, update critics and temperature, and return the actor loss."""
        actor, options, critics, alpha = self.actor, self.critic_options, self.critics, self.temperature.alpha
        stage = options.stage(epoch)
        critics_learn = not stage.trains_actor or update % self.options.critic_every == 0
        branching = self.branch_options, update, options.known_reward
        self.replay.add(collect_experience(actor, batch, self.collector, *branching))
        experience = self.replay.sample().to(actor.device)

        # The policy at the visited states, without dropout, over its support; the known rewards
        needs_current = self.temperature.learned or not stage.monte_carlo
        support = options.support_of_step
        experience, policy = policy_on_experience(actor, self.collector, experience, *support, needs_current)
        known_N, known_NA = known_rewards(experience, policy.steps, options.known_reward)
        held_out_B = self.future_weight.held_out(experience.source_SB)

        # Critic targets: Monte Carlo returns, or r + gamma V(s') (Eq. 7 and 8)
        returns_N = monte_carlo_returns(experience, policy, options.gamma, alpha)
        target_N = returns_N
        if not stage.monte_carlo:
            target_N = critics.bootstrapped_targets(experience, policy, options.gamma, alpha, known_NA)

        # Critic loss (Eq. 9); one forward pass, before the critic step, serves both critic and actor loss
        with torch.set_grad_enabled(critics_learn):
            readouts = critics.readouts(experience, policy.steps)
        q_IN = known_N + critics.q_of_taken(readouts, policy.taken_N)
        with torch.no_grad():
            future_INA = critics.q_of_actions(readouts, policy.support)
        learns_N = ~policy.steps.of_sentences(held_out_B)
        branches = experience.branches
        if stage.target == "branch" and branches is not None:
            learns_N = learns_N & branches.mask_N(policy.steps)
        critic_loss = losses.critic_loss(q_IN[:, learns_N], target_N[learns_N])
        q_INA = known_NA + self.future_weight.value * future_INA
        if branches is not None:
            rows_M, held_out_M = branches.rows_M(policy.steps), held_out_B[branches.sentences_M]
            predicted_IMK = critics.q_of_words(readouts, rows_M, branches.tokens_MK)
            realised_MK = branches.futures_MK(options.known_reward)
            ranked = predicted_IMK[:, ~held_out_M], realised_MK[~held_out_M], branches.valid_MK[~held_out_M]
            critic_loss = critic_loss + losses.within_state_loss(*ranked)
            held_out = predicted_IMK[:, held_out_M], realised_MK[held_out_M], branches.valid_MK[held_out_M]
            self.future_weight.update(*held_out)
            q_INA = q_INA.index_copy(1, rows_M, branches.returns_MK.expand(len(q_INA), -1, -1))
            self.metrics |= branch_metrics(branches)
        if critics_learn:
            self.metrics["critic_gradient"] = critics.step(critic_loss, len(policy.steps), stage.critic_lr)
        self.metrics["critic_loss"] = critic_loss.detach()
        self.metrics |= critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)

        # Target networks; without bootstrapping they need not lag behind
        critics.polyak_update(1.0 if stage.monte_carlo else None)

        # Actor loss (Eq. 10), with dropout, and temperature
        terms: dict[str, Tensor] = {}
        if stage.trains_actor:
            terms = self.actor_terms(experience, policy, q_INA)
            self.temperature.update(policy.log_pi_NA)
        else:
            self.temperature.observe(policy.log_pi_NA)
        self.metrics |= {"alpha": alpha, "critic_weight": self.future_weight.value}
        return ActorLoss(terms, len(policy.steps))

    def actor_terms(self, experience: Experience, policy: PolicyAtSteps, q_INA: Tensor) -> dict[str, Tensor]:
        """Return the terms of the actor loss; with recorded choices, only over states with more than one."""
        actor, common, batch = self.actor, self.common, experience.batch
        rows_N, support = policy.states(undecided=experience.choices is not None)
        states = experience.tokens_TB, policy.steps.positions_N[rows_N], support
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            log_pi_NA, nll = actor.policy_on(encoded, *states), actor.nll(encoded, experience.reference_RB)
        self.metrics["mle_loss"] = nll.detach()
        reinforcement = losses.actor_loss(log_pi_NA, q_INA[:, rows_N], self.temperature.alpha)
        terms = {"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}
        if self.options.kl_weight:
            with torch.no_grad():
                log_pi_0_NA = self.pretrained.policy_on(self.pretrained.encode(batch), *states)
            kl = losses.kl_divergence(log_pi_NA, log_pi_0_NA)
            self.metrics["kl"] = kl.detach()
            terms["kl"] = self.options.kl_weight * kl
        return terms

    def stage(self, epoch: int) -> str:
        """Return the stage of an epoch: critics alone, then actor and critics."""
        return self.critic_options.stage(epoch).name

    def begin_stage(self, stage: str) -> list[str]:
        """Run the gate on the critics before the actor starts to learn from them."""
        weight = float(self.future_weight.value)
        return gate_lines(self.setup, self.collector, self.critics, stage, float(self.temperature.alpha), weight)
