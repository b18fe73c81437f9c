"""`MIXERNMT`: mixed incremental cross-entropy reinforcement (Ranzato et al. 2016).

Of every sentence, the words before a border are the reference's, and learnt by cross-entropy; those behind it are
sampled, and learnt by REINFORCE with a learnt linear baseline. The border is relative to each sentence's end: it begins
`mixer_delta` words before it, and moves that much further to the front every `mixer_every` epochs or updates, until
whole translations are sampled. `lambda_mle` is the weight of the first part, `lambda_rl` that of the second.
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
from pysimt_sac.rl.scoring import rescore, state_size


@dataclasses.dataclass(frozen=True)
class MIXEROptions:
    """The keys of `[model]` that only MIXER has."""

    mixer_delta: int = option(3, "words from one border to the next, and from the end to the first", minimum=1)
    mixer_every: int = option(5, "how many epochs or updates it stays in one place", minimum=1)
    mixer_unit: str = option("epochs", "what mixer_every counts", choices=("epochs", "updates"))


@MODELS.register("MIXERNMT")
class MIXERNMT(RLModel):
    """The actor; the baseline is in its `MIXERLearner`."""

    option_classes: ClassVar[tuple[type, ...]] = (
        ModelOptions, RLOptions, RewardOptions, BaselineOptions, MIXEROptions,
    )  # fmt: skip

    def make_learner(self) -> "MIXERLearner":
        """Built when training begins."""
        return MIXERLearner(self)


class MIXERLearner(Learner):
    """One update of MIXER; see the top of this file."""

    def __init__(self, model: MIXERNMT) -> None:
        super().__init__(model)
        self.options: MIXEROptions = model.read_options(MIXEROptions)
        lr = model.read_options(BaselineOptions).baseline_lr
        self.baseline = LearntBaseline(state_size(model), lr, self.device)
        self.parts["baseline"] = self.baseline

    def borders(self, lengths_B: Tensor, update: int, epoch: int) -> Tensor:
        """How many of the first words are the reference's; lengths with `<bos>` and `<eos>`."""
        done = (epoch if self.options.mixer_unit == "epochs" else update) - 1
        n_sampled = self.options.mixer_delta * (1 + done // self.options.mixer_every)
        return (lengths_B - 2 - n_sampled).clamp(min=0)

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Begin with the reference's words, sample the rest, and score all of it again with gradient."""
        model, common, lengths_B = self.model, self.common, self.model.host_lengths(batch, self.model.tl)
        borders_B = self.borders(lengths_B, update, epoch).to(self.device)
        reference_TB = batch[model.tl][1:]
        times_T1 = torch.arange(len(reference_TB), device=self.device).unsqueeze(1)
        forced_TB = reference_TB.masked_fill(times_T1 >= borders_B, 0)
        experience = self.player.play(model, batch, math.nan, update, forced_TB=forced_TB)
        every_B = torch.arange(batch.size, device=self.device)
        scored = rescore(model, batch, experience, every_B, common.rollout_dropout, with_nll=False)
        steps, returns_N = scored.steps, scored.steps.of_sentences(experience.scores_B)
        sampled_N = steps.times_N >= steps.of_sentences(borders_B)
        expected_N = self.baseline(scored.states_NH)
        self.figures["baseline_loss"] = self.baseline.learn(expected_N[sampled_N], returns_N[sampled_N])
        n_words = int((lengths_B - 1).sum())
        advantages_N = returns_N - expected_N
        cross_entropy, reinforcement = losses.mixer_losses(
            scored.log_p_N, scored.log_pi_N, advantages_N, sampled_N, n_words
        )
        self.figures |= scored.figures(experience.scores_B)
        self.figures |= {"baseline": expected_N.detach()[sampled_N].mean(), "sampled_steps": sampled_N.float().mean()}
        terms = {"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * cross_entropy}
        return ActorLoss(terms, n_words)
