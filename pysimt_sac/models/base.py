"""`RLModel`: what every reinforcement-learning model shares, on either host.

It derives from the host's `SimultaneousNMT`, so that loaders, decoder, search and loop are the host's. An algorithm is
a subclass in a file of its own that says what the loss of a training batch is (`training_loss`).
"""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac import host
from pysimt_sac.engine.nmt import real_positions
from pysimt_sac.engine.options import ModelOptions, defaults

if TYPE_CHECKING:
    from pysimt_sac.engine.layers import States
    from pysimt_sac.engine.nmt import SimultaneousNMT as HostModel
else:
    HostModel = host.SimultaneousNMT


class RLModel(HostModel):
    """A translation model whose training loss is its own; validation and translation are the host's."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions,)

    def set_defaults(self) -> None:
        """Add the options that the host does not know."""
        super().set_defaults()
        for cls in self.option_classes:
            for name, value in defaults(cls).items():
                self.defaults.setdefault(name, value)

    def forward(self, batch: Any, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """In training, the algorithm's loss; in validation, the maximum-likelihood loss."""
        if not self.training:
            return super().forward(batch)
        return self.training_loss(batch, uctr, ectr)

    def training_loss(self, batch: Any, update: int, epoch: int) -> dict[str, Any]:
        """The loss of a batch, summed, as `{'loss': tensor, 'n_items': words}`; each algorithm has its own."""
        raise TypeError(f"{type(self).__name__} does not say what its training loss is")

    def states_of(self, batch: Any) -> "States":
        """The encoded source."""
        self.cache_enc_states(batch)
        return self.get_enc_state_dict()

    def log_probs(self, states: "States", ids_TB: Tensor, lengths_B: Tensor | None = None) -> Tensor:
        """Log-probabilities (N, V) of the next word at every real step of `<bos> ... <eos>`, by step, then by sentence.

        The engine's decoder takes all steps in one pass; pysimt's is asked for one after the other.
        """
        if hasattr(self.dec, "unroll"):
            readout_NE, _ = self.readouts(states, ids_TB, lengths_B)
            return self.dec.out2prob(readout_NE).log_softmax(-1)  # type: ignore[no-any-return]
        state, steps = self.dec.f_init(states), []  # type: ignore[func-returns-value]
        for ids_B in ids_TB[:-1]:
            log_p_BV, state = self.dec.f_next(states, self.dec.get_emb(ids_B), state)
            steps.append(log_p_BV)
        return torch.cat(steps).index_select(0, real_positions(ids_TB, lengths_B))
