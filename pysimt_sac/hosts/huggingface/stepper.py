"""Decoding step by step with a key-value cache, for rollouts and searches.

Positions follow from the length of the cache, so all hypotheses that share one have as many words. A fork continues
prefixes of different lengths: it has a cache for each length.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.vocabulary import BOS, PAD, UNK
from pysimt_sac.hosts.huggingface.ids import Ids
from pysimt_sac.hosts.huggingface.options import library
from pysimt_sac.hosts.huggingface.output import output_of
from pysimt_sac.rl.rollout import select_encoded


@dataclass
class Group:
    """Hypotheses of one length, and their cache.

    rows_N: their places in the batch, in order. inputs_NT: what the decoder has not read yet.
    """

    rows_N: Tensor
    states_NSC: Tensor
    mask_NS: Tensor
    inputs_NT: Tensor
    cache: Any

    def select(self, places_N: Tensor, rows_N: Tensor) -> None:
        """Keep some of the hypotheses, at other places in the batch; one may be repeated."""
        self.rows_N = rows_N
        self.states_NSC, self.mask_NS, self.inputs_NT = (
            part.index_select(0, places_N) for part in (self.states_NSC, self.mask_NS, self.inputs_NT)
        )
        if self.cache.get_seq_length():
            self.cache.batch_select_indices(places_N)


class HuggingFaceStepper:
    """A stepper that feeds K hypotheses of B sentences to the model as B times K sentences."""

    can_join = False

    def __init__(self, model: Any, ids: Ids, encoded: Encoded, suppress_unk: bool = False) -> None:
        self.model, self.encoded, self.device = model, encoded, encoded["src"][0].device
        self.ids = ids.on(self.device)
        self.forbidden = [PAD, BOS, UNK] if suppress_unk else [PAD, BOS]
        self.sentences_B = torch.arange(encoded["src"][0].size(1), device=self.device)
        self.tiles, self.longest = 1, 0
        self.times_B = torch.zeros_like(self.sentences_B)  # words of each hypothesis, `<bos>` included
        self.words_TB = torch.full((0, len(self.sentences_B)), PAD, device=self.device)  # of all sentences of the start
        before_BT = self.ids.start[:-1].expand(len(self.sentences_B), -1)
        self.groups = [self.group(self.sentences_B, before_BT)]

    def group(self, rows_N: Tensor, inputs_NT: Tensor) -> Group:
        """Return hypotheses of some sentences, with an empty cache."""
        states_SNC, mask_SN = select_encoded(self.encoded, rows_N)["src"]
        assert mask_SN is not None
        caches, config = library("transformers.cache_utils"), self.model.config
        cache = caches.EncoderDecoderCache(caches.DynamicCache(config=config), caches.DynamicCache(config=config))
        return Group(rows_N, states_SNC.transpose(0, 1), mask_SN.t().long(), inputs_NT, cache)

    @torch.no_grad()
    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return the log-probabilities (B, K, V) of the next words; minus infinity for forbidden ones."""
        tokens_N = tokens_BK.flatten()
        if self.tiles == 1:
            self.remember(tokens_N)
        scores_NV = self.next_scores(self.groups[0], tokens_N)
        if len(self.groups) > 1:
            found_NV, scores_NV = scores_NV, scores_NV.new_empty(len(tokens_N), scores_NV.size(1))
            scores_NV[self.groups[0].rows_N] = found_NV
            for group in self.groups[1:]:
                scores_NV[group.rows_N] = self.next_scores(group, tokens_N)
        log_p_NV = scores_NV.log_softmax(-1)
        log_p_NV[:, self.forbidden] = -math.inf
        log_p_BKV: Tensor = log_p_NV.unflatten(0, tokens_BK.shape)
        return log_p_BKV

    def next_scores(self, group: Group, tokens_N: Tensor) -> Tensor:
        """Let a group read its last words; return the scores of its next words."""
        last_N1 = self.ids.theirs(tokens_N.index_select(0, group.rows_N)).unsqueeze(1)
        with output_of(self.model, lambda states_NTE: states_NTE[:, -1:]):
            out = self.model(
                encoder_outputs=(group.states_NSC,),
                attention_mask=group.mask_NS,
                decoder_input_ids=torch.cat((group.inputs_NT, last_N1), 1),
                past_key_values=group.cache,
                use_cache=True,
            )
        group.inputs_NT = group.inputs_NT[:, :0]
        return self.ids.scores(out.logits[:, -1])

    def remember(self, tokens_B: Tensor) -> None:
        """Keep the words that are fed, so that forks can feed them again."""
        self.longest += 1
        self.words_TB = nn.functional.pad(self.words_TB, (0, 0, 0, self.longest - len(self.words_TB)), value=PAD)
        self.words_TB[self.times_B, self.sentences_B] = tokens_B
        self.times_B = self.times_B + 1

    def likeliest(self, tokens_B: Tensor) -> Tensor:
        """Return the likeliest next word of one hypothesis per sentence."""
        return self.log_probs(tokens_B.unsqueeze(1)).squeeze(1).argmax(-1)

    def keep_sentences(self, indices: Tensor) -> None:
        """Continue with these sentences only."""
        self.keep_rows((indices.unsqueeze(1) * self.tiles + torch.arange(self.tiles, device=self.device)).flatten())
        self.sentences_B, self.times_B = self.sentences_B[indices], self.times_B[indices]

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Continue with these hypotheses of each sentence; one may be repeated."""
        first_B1 = torch.arange(len(parents_BK), device=self.device).unsqueeze(1) * self.tiles
        self.keep_rows((first_B1 + parents_BK).flatten())
        self.tiles = parents_BK.size(1)

    def keep_rows(self, rows_N: Tensor) -> None:
        """Continue with these hypotheses, by their places in the batch."""
        if len(self.groups) == 1:
            self.groups[0].select(rows_N, torch.arange(len(rows_N), device=self.device))
            return
        kept = []
        for group in self.groups:
            place_of_row = torch.full((int(rows_N.max()) + 1,), -1, device=self.device)
            inside = group.rows_N <= rows_N.max()
            place_of_row[group.rows_N[inside]] = inside.nonzero().squeeze(1)
            places_N = place_of_row[rows_N]
            new_rows = (places_N >= 0).nonzero().squeeze(1)
            if len(new_rows):
                group.select(places_N[new_rows], new_rows)
                kept.append(group)
        self.groups = kept

    def join(self, other: "HuggingFaceStepper") -> None:
        """Raise TypeError: hypotheses of different lengths cannot share a cache."""
        raise TypeError("a cache cannot be joined with another")

    def decoder_states(self) -> Tensor:
        """Return what a fork needs (B, 1): how many words each hypothesis has."""
        return self.times_B.unsqueeze(1).float()

    def fork(self, sentences_C: Tensor, states_CH: Tensor) -> "HuggingFaceStepper":
        """Return a new stepper after the prefixes of given lengths, for sentences as numbered at the start."""
        forked = HuggingFaceStepper(self.model, self.ids, select_encoded(self.encoded, sentences_C))
        forked.forbidden, forked.times_B = self.forbidden, states_CH.squeeze(1).round().long()
        forked.words_TB, forked.longest = self.words_TB.index_select(1, sentences_C), self.longest
        forked.groups = []
        for length in forked.times_B.unique().tolist():
            rows_N = (forked.times_B == length).nonzero().squeeze(1)
            words_NT = self.ids.theirs(forked.words_TB[:length].index_select(1, rows_N)).t()
            before_NT = self.ids.start[:-1].expand(len(rows_N), -1)
            forked.groups.append(forked.group(rows_N, torch.cat((before_NT, words_NT), 1)))
        return forked
