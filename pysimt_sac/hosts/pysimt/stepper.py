"""Decoding with pysimt's models: a `Stepper` on the decoder protocol only (`f_init`, `get_emb`, `f_next`).

A wait-k policy has read k source words when it writes its first word, and one more at each further step. Its state is
the decoder's and, in one more column, the number of source words read.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.vocabulary import BOS, PAD, UNK
from pysimt_sac.network.stepper import join_state, split_state
from pysimt_sac.rl.rollout import select_encoded

IMAGE = "image"  # pysimt's only input beside `src`


def read_words(states: Encoded, read_N: Tensor) -> Encoded:
    """Mask all but the first words of each source: as many as have been read. Images are seen from the start."""
    visible = dict(states)
    for name, (states_SNC, mask_SN) in states.items():
        if name == IMAGE:
            continue
        places_S1 = torch.arange(len(states_SNC), device=read_N.device).unsqueeze(1)
        read_SN = (places_S1 < read_N).long()
        visible[name] = states_SNC, read_SN if mask_SN is None else mask_SN * read_SN
    return visible


class PysimtStepper:
    """A stepper that feeds K hypotheses of B sentences to the decoder as B times K sentences.

    wait: the k of a wait-k policy; None: the whole source has been read.
    """

    can_join = False

    def __init__(self, dec: Any, states: Encoded, suppress_unk: bool = False, wait: int | None = None) -> None:
        self.device = next(iter(states.values()))[0].device
        self.dec, self.states = dec, states
        self.forbidden = [PAD, BOS, UNK] if suppress_unk else [PAD, BOS]
        self.h_NH: Tensor | None = dec.f_init(states)
        self.tiled, self.tiles = states, 1
        self.whole_states = states
        n_sentences = next(iter(states.values()))[0].size(1)
        self.read_N = None if wait is None else torch.full((n_sentences,), wait, device=self.device)

    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return the log-probabilities (B, K, V) of the next words; minus infinity for forbidden ones."""
        visible = self.tiled if self.read_N is None else read_words(self.tiled, self.read_N)
        log_p_NV, self.h_NH = self.dec.f_next(visible, self.dec.get_emb(tokens_BK.flatten()), self.h_NH)
        self.read_N = None if self.read_N is None else self.read_N + 1
        logits_BKV: Tensor = log_p_NV.unflatten(0, tokens_BK.shape).clone()
        logits_BKV[..., self.forbidden] = -math.inf
        return logits_BKV

    def likeliest(self, tokens_B: Tensor) -> Tensor:
        """Return the likeliest next word of one hypothesis per sentence."""
        return self.log_probs(tokens_B.unsqueeze(1)).squeeze(1).argmax(-1)

    def keep_sentences(self, indices: Tensor) -> None:
        """Continue with these sentences only."""
        self.states = select_encoded(self.states, indices)
        rows_N = (indices.unsqueeze(1) * self.tiles + torch.arange(self.tiles, device=indices.device)).flatten()
        self.tiled = select_encoded(self.tiled, rows_N) if self.tiles > 1 else self.states
        self.keep_rows(rows_N)

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Continue with these hypotheses of each sentence; one may be selected several times."""
        first_B1 = torch.arange(len(parents_BK), device=parents_BK.device).unsqueeze(1) * self.tiles
        self.keep_rows((first_B1 + parents_BK).flatten())
        if parents_BK.size(1) != self.tiles:
            every_N = torch.arange(len(parents_BK), device=parents_BK.device).repeat_interleave(parents_BK.size(1))
            self.tiled, self.tiles = select_encoded(self.states, every_N), parents_BK.size(1)

    def keep_rows(self, rows_N: Tensor) -> None:
        """Continue with these rows of the states."""
        self.h_NH = None if self.h_NH is None else self.h_NH.index_select(0, rows_N)
        self.read_N = None if self.read_N is None else self.read_N.index_select(0, rows_N)

    def decoder_states(self) -> Tensor:
        """Return the decoder states (B, H) of one hypothesis per sentence after the last step."""
        assert self.h_NH is not None
        return self.h_NH if self.read_N is None else join_state(self.h_NH, self.read_N)

    def fork(self, sentences_C: Tensor, states_CH: Tensor) -> "PysimtStepper":
        """Return a new stepper in given decoder states, for sentences by their original indices."""
        forked = copy.copy(self)
        forked.states = forked.tiled = forked.whole_states = select_encoded(self.whole_states, sentences_C)
        forked.tiles, forked.h_NH = 1, states_CH
        if self.read_N is not None:
            forked.h_NH, forked.read_N = split_state(states_CH)
        return forked

    def join(self, other: "PysimtStepper") -> None:
        """Raise TypeError: joining is unsupported, because pysimt pads each batch separately."""
        raise TypeError("pysimt's decoders cannot join another batch")


class SearchablePysimtModel:
    """A pysimt model with the interface that the engine's search and `Translator` expect."""

    def __init__(self, model: Any) -> None:
        self.model, self.opts, self.sl, self.load_data = model, model.opts, model.sl, model.load_data
        self.src_vocab, self.trg_vocab = model.src_vocab, model.trg_vocab

    def encode(self, batch: Any) -> Encoded:
        """Return the states of all encoders."""
        self.model.cache_enc_states(batch)
        return self.model.get_enc_state_dict()  # type: ignore[no-any-return]

    def stepper(self, states: Encoded, suppress_unk: bool = False, normalise: bool = True) -> PysimtStepper:
        """Return a stepper; pysimt's decoders always normalise."""
        return PysimtStepper(self.model.dec, states, suppress_unk)
