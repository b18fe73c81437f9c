"""The equations, one pure function each: tensors in, tensor out. Equation numbers are the paper's.

All tensors hold the N real steps only, in the order of `core.steps.Steps`, so padding cannot enter a mean. A is the
number of actions an expectation sums over: the vocabulary (V), or a step's support (K). I is the number of critics.
Expectations over actions are sums, never means; a loss is a mean over steps, and 0 if there are none. Each loss
detaches what it must not train: targets in the critic loss, Q in the actor loss, the policy in the temperature loss.
"""

import torch
from torch import Tensor

from pysimt_sac.core.policy import Support
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD


def mean(values: Tensor, dim: int | None = None) -> Tensor:
    """Return the mean, over all values or one dimension; 0 without values, where torch's is NaN."""
    if dim is None:
        return values.mean() if values.numel() else values.sum()
    return values.mean(dim) if values.size(dim) else values.sum(dim)


# Critics


def soft_value(q_INA: Tensor, log_pi_NA: Tensor, alpha: float | Tensor) -> Tensor:
    """Eq. 8: V(s) = sum_a pi(a|s) [min_i Q_i(s,a) - alpha log pi(a|s)], (N), with Q of the target networks."""
    return (log_pi_NA.exp() * (q_INA.amin(0) - alpha * log_pi_NA)).sum(-1)


def lambda_returns(
    rewards_N: Tensor,
    values_N: Tensor,
    entropies_N: Tensor,
    steps: Steps,
    gamma: float,
    alpha: float | Tensor,
    lambda_return: float,
) -> Tensor:
    """G_t = r_t + gamma [(1 - lambda) V(s_{t+1}) + lambda (G_{t+1} + alpha H(s_{t+1}))], (N): targets of Q(s_t,a_t).

    With lambda = 0 it is Eq. 7, r_t + gamma V(s_{t+1}); with lambda = 1, the soft Monte Carlo return. `<eos>` and
    truncation are terminal: there is neither value nor entropy after them.
    """
    rewards_TB, bonus_TB, values_TB = steps.pad(rewards_N), steps.pad(alpha * entropies_N), steps.pad(values_N)
    next_B, returns = torch.zeros_like(rewards_TB[0]), []
    for reward_B, value_B, bonus_B in reversed([*zip(rewards_TB, values_TB, bonus_TB, strict=True)]):
        returns.append(reward_B + gamma * next_B)
        next_B = (1 - lambda_return) * value_B + lambda_return * (returns[-1] + bonus_B)
    return steps.flatten(torch.stack(returns[::-1]))


def critic_loss(q_IN: Tensor, target_N: Tensor) -> Tensor:
    """Eq. 9: sum_i mean_t (Q_i(s_t,a_t) - target_t)^2; Q of the taken words only."""
    return mean((q_IN - target_N.detach()).square(), -1).sum()


def within_state_loss(predicted_IMK: Tensor, realised_MK: Tensor, valid_MK: Tensor) -> Tensor:
    """sum_i mean_s sum_a [(f_i(s,a) - mean_b f_i(s,b)) - (d(s,a) - mean_b d(s,b))]^2: ranks a state's words."""
    error_IMK = centred(predicted_IMK, valid_MK) - centred(realised_MK.detach(), valid_MK)
    return error_IMK.square().sum() / max(1, len(realised_MK))


def centred(values: Tensor, valid_MK: Tensor) -> Tensor:
    """Subtract the mean over the valid words of each state; 0 where there is no word."""
    weights_MK = valid_MK.to(values.dtype)
    mean = (values * weights_MK).sum(-1, keepdim=True) / weights_MK.sum(-1, keepdim=True).clamp(min=1)
    return (values - mean) * weights_MK


def spread_penalty(q_NA: Tensor, support: Support | None = None) -> Tensor:
    """mean_t sum_a (Q(s_t,a) - mean_b Q(s_t,b))^2: keeps Q of words never taken close together (Bahdanau et al.)."""
    valid_NA = torch.ones_like(q_NA, dtype=torch.bool) if support is None else support.valid_NK
    return mean(centred(q_NA, valid_NA).square().sum(-1))


def variance_penalty(q_NA: Tensor, support: Support | None = None) -> Tensor:
    """mean_t Var_a Q(s_t,a): like `spread_penalty`, but a mean over actions (Dai et al.)."""
    valid_NA = torch.ones_like(q_NA, dtype=torch.bool) if support is None else support.valid_NK
    return mean(centred(q_NA, valid_NA).square().sum(-1) / valid_NA.sum(-1))


# Actor and temperature


def actor_loss(log_pi_NA: Tensor, q_INA: Tensor, alpha: float | Tensor) -> Tensor:
    """Eq. 10: mean_t sum_a pi(a|s_t) [alpha log pi(a|s_t) - min_i Q_i(s_t,a)]."""
    return mean((log_pi_NA.exp() * (alpha * log_pi_NA - q_INA.detach().amin(0))).sum(-1))


def all_action_loss(log_pi_MK: Tensor, q_MK: Tensor) -> Tensor:
    """- mean_s sum_a pi(a|s) [Q(s,a) - V(s)], V(s) = sum_b pi(b|s) Q(s,b), over M branched states."""
    pi_MK = log_pi_MK.exp()
    advantage_MK = q_MK - (pi_MK.detach() * q_MK).sum(-1, keepdim=True)
    return -(pi_MK * advantage_MK.detach()).sum() / max(1, len(q_MK))


def reference_loss(log_p_NV: Tensor, reference_N: Tensor, aligned_N: Tensor) -> Tensor:
    """- mean_t 1[y_{t-1} = ref_{t-1}] log p(ref_t|s_t): likelihood at sampled states; `<pad>` is no reference."""
    log_p_N = log_p_NV.gather(1, reference_N.unsqueeze(1)).squeeze(1)
    return -mean(log_p_N.masked_fill(~aligned_N | reference_N.eq(PAD), 0.0))


def kl_divergence(log_pi_NA: Tensor, reference_log_pi_NA: Tensor) -> Tensor:
    """mean_t sum_a pi(a|s_t) [log pi(a|s_t) - log pi_0(a|s_t)]: the divergence from another policy."""
    return mean((log_pi_NA.exp() * (log_pi_NA - reference_log_pi_NA.detach())).sum(-1))


def temperature_loss(alpha: Tensor, log_pi_NA: Tensor, target_entropy: float | Tensor) -> Tensor:
    """J(alpha) = mean_t sum_a pi(a|s_t) (-alpha (log pi(a|s_t) + Hbar)); alpha falls while entropy exceeds Hbar."""
    log_pi_NA = log_pi_NA.detach()
    return mean((log_pi_NA.exp() * (-alpha * (log_pi_NA + target_entropy))).sum(-1))


# Whole hypotheses: R is the return from the first word on


def leave_one_out(returns_BS: Tensor) -> Tensor:
    """b_s = mean of R over the other samples of the same source, (B, S); 0 if there are none."""
    others_BS = returns_BS.sum(-1, keepdim=True) - returns_BS
    return others_BS / max(1, returns_BS.size(-1) - 1)


def leave_one_out_of_batch(returns_B: Tensor) -> Tensor:
    """b = mean of R over the other sentences of the batch, (B); 0 if there are none."""
    others_B = returns_B.view(1, -1).sum(-1) - returns_B
    return others_B / max(1, len(returns_B) - 1)


def group_advantages(returns_BS: Tensor, scale: bool) -> Tensor:
    """A_s = R_s - mean R over the samples of the same source, (B, S), by default in their standard deviations."""
    centred_BS = returns_BS - returns_BS.mean(-1, keepdim=True)
    spread_B1 = returns_BS.std(-1, correction=0, keepdim=True)
    return centred_BS / (spread_B1 + 1e-4) if scale else centred_BS


def baseline_loss(predicted_N: Tensor, returns_N: Tensor) -> Tensor:
    """mean_t (b_t - R)^2."""
    return mean((predicted_N - returns_N.detach()).square())


def reinforce_loss(log_pi_N: Tensor, advantages_N: Tensor, n_items: int) -> Tensor:
    """- 1/M sum_t (R - b_t) log pi(a_t|s_t).

    n_items: M; it must not depend on the samples, or else the gradient would not be that of the expected R.
    """
    return -(advantages_N.detach() * log_pi_N).sum() / n_items


def mixer_losses(
    log_p_N: Tensor, log_pi_N: Tensor, advantages_N: Tensor, sampled_N: Tensor, n_items: int
) -> tuple[Tensor, Tensor]:
    """- 1/M sum_{t <= border} log p(ref_t), and - 1/M sum_{t > border} (R - b_t) log pi(a_t|s_t).

    sampled_N: whether a step is after its sentence's border; before it, words are the reference's.
    """
    cross_entropy = -log_p_N.masked_fill(sampled_N, 0.0).sum() / n_items
    return cross_entropy, reinforce_loss(log_pi_N, advantages_N.masked_fill(~sampled_N, 0.0), n_items)


def risk_loss(log_pi_C: Tensor, returns_C: Tensor, sentences_C: Tensor, n_sentences: int, sharpness: float) -> Tensor:
    """- mean over sentences of sum_y Q(y) R(y), with Q(y) ~ p(y)^sharpness normalised over a sentence's candidates.

    log_pi_C: log-probabilities of whole candidates. sentences_C: the sentence that each of them translates.
    """
    sharp_C = sharpness * log_pi_C
    highest_B = sharp_C.new_full((n_sentences,), -torch.inf).scatter_reduce(0, sentences_C, sharp_C.detach(), "amax")
    weights_C = (sharp_C - highest_B[sentences_C]).exp()
    totals_B = sharp_C.new_zeros(n_sentences).index_add(0, sentences_C, weights_C)
    return -(weights_C / totals_B[sentences_C] * returns_C.detach()).sum() / n_sentences


# Quality of the critics


def explained_variance(predicted_N: Tensor, realised_N: Tensor) -> Tensor:
    """1 - Var(realised - predicted) / Var(realised): 1 is perfect, 0 is no better than a constant."""
    spread = realised_N.var(correction=0)
    return torch.where(spread > 0, 1 - (realised_N - predicted_N).var(correction=0) / spread, torch.nan)


def ranking_accuracy(predicted_NA: Tensor, realised_NA: Tensor) -> Tensor:
    """The fraction of pairs of a step's actions, with different returns, that are ranked correctly; ties count half.

    Actions whose return is unknown are NaN in `realised`.
    """
    pairs = torch.combinations(torch.arange(predicted_NA.size(1), device=predicted_NA.device)).unbind(1)
    predicted = predicted_NA[:, pairs[0]] - predicted_NA[:, pairs[1]]
    realised = realised_NA[:, pairs[0]] - realised_NA[:, pairs[1]]
    right = (predicted.sign() * realised.sign() + 1) / 2
    return right[realised.isfinite() & realised.ne(0)].mean()
