"""`MIXERNMT`: mixed incremental cross-entropy reinforcement (Ranzato et al. 2016).

In every sentence, the words before a border are taken from the reference and trained by cross-entropy; those after it
are sampled and trained by REINFORCE with a learned linear baseline. The border is relative to the sentence's end: it
starts `mixer_delta` words before the end and moves `mixer_delta` words towards the start every `mixer_every` updates,
until whole hypotheses are sampled. `lambda_mle` weights the first part, `lambda_rl` the second. Rewards,
`sampled_bleu` and lengths refer to whole hypotheses, reference words included.
"""

import dataclasses

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, return_metrics
from pysimt_sac.rl.estimators import BaselineOptions, LearnedBaseline
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class MIXEROptions:
    """The `[model]` keys specific to MIXER."""

    mixer_delta: int = option(3, "words from one border to the next, and from the end to the first", minimum=1)
    mixer_every: int = option(200, "updates in which the border stays in one place", minimum=1)


@algorithm("MIXERNMT")
class MIXER(Algorithm):
    """Cross-entropy before a border, REINFORCE after it."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, BaselineOptions, MIXEROptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(MIXEROptions)
        self.collector: Collector = Collector(setup)
        lr = setup.read(BaselineOptions).baseline_lr
        self.baseline = LearnedBaseline(self.actor.state_size, lr, self.actor.device)
        self.parts = {"collector": self.collector, "baseline": self.baseline}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Start from a prefix of the reference, sample the rest, and return the loss of both parts."""
        actor, common, lengths_B = self.actor, self.common, batch.lengths[self.actor.target]
        borders_B = self.borders(lengths_B, step).to(actor.device)
        reference_TB = batch[actor.target][1:]
        times_T1 = torch.arange(len(reference_TB), device=actor.device).unsqueeze(1)
        forced_TB = reference_TB.masked_fill(times_T1 >= borders_B, PAD)
        experience = self.collector.collect(actor, batch, step, forced_TB=forced_TB)
        steps = experience.steps
        with actor.training_mode(common.gradient_dropout):
            taken = actor.taken_words(actor.encode(batch), experience.tokens_TB, steps)
        returns_N = steps.of_sentences(experience.returns_B)
        sampled_N = steps.times_N >= steps.of_sentences(borders_B)
        predicted_N = self.baseline(taken.states_NH)
        baseline_loss = self.baseline.update(predicted_N[sampled_N], returns_N[sampled_N])
        n_words = int((lengths_B - 1).sum())
        cross_entropy, reinforcement = losses.mixer_losses(
            taken.log_p_N, taken.log_pi_N, returns_N - predicted_N, sampled_N, n_words
        )
        self.metrics |= return_metrics(experience.returns_B, taken.entropy_N)
        self.metrics |= {"baseline": predicted_N.detach()[sampled_N].mean(), "baseline_loss": baseline_loss}
        self.metrics["sampled_steps"] = sampled_N.float().mean()
        terms = {"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * cross_entropy}
        return ActorLoss(terms, n_words)

    def borders(self, lengths_B: Tensor, step: int) -> Tensor:
        """Return how many initial words come from the reference; lengths include `<bos>` and `<eos>`."""
        n_sampled = self.options.mixer_delta * (1 + (step - 1) // self.options.mixer_every)
        most = max(0, self.common.rollout_max_len - self.options.mixer_delta)  # so that at least some words are sampled
        return (lengths_B - 2 - n_sampled).clamp(min=0, max=most)
