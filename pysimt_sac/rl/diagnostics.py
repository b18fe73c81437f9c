"""Is learning going well? The gate examines critics before the actor follows them; the monitor warns during training.

The gate asks two questions on validation sentences. How much of the variance of returns does Q explain? And does Q
order words that could come next correctly, compared with the returns of several sampled continuations of each?
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.rl import losses
from pysimt_sac.rl.actor import Actor, PolicyAtSteps, policy_at_steps
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import WITH_ACTOR, CriticEnsemble, monte_carlo_returns
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import repeat_batch
from pysimt_sac.rl.setup import Setup

EXPLAINED, RANKED = 0.3, 0.6  # thresholds
ACTIONS, CONTINUATIONS = 4, 8  # words compared at a step, and how often each is continued


@dataclass(frozen=True)
class GateReport:
    """The result of an examination."""

    explained_variance: float
    ranking: float
    n_sentences: int

    @property
    def passed(self) -> bool:
        """Whether both thresholds are exceeded; nan fails."""
        return self.explained_variance > EXPLAINED and self.ranking > RANKED

    def lines(self) -> list[str]:
        """The report in words."""
        found = (
            f"Gate, {self.n_sentences} validation sentences: explained variance {self.explained_variance:.2f} "
            f"(threshold {EXPLAINED}), pairs of words in order {self.ranking:.2f} (threshold {RANKED})"
        )
        if self.passed:
            return [f"{found}: passed"]
        todo = "raise critic_pretrain_epochs, or lower lambda_rl so that the actor follows them less"
        return [f"{found}: NOT passed", f"Warning: the actor will follow critics that predict little; {todo}"]


class Gate:
    """Examines critics; it has random numbers of its own, so that a run does not depend on it."""

    def __init__(self, actor: Actor, collector: Collector, critics: CriticEnsemble, alpha: float) -> None:
        self.actor, self.collector, self.critics, self.alpha = actor, collector, critics, alpha
        self.options = critics.options

    @torch.no_grad()
    def examine(self, n_sentences: int, seed: int) -> GateReport:
        """Roll out validation sentences, and continue each from one of its steps by several words."""
        generator = torch.Generator().manual_seed(seed)
        predicted, realised, orders, seen = [], [], [], 0
        for batch in self.actor.validation_batches(n_sentences):
            experience = self.collect(batch, None, generator)
            policy = self.policy(experience)
            readouts = self.critics.readouts(experience, policy.steps)
            predicted.append(self.critics.q_of_taken(readouts, policy.taken_N).amin(0))
            realised.append(self.returns(experience, policy))
            q_NA = self.critics.q_of_actions(readouts, policy.support).amin(0)
            orders.append(self.compare(batch, experience, policy, q_NA, generator))
            seen += batch.size
        predicted_BA, realised_BA = (torch.cat(values) for values in zip(*orders, strict=True))
        explained = losses.explained_variance(torch.cat(predicted), torch.cat(realised))
        return GateReport(float(explained), float(losses.ranking_accuracy(predicted_BA, realised_BA)), seen)

    def collect(self, batch: Batch, forced_TB: Tensor | None, generator: torch.Generator) -> Experience:
        """A scored rollout that begins with some words."""
        encoded, rollout = self.collector.roll_out(self.actor, batch, generator, forced_TB)
        return self.collector.score(self.actor, batch, encoded, rollout, self.alpha, generator=generator)

    def policy(self, experience: Experience) -> PolicyAtSteps:
        """The policy over the likeliest words of each step."""
        encoded = self.actor.encode(experience.batch(self.actor.source, self.actor.target))
        k, least = self.options.support or ACTIONS, self.options.support_least
        return policy_at_steps(self.actor, encoded, experience.words_TB, experience.lengths_B.cpu(), k, least)

    def returns(self, experience: Experience, policy: PolicyAtSteps) -> Tensor:
        """The realised soft returns."""
        return monte_carlo_returns(experience, policy, self.options.gamma, self.alpha)

    def compare(
        self, batch: Batch, experience: Experience, policy: PolicyAtSteps, q_NA: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """At a random step of every sentence: Q of its likeliest words, and their mean realised returns, (B, A).

        A step is chosen where there is a choice, if there is one; words that are not in the support count as nan.
        """
        steps, support = policy.steps, policy.support
        assert support is not None
        choice_N = support.valid_NK[:, :ACTIONS].sum(1) > 1
        draws_TB = torch.rand(steps.shape, generator=generator).to(choice_N.device)
        times_B = (draws_TB + steps.pad(1.0 + choice_N)).argmax(0)
        number_TB = steps.pad(torch.arange(len(steps), device=times_B.device, dtype=torch.float64)).long()
        chosen_B = number_TB.gather(0, times_B.unsqueeze(0)).squeeze(0)
        words_BA = support.words_NK[chosen_B, :ACTIONS]  # the likeliest; the taken word stands behind them
        valid_BA = support.valid_NK[chosen_B, :ACTIONS]
        each = words_BA.size(1) * CONTINUATIONS
        # Columns: all continuations of a sentence beside each other, word by word.
        forced_TB = experience.words_TB[1:].repeat_interleave(each, 1)
        columns = torch.arange(forced_TB.size(1), device=times_B.device)
        at_B = times_B.repeat_interleave(each)
        forced_TB[at_B, columns] = words_BA.repeat_interleave(CONTINUATIONS, 1).flatten()
        behind = torch.arange(len(forced_TB), device=times_B.device).unsqueeze(1) > at_B
        continued = self.collect(repeat_batch(batch, each), forced_TB.masked_fill(behind, 0), generator)
        continued_policy = self.policy(continued)
        returns_TB = continued_policy.steps.pad(self.returns(continued, continued_policy))
        returns_BAC = returns_TB[at_B, columns].view(len(times_B), -1, CONTINUATIONS)
        return q_NA[chosen_B, :ACTIONS], returns_BAC.mean(-1).masked_fill(~valid_BA, torch.nan)


def gate_lines(setup: Setup, collector: Collector, critics: CriticEnsemble, stage: str, alpha: float) -> list[str]:
    """Examine the critics when the actor is about to follow them; lines for the log."""
    n_sentences = critics.options.gate_sentences
    if stage != WITH_ACTOR or not n_sentences:
        return []
    return Gate(setup.actor, collector, critics, alpha).examine(n_sentences, setup.seed).lines()


SHORTEST, LONGEST = 0.8, 1.25  # length ratio of sampled hypotheses
LOWEST_ENTROPY = 0.2  # in parts of the first one
LARGEST_Q = 3.0  # in parts of the largest realised return
LARGEST_GAP = 0.5  # between predicted and realised return, in parts of the latter


class HealthMonitor:
    """Looks at the metrics of an algorithm, and warns once of each thing until it has recovered."""

    def __init__(self) -> None:
        self.first_entropy = math.nan
        self.active_warnings: set[str] = set()

    def check(self, metrics: dict[str, float]) -> list[str]:
        """New warnings."""
        found = self.find(metrics)
        new = [warning for name, warning in found.items() if name not in self.active_warnings]
        self.active_warnings = set(found)
        return new

    def find(self, metrics: dict[str, float]) -> dict[str, str]:
        """All that looks wrong now, by name."""
        found = {}
        ratio = metrics.get("length_ratio", 1.0)
        if not SHORTEST <= ratio <= LONGEST:
            kind = "short" if ratio < SHORTEST else "long"
            found["length"] = (
                f"sampled hypotheses are too {kind}: length ratio {ratio:.2f}; "
                "lower lambda_rl, raise lambda_mle, or put `length` into the reward (reward: bleu:1,length:0.1)"
            )
        entropy = metrics.get("entropy", math.nan)
        if math.isnan(self.first_entropy):
            self.first_entropy = entropy
        if entropy < LOWEST_ENTROPY * self.first_entropy:
            found["entropy"] = (
                f"the policy hardly explores any more: its entropy fell from {self.first_entropy:.2g} to "
                f"{entropy:.2g}; raise alpha, or lower lambda_rl or lr"
            )
        largest, possible = metrics.get("max_q", 0.0), metrics.get("max_return", math.inf)
        if largest > LARGEST_Q * possible:
            found["q"] = (
                f"Q diverges: {largest:.3g} where the largest realised return is {possible:.3g}; "
                "set target_clip: True, or lower critic_lr or tau"
            )
        predicted, realised = metrics.get("q", 0.0), metrics.get("return", 0.0)
        if "gradient_rl" in metrics and predicted - realised > LARGEST_GAP * max(abs(realised), 1.0):
            found["gap"] = (
                f"predicted return {predicted:.3g}, realised return {realised:.3g}; "
                "the actor may follow the critics' errors: lower support or lambda_rl, or raise n_critics"
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"first_entropy": self.first_entropy, "active_warnings": sorted(self.active_warnings)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self.first_entropy, self.active_warnings = state["first_entropy"], set(state["active_warnings"])
