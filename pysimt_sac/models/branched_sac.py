"""`BranchedSACNMT`: an actor-critic on branched rollouts, with the actor loss of Soft Actor-Critic.

At some states of a path, the policy's likeliest words are each continued to the end (`rl.branching`). There, the
returns of the continuations are Q, without any critic, and they teach the critics to rank words. Elsewhere
Q(s,a) = r(s,a) + w f(s,a): the reward r of a word is computed, the critics predict the future f, and w is how far they
can be trusted, fitted on sentences that they do not learn from.

With a sampled path, `lambda_return` below 1 and a larger buffer, it is Soft Actor-Critic (`models/sac.py`) except at
branched states, where the actor's Q is a return: `experiments/sac_bleu.conf`. By default critics learn Monte Carlo
returns on a greedy path. `models/vine.py` is the same without critics.
"""

import dataclasses

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import Support, entropy
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.branching import BranchOptions, branch_metrics, collect_branched, known_part, policy_at_choices
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import BaseCriticOptions, CriticEnsemble, critic_metrics
from pysimt_sac.rl.estimators import FutureWeight
from pysimt_sac.rl.policy import PolicyAtSteps
from pysimt_sac.rl.replay import Experience, ReplayBuffer
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class BranchedSACOptions:
    """The `[model]` keys specific to this algorithm."""

    alpha: float = option(0.01, "temperature: weight of the entropy", minimum=0)
    buffer_size: int = option(10, "batches in the replay buffer, from which the critics learn", minimum=1)
    critic_every: int = option(2, "update the critics once every this many updates", minimum=1)
    critic_weight: float | str = option(
        "auto", "w in Q = r + w f; `auto`: fitted on held-out branches", choices=("auto",), minimum=0
    )


@algorithm("BranchedSACNMT")
class BranchedSAC(Algorithm):
    """Branched rollouts for Q where there are some, critics elsewhere."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, BaseCriticOptions, BranchOptions, BranchedSACOptions)
    beside_actor = "critics"
    defaults = {  # noqa: RUF012 - never changed
        "actor_warmup": 50,
        "lambda_rl": 2.0,
        "lambda_mle": 1.0,
        "reward_unit": "word",
        "known_reward": True,
        "lambda_return": 1.0,
        "critic_lr": 0.001,
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options, self.critic_options = setup.read(BranchedSACOptions), setup.read(BaseCriticOptions)
        self.branch_options = setup.read(BranchOptions)
        if self.critic_options.gamma < 1:
            raise UserError("the returns of branches are not discounted", f"{setup.where} gamma", "set gamma: 1.0")
        self.collector: Collector = Collector(setup)
        self.replay: ReplayBuffer = ReplayBuffer(self.options.buffer_size, setup.seed)
        self.critics = CriticEnsemble.build(setup, self.critic_options, n_critics=2)
        has_branches = self.branch_options.branch_states > 0
        self.weight = FutureWeight(self.options.critic_weight, has_branches, self.actor.device)
        self.updates_without_actor = self.critic_options.critic_pretrain_updates
        self.parts = {"collector": self.collector, "replay": self.replay}
        self.parts |= {"critics": self.critics, "weight": self.weight}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Roll out and branch; update the critics on replayed experience; return the actor loss of the new one."""
        actor, common, alpha = self.actor, self.common, self.options.alpha
        known, actor_learns = self.critic_options.known_reward, step > self.updates_without_actor
        experience = collect_branched(actor, batch, self.collector, self.branch_options, step, known, alpha)
        self.replay.add(experience)
        if step % self.options.critic_every == 0 or not actor_learns:
            self.update_critics(self.replay.sample().to(actor.device), joint=actor_learns)
        branches, steps = experience.branches, experience.steps
        assert branches is not None
        self.metrics |= {"critic_weight": self.weight.value, **branch_metrics(branches)}
        if not actor_learns:
            return ActorLoss({}, len(steps))

        # Q at the states of the path: r + w f, or the returns of branches
        policy = policy_at_choices(experience)
        with torch.no_grad():
            future_INA = self.critics.q_of_actions(self.critics.readouts(experience), policy.support)
        q_NA = known_part(experience, known)[1] + self.weight.value * future_INA.amin(0)
        q_NA = q_NA.index_copy(0, branches.rows_M(steps), branches.returns_MK)
        self.metrics["entropy"] = entropy(policy.log_pi_NA).mean()

        # Actor loss (Eq. 10), with dropout
        rows_N, support = states_with_alternatives(policy, branches.mask_N(steps))
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            log_pi_NA = actor.policy_on(encoded, experience.tokens_TB, steps.positions_N[rows_N], support)
            nll = actor.nll(encoded, experience.reference_RB)
        self.metrics["mle_loss"] = nll.detach()
        reinforcement = losses.actor_loss(log_pi_NA, q_NA[rows_N].unsqueeze(0), alpha)
        return ActorLoss({"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}, len(steps))

    def update_critics(self, experience: Experience, joint: bool) -> None:
        """Take one step of the critics on returns and on the order of words at branched states; refit w."""
        options, critics, alpha = self.critic_options, self.critics, self.options.alpha
        steps, branches = experience.steps, experience.branches
        assert branches is not None
        known_N, known_NA = known_part(experience, options.known_reward)
        policy = self.current_policy(experience) if options.lambda_return < 1 else policy_at_choices(experience)
        held_out_B = self.weight.held_out(experience.source_SB)

        # Critic targets: lambda-returns, with the same weight of f as in the actor's Q
        values_N = torch.zeros_like(known_N)
        if options.lambda_return < 1:
            with torch.no_grad():
                f_INA = critics.q_of_actions(critics.readouts(experience, target=True), policy.support, target=True)
            values_N = losses.soft_value(known_NA + self.weight.value * f_INA, policy.log_pi_NA, alpha)
        soft = entropy(policy.log_pi_NA), steps, options.gamma, alpha
        rewards_N = steps.flatten(experience.rewards_TB)
        target_N = losses.lambda_returns(rewards_N, values_N, *soft, options.lambda_return)

        # Critic loss (Eq. 9), and the order of words at branched states
        readouts = critics.readouts(experience)
        q_IN = known_N + critics.q_of_taken(readouts, policy.taken_N)
        learns_N, held_out_M = ~steps.of_sentences(held_out_B), held_out_B[branches.sentences_M]
        predicted_IMK = critics.q_of_words(readouts, branches.rows_M(steps), branches.tokens_MK)
        realised_MK, valid_MK = branches.futures_MK(options.known_reward), branches.valid_MK
        self.weight.update(predicted_IMK[:, held_out_M], realised_MK[held_out_M], valid_MK[held_out_M])
        ranked = predicted_IMK[:, ~held_out_M], realised_MK[~held_out_M], valid_MK[~held_out_M]
        loss = losses.critic_loss(q_IN[:, learns_N], target_N[learns_N]) + losses.within_state_loss(*ranked)
        self.metrics["critic_gradient"] = critics.step(loss, len(steps), joint)
        critics.polyak_update()
        self.metrics["critic_loss"] = loss.detach()
        returns_N = losses.lambda_returns(rewards_N, values_N, *soft, lambda_return=1.0)
        self.metrics |= critic_metrics(q_IN, target_N, returns_N, policy.log_pi_NA)

    @torch.no_grad()
    def current_policy(self, experience: Experience) -> PolicyAtSteps:
        """Return the current policy over the likeliest words of a stored path, which bootstrapping needs."""
        stored = policy_at_choices(experience)
        states = experience.tokens_TB, stored.steps.positions_N, stored.support
        with self.actor.training_mode(dropout=False):
            log_pi_NA = self.actor.policy_on(self.actor.encode(experience.batch), *states)
        return stored._replace(log_pi_NA=log_pi_NA)


def states_with_alternatives(policy: PolicyAtSteps, branched_N: Tensor) -> tuple[Tensor, Support]:
    """Return the states with more than one likely word, and their support.

    Without those that are not branched and where `<eos>` is likely: it has no future, so that f, which is learned,
    would count for the other words only.
    """
    support = policy.support
    assert support is not None
    may_end_N = (support.tokens_NK.eq(EOS) & support.valid_NK).any(1)
    wanted_N = (support.valid_NK.sum(1) > 1) & (branched_N | ~may_end_N)
    rows_N = wanted_N.nonzero().squeeze(1)
    return rows_N, Support(*(part[rows_N] for part in support))
