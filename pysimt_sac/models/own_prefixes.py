"""`OwnPrefixesNMT`: a control without reward, maximum likelihood at states that the actor itself visits.

Algorithms that sample also learn at prefixes that no reference has. Here the same prefixes are sampled, but their next
word is the reference's, as in `SACUnsupNMT` with `oracle_beta: 0`: what an algorithm gains beyond this is due to its
reward.
"""

from typing import ClassVar

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import entropy
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@algorithm("OwnPrefixesNMT")
class OwnPrefixes(Algorithm):
    """Maximum likelihood on sampled prefixes and on the references."""

    option_classes: ClassVar[tuple[type, ...]] = (*RL_OPTIONS, *REWARD_OPTIONS)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.collector: Collector = Collector(setup)
        self.parts = {"collector": self.collector}

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Return -log p(ref_t | y_1 ... y_{t-1}) of a sample y where y_{t-1} = ref_{t-1}, and the likelihood."""
        actor, common = self.actor, self.common
        experience = self.collector.collect(actor, batch, step)
        steps = experience.steps
        reference_N, aligned_N = steps.flatten(experience.reference_words_TB), steps.flatten(experience.aligned_TB)
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            log_p_NV = actor.log_probs(encoded, experience.tokens_TB, steps)
            nll = actor.nll(encoded, batch[actor.target])
        prefixes = losses.reference_loss(log_p_NV, reference_N, aligned_N)
        self.metrics |= {"aligned": aligned_N.float().mean(), "mle_loss": nll.detach()}
        self.metrics["entropy"] = entropy(log_p_NV.detach()).mean()
        return ActorLoss({"rl": common.lambda_rl * prefixes, "mle": common.lambda_mle * nll}, len(steps))
