"""Batched beam search and sampling; greedy search has its own file.

The searches see a model only as `Searchable`, so that they work with the engine's networks and with pysimt's.
Results never depend on which sentences share a batch: a sentence that is done leaves it.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from pysimt_sac.core.actor import Stepper
from pysimt_sac.core.policy import draw_words
from pysimt_sac.core.vocabulary import BOS, EOS, PAD

FULL_ENOUGH = 0.9  # finished sentences leave the batch when at most this share is unfinished


class Hypothesis(NamedTuple):
    """A translation, without its `<eos>`, and its length-normalised log-probability."""

    words: list[int]
    score: float


class Searchable(Protocol):
    """A model that can be searched: encodes a batch and steps through its decoder."""

    def encode(self, batch: Any) -> Any:
        """Return the states of the batch's source."""

    def stepper(self, states: Any, suppress_unk: bool = False, normalise: bool = True) -> Stepper:
        """Return a stepper before its first step; normalise: True for `log_probs`, False for `likeliest`."""


def length_normaliser(n_words: Tensor, lp_alpha: float) -> Tensor:
    """Return the divisor of a log-probability: the number of words, or ((5 + n) / 6)^alpha."""
    n_words = n_words.clamp(min=1)
    return ((5 + n_words) / 6) ** lp_alpha if lp_alpha > 0 else n_words


def finish(words: list[int], log_p: float) -> Hypothesis:
    """Make a hypothesis of the words up to `<eos>` and the total log-probability."""
    words = words[: words.index(EOS)] if EOS in words else words
    return Hypothesis(words, log_p / max(1, len(words)))


@torch.no_grad()
def sample(
    model: Searchable,
    batch: Any,
    max_len: int = 100,
    suppress_unk: bool = False,
    temperature: float = 1.0,
    top_k: int = 0,
    seed: int = 0,
    first_index: int = 0,
) -> list[Hypothesis]:
    """Sample every word from the policy, sharpened by `temperature` and cut to its `top_k` likeliest words.

    Each sentence has its own random numbers, from the seed and its position in the corpus, whatever its batch.
    first_index: the position of the first sentence, if the corpus is a part of a larger one.
    """
    indices = batch.indices if len(batch.indices) else range(batch.size)
    places = [[seed, first_index + index] for index in indices]
    stepper = model.stepper(model.encode(batch), suppress_unk)
    device = stepper.device
    draws_BT = torch.tensor(np.stack([np.random.default_rng(place).random(max_len) for place in places])).to(device)
    sentences = torch.arange(batch.size, device=device)
    tokens_B = torch.full((batch.size,), BOS, device=device)
    finished_B = torch.zeros(batch.size, dtype=torch.bool, device=device)
    chosen_BT = torch.full((batch.size, max_len), EOS, device=device)
    total_B = torch.zeros(batch.size, device=device)
    for step in range(max_len):
        log_p_BV = stepper.log_probs(tokens_B.unsqueeze(1)).squeeze(1)
        scaled_BV = log_p_BV.double() / temperature
        if top_k:
            threshold_B1 = scaled_BV.topk(top_k).values[:, -1:]
            scaled_BV = scaled_BV.masked_fill(scaled_BV < threshold_B1, -math.inf)
        tokens_B = draw_words(scaled_BV.softmax(-1), draws_BT[sentences, step])
        log_p_B = log_p_BV.gather(1, tokens_B.unsqueeze(1)).squeeze(1)
        total_B[sentences] += log_p_B.masked_fill_(finished_B, 0.0)
        chosen_BT[sentences, step] = tokens_B
        finished_B |= tokens_B.eq(EOS)
        unfinished = finished_B.logical_not().nonzero().squeeze(1)
        if len(unfinished) == 0:
            break
        if len(unfinished) <= FULL_ENOUGH * len(tokens_B):
            stepper.keep_sentences(unfinished)
            tokens_B, sentences, finished_B = tokens_B[unfinished], sentences[unfinished], finished_B[unfinished]
    return [finish(words, log_p) for words, log_p in zip(chosen_BT.tolist(), total_B.tolist(), strict=True)]


@torch.no_grad()
def beam_search(
    model: Searchable,
    batch: Any,
    beam_size: int,
    max_len: int = 100,
    suppress_unk: bool = False,
    lp_alpha: float = 0.0,
    n_best: bool = False,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of every sentence, best first; only the first is final unless `n_best` is set.

    A finished hypothesis keeps its score, and its place in the beam unless K likelier ones displace it: unfinished ones
    compete with it by log-probability. A sentence is done when all its hypotheses are finished, or when no unfinished
    one can still beat its best finished one.
    """
    stepper = model.stepper(model.encode(batch), suppress_unk)
    device = stepper.device
    results: list[list[Hypothesis]] = [[] for _ in range(batch.size)]
    sentences = torch.arange(batch.size, device=device)
    beam = Beam.start(batch.size, device)
    for step in range(max_len):
        beam, parents_BK = beam.extend(stepper.log_probs(beam.tokens_BKT[..., -1]), beam_size)
        stepper.keep_hypotheses(parents_BK)
        last_step = step + 1 == max_len
        done_B = beam.finished_BK.all(-1) if n_best else beam.can_stop(max_len, lp_alpha)
        if last_step:
            done_B = torch.ones_like(done_B)
        if bool(done_B.any()):
            for row in done_B.nonzero().squeeze(1).tolist():
                results[int(sentences[row])] = beam.hypotheses(row, lp_alpha, include_unfinished=last_step)
            unfinished = (~done_B).nonzero().squeeze(1)
            if len(unfinished) == 0:
                break
            stepper.keep_sentences(unfinished)
            beam, sentences = beam.keep(unfinished), sentences[unfinished]
    return results


class Beam(NamedTuple):
    """The hypotheses of each sentence: words from `<bos>` on, log-probabilities, and which are finished."""

    tokens_BKT: Tensor
    log_p_BK: Tensor
    finished_BK: Tensor

    @classmethod
    def start(cls, size: int, device: torch.device) -> "Beam":
        """Return one empty hypothesis per sentence."""
        return cls(
            torch.full((size, 1, 1), BOS, device=device),
            torch.zeros(size, 1, device=device),
            torch.zeros(size, 1, dtype=torch.bool, device=device),
        )

    def extend(self, next_log_p_BKV: Tensor, beam_size: int) -> tuple["Beam", Tensor]:
        """Return the best of the extended unfinished hypotheses and the padded finished ones, and their parents."""
        n_best = min(beam_size, next_log_p_BKV.size(-1))
        step_BKN, tokens_BKN = next_log_p_BKV.topk(n_best, dim=-1)
        # A finished hypothesis has one continuation, at no cost; the rest of its row are no candidates.
        stays_N = torch.full((n_best,), -math.inf, device=step_BKN.device)
        stays_N[0] = 0.0
        step_BKN = torch.where(self.finished_BK.unsqueeze(-1), stays_N, step_BKN)
        tokens_BKN = tokens_BKN.masked_fill(self.finished_BK.unsqueeze(-1), PAD)
        total_BKN = self.log_p_BK.unsqueeze(-1) + step_BKN
        log_p_BK, flat_BK = total_BKN.flatten(1).topk(min(beam_size, total_BKN[0].numel()), dim=-1)
        parents_BK = flat_BK // n_best
        tokens_BK = tokens_BKN.flatten(1).gather(1, flat_BK)
        history_BKT = self.tokens_BKT.gather(1, parents_BK.unsqueeze(-1).expand(-1, -1, self.tokens_BKT.size(-1)))
        # A slot without a candidate (fewer than K continuations exist) counts as finished, with a score of -inf.
        finished_BK = self.finished_BK.gather(1, parents_BK) | tokens_BK.eq(EOS) | log_p_BK.isneginf()
        return Beam(torch.cat((history_BKT, tokens_BK.unsqueeze(-1)), -1), log_p_BK, finished_BK), parents_BK

    def scores(self, lp_alpha: float) -> Tensor:
        """Return length-normalised log-probabilities (B, K)."""
        n_words_BK = self.tokens_BKT.gt(EOS).sum(-1)
        return self.log_p_BK / length_normaliser(n_words_BK.to(self.log_p_BK.dtype), lp_alpha)

    def can_stop(self, max_len: int, lp_alpha: float) -> Tensor:
        """Return which sentences have a finished hypothesis that no unfinished one can overtake.

        Log-probabilities only fall, so an unfinished hypothesis can at best keep its own, over the largest divisor.
        """
        best_finished_B = self.scores(lp_alpha).masked_fill(~self.finished_BK, -math.inf).amax(-1)
        most = length_normaliser(torch.tensor(float(max_len)), lp_alpha).item()
        best_unfinished_B = (self.log_p_BK / most).masked_fill(self.finished_BK, -math.inf).amax(-1)
        return self.finished_BK.all(-1) | (best_finished_B >= best_unfinished_B)

    def keep(self, indices: Tensor) -> "Beam":
        """Return the beam of some of the sentences."""
        return Beam(*(part.index_select(0, indices) for part in self))

    def hypotheses(self, row: int, lp_alpha: float, include_unfinished: bool) -> list[Hypothesis]:
        """Return a sentence's finished hypotheses, best first; also unfinished ones if the search must stop here."""
        scores_K = self.scores(lp_alpha)[row]
        eligible_K = scores_K.isfinite() if include_unfinished else scores_K.isfinite() & self.finished_BK[row]
        order = scores_K.argsort(descending=True, stable=True)
        order = order[eligible_K[order]]
        tokens_KT = self.tokens_BKT[row, order, 1:].tolist()
        scores = scores_K[order].tolist()
        return [
            Hypothesis([word for word in words if word > EOS], score)
            for words, score in zip(tokens_KT, scores, strict=True)
        ]
