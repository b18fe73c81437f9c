"""`MRTNMT`: minimum risk training (Shen et al. 2016).

The candidates of a source are the unique ones among `n_samples` sampled hypotheses and, with `mrt_reference`, its
reference. Their probabilities are raised to the power `mrt_sharpness` and normalised over the candidates; training
maximises the expected return under this distribution. (The logged metrics of samples then include the reference.)
"""

import dataclasses

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, return_metrics
from pysimt_sac.rl.rollout import select_encoded
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class MRTOptions:
    """The `[model]` keys specific to minimum risk training."""

    n_samples: int = option(8, "hypotheses sampled of each source", minimum=2)
    mrt_reference: bool = option(False, "the reference is a candidate, too")
    sampling_temperature: float = option(1.0, "of the policy that samples: below 1 it is sharper", above=0)
    mrt_sharpness: float = option(0.005, "power of the candidates' probabilities", above=0)


@algorithm("MRTNMT")
class MRT(Algorithm):
    """Minimum risk training over a set of candidates."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, MRTOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(MRTOptions)
        self.collector: Collector = Collector(setup)
        self.parts = {"collector": self.collector}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Sample candidates, remove duplicates, and return the risk of the rest."""
        actor, common, options = self.actor, self.common, self.options
        n_candidates, forced_TB = options.n_samples + options.mrt_reference, None
        if options.mrt_reference:  # the first candidate of each source
            reference_TB = batch[actor.target][1:]
            forced_TB = torch.zeros_like(reference_TB).repeat_interleave(n_candidates, 1)
            forced_TB[:, ::n_candidates] = reference_TB
        temperature = options.sampling_temperature
        sampled = self.collector.collect(actor, batch, step, n_candidates, forced_TB, temperature)
        columns_C = unique_columns(sampled.tokens_TB, n_candidates).to(actor.device)
        candidates, sentences_C = sampled.select(columns_C), columns_C // n_candidates
        steps = candidates.steps
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            nll = actor.nll(encoded, batch[actor.target]) if common.lambda_mle > 0 else None
            taken = actor.taken_words(select_encoded(encoded, sentences_C), candidates.tokens_TB, steps)
        returns_C, log_pi_C = candidates.returns_B, steps.pad(taken.log_pi_N).sum(0)
        risk = losses.risk_loss(log_pi_C, returns_C, sentences_C, batch.size, options.mrt_sharpness)
        terms = {"rl": common.lambda_rl * risk}
        if nll is not None:
            terms["mle"] = common.lambda_mle * nll
            self.metrics["mle_loss"] = nll.detach()
        self.metrics |= return_metrics(returns_C, taken.entropy_N)
        self.metrics["candidates"] = len(columns_C) / batch.size
        return ActorLoss(terms, int((batch.lengths[actor.target] - 1).sum()))


def unique_columns(tokens_TC: Tensor, each: int) -> Tensor:
    """Return the first column of each distinct hypothesis of a source; each: adjacent columns per source."""
    first = {(column // each, *words): column for column, words in reversed([*enumerate(tokens_TC.t().tolist())])}
    return torch.tensor(sorted(first.values()))
