"""The gate: before the actor follows the critics, see on validation sentences whether they know anything.

Two questions, with the thresholds below. How much of the variance of returns does Q explain? And does Q put two words
that could come next into the right order, as judged by what comes of either when it is continued several times?
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.corpus import Batch
from pysimt_sac.rl import losses
from pysimt_sac.rl.ensemble import CriticEnsemble
from pysimt_sac.rl.losses import Support
from pysimt_sac.rl.options import CriticOptions
from pysimt_sac.rl.player import Player
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.steps import Steps

EXPLAINED, RANKED = 0.3, 0.6  # what has to be exceeded
ACTIONS, CONTINUATIONS = 4, 8  # words compared at a step, and how often each is continued


@dataclass(frozen=True)
class GateReport:
    """What the examination has found."""

    explained_variance: float
    ranking: float
    n_sentences: int

    @property
    def passed(self) -> bool:
        """Whether both thresholds are exceeded; a figure that does not exist fails."""
        return self.explained_variance > EXPLAINED and self.ranking > RANKED

    def lines(self) -> list[str]:
        """The report in words."""
        found = (
            f"Gate, {self.n_sentences} validation sentences: the critics explain {self.explained_variance:.2f} of the "
            f"returns' variance (wanted: above {EXPLAINED}) and rank {self.ranking:.2f} of pairs of words rightly "
            f"(wanted: above {RANKED})"
        )
        if self.passed:
            return [f"{found}: passed"]
        todo = "raise critic_pretrain_epochs, or lower lambda_rl so that the actor follows them less"
        return [f"{found}: NOT passed", f"Warning: the actor will follow critics that know little; {todo}"]


class Gate:
    """Examines critics; nothing that it draws or does changes the run."""

    def __init__(
        self, model: Any, player: Player, critics: CriticEnsemble, options: CriticOptions, alpha: float
    ) -> None:
        self.model, self.player, self.critics = model, player, critics
        self.options, self.alpha = options, alpha

    @torch.no_grad()
    def examine(self, n_sentences: int, seed: int) -> GateReport:
        """Roll out validation sentences, and continue each from one of its steps by several words."""
        generator = torch.Generator().manual_seed(seed)
        predicted, realised, orders, seen = [], [], [], 0
        for batch in self.model.validation_batches(n_sentences):
            experience = self.play(batch, None, generator)
            steps, support, log_pi_NA = self.policy(experience)
            returns_N = self.returns(experience, steps, log_pi_NA)
            readouts = self.critics.readouts(experience, steps)
            predicted.append(self.critics.q_of_taken(readouts, steps.flatten(experience.words_TB[1:])).amin(0))
            realised.append(returns_N)
            q_NA = self.critics.q_of_actions(readouts, support).amin(0)
            orders.append(self.compare(batch, experience, steps, support, q_NA, generator))
            seen += batch.size
        predicted_BA, realised_BA = (torch.cat(values) for values in zip(*orders, strict=True))
        explained = losses.explained_variance(torch.cat(predicted), torch.cat(realised))
        return GateReport(float(explained), float(losses.ranking_accuracy(predicted_BA, realised_BA)), seen)

    def play(self, batch: Any, forced_TB: Tensor | None, generator: torch.Generator) -> Experience:
        """A rewarded rollout that begins with some words."""
        rollout = self.player.roll_out(self.model, batch, generator, forced_TB)
        return self.player.judge(self.model, batch, rollout, self.alpha, generator=generator).experience

    def policy(self, experience: Experience) -> tuple[Steps, Support, Tensor]:
        """The steps of an experience, the likeliest words of each, and their log-probabilities."""
        lengths_B = experience.lengths_B.cpu()
        steps = Steps.of(lengths_B, experience.words_TB.device)
        states = self.model.states_of(experience.batch(self.model.sl, self.model.tl))
        taken_N = steps.flatten(experience.words_TB[1:])
        k = self.options.support or ACTIONS
        log_pi_NA, support = self.model.policy(
            states, experience.words_TB, lengths_B, taken_N, k, self.options.support_least
        )
        assert support is not None
        return steps, support, log_pi_NA

    def returns(self, experience: Experience, steps: Steps, log_pi_NA: Tensor) -> Tensor:
        """What the steps of an experience have brought."""
        rewards_N, entropies_N = steps.flatten(experience.rewards_TB), losses.entropy(log_pi_NA)
        return losses.soft_returns(rewards_N, entropies_N, steps, self.options.gamma, self.alpha)

    def compare(
        self,
        batch: Any,
        experience: Experience,
        steps: Steps,
        support: Support,
        q_NA: Tensor,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor]:
        """At a random step of every sentence: Q of its likeliest words, and what came of them, (B, A).

        A step is chosen where there is a choice, if there is one; words that are not in the support count as nan.
        """
        choice_N = support.valid_NK[:, :ACTIONS].sum(1) > 1
        draws_TB = torch.rand(steps.shape, generator=generator).to(choice_N.device)
        times_B = (draws_TB + steps.pad(1.0 + choice_N)).argmax(0)
        number_TB = steps.pad(torch.arange(len(steps), device=times_B.device, dtype=torch.float64)).long()
        chosen_B = number_TB.gather(0, times_B.unsqueeze(0)).squeeze(0)
        words_BA = support.words_NK[chosen_B, :ACTIONS]  # the likeliest; behind them is the one that was taken
        valid_BA = support.valid_NK[chosen_B, :ACTIONS]
        each = words_BA.size(1) * CONTINUATIONS
        # Columns: all continuations of a sentence beside each other, word by word.
        forced_TB = experience.words_TB[1:].repeat_interleave(each, 1)
        columns = torch.arange(forced_TB.size(1), device=times_B.device)
        at_B = times_B.repeat_interleave(each)
        forced_TB[at_B, columns] = words_BA.repeat_interleave(CONTINUATIONS, 1).flatten()
        behind = torch.arange(len(forced_TB), device=times_B.device).unsqueeze(1) > at_B
        continued = self.play(repeat(batch, each), forced_TB.masked_fill(behind, 0), generator)
        its_steps, _, log_pi_NA = self.policy(continued)
        returns_TB = its_steps.pad(self.returns(continued, its_steps, log_pi_NA))
        returns_BAC = returns_TB[at_B, columns].view(len(times_B), -1, CONTINUATIONS)
        return q_NA[chosen_B, :ACTIONS], returns_BAC.mean(-1).masked_fill(~valid_BA, torch.nan)


def repeat(batch: Any, times: int) -> Batch:
    """A batch with every sentence several times."""
    return Batch({side: batch[side].repeat_interleave(times, 1) for side in batch})
