"""`MLENMT`: maximum likelihood through `RLModel`.

The simplest example of an algorithm, and the control that continues maximum likelihood where others begin to reinforce.
"""

from typing import Any

from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.engine.network.nmt import real_positions
from pysimt_sac.models.base import RLModel


@MODELS.register("MLENMT")
class MLENMT(RLModel):
    """Its loss is that of `SimultaneousNMT`, computed from `log_probs` as every other algorithm computes its own."""

    def training_loss(self, batch: Any, update: int, epoch: int) -> dict[str, Any]:
        """Minus the log-probability of the references, summed over their words."""
        ids_TB = batch[self.tl]
        lengths_B = getattr(batch, "lengths", {}).get(self.tl)
        log_p_NV = self.log_probs(self.states_of(batch), ids_TB, lengths_B)
        targets_N = ids_TB[1:].flatten().index_select(0, real_positions(ids_TB, lengths_B))
        log_p_N = log_p_NV.gather(1, targets_N.unsqueeze(1))
        return {"loss": -log_p_N.sum(), "n_items": len(targets_N)}
