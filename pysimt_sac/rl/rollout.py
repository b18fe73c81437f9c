"""Rollouts: translations sampled from the policy, or its likeliest ones, without gradient.

A rollout is in the layout of a batch's target side, `<bos> ... <eos>`, so that `RLModel.log_probs` scores all of its
steps again in one pass, with gradient. The model is seen through its decoder alone: ours, or one that knows pysimt's
`f_next` and no more. Whether there is dropout is the caller's choice: see `network_mode`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.engine.data.vocabulary import BOS, EOS, PAD
from pysimt_sac.engine.decoding.search import draw_words, stepper_for
from pysimt_sac.engine.network.layers import States


@dataclass(frozen=True)
class Rollout:
    """Sampled translations.

    words_TB: `<bos> ... <eos>`, then `<pad>`; without `<eos>` where the translation was cut off.
    lengths_B: how long they are, `<bos>` and `<eos>` counted, in host memory. ended_B: whether by `<eos>`; host, too.
    log_pi_TB: log-probabilities of the words behind `<bos>` under the policy that chose them, 0 for `<pad>`.
    """

    words_TB: Tensor
    lengths_B: Tensor
    ended_B: Tensor
    log_pi_TB: Tensor


@contextmanager
def network_mode(network: nn.Module, training: bool) -> Iterator[None]:
    """Inside, a network has dropout or not; afterwards it is as it was."""
    before = network.training
    network.train(training)
    try:
        yield
    finally:
        network.train(before)


def step_limits(reference_lengths_B: Tensor, longest: int, more: int = 10) -> Tensor:
    """Most steps of each rollout: min(|ref| + more, longest); lengths with `<bos>` and `<eos>`, |ref| without."""
    return (reference_lengths_B - 2 + more).clamp(1, longest)


@torch.no_grad()
def sample_rollout(
    dec: Any, states: States, limits_B: Tensor, generator: torch.Generator | None, forced_TB: Tensor | None = None
) -> Rollout:
    """Draw every word from the policy, renormalised without `<pad>` and `<bos>`, for at most `limits` steps.

    generator: on the CPU; it is asked for the same amount of random numbers whatever is drawn, and sentences that
    have ended leave the computation. None: take the likeliest word instead of drawing.
    forced_TB: words to take instead where they are not `<pad>`, from the first step.
    """
    stepper = stepper_for(dec, states)
    size, longest = len(limits_B), int(limits_B.max())
    any_state = next(iter(states.values()))[0]
    device = any_state.device
    draws_TB = torch.rand(longest, size, generator=generator, dtype=torch.float64).to(device) if generator else None
    limits_B, sentences = limits_B.to(device), torch.arange(size, device=device)
    words_TB = torch.full((longest + 1, size), PAD, device=device)
    words_TB[0] = BOS
    log_pi_TB = any_state.new_zeros(longest, size)
    words_B = words_TB[0]
    for step in range(longest):
        log_p_BV = stepper.logits(words_B.unsqueeze(1)).squeeze(1)
        if draws_TB is None:
            words_B, total_B = log_p_BV.argmax(-1), log_p_BV.exp().sum(-1)
        else:
            words_B, total_B = draw_words(log_p_BV.exp(), draws_TB[step, sentences])
        if forced_TB is not None and step < len(forced_TB):
            forced_B = forced_TB[step, sentences]
            words_B = torch.where(forced_B.ne(PAD), forced_B, words_B)
        words_TB[step + 1, sentences] = words_B
        log_p_B = log_p_BV.gather(1, words_B.unsqueeze(1)).squeeze(1)
        log_pi_TB[step, sentences] = (log_p_B - total_B.log()).to(log_pi_TB.dtype)
        open_ = (words_B.ne(EOS) & (limits_B[sentences] > step + 1)).nonzero().squeeze(1)
        if len(open_) == 0:
            break
        if len(open_) < len(words_B):
            stepper.keep_sentences(open_)
            words_B, sentences = words_B[open_], sentences[open_]
    lengths_B = words_TB.ne(PAD).sum(0).cpu()
    used = int(lengths_B.max())
    return Rollout(words_TB[:used], lengths_B, words_TB.eq(EOS).any(0).cpu(), log_pi_TB[: used - 1])
