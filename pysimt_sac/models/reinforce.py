"""`REINFORCENMT`: the plain policy gradient on whole translations (Williams 1992), with a choice of baselines.

Every update samples `n_samples` translations of each source, and makes those likelier that earned more than the
baseline, and the others less likely. No baseline changes the expected gradient, because none knows its own sample:

- `no`: none;
- `mean`: the mean of the source's other samples (leave-one-out); with one sample, of the batch's other translations;
- `greedy`: what the source's greedy translation earns (self-critical training);
- `learnt`: a linear function of the decoder's state, before each word (`rl/baseline.py`).
"""

import dataclasses
import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import ModelOptions, option
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models.base import RLModel
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.baseline import LearntBaseline
from pysimt_sac.rl.learner import ActorLoss, Learner
from pysimt_sac.rl.options import BaselineOptions, RLOptions
from pysimt_sac.rl.scoring import Scored, rescore, state_size


@dataclasses.dataclass(frozen=True)
class REINFORCEOptions:
    """The keys of `[model]` that only REINFORCE has."""

    baseline: str = option(
        "mean",
        "what a translation has to exceed: nothing, the mean of the source's other samples (of the batch's others, if "
        "n_samples is 1), what the greedy one earns, or what a linear layer expects",
        choices=("no", "mean", "greedy", "learnt"),
    )
    n_samples: int = option(1, "translations sampled of each source", minimum=1)
    entropy_weight: float = option(0.0, "weight of the policy's entropy, which is kept high", minimum=0)


@MODELS.register("REINFORCENMT")
class REINFORCENMT(RLModel):
    """The actor; what else learns is in its `REINFORCELearner`."""

    option_classes: ClassVar[tuple[type, ...]] = (
        ModelOptions, RLOptions, RewardOptions, BaselineOptions, REINFORCEOptions,
    )  # fmt: skip

    def make_learner(self) -> "REINFORCELearner":
        """Built when training begins."""
        return REINFORCELearner(self)


class REINFORCELearner(Learner):
    """One update of REINFORCE; see the top of this file."""

    def __init__(self, model: REINFORCENMT) -> None:
        super().__init__(model)
        self.options: REINFORCEOptions = model.read_options(REINFORCEOptions)
        if self.options.baseline == "learnt":
            lr = model.read_options(BaselineOptions).baseline_lr
            self.learnt = LearntBaseline(state_size(model), lr, self.device)
            self.parts["baseline"] = self.learnt

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Sample, score again with gradient, compare with the baseline."""
        options, common, n_samples = self.options, self.common, self.options.n_samples
        experience = self.player.play(self.model, batch, math.nan, update, n_samples)
        sentences_C = torch.arange(batch.size, device=self.device).repeat_interleave(n_samples)
        scored = rescore(
            self.model, batch, experience, sentences_C, common.rollout_dropout,
            with_nll=common.lambda_mle > 0,
        )  # fmt: skip
        returns_C = experience.scores_B
        baseline_N = self.baseline(batch, returns_C, scored)
        advantages_N = scored.steps.of_sentences(returns_C) - baseline_N
        self.figures |= {**scored.figures(returns_C), "baseline": baseline_N.mean()}
        n_words = int((self.model.host_lengths(batch, self.model.tl) - 1).sum())
        terms = {"rl": common.lambda_rl * losses.reinforce_loss(scored.log_pi_N, advantages_N, n_words * n_samples)}
        if options.entropy_weight:
            terms["entropy"] = -options.entropy_weight * scored.entropy_N.mean()
        if scored.nll is not None:
            terms["mle"] = common.lambda_mle * scored.nll
        return ActorLoss(terms, n_words)

    def baseline(self, batch: Any, returns_C: Tensor, scored: Scored) -> Tensor:
        """What every step's translation has to exceed, without gradient."""
        kind, n_samples = self.options.baseline, self.options.n_samples
        if kind == "learnt":
            expected_N = self.learnt(scored.states_NH)
            self.figures["baseline_loss"] = self.learnt.learn(expected_N, scored.steps.of_sentences(returns_C))
            return expected_N.detach()
        if kind == "mean":
            returns_BS = returns_C.view(1, -1) if n_samples == 1 else returns_C.view(-1, n_samples)
            baseline_C = losses.leave_one_out(returns_BS).flatten()
        elif kind == "greedy":
            baseline_C = self.greedy_scores(batch).repeat_interleave(n_samples)
        else:
            baseline_C = torch.zeros_like(returns_C)
        return scored.steps.of_sentences(baseline_C)

    def greedy_scores(self, batch: Any) -> Tensor:
        """What greedy translations earn."""
        rollout = self.player.roll_out(self.model, batch, generator=None)
        judged = self.player.judge(self.model, batch, rollout, math.nan, generator=self.player.generator)
        return judged.experience.scores_B
