"""The policy and its support: the words that expectations sum over, and their log pi."""

from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.vocabulary import EOS, PAD

IMPOSSIBLE = -1e4  # log-probability of a word that is never chosen; unlike -inf, 0 times it is 0, not NaN


class Support(NamedTuple):
    """The words that the expectations of a step sum over; entries that are not valid do not count."""

    tokens_NK: Tensor
    valid_NK: Tensor


def full_policy(log_p_NV: Tensor) -> Tensor:
    """Return log pi(a|s): the model's distribution renormalised without `<pad>` and `<bos>`."""
    never_V = torch.arange(log_p_NV.size(1), device=log_p_NV.device) < EOS  # `<pad>` and `<bos>` come before it
    return log_p_NV.masked_fill(never_V, IMPOSSIBLE).log_softmax(-1)


def find_support(scores_NV: Tensor, taken: Tensor, k: int, least: float = 0.0) -> Support:
    """Return the k likeliest words of every step, by log-probabilities or logits, and the taken ones.

    taken: one word per step (N), or several (N, M), where `<pad>` is no word. least: leave out words less likely than
    this, unless taken. Q of words that are hardly ever sampled is untrained: a sum over many adds up its errors.
    """
    choices_NV = scores_NV.detach()[:, EOS:]  # `<pad>` and `<bos>` come before `<eos>`
    scores_NK, places_NK = choices_NV.topk(min(k, choices_NV.size(1)), dim=-1)
    tokens_NK, taken_NM = places_NK + EOS, taken.view(len(taken), -1)
    valid_NK = torch.ones_like(tokens_NK, dtype=torch.bool)
    if least > 0:
        valid_NK = (scores_NK - choices_NV.logsumexp(-1, keepdim=True)).exp() >= least
    for word_N in taken_NM.unbind(1):  # each gets its own entry, unless it is among the likeliest
        word_N1, is_word_N1 = word_N.unsqueeze(1), word_N.ne(PAD).unsqueeze(1)
        same_NK = (tokens_NK == word_N1) & is_word_N1
        first_NK = same_NK & (same_NK.cumsum(1) == 1)  # one entry counts, even if the word was taken twice
        valid_NK = torch.cat((valid_NK | first_NK, is_word_N1 & ~same_NK.any(1, keepdim=True)), 1)
        tokens_NK = torch.cat((tokens_NK, word_N1), 1)
    return Support(tokens_NK, valid_NK)


def policy_on_support(scores_NK: Tensor, support: Support) -> Tensor:
    """Return log pi(a|s) (N, K) from log-probabilities or logits of the support's words, renormalised over them."""
    return scores_NK.masked_fill(~support.valid_NK, IMPOSSIBLE).log_softmax(-1)


def restricted_policy(log_p_NV: Tensor, support: Support) -> Tensor:
    """Like `policy_on_support`, from the log-probabilities of all words."""
    return policy_on_support(log_p_NV.gather(1, support.tokens_NK), support)


def entropy(log_pi_NA: Tensor) -> Tensor:
    """Return H(pi(.|s)) = - sum_a pi(a|s) log pi(a|s), in nats, (N)."""
    return -(log_pi_NA.exp() * log_pi_NA).sum(-1)


def draw_words(weights_BV: Tensor, draws_B: Tensor) -> Tensor:
    """Choose words in proportion to their weights, by uniform draws from [0, 1)."""
    cumulative_BV = weights_BV.cumsum(-1, dtype=torch.float64)
    places_B1 = torch.searchsorted(cumulative_BV, draws_B.unsqueeze(1) * cumulative_BV[:, -1:], right=True)
    return places_B1.squeeze(1).clamp(max=weights_BV.size(1) - 1)
