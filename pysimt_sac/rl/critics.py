"""A critic: the actor's architecture, but its encoder reads the *reference*, and its output is Q, not a softmax.

Q(s, a) is the sum of what the state is worth, V(s), and of what the word adds. Without a part of its own for the
former, the words' weights would have to carry it, and words of early positions, where more is still to be earned, would
look better than others wherever they are compared.

It runs through a batch once (`forward`); from what its output layer then sees, Q is had for the words that were taken,
for a support, or for all words. The first two multiply by the rows of those words alone. There is no dropout. Critics
use the engine's layers whatever the host is.
"""

import dataclasses
import re

import torch
from torch import Tensor, nn

from pysimt_sac.engine.config.options import ModelOptions
from pysimt_sac.engine.data.vocabulary import PAD
from pysimt_sac.engine.network.layers import ConditionalGRUDecoder, RecurrentEncoder
from pysimt_sac.engine.network.output import linear_rows
from pysimt_sac.rl.steps import Steps


class Critic(nn.Module):
    """Q(s, a) of a target vocabulary's words, given the reference and the words so far. It begins at Q = 0."""

    def __init__(self, options: ModelOptions, n_vocab: int) -> None:
        super().__init__()
        options = dataclasses.replace(options, dropout_emb=0.0, dropout_ctx=0.0, dropout_enc=0.0, dropout_out=0.0)
        self.encoder = RecurrentEncoder(options, n_vocab)
        self.dec = ConditionalGRUDecoder(options, n_vocab, {"ref": self.encoder.ctx_size})
        if options.tied_emb == "3way":
            self.encoder.emb.weight = self.dec.emb.weight
        self.value = nn.Linear(self.dec.out2prob.in_features, 1)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """As the actor's, but with `hid2out` at zero, so that Q is the output's bias, which is zero, too."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter)
        self.encoder.emb.weight[PAD].zero_()
        self.dec.emb.weight[PAD].zero_()
        for start in (self.dec.hid2out.weight, self.dec.hid2out.bias, self.dec.out2prob.bias, self.value.bias):
            start.zero_()

    @torch.no_grad()
    def start_from(self, actor_dec: nn.Module) -> list[str]:
        """Take embeddings and decoder from the actor's decoder, and name what was taken; Q still begins at 0."""
        own = self.dec.state_dict()
        taken = []
        for name, weight in actor_dec.state_dict().items():
            name = re.sub(r"^att\.[^.]+\.", "att.ref.", name)
            fits = name in own and own[name].shape == weight.shape
            if fits and not name.startswith("hid2out.") and name != "out2prob.bias":
                own[name].copy_(weight)
                taken.append(name)
        self.encoder.emb.weight.copy_(self.dec.emb.weight)
        return taken

    def forward(self, reference_TB: Tensor, reference_lengths_B: Tensor, words_TB: Tensor, steps: Steps) -> Tensor:
        """What the output layer sees (N, E) at every real step.

        Both word arrays are in the layout `<bos> ... <eos>`; the encoder reads `... <eos>`, as sources are.
        """
        states = self.encoder(reference_TB[1:], reference_lengths_B - 1)
        return self.dec.readouts({"ref": states}, words_TB[:-1], steps.positions_N)

    def q_of(self, readout_NE: Tensor, words: Tensor) -> Tensor:
        """Q of one word (N) or of K words (N, K) per step."""
        value_N1: Tensor = self.value(readout_NE)
        return linear_rows(self.dec.out2prob, readout_NE, words) + (
            value_N1 if words.dim() > 1 else value_N1.squeeze(1)
        )

    def q_of_all(self, readout_NE: Tensor) -> Tensor:
        """Q of all words, (N, V)."""
        return self.dec.out2prob(readout_NE) + self.value(readout_NE)  # type: ignore[no-any-return]
