"""The policy at the steps of an experience, the known part of Q there, and helpers for encoded sources."""

from typing import NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor, Encoded
from pysimt_sac.core.policy import Support
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.rewards import SourceTexts
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import step_limits


class PolicyAtSteps(NamedTuple):
    """The policy at every real step of an experience: log pi (N, A) over a support, or over all words."""

    steps: Steps
    taken_N: Tensor
    log_pi_NA: Tensor
    support: Support | None


def policy_at_steps(actor: Actor, encoded: Encoded, experience: Experience, k: int, least: float) -> PolicyAtSteps:
    """Return the policy at every step of an experience; k and least: see `core.policy.find_support`."""
    steps, tokens_TB = experience.steps, experience.tokens_TB
    taken_N = steps.flatten(tokens_TB[1:])
    return PolicyAtSteps(steps, taken_N, *actor.policy(encoded, tokens_TB, steps, taken_N, k, least))


def known_rewards(
    collector: Collector, actor: Actor, experience: Experience, policy: PolicyAtSteps, known: bool
) -> tuple[Tensor, Tensor]:
    """Return the known part of Q: r(s,a) of the taken words (N) and of the support's (N, K); zeros if not `known`."""
    steps, support = experience.steps, policy.support
    if not known:
        zeros_N = torch.zeros(len(steps), device=experience.tokens_TB.device)
        return zeros_N, zeros_N.unsqueeze(1)
    assert support is not None  # see `rl.gate.check_critics`
    tokens_NK = support.tokens_NK.masked_fill(~support.valid_NK, PAD)
    candidates = tokens_NK.new_zeros(steps.shape[0] * steps.shape[1], tokens_NK.size(1))
    candidates_TBK = candidates.index_copy(0, steps.positions_N, tokens_NK).unflatten(0, steps.shape)
    limits_B = step_limits(experience.batch.lengths[experience.sides[1]], collector.max_len)
    source = SourceTexts.of(actor, experience.source_SB)
    inputs = experience.tokens_TB, experience.reference_RB, candidates_TBK, limits_B, source
    return steps.flatten(experience.rewards_TB), steps.flatten(collector.next_rewards(actor, *inputs))
