"""The gate: tests critics before the actor learns from them.

It asks two questions on validation sentences. How much of the variance of returns does Q explain? And does Q rank
candidate next words, compared with the returns of their continuations, better than the policy's own log-probabilities
and better than the immediate rewards, both of which cost nothing?
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import entropy
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rewards import Rewarder
from pysimt_sac.rl import losses
from pysimt_sac.rl.branching import BranchOptions, collect_branched, known_part, policy_at_choices
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble, CriticOptions
from pysimt_sac.rl.setup import RLOptions, Setup

EXPLAINED = 0.3  # minimum explained variance
SAMPLED = BranchOptions(branch_path="sample")


@dataclass(frozen=True)
class GateOptions:
    """The `[model]` key of the gate."""

    gate_sentences: int = option(
        64, "validation sentences on which the critics are examined before the actor follows them; 0: none", minimum=0
    )


class Ranking(NamedTuple):
    """The fraction of word pairs ranked correctly by Q, by log pi, and by the immediate reward alone."""

    q: float
    log_pi: float
    reward: float
    n_states: int

    def __str__(self) -> str:
        return f"Q {self.q:.2f}, log pi {self.log_pi:.2f}, immediate reward {self.reward:.2f} ({self.n_states} states)"


@dataclass(frozen=True)
class GateReport:
    """The result of the gate."""

    explained_variance: float
    everywhere: Ranking
    at_ends: Ranking  # at states where `<eos>` is a candidate

    @property
    def passed(self) -> bool:
        """Whether Q explains returns, and ranks words better than both free predictors; NaN fails."""
        ranking = self.everywhere
        return self.explained_variance > EXPLAINED and ranking.q > ranking.log_pi and ranking.q > ranking.reward

    def lines(self) -> list[str]:
        """Return the report as lines to log."""
        found = (
            f"Gate: explained variance {self.explained_variance:.2f} (threshold {EXPLAINED}); word pairs ranked "
            f"correctly by {self.everywhere}; where <eos> is a candidate: {self.at_ends}"
        )
        if self.passed:
            return [f"{found}: passed"]
        hint = "set known_reward: True, raise critic_pretrain_updates, lower lambda_rl, or use VineNMT"
        return [f"{found}: NOT passed", f"Warning: Q must rank words better than log pi and the reward do; {hint}"]


@torch.no_grad()
def examine(setup: Setup, collector: Collector, critics: CriticEnsemble, alpha: float, n_sentences: int) -> GateReport:
    """Roll out validation sentences, and continue the likeliest words of some states of each.

    collector: of the gate alone, so that the run's random numbers stay as they are.
    """
    options, returned, explained, words = critics.options, [], [], []
    for batch in setup.actor.validation_batches(n_sentences):
        experience = collect_branched(setup.actor, batch, collector, SAMPLED, 0, known_rewards=True, alpha=alpha)
        steps, branches, policy = experience.steps, experience.branches, policy_at_choices(experience)
        assert branches is not None
        assert experience.choices is not None
        readouts = critics.readouts(experience)
        known_N, _ = known_part(experience, options.known_reward)
        explained.append(known_N + critics.q_of_taken(readouts, policy.taken_N).amin(0))
        rewards_N = steps.flatten(experience.rewards_TB)
        soft = entropy(policy.log_pi_NA), steps, options.gamma, alpha
        returned.append(losses.lambda_returns(rewards_N, torch.zeros_like(rewards_N), *soft, lambda_return=1.0))
        q_MK = critics.q_of_words(readouts, branches.rows_M(steps), branches.tokens_MK).amin(0)
        if options.known_reward:
            q_MK = branches.rewards_MK + q_MK
        log_pi_MK = experience.choices.log_pi_TBK[branches.times_M, branches.sentences_M]
        returns_MK = branches.returns_MK.masked_fill(~branches.valid_MK, torch.nan)
        may_end_M = (branches.tokens_MK.eq(EOS) & branches.valid_MK).any(1)
        words.append((q_MK, log_pi_MK, branches.rewards_MK, returns_MK, may_end_M))
    *predictors, returns_MK, may_end_M = (torch.cat(parts) for parts in zip(*words, strict=True))

    def ranking(where_M: Tensor) -> Ranking:
        q, log_pi, reward = (
            float(losses.ranking_accuracy(values[where_M], returns_MK[where_M])) for values in predictors
        )
        return Ranking(q, log_pi, reward, int(where_M.sum()))

    variance = losses.explained_variance(torch.cat(explained), torch.cat(returned))
    return GateReport(float(variance), ranking(torch.ones_like(may_end_M)), ranking(may_end_M))


def check_critics(setup: Setup, options: CriticOptions) -> None:
    """Refuse before training what would fail after the critics have learned alone."""
    if options.known_reward and not options.support_size:
        hint = "set support_size to a few words, e.g. support_size: 4"
        raise UserError("is not computed for the whole vocabulary", f"{setup.where} known_reward", hint)
    if options.known_reward and setup.read(RLOptions).permute_rewards:  # rewards of other words are not permuted
        hint = "set one of them to False; BranchedSACNMT has both"
        raise UserError("cannot be combined with permute_rewards here", f"{setup.where} known_reward", hint)
    if setup.read(GateOptions).gate_sentences:
        next(setup.actor.validation_batches(1), None)  # a missing validation set is reported now


def gate_lines(setup: Setup, rewarder: Rewarder, critics: CriticEnsemble, alpha: float) -> list[str]:
    """Run the gate, unless it is switched off; return lines to log. rewarder: the run's, which must not learn here."""
    n_sentences = setup.read(GateOptions).gate_sentences
    if not n_sentences:
        return []
    return examine(
        setup, Collector(setup, None if rewarder.learners else rewarder), critics, alpha, n_sentences
    ).lines()
