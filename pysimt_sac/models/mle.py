"""`MLENMT`: maximum likelihood as an algorithm.

It is the shortest example of an algorithm, and the control: continued maximum likelihood from the same checkpoint.
"""

from pysimt_sac.core.batch import Batch
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm


@algorithm("MLENMT")
class MLE(Algorithm):
    """Maximum likelihood: minimises the negative log-likelihood of the references (Eq. 1)."""

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Return the mean negative log-likelihood per word."""
        nll = self.actor.nll(self.actor.encode(batch), batch[self.actor.target])
        return ActorLoss({"mle": nll}, int((batch.lengths[self.actor.target] - 1).sum()))
