"""The equations must learn: a task of two steps, with tables for networks, where what pays at once is wrong.

The first word may be A, worth 0.3 at once, or B, worth nothing at once and 1.0 at the second step. The policy begins
with a preference for A. The best is B; without a look ahead (gamma = 0) it is A.
"""

import pytest
import torch

from pysimt_sac.core.policy import find_support, full_policy, restricted_policy
from pysimt_sac.core.vocabulary import BOS, EOS
from pysimt_sac.rl import losses
from pysimt_sac.rl.critic import polyak_update
from pysimt_sac.rl.replay import Experience, ReplayBuffer

A, B, VOCABULARY = 4, 5, 6
ALPHA, BATCH = 0.05, 16


def roll_out(logits_SV, generator, update):
    """Two words from the table's policy; a state is the word before, and `<eos>` at once is worth nothing."""
    pi_SV = full_policy(logits_SV.detach().log_softmax(-1)).exp()
    words = [torch.full((BATCH,), BOS)]
    for _ in range(2):
        words.append(torch.multinomial(pi_SV[words[-1]], 1, generator=generator).squeeze(1))
    ended_early = words[1] == EOS
    words[2][ended_early] = 0
    first, second = 0.3 * words[1].eq(A).float(), words[1].eq(B).float()
    potentials_TB = torch.stack((first, first + second))
    tokens_TB = torch.stack(words)
    return Experience(tokens_TB, tokens_TB, tokens_TB, potentials_TB, torch.ones(BATCH), created_at_update=update)


def learn(gamma, seed, updates=300, support=0):
    generator = torch.Generator().manual_seed(seed)
    replay = ReplayBuffer(20, seed)
    logits_SV = torch.zeros(VOCABULARY, VOCABULARY)
    logits_SV[BOS, A] = 2.0
    logits_SV.requires_grad_()
    q_ISV = (0.1 * torch.randn(2, VOCABULARY, VOCABULARY, generator=generator)).requires_grad_()
    target_ISV = q_ISV.detach().clone()
    optimizers = [torch.optim.Adam([logits_SV], lr=0.03), torch.optim.Adam([q_ISV], lr=0.03)]
    for update in range(updates):
        replay.add(roll_out(logits_SV, generator, update))
        experience = replay.sample()
        steps = experience.steps
        states_N, taken_N = steps.flatten(experience.tokens_TB[:-1]), steps.flatten(experience.tokens_TB[1:])
        log_p_NV, every_N = logits_SV.log_softmax(-1)[states_N], torch.arange(len(steps))
        if support:
            chosen = find_support(log_p_NV, taken_N, support)
            log_pi_NA = restricted_policy(log_p_NV, chosen)
            tokens_NA = chosen.tokens_NK
        else:
            log_pi_NA, tokens_NA = full_policy(log_p_NV), torch.arange(VOCABULARY).expand(len(steps), -1)
        q_INA, target_INA = (table[:, states_N].gather(2, tokens_NA.expand(2, -1, -1)) for table in (q_ISV, target_ISV))
        with torch.no_grad():
            values_N = losses.soft_value(target_INA, log_pi_NA, ALPHA)
            soft = torch.zeros_like(values_N), steps, gamma, ALPHA
            target_N = losses.lambda_returns(steps.flatten(experience.rewards_TB), values_N, *soft, lambda_return=0.0)
        loss = losses.critic_loss(q_ISV[:, states_N][:, every_N, taken_N], target_N)
        loss = loss + losses.actor_loss(log_pi_NA, q_INA, ALPHA)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        polyak_update([target_ISV], [q_ISV], 0.1)
    return full_policy(logits_SV.log_softmax(-1))[BOS].exp().tolist()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("support", [0, 3])
def test_the_delayed_reward_is_found(seed, support):
    assert learn(gamma=1.0, seed=seed, support=support)[B] > 0.9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_without_a_look_ahead_it_is_not(seed):
    assert learn(gamma=0.0, seed=seed)[A] > 0.9
