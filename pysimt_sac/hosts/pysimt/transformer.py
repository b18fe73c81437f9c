"""pysimt's Transformer as an `Actor`: whole sequences in one pass, and a stepper that carries prefixes.

This module does not import pysimt. pysimt's decoder has no cache: every step is a pass over the whole prefix.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.vocabulary import BOS, PAD
from pysimt_sac.hosts.network_actor import NetworkActor
from pysimt_sac.hosts.pysimt.actor import PysimtActor
from pysimt_sac.rl.rollout import select_encoded


def decode(dec: nn.Module, encoded: Encoded, tokens_TB: Tensor, wait: int | None) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities (T, B, V) after every word and the last layer's states (T, B, H)."""
    theirs = {}
    for name, (states_SBC, mask_SB) in encoded.items():
        assert mask_SB is not None
        theirs[name] = states_SBC, mask_SB.eq(0).t().unsqueeze(1)  # pysimt masks what must not be seen, as (B, 1, S)
    log_p_TBV, states_TBH = dec(theirs, tokens_TB, **({} if wait is None else {"k": wait}))
    return log_p_TBV, states_TBH


class TransformerActor(PysimtActor):
    """pysimt's Transformer as an `Actor`, consecutive or wait-k."""

    attended = NetworkActor.attended

    @property
    def state_size(self) -> int:
        """The size of the last layer's states."""
        return int(self.decoder.model_dim)

    def embed(self, words: Tensor) -> Tensor:
        """Embed target words, without their positions."""
        return nn.functional.embedding(words, self.decoder.trg_embedding.weight)

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""
        return {name: (states, batch[name].ne(PAD).long()) for name, (states, _) in super().encode(batch).items()}

    def stepper(self, encoded: Encoded) -> "TransformerStepper":  # type: ignore[override]
        """Return the policy one step at a time."""
        return TransformerStepper(self.decoder, encoded, self.wait)

    def unroll(self, encoded: Encoded, tokens_TB: Tensor, positions_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (N, V) and states (N, H) at given positions."""
        found = decode(self.decoder, encoded, tokens_TB[:-1], self.wait)
        log_p_NV, states_NH = (values.flatten(0, 1).index_select(0, positions_N) for values in found)
        return log_p_NV, states_NH


class TransformerStepper:
    """A stepper of one hypothesis per sentence. A fork finds its prefix again by sentence and number of words."""

    can_join = False

    def __init__(self, dec: nn.Module, encoded: Encoded, wait: int | None) -> None:
        self.dec, self.wait, self.encoded, self.whole = dec, wait, encoded, encoded
        states_SBC = next(iter(encoded.values()))[0]
        self.device, n_sentences = states_SBC.device, states_SBC.size(1)
        self.sentences_B = torch.arange(n_sentences, device=self.device)
        self.prefixes_TB = torch.full((0, n_sentences), PAD, device=self.device)  # of all sentences of the start
        self.lengths_B = torch.zeros(n_sentences, dtype=torch.long, device=self.device)

    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return the log-probabilities (B, 1, V) of the next words; minus infinity for forbidden ones."""
        rows_B, self.lengths_B = self.lengths_B[self.sentences_B], self.lengths_B.clone()
        more = int(rows_B.max()) + 1 - len(self.prefixes_TB)
        self.prefixes_TB = nn.functional.pad(self.prefixes_TB, (0, 0, 0, max(0, more)), value=PAD)
        self.prefixes_TB[rows_B, self.sentences_B] = tokens_BK.squeeze(1)
        self.lengths_B[self.sentences_B] += 1
        prefixes_TB = self.prefixes_TB[: int(rows_B.max()) + 1, self.sentences_B]
        log_p_TBV, _ = decode(self.dec, self.encoded, prefixes_TB, self.wait)
        log_p_BV = log_p_TBV[rows_B, torch.arange(len(rows_B), device=self.device)].clone()
        log_p_BV[:, [PAD, BOS]] = -math.inf
        return log_p_BV.unsqueeze(1)

    def likeliest(self, tokens_B: Tensor) -> Tensor:
        """Return the likeliest next word of one hypothesis per sentence."""
        return self.log_probs(tokens_B.unsqueeze(1)).squeeze(1).argmax(-1)

    def keep_sentences(self, indices: Tensor) -> None:
        """Continue with these sentences only."""
        self.encoded, self.sentences_B = select_encoded(self.encoded, indices), self.sentences_B[indices]

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Raise TypeError: pysimt's Transformer searches with pysimt's own beam search."""
        raise TypeError("one hypothesis per sentence")

    def join(self, other: "TransformerStepper") -> None:
        """Raise TypeError: joining is unsupported, because pysimt pads each batch separately."""
        raise TypeError("pysimt's decoders cannot join another batch")

    def decoder_states(self) -> Tensor:
        """Return what a fork needs (B, 1): how many words each hypothesis has."""
        return self.lengths_B[self.sentences_B].unsqueeze(1).float()

    def fork(self, sentences_C: Tensor, states_CH: Tensor) -> "TransformerStepper":
        """Return a new stepper after the prefixes of given lengths, for sentences as numbered at the start."""
        forked = copy.copy(self)
        forked.encoded = forked.whole = select_encoded(self.whole, sentences_C)
        forked.sentences_B = torch.arange(len(sentences_C), device=self.device)
        forked.lengths_B = states_CH.squeeze(1).round().long()
        kept = [self.prefixes_TB[:length, place] for length, place in zip(forked.lengths_B, sentences_C, strict=True)]
        forked.prefixes_TB = pad_sequence(kept, padding_value=PAD)
        return forked
