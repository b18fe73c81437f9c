"""`REINFORCENMT`: the policy gradient on whole hypotheses (Williams 1992), with a choice of baselines.

With the default baseline it is RLOO (REINFORCE leave-one-out, Kool et al. 2019; Ahmadian et al. 2024).

Every update samples `n_samples` hypotheses for each source and raises the probability of those whose return exceeds the
baseline. None of the baselines depends on the sample it is subtracted from, so none biases the gradient if words are
scored by the policy that sampled them. With `gradient_dropout`, the default, they are not: samples come from pi, scores
from pi with dropout, whose mean score under pi is not 0. The gradient is then slightly biased, by a constant baseline,
too; `gradient_dropout: False` removes the bias and the regularisation.

- `no`: no baseline;
- `mean`: the mean return of the source's other samples (leave-one-out), or of the rest of the batch if n_samples is 1;
- `greedy`: the return of the source's greedy hypothesis (self-critical training);
- `learned`: a linear function of the decoder state before each word.
"""

import dataclasses

import torch
from torch import Tensor

from pysimt_sac.core.actor import TakenWords
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.steps import Steps
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, return_metrics
from pysimt_sac.rl.estimators import BaselineOptions, LearnedBaseline
from pysimt_sac.rl.rollout import repeat_encoded
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class REINFORCEOptions:
    """The `[model]` keys specific to REINFORCE."""

    baseline: str = option(
        "mean",
        "baseline of the return: none, the mean of the source's other samples (of the batch's other sentences, if "
        "n_samples is 1), the greedy hypothesis's return, or a learned linear one",
        choices=("no", "mean", "greedy", "learned"),
    )
    n_samples: int = option(8, "hypotheses sampled of each source", minimum=1)
    sampling_temperature: float = option(
        1.0, "of the policy that samples and is trained: below 1 it is sharper, nearer to greedy decoding", above=0
    )
    entropy_weight: float = option(0.0, "weight of the policy's entropy, which is kept high", minimum=0)


@algorithm("REINFORCENMT")
class REINFORCE(Algorithm):
    """The policy gradient with a baseline."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, BaselineOptions, REINFORCEOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(REINFORCEOptions)
        self.collector: Collector = Collector(setup)
        self.parts = {"collector": self.collector}
        if self.options.baseline == "learned":
            lr = setup.read(BaselineOptions).baseline_lr
            self.learned = LearnedBaseline(self.actor.state_size, lr, self.actor.device)
            self.parts["baseline"] = self.learned

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Sample hypotheses and return the policy-gradient loss of their advantages."""
        actor, common, n_samples = self.actor, self.common, self.options.n_samples
        temperature = self.options.sampling_temperature
        experience = self.collector.collect(actor, batch, step, n_samples, temperature=temperature)
        steps = experience.steps
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            nll = actor.nll(encoded, batch[actor.target]) if common.lambda_mle > 0 else None
            taken = actor.taken_words(repeat_encoded(encoded, n_samples), experience.tokens_TB, steps, temperature)
        returns_C = experience.returns_B
        baseline_N = self.baseline(batch, returns_C, taken, steps)
        advantages_N = steps.of_sentences(returns_C) - baseline_N
        n_words = int((batch.lengths[actor.target] - 1).sum())
        terms = {"rl": common.lambda_rl * losses.reinforce_loss(taken.log_pi_N, advantages_N, n_words * n_samples)}
        if self.options.entropy_weight:
            terms["entropy"] = -self.options.entropy_weight * taken.entropy_N.mean()
        if nll is not None:
            terms["mle"] = common.lambda_mle * nll
            self.metrics["mle_loss"] = nll.detach()
        self.metrics |= {**return_metrics(returns_C, taken.entropy_N), "baseline": baseline_N.mean()}
        return ActorLoss(terms, n_words)

    def baseline(self, batch: Batch, returns_C: Tensor, taken: TakenWords, steps: Steps) -> Tensor:
        """Return the baseline at every step, without gradient."""
        kind, n_samples = self.options.baseline, self.options.n_samples
        if kind == "learned":
            predicted_N = self.learned(taken.states_NH)
            loss = self.learned.update(predicted_N, steps.of_sentences(returns_C))
            self.metrics["baseline_loss"] = loss
            return predicted_N.detach()
        if kind == "mean" and n_samples == 1:
            baseline_C = losses.leave_one_out_of_batch(returns_C)
        elif kind == "mean":
            baseline_C = losses.leave_one_out(returns_C.view(-1, n_samples)).flatten()
        elif kind == "greedy":
            baseline_C = self.greedy_returns(batch).repeat_interleave(n_samples)
        else:
            baseline_C = torch.zeros_like(returns_C)
        return steps.of_sentences(baseline_C)

    def greedy_returns(self, batch: Batch) -> Tensor:
        """Decode the batch greedily and return the returns of the hypotheses."""
        _, rollout = self.collector.roll_out(self.actor, batch, generator=None)
        generator = self.collector.generator
        return self.collector.score(self.actor, batch, rollout, generator=generator).returns_B
