"""The engine's network as an `Actor`."""

from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded, TakenWords
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import Support, find_support, full_policy, policy_on_support
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT, real_positions
from pysimt_sac.hosts.network_actor import NetworkActor
from pysimt_sac.network.output import linear_cross_entropy, linear_log_probs, linear_rows
from pysimt_sac.network.stepper import RecurrentStepper


class EngineActor(NetworkActor):
    """The engine's network as an `Actor`; scores all steps of given hypotheses in one pass."""

    @classmethod
    def of(cls, model: SimultaneousNMT) -> "EngineActor":
        """Wrap a model as an actor."""
        networks = nn.ModuleDict({"encoders": model.encoders, "dec": model.dec})

        def load_batches(split: str, batch_size: int) -> list[Batch]:
            return list(model.load_data(split, batch_size, mode="eval").loader())

        return cls(networks, model.sl, model.tl, model.trg_vocab.tokens, load_batches, model.src_vocab.tokens)

    @property
    def state_size(self) -> int:
        """The size of the output layer's input."""
        return int(self.decoder.out2prob.in_features)

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""
        encoders: Any = self.networks["encoders"]
        return {name: encoder(batch[name], batch.lengths[name]) for name, encoder in encoders.items()}

    def stepper(self, encoded: Encoded) -> RecurrentStepper:
        """Return the policy one step at a time."""
        return RecurrentStepper(self.decoder, encoded, wait=self.decoder.wait)

    def readouts(self, encoded: Encoded, tokens_TB: Tensor, positions_N: Tensor) -> Tensor:
        """Return the output layer's input (N, E) at every real step."""
        return self.decoder.readouts(encoded, tokens_TB[:-1], positions_N)  # type: ignore[no-any-return]

    def log_probs(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps) -> Tensor:
        """Return the log-probabilities (N, V) of the next word."""
        readout_NE = self.readouts(encoded, tokens_TB, steps.positions_N)
        return self.decoder.out2prob(readout_NE).log_softmax(-1)  # type: ignore[no-any-return]

    def policy(
        self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """Return log pi (N, A); with a support, the gradient reaches only the output rows of its words."""
        if k == 0:
            return full_policy(self.log_probs(encoded, tokens_TB, steps)), None
        readout_NE, output = self.readouts(encoded, tokens_TB, steps.positions_N), self.decoder.out2prob
        with torch.no_grad():
            support = find_support(output(readout_NE), taken, k, least)
        return policy_on_support(linear_rows(output, readout_NE, support.tokens_NK), support), support

    def policy_on(
        self,
        encoded: Encoded,
        tokens_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
    ) -> Tensor:
        """Return log pi (N, A) over a given support, or over all words."""
        readout_NE, output = self.readouts(encoded, tokens_TB, positions_N), self.decoder.out2prob
        if support is None:
            return full_policy(output(readout_NE).log_softmax(-1))
        return policy_on_support(linear_rows(output, readout_NE, support.tokens_NK), support)

    def taken_words(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score the words of given hypotheses, in chunks: scores of the whole vocabulary would take much memory."""
        readout_NE, output = self.readouts(encoded, tokens_TB, steps.positions_N), self.decoder.out2prob
        scores = linear_log_probs(output, readout_NE, steps.flatten(tokens_TB[1:]), EOS, temperature)
        return TakenWords(*scores, readout_NE.detach())

    def attended(self, encoded: Encoded, tokens_TB: Tensor) -> Tensor:
        """Return the source position that every step of given hypotheses attends to most, (T, B)."""
        return self.decoder.attended(encoded, tokens_TB[:-1])  # type: ignore[no-any-return]

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """Return the mean negative log-likelihood per word of the references."""
        positions_N = real_positions(reference_RB.ne(PAD).sum(0).cpu()).to(reference_RB.device, non_blocking=True)
        targets_N = reference_RB[1:].flatten().index_select(0, positions_N)
        readout_NE = self.readouts(encoded, reference_RB, positions_N)
        return linear_cross_entropy(self.decoder.out2prob, readout_NE, targets_N) / len(targets_N)
