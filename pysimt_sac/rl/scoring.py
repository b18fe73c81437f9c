"""Scoring sampled translations again, with gradient: log-probabilities of the words that were taken, and no others.

For algorithms that learn from whole translations, of which there may be many: the scores of all words at all steps
would take too much memory, so they are computed in parts, which the backward pass computes again.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.engine.data.vocabulary import EOS
from pysimt_sac.engine.decoding.protocol import select_states
from pysimt_sac.engine.network.output import linear_log_probs
from pysimt_sac.rl import losses
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import network_mode
from pysimt_sac.rl.steps import Steps


class Scored(NamedTuple):
    """Every real step of some translations.

    log_pi_N: of the taken word under the policy. log_p_N: the same, not renormalised without `<pad>` and `<bos>`.
    entropy_N: of the policy. states_NH: what the decoder knew before the word, detached. nll: of the references.
    """

    steps: Steps
    log_pi_N: Tensor
    log_p_N: Tensor
    entropy_N: Tensor
    states_NH: Tensor
    nll: Tensor | None

    @property
    def log_pi_B(self) -> Tensor:
        """Log-probabilities of whole translations."""
        return self.steps.pad(self.log_pi_N).sum(0)

    def figures(self, returns_B: Tensor) -> dict[str, Tensor | float]:
        """What a person wants to see of translations that earned so much."""
        found = {"earned": returns_B.mean(), "earned_spread": returns_B.std(correction=0)}
        nll = {} if self.nll is None else {"mle_loss": self.nll.detach()}
        return {**found, "entropy": self.entropy_N.detach().mean(), **nll}


def rescore(
    model: Any,
    batch: Any,
    experience: Experience,
    sentences_C: Tensor,
    dropout: bool,
    with_nll: bool,
) -> Scored:
    """Score translations of a batch's sources, which are encoded once however many translations each has.

    sentences_C: whose translation each one is. with_nll: whether the batch's references are scored, too.
    """
    words_TB, lengths_B = experience.words_TB, experience.lengths_B.cpu()
    steps = Steps.of(lengths_B, words_TB.device)
    taken_N = steps.flatten(words_TB[1:])
    with network_mode(model, dropout):
        states = model.states_of(batch)
        nll = model.nll(states, batch[model.tl]) if with_nll else None
        several = states if len(sentences_C) == batch.size else select_states(states, sentences_C)
        if hasattr(model.dec, "unroll"):
            states_NH, _ = model.readouts(several, words_TB, lengths_B)
            parts = linear_log_probs(model.dec.out2prob, states_NH, taken_N, EOS)
        else:
            scores_NV, states_NH = step_by_step(model.dec, several, words_TB, steps)
            parts = score_words(scores_NV, taken_N)
    return Scored(steps, *parts, states_NH.detach(), nll)


def state_size(model: Any) -> int:
    """The size of `Scored.states_NH`: what the engine's output layer sees, or the state of pysimt's decoder."""
    return int(model.dec.out2prob.in_features if hasattr(model.dec, "unroll") else model.opts.model["dec_dim"])


def step_by_step(dec: Any, states: Any, words_TB: Tensor, steps: Steps) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all words (N, V) and states (N, H), by a decoder that only speaks pysimt's protocol."""
    state, scores, visited = dec.f_init(states), [], []
    for words_B in words_TB[:-1]:
        log_p_BV, state = dec.f_next(states, dec.get_emb(words_B), state)
        scores.append(log_p_BV)
        visited.append(state)
    return steps.flatten(torch.stack(scores)), steps.flatten(torch.stack(visited))


def score_words(scores_NV: Tensor, taken_N: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log pi and log p of the taken words, and the policy's entropy, from the scores of all words."""
    choices_NV = scores_NV[:, EOS:]  # `<pad>` and `<bos>` come before `<eos>`
    taken_scores_N = scores_NV.gather(1, taken_N.unsqueeze(1)).squeeze(1)
    log_pi_NV = choices_NV.log_softmax(-1)
    log_pi_N = taken_scores_N - choices_NV.logsumexp(-1)
    return log_pi_N, taken_scores_N - scores_NV.logsumexp(-1), losses.entropy(log_pi_NV)
