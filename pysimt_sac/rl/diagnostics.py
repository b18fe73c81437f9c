"""Diagnostics: the gate tests critics before the actor learns from them; the health monitor warns during training.

The gate asks two questions on validation sentences. How much of the variance of returns does Q explain? And does Q rank
candidate next words, compared with the mean return of several continuations of each, better than the policy's own
log-probabilities and better than the immediate rewards, both of which cost nothing?
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import entropy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.rl import losses
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticEnsemble
from pysimt_sac.rl.policy import PolicyAtSteps, policy_at_steps
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.setup import Setup

EXPLAINED = 0.3  # minimum explained variance
ACTIONS, CONTINUATIONS = 4, 8  # words compared at a state, and sampled continuations of each


@dataclass(frozen=True)
class GateOptions:
    """The `[model]` key of the gate."""

    gate_sentences: int = option(
        64, "validation sentences on which the critics are examined before the actor follows them; 0: none", minimum=0
    )


class RankedWords(NamedTuple):
    """For words of some states: three predictions of their value, and the mean return of their continuations, (M, A).

    returns_MA is NaN where there is no word. may_end_M: whether `<eos>` is among a state's words.
    """

    q_MA: Tensor
    log_pi_MA: Tensor
    rewards_MA: Tensor
    returns_MA: Tensor
    may_end_M: Tensor

    def ranking(self, where_M: Tensor) -> "Ranking":
        """Measure how well each predictor ranks the words of the selected states."""
        returns_MA = self.returns_MA[where_M]
        q, log_pi, reward = (float(losses.ranking_accuracy(values[where_M], returns_MA)) for values in self[:3])
        return Ranking(q, log_pi, reward, int(where_M.sum()))


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


class Gate:
    """Tests critics without dropout, with its own random numbers, so that it does not affect the run."""

    def __init__(self, actor: Actor, collector: Collector, critics: CriticEnsemble, alpha: float) -> None:
        self.actor, self.collector, self.critics, self.alpha = actor, collector, critics, alpha
        self.options = critics.options

    @torch.no_grad()
    def examine(self, n_sentences: int, seed: int) -> GateReport:
        """Roll out validation sentences, and continue several words at one or two states of each."""
        generator = torch.Generator().manual_seed(seed)
        predicted, realised, comparisons = [], [], []
        with self.actor.training_mode(dropout=False):
            for batch in self.actor.validation_batches(n_sentences):
                experience = self.collect(batch, None, generator)
                policy = self.policy(experience)
                readouts = self.critics.readouts(experience)
                taken_N = self.critics.q_of_taken(readouts, policy.taken_N).amin(0)
                if self.options.known_reward:
                    taken_N = policy.steps.flatten(experience.rewards_TB) + taken_N
                predicted.append(taken_N)
                realised.append(self.returns(experience, policy))
                comparisons.append(self.compare(batch, experience, policy, readouts, generator))
        explained = losses.explained_variance(torch.cat(predicted), torch.cat(realised))
        comparison = RankedWords(*(torch.cat(parts) for parts in zip(*comparisons, strict=True)))
        everywhere = comparison.ranking(torch.ones_like(comparison.may_end_M))
        return GateReport(float(explained), everywhere, comparison.ranking(comparison.may_end_M))

    def collect(self, batch: Batch, forced_TB: Tensor | None, generator: torch.Generator) -> Experience:
        """Return a scored rollout that starts with the forced words."""
        encoded, rollout = self.collector.roll_out(self.actor, batch, generator, forced_TB)
        return self.collector.score(self.actor, batch, encoded, rollout, generator=generator)

    def policy(self, experience: Experience) -> PolicyAtSteps:
        """Return the policy over the likeliest words of each step."""
        encoded = self.actor.encode(experience.batch)
        k, least = self.options.support
        return policy_at_steps(self.actor, encoded, experience, k or ACTIONS, least)

    def returns(self, experience: Experience, policy: PolicyAtSteps) -> Tensor:
        """Return the realised soft returns."""
        rewards_N = experience.steps.flatten(experience.rewards_TB)
        soft = entropy(policy.log_pi_NA), experience.steps, self.options.gamma, self.alpha
        return losses.lambda_returns(rewards_N, torch.zeros_like(rewards_N), *soft, lambda_return=1.0)

    def compare(
        self,
        batch: Batch,
        experience: Experience,
        policy: PolicyAtSteps,
        readouts: list[Tensor],
        generator: torch.Generator,
    ) -> RankedWords:
        """Continue the likeliest words of a random state of each sentence, and of one where `<eos>` is among them."""
        steps, support = policy.steps, policy.support
        assert support is not None
        valid_NA, tokens_NA = support.valid_NK[:, :ACTIONS], support.tokens_NK[:, :ACTIONS]
        choice_N = valid_NA.sum(1) > 1
        may_end_N = choice_N & (valid_NA & tokens_NA.eq(EOS)).any(1)
        rows_M = torch.cat([random_states(steps, where_N, generator) for where_N in (choice_N & ~may_end_N, may_end_N)])
        if len(rows_M) == 0:
            nothing_MA = torch.zeros(0, tokens_NA.size(1), device=tokens_NA.device)
            return RankedWords(nothing_MA, nothing_MA, nothing_MA, nothing_MA, may_end_N[rows_M])
        tokens_MA, valid_MA, sentences_M = tokens_NA[rows_M], valid_NA[rows_M], steps.sentences_N[rows_M]
        each = tokens_MA.size(1) * CONTINUATIONS
        # Columns: all continuations of a state are adjacent, word by word.
        columns = sentences_M.repeat_interleave(each)
        times = steps.times_N[rows_M].repeat_interleave(each)
        forced_TC = experience.tokens_TB[1:].index_select(1, columns)
        forced_TC[times, torch.arange(len(times), device=times.device)] = tokens_MA.repeat_interleave(
            CONTINUATIONS, 1
        ).flatten()
        behind = torch.arange(len(forced_TC), device=times.device).unsqueeze(1) > times
        pairs = Batch({side: batch[side].index_select(1, columns) for side in batch})
        continued = self.collect(pairs, forced_TC.masked_fill(behind, PAD), generator)
        its_policy = self.policy(continued)
        returns_TC = its_policy.steps.pad(self.returns(continued, its_policy))

        def at_states(values_TC: Tensor) -> Tensor:
            values_C = values_TC.gather(0, times.unsqueeze(0)).squeeze(0)
            return values_C.view(len(rows_M), -1, CONTINUATIONS).mean(-1)

        rewards_MA = at_states(continued.rewards_TB)
        q_MA = self.critics.q_of_words(readouts, rows_M, tokens_MA).amin(0)
        if self.options.known_reward:
            q_MA = rewards_MA + q_MA
        returns_MA = at_states(returns_TC).masked_fill(~valid_MA, torch.nan)
        return RankedWords(q_MA, policy.log_pi_NA[rows_M, :ACTIONS], rewards_MA, returns_MA, may_end_N[rows_M])


def random_states(steps: Steps, where_N: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one of the allowed states of each sentence; return their indices in the flat order."""
    draws_TB = torch.rand(steps.shape, generator=generator).to(where_N.device)
    allowed_TB = steps.pad(where_N.float())
    times_1B = (draws_TB + allowed_TB).argmax(0, keepdim=True)
    sentences_B = torch.arange(steps.shape[1], device=where_N.device)
    chosen_B = allowed_TB.gather(0, times_1B).squeeze(0) > 0
    return steps.rows_of((times_1B.squeeze(0) * steps.shape[1] + sentences_B)[chosen_B])


def gate_lines(setup: Setup, collector: Collector, critics: CriticEnsemble, alpha: float) -> list[str]:
    """Run the gate, unless it is switched off; return lines to log."""
    n_sentences = setup.read(GateOptions).gate_sentences
    if not n_sentences:
        return []
    return Gate(setup.actor, collector, critics, alpha).examine(n_sentences, setup.seed).lines()


SHORTEST, LONGEST = 0.8, 1.25  # length ratio of sampled hypotheses
LOWEST_ENTROPY = 0.2  # as a fraction of the first one
LARGEST_Q = 3.0  # as a multiple of the largest realised return
LARGEST_GAP = 0.5  # between predicted and realised return, relative to the latter
LARGEST_NLL = 3.0  # as a multiple of the lowest one
RECENT, LEAST_REPORTS = 5, 3  # most and fewest reports in a running mean: single batches are noisy


class HealthMonitor:
    """Watches the running means of an algorithm's metrics; warns of each problem once, until it has recovered."""

    def __init__(self) -> None:
        self.first_entropy = math.nan
        self.lowest_nll = math.inf
        self.recent: dict[str, list[float]] = {}  # the last reports, by metric
        self.active_warnings: set[str] = set()

    def check(self, metrics: dict[str, float]) -> list[str]:
        """Record a report; return new warnings."""
        self.recent = {name: [*self.recent.get(name, []), value][-RECENT:] for name, value in metrics.items()}
        means = {
            name: sum(values) / len(values) for name, values in self.recent.items() if len(values) >= LEAST_REPORTS
        }
        found = self.find(means)
        new = [warning for name, warning in found.items() if name not in self.active_warnings]
        self.active_warnings = set(found)
        return new

    def find(self, means: dict[str, float]) -> dict[str, str]:
        """Return all current warnings, by name."""
        found = {}
        ratio = means.get("length_ratio", 1.0)
        if not SHORTEST <= ratio <= LONGEST:
            kind = "short" if ratio < SHORTEST else "long"
            found["length"] = (
                f"sampled hypotheses are too {kind}: length ratio {ratio:.2f}; "
                "lower lambda_rl, raise lambda_mle, or add `length` to the reward (reward: bleu:1,length:0.1)"
            )
        entropy = means.get("entropy", math.nan)
        if math.isnan(self.first_entropy):
            self.first_entropy = entropy
        if entropy < LOWEST_ENTROPY * self.first_entropy:
            found["entropy"] = (
                f"the policy has almost stopped exploring: its entropy fell from {self.first_entropy:.2g} to "
                f"{entropy:.2g}; raise alpha, or lower lambda_rl or lr"
            )
        largest, possible = means.get("max_q", 0.0), means.get("max_return", math.inf)
        if largest > LARGEST_Q * possible:
            found["q"] = (
                f"Q diverges: {largest:.3g} where the largest realised return is {possible:.3g}; "
                "lower critic_lr; with bootstrapped targets lower tau as well"
            )
        predicted, realised = means.get("q", 0.0), means.get("return", 0.0)
        if "gradient_rl" in means and predicted - realised > LARGEST_GAP * max(abs(realised), 1.0):
            found["gap"] = (
                f"predicted return {predicted:.3g}, realised return {realised:.3g}; "
                "the actor may exploit the critics' errors: lower support_size or lambda_rl"
            )
        nll = means.get("mle_loss", math.inf)
        self.lowest_nll = min(self.lowest_nll, nll)
        if math.isfinite(nll) and nll > LARGEST_NLL * self.lowest_nll + 1:
            found["nll"] = (
                f"the actor diverges: the references' negative log-likelihood rose from {self.lowest_nll:.3g} to "
                f"{nll:.3g} per word; lower lr or lambda_rl, or raise lambda_mle"
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        return {
            "first_entropy": self.first_entropy,
            "lowest_nll": self.lowest_nll,
            "recent": self.recent,
            "active_warnings": sorted(self.active_warnings),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state; those of earlier versions have no running means."""
        self.first_entropy, self.active_warnings = state["first_entropy"], set(state["active_warnings"])
        self.lowest_nll, self.recent = state.get("lowest_nll", math.inf), state.get("recent", {})
