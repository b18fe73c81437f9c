"""Rollouts: hypotheses in the layout of a batch's target side, `<bos> ... <eos>`.

So an actor can rescore all their steps in one pass, with gradient. `core.steps` has the layout of per-step values.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.actor import Encoded, Stepper
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import IMPOSSIBLE, draw_words, entropy
from pysimt_sac.core.vocabulary import BOS, EOS, PAD


class Rollout(NamedTuple):
    """Hypotheses `<bos> ... <eos>`, then `<pad>`; without `<eos>` where truncated.

    lengths_B: including `<bos>` and `<eos>`, in host memory.
    """

    tokens_TB: Tensor
    lengths_B: Tensor

    def first(self, n_samples: int) -> "Rollout":
        """Return the first of the `n_samples` adjacent hypotheses of every source."""
        lengths_B = self.lengths_B[::n_samples]
        return Rollout(self.tokens_TB[: int(lengths_B.max()), ::n_samples], lengths_B)


class Trace:
    """A record of every step of a rollout: the k likeliest words, their log pi, and the decoder state.

    Branches start from it (`rl.branching`). tokens_TBK is `<pad>` where there was no step.
    """

    def __init__(self, k: int, n_steps: int, n_sentences: int, device: torch.device, with_states: bool = True) -> None:
        self.k, self.shape, self.with_states = k, (n_steps, n_sentences), with_states
        self.tokens_TBK = torch.full((*self.shape, k), PAD, device=device)
        self.log_pi_TBK = torch.full((*self.shape, k), -torch.inf, device=device)
        self.states_TBH: Tensor | None = None

    def record(self, step: int, sentences: Tensor, log_p_BV: Tensor, states_BH: Tensor) -> None:
        """Record one step of the unfinished sentences."""
        log_p_BK, tokens_BK = log_p_BV.topk(self.k, dim=-1)
        self.tokens_TBK[step, sentences] = tokens_BK
        self.log_pi_TBK[step, sentences] = (log_p_BK - log_p_BV.logsumexp(-1, keepdim=True)).float()
        if not self.with_states:
            return
        if self.states_TBH is None:
            self.states_TBH = states_BH.new_zeros(*self.shape, states_BH.size(-1))
        self.states_TBH[step, sentences] = states_BH

    @property
    def entropies_TB(self) -> Tensor:
        """The entropy of the policy over the k likeliest words at every step; 0 where there was none."""
        log_pi_TBK = self.log_pi_TBK.masked_fill(self.tokens_TBK.eq(PAD), IMPOSSIBLE).log_softmax(-1)
        return entropy(log_pi_TBK).masked_fill(self.tokens_TBK[..., 0].eq(PAD), 0.0)


def step_limits(reference_lengths_B: Tensor, longest: int, more: int = 10) -> Tensor:
    """Return the step limits, min(|ref| + more, longest); given lengths include `<bos>` and `<eos>`, |ref| does not."""
    return (reference_lengths_B - 2 + more).clamp(1, longest)


def repeat_batch(batch: Batch, times: int) -> Batch:
    """Repeat every sentence; the copies are adjacent."""
    if times == 1:
        return batch
    indices = [index for index in batch.indices for _ in range(times)]
    return Batch({side: batch[side].repeat_interleave(times, 1) for side in batch}, indices)


def select_encoded(encoded: Encoded, columns: Tensor) -> Encoded:
    """Select sentences of an encoded batch; a sentence may be selected repeatedly."""
    return {
        name: (states.index_select(1, columns), None if mask is None else mask.index_select(1, columns))
        for name, (states, mask) in encoded.items()
    }


def repeat_encoded(encoded: Encoded, times: int) -> Encoded:
    """Repeat every sentence; the copies are adjacent."""
    if times == 1:
        return encoded
    states = next(iter(encoded.values()))[0]
    return select_encoded(encoded, torch.arange(states.size(1), device=states.device).repeat_interleave(times))


@torch.no_grad()
def roll_out(
    stepper: Stepper,
    limits_B: Tensor,
    generator: torch.Generator | None,
    forced_TB: Tensor | None = None,
    first_B: Tensor | None = None,
    trace: Trace | None = None,
    temperature: float = 1.0,
) -> Rollout:
    """Sample every word from the policy, renormalised without `<pad>` and `<bos>`, for at most `limits_B` steps.

    Finished sentences leave the computation. generator: on the CPU; the number of its draws does not depend on the
    samples; None: decode greedily. forced_TB: words to take instead where they are not `<pad>`. first_B: initial words,
    `<bos>` by default. trace: records the rollout. temperature: below 1 sharpens the policy.
    """
    size, longest, device = len(limits_B), int(limits_B.max()), stepper.device
    draws_TB = None
    if generator:
        draws_TB = torch.rand(longest, size, generator=generator, dtype=torch.float64).to(device)
    limits_B, sentences = limits_B.to(device), torch.arange(size, device=device)
    tokens_TB = torch.full((longest + 1, size), PAD, device=device)
    tokens_TB[0] = BOS if first_B is None else first_B
    tokens_B = tokens_TB[0]
    for step in range(longest):
        log_p_BV = stepper.log_probs(tokens_B.unsqueeze(1)).squeeze(1)
        if trace is not None:
            trace.record(step, sentences, log_p_BV, stepper.decoder_states())
        if draws_TB is None:
            tokens_B = log_p_BV.argmax(-1)
        else:
            weights_BV = log_p_BV.exp() if temperature == 1 else (log_p_BV / temperature).softmax(-1)
            tokens_B = draw_words(weights_BV, draws_TB[step, sentences])
        if forced_TB is not None and step < len(forced_TB):
            forced_B = forced_TB[step, sentences]
            tokens_B = torch.where(forced_B.ne(PAD), forced_B, tokens_B)
        tokens_TB[step + 1, sentences] = tokens_B
        open_ = (tokens_B.ne(EOS) & (limits_B[sentences] > step + 1)).nonzero().squeeze(1)
        if len(open_) == 0:
            break
        if len(open_) < len(tokens_B):
            stepper.keep_sentences(open_)
            tokens_B, sentences = tokens_B[open_], sentences[open_]
    lengths_B = tokens_TB.ne(PAD).sum(0).cpu()
    return Rollout(tokens_TB[: int(lengths_B.max())], lengths_B)
