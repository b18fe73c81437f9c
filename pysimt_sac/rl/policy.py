"""The policy at the steps of an experience, and helpers for encoded sources."""

from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor, Encoded
from pysimt_sac.core.policy import Support
from pysimt_sac.core.steps import Steps
from pysimt_sac.rl.replay import Experience


class PolicyAtSteps(NamedTuple):
    """The policy at every real step of an experience: log pi (N, A) over a support, or over all words."""

    steps: Steps
    taken_N: Tensor
    log_pi_NA: Tensor
    support: Support | None

    def states(self, undecided: bool) -> tuple[Tensor, Support | None]:
        """Return the indices (N) of all states and their support.

        undecided: only those of states with more than one word, unless there are none.
        """
        every_N = torch.arange(len(self.steps), device=self.taken_N.device)
        if not undecided or self.support is None:
            return every_N, self.support
        rows_N = every_N[self.support.valid_NK.sum(1) > 1]
        if len(rows_N) == 0:
            # The mean over no states would be NaN; over states with a single word it has no gradient.
            return every_N, self.support
        return rows_N, Support(*(part[rows_N] for part in self.support))


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


def mean_state(encoded: Encoded) -> Tensor:
    """Return the source as a bag: the mean of its encoder states (B, C), detached."""
    states_SBC, mask_SB = next(iter(encoded.values()))
    states_SBC = states_SBC.detach()
    if mask_SB is None:
        return states_SBC.mean(0)
    weights_SB1 = mask_SB.to(states_SBC.dtype).unsqueeze(-1)
    return (states_SBC * weights_SB1).sum(0) / weights_SB1.sum(0)


def policy_at_steps(actor: Actor, encoded: Encoded, experience: Experience, k: int, least: float) -> PolicyAtSteps:
    """Return the policy at every step of an experience; k and least: see `core.policy.find_support`."""
    steps, tokens_TB = experience.steps, experience.tokens_TB
    taken_N = steps.flatten(tokens_TB[1:])
    return PolicyAtSteps(steps, taken_N, *actor.policy(encoded, tokens_TB, steps, taken_N, k, least))
