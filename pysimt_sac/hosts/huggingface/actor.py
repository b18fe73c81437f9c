"""A model of transformers as an `Actor`: whole sequences in one pass, rollouts with a cache."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded, TakenWords
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import IMPOSSIBLE, Support, find_support, full_policy, policy_on_support
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.hosts.huggingface.ids import Ids
from pysimt_sac.hosts.huggingface.output import OutputLayer, output_of
from pysimt_sac.hosts.huggingface.stepper import HuggingFaceStepper
from pysimt_sac.hosts.network_actor import LoadBatches, NetworkActor
from pysimt_sac.network.output import CHUNK, linear_cross_entropy, linear_log_probs, linear_rows


class HuggingFaceActor(NetworkActor):
    """A sequence-to-sequence model of transformers as an `Actor`.

    ids: how its tokenizer's ids become ours. precision: of passes with gradient.
    """

    piece_filters = ("de-spm",)

    def __init__(
        self, model: Any, ids: Ids, tokens: Sequence[str], load_batches: LoadBatches, precision: str = "float32"
    ) -> None:
        super().__init__(nn.ModuleDict({"dec": model}), "src", "trg", tokens, load_batches, tokens)
        self.ids, self.precision = ids.on(self.device), precision

    @property
    def state_size(self) -> int:
        """The size of the output layer's input."""
        return int(self.output.weight.size(1))

    @property
    def output(self) -> Any:
        """The output layer, in the tokenizer's order."""
        return OutputLayer.of(self.decoder)

    def autocast(self) -> AbstractContextManager[object]:
        """Compute matrix products in a lower precision inside the block, if gradients are enabled."""
        if self.precision == "float32" or not torch.is_grad_enabled():
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, self.precision))

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""
        ids_BS, mask_SB = self.ids.theirs(batch[self.source]).t(), batch[self.source].ne(PAD)
        with self.autocast():
            out = self.decoder.get_encoder()(input_ids=ids_BS, attention_mask=mask_SB.t().long())
        return {self.source: (out.last_hidden_state.transpose(0, 1).to(self.decoder.dtype), mask_SB)}

    def embed(self, words: Tensor) -> Tensor:
        """Embed target words."""
        return self.decoder.get_decoder().get_input_embeddings()(self.ids.theirs(words))  # type: ignore[no-any-return]

    def stepper(self, encoded: Encoded) -> HuggingFaceStepper:
        """Return the policy one step at a time."""
        return HuggingFaceStepper(self.decoder, self.ids, encoded)

    def readouts(self, encoded: Encoded, tokens_TB: Tensor, positions_N: Tensor) -> Tensor:
        """Return the output layer's input (N, E) at given positions of a flattened (T, B) array.

        Padding needs no mask: it is on the right, and no position sees those after it.
        """
        states_SBC, mask_SB = encoded[self.source]
        assert mask_SB is not None
        words_BT = self.ids.theirs(tokens_TB[:-1]).t()
        before_BT = self.ids.start[:-1].expand(len(words_BT), -1)
        seen: list[Tensor] = []

        def take(states_BTE: Tensor) -> Tensor:
            seen.append(states_BTE)
            return states_BTE[:, :0]

        with self.autocast(), output_of(self.decoder, take):
            self.decoder(
                encoder_outputs=(states_SBC.transpose(0, 1),),
                attention_mask=mask_SB.t().long(),
                decoder_input_ids=torch.cat((before_BT, words_BT), 1),
                use_cache=False,
            )
        states_TBE = seen[0][:, before_BT.size(1) :].transpose(0, 1)
        return states_TBE.flatten(0, 1).index_select(0, positions_N).to(self.decoder.dtype)

    def log_probs(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps) -> Tensor:
        """Return the log-probabilities (N, V) of the next word."""
        return self.scores(self.readouts(encoded, tokens_TB, steps.positions_N)).log_softmax(-1)

    def scores(self, readout_NE: Tensor) -> Tensor:
        """Return the scores (N, V) of all words."""
        return self.ids.scores(self.output(readout_NE))

    def policy(
        self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """Return log pi (N, A); the support is found in slices, so that no more is computed of all words."""
        if k == 0:
            return full_policy(self.log_probs(encoded, tokens_TB, steps)), None
        readout_NE = self.readouts(encoded, tokens_TB, steps.positions_N)
        with torch.no_grad():
            slices = zip(readout_NE.split(CHUNK), taken.split(CHUNK), strict=True)
            found = [find_support(self.scores(readout), words, k, least) for readout, words in slices]
        support = Support(*map(torch.cat, zip(*found, strict=True)))
        return self.on_support(readout_NE, support), support

    def on_support(self, readout_NE: Tensor, support: Support) -> Tensor:
        """Return log pi (N, K) over a support."""
        return policy_on_support(linear_rows(self.output, readout_NE, self.ids.theirs(support.tokens_NK)), support)

    def policy_on(
        self,
        encoded: Encoded,
        tokens_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
    ) -> Tensor:
        """Return log pi (N, A) over a given support, or over all words."""
        readout_NE = self.readouts(encoded, tokens_TB, positions_N)
        if support is None:
            return full_policy(self.scores(readout_NE).log_softmax(-1))
        return self.on_support(readout_NE, support)

    def taken_words(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score the words of given hypotheses, in slices.

        log pi is the log-probability without `<pad>`: its score is left out of the sum, and joined again for log p.
        """
        readout_NE = self.readouts(encoded, tokens_TB, steps.positions_N)
        taken_N, output, pad = self.ids.theirs(steps.flatten(tokens_TB[1:])), self.output, self.ids.pad
        without_pad = OutputLayer(
            output.weight, output.bias.index_fill(0, torch.full_like(taken_N[:1], pad), IMPOSSIBLE)
        )
        log_pi_N, _, entropy_N = linear_log_probs(without_pad, readout_NE, taken_N, 0, temperature)  # type: ignore[arg-type]
        both = linear_rows(output, readout_NE, torch.stack((taken_N, torch.full_like(taken_N, pad)), 1)) / temperature
        log_others_N = both[:, 0] - log_pi_N  # the log of the sum over all words but `<pad>`
        log_p_N = log_pi_N - nn.functional.softplus(both[:, 1] - log_others_N)
        return TakenWords(log_pi_N, log_p_N, entropy_N, readout_NE.detach())

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """Return the mean negative log-likelihood per word of the references."""
        steps = Steps.of(reference_RB.ne(PAD).sum(0).cpu(), reference_RB.device)
        return self.summed_nll(encoded, reference_RB, steps) / len(steps)

    def summed_nll(self, encoded: Encoded, reference_RB: Tensor, steps: Steps, smoothing: float = 0.0) -> Tensor:
        """Return the references' negative log-likelihood, label-smoothed if that is wanted."""
        readout_NE = self.readouts(encoded, reference_RB, steps.positions_N)
        targets_N = self.ids.theirs(steps.flatten(reference_RB[1:]))
        return linear_cross_entropy(self.output, readout_NE, targets_N, smoothing)
