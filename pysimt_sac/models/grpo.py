"""`GRPONMT`: group-relative policy optimisation (Shao et al. 2024), the policy gradient on groups of samples.

Every update samples a group of `n_samples` hypotheses of each source. The advantage of one is the deviation of its
return from its group's mean, by default in standard deviations of the group. Samples are used once, so that there is no
probability ratio to clip; the KL term of the paper is `kl_weight`. With `scale_advantages: False` the advantages are
(n - 1) / n times those of RLOO, which is `REINFORCENMT` with its default baseline.
"""

import dataclasses

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector, return_metrics
from pysimt_sac.rl.rollout import repeat_encoded
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@dataclasses.dataclass(frozen=True)
class GRPOOptions:
    """The `[model]` keys specific to GRPO."""

    n_samples: int = option(8, "hypotheses sampled of each source", minimum=2)
    scale_advantages: bool = option(True, "divide the advantages by the standard deviation of their group")


@algorithm("GRPONMT")
class GRPO(Algorithm):
    """The policy gradient with advantages relative to a group."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, GRPOOptions)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(GRPOOptions)
        self.collector: Collector = Collector(setup)
        self.parts = {"collector": self.collector}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Sample a group of hypotheses of each source and return the loss of their relative advantages."""
        actor, common, n_samples = self.actor, self.common, self.options.n_samples
        experience = self.collector.collect(actor, batch, step, n_samples)
        steps = experience.steps
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            nll = actor.nll(encoded, batch[actor.target])
            taken = actor.taken_words(repeat_encoded(encoded, n_samples), experience.tokens_TB, steps)
        returns_BS = experience.returns_B.view(-1, n_samples)
        advantages_BS = losses.group_advantages(returns_BS, self.options.scale_advantages)
        n_words = int((batch.lengths[actor.target] - 1).sum())
        advantages_N = steps.of_sentences(advantages_BS.flatten())
        rl = losses.reinforce_loss(taken.log_pi_N, advantages_N, n_words * n_samples)
        self.metrics |= {**return_metrics(experience.returns_B, taken.entropy_N), "mle_loss": nll.detach()}
        return ActorLoss({"rl": common.lambda_rl * rl, "mle": common.lambda_mle * nll}, n_words)
