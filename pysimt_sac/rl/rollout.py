"""Rollouts, and the layout of everything that is computed per step.

A rollout has the layout of a batch's target side, `<bos> ... <eos>`, so that an actor can score all of its steps again
in one pass, with gradient. What belongs to steps is kept flat: real steps only, N of them, by time and then by
sentence. No padding can enter a mean, and no loss needs a mask; `Steps` knows which step follows which.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.engine.data.vocabulary import BOS, EOS, PAD
from pysimt_sac.engine.decoding.search import draw_words
from pysimt_sac.engine.distributed import world
from pysimt_sac.engine.network.stepper import Stepper


class Rollout(NamedTuple):
    """Hypotheses `<bos> ... <eos>`, then `<pad>`; without `<eos>` where truncated.

    lengths_B: with `<bos>` and `<eos>`, in host memory.
    """

    words_TB: Tensor
    lengths_B: Tensor


@dataclass(frozen=True)
class Steps:
    """The real steps of a batch of sequences `<bos> ... <eos>`; T steps of the longest, B sentences.

    positions_N: where each step is in a flattened (T, B) array. next_N: where in the flat order the same sentence's
    next step is, or N if it has none. ends_N: whether it has none. times_N: 0 for a sentence's first step.
    sentences_N: whose step it is.
    """

    shape: tuple[int, int]
    positions_N: Tensor
    next_N: Tensor
    ends_N: Tensor
    times_N: Tensor
    sentences_N: Tensor

    @classmethod
    def of(cls, lengths_B: Tensor, device: torch.device | str = "cpu") -> "Steps":
        """From the sequences' lengths, `<bos>` counted, in host memory, where all of it is computed."""
        n_steps_B = lengths_B - 1
        longest = int(n_steps_B.max())
        real_TB = torch.arange(longest + 1).unsqueeze(1) < n_steps_B  # one row more, so that there is always a next
        positions_N = real_TB.flatten().nonzero().squeeze(1)
        number_TB = real_TB.flatten().cumsum(0).view_as(real_TB) - 1
        number_TB[~real_TB] = len(positions_N)
        next_N = number_TB.flatten()[positions_N + len(lengths_B)]
        parts = (positions_N, next_N, next_N == len(positions_N), positions_N // len(lengths_B))
        moved = (part.to(device, non_blocking=True) for part in (*parts, positions_N % len(lengths_B)))
        return cls((longest, len(lengths_B)), *moved)

    def __len__(self) -> int:
        return len(self.positions_N)

    def flatten(self, values_TB: Tensor) -> Tensor:
        """The real steps of a padded array."""
        return values_TB.flatten(0, 1).index_select(0, self.positions_N)

    def pad(self, values_N: Tensor) -> Tensor:
        """The padded array (T, B), zero where there is no step."""
        padded = values_N.new_zeros(self.shape[0] * self.shape[1])
        return padded.index_copy(0, self.positions_N, values_N).view(self.shape)

    def following(self, values_N: Tensor) -> Tensor:
        """At every step the value of the same sentence's next step; zero after the last."""
        return torch.cat((values_N, values_N.new_zeros(1))).index_select(0, self.next_N)

    def rows_of(self, positions_M: Tensor) -> Tensor:
        """Where some positions of a flattened (T, B) array are in the flat order."""
        return torch.searchsorted(self.positions_N, positions_M)

    def of_sentences(self, values_B: Tensor) -> Tensor:
        """At every step the value of its sentence."""
        return values_B.index_select(0, self.sentences_N)


class Trace:
    """What a rollout records at every step: the k likeliest words, their log pi, and the decoder's state.

    It is what branches are made from (`rl.branching`). words_TBK is `<pad>` where there was no step.
    """

    def __init__(self, k: int, n_steps: int, n_sentences: int, device: torch.device) -> None:
        self.k, self.shape = k, (n_steps, n_sentences)
        self.words_TBK = torch.full((*self.shape, k), PAD, device=device)
        self.log_pi_TBK = torch.full((*self.shape, k), -torch.inf, device=device)
        self.states_TBH: Tensor | None = None

    def record(self, step: int, sentences: Tensor, log_p_BV: Tensor, states_BH: Tensor) -> None:
        """One step of the sentences that are still open."""
        log_p_BK, words_BK = log_p_BV.topk(self.k, dim=-1)
        self.words_TBK[step, sentences] = words_BK
        self.log_pi_TBK[step, sentences] = (log_p_BK - log_p_BV.logsumexp(-1, keepdim=True)).float()
        if self.states_TBH is None:
            self.states_TBH = states_BH.new_zeros(*self.shape, states_BH.size(-1))
        self.states_TBH[step, sentences] = states_BH


def step_limits(reference_lengths_B: Tensor, longest: int, more: int = 10) -> Tensor:
    """The most steps of each rollout: min(|ref| + more, longest); lengths with `<bos>` and `<eos>`, |ref| without."""
    return (reference_lengths_B - 2 + more).clamp(1, longest)


def repeat_batch(batch: Batch, times: int) -> Batch:
    """Every sentence several times, side by side."""
    if times == 1:
        return batch
    indices = [index for index in batch.indices for _ in range(times)]
    return Batch({side: batch[side].repeat_interleave(times, 1) for side in batch}, indices)


def draw_uniform(
    generator: torch.Generator,
    n_steps: int,
    n_columns: int,
    dtype: torch.dtype = torch.float32,
    order: Tensor | None = None,
) -> Tensor:
    """Random numbers (T, B) between 0 and 1; order: see `World.global_rows`."""
    make = functools.partial(torch.rand, generator=generator, dtype=dtype)
    return world.draw(make, n_steps, n_columns, order)


@torch.no_grad()
def roll_out(
    stepper: Stepper,
    limits_B: Tensor,
    generator: torch.Generator | None,
    forced_TB: Tensor | None = None,
    first_B: Tensor | None = None,
    trace: Trace | None = None,
    temperature: float = 1.0,
    order_B: Tensor | None = None,
) -> Rollout:
    """Draw every word from the policy, renormalised without `<pad>` and `<bos>`, for at most `limits` steps.

    generator: on the CPU; it is asked for the same amount of random numbers whatever is drawn, and sentences that
    have ended leave the computation. None: greedy. forced_TB: words to take instead where they are not `<pad>`.
    first_B: the words in front, `<bos>` by default. trace: records the rollout. temperature: below 1 sharpens.
    order_B: of the hypotheses, see `World.global_rows`.
    """
    size, longest, device = len(limits_B), int(limits_B.max()), stepper.device
    draws_TB = draw_uniform(generator, longest, size, torch.float64, order_B).to(device) if generator else None
    limits_B, sentences = limits_B.to(device), torch.arange(size, device=device)
    words_TB = torch.full((longest + 1, size), PAD, device=device)
    words_TB[0] = BOS if first_B is None else first_B
    words_B = words_TB[0]
    for step in range(longest):
        log_p_BV = stepper.log_probs(words_B.unsqueeze(1)).squeeze(1)
        if trace is not None:
            trace.record(step, sentences, log_p_BV, stepper.decoder_states())
        if draws_TB is None:
            words_B = log_p_BV.argmax(-1)
        else:
            weights_BV = log_p_BV.exp() if temperature == 1 else (log_p_BV / temperature).softmax(-1)
            words_B = draw_words(weights_BV, draws_TB[step, sentences])
        if forced_TB is not None and step < len(forced_TB):
            forced_B = forced_TB[step, sentences]
            words_B = torch.where(forced_B.ne(PAD), forced_B, words_B)
        words_TB[step + 1, sentences] = words_B
        open_ = (words_B.ne(EOS) & (limits_B[sentences] > step + 1)).nonzero().squeeze(1)
        if len(open_) == 0:
            break
        if len(open_) < len(words_B):
            stepper.keep_sentences(open_)
            words_B, sentences = words_B[open_], sentences[open_]
    lengths_B = words_TB.ne(PAD).sum(0).cpu()
    return Rollout(words_TB[: int(lengths_B.max())], lengths_B)
