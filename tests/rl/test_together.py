"""All pieces in one update: padding changes no loss and no gradient, and each loss moves its own network alone."""

import dataclasses

import pytest
import torch

from pysimt_sac.engine.data.vocabulary import EOS, PAD
from pysimt_sac.models import MLENMT
from pysimt_sac.rewards import Rewarder, RewardOptions, Translations
from pysimt_sac.rl import losses
from pysimt_sac.rl.critics import Critic
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import sample_rollout, step_limits
from pysimt_sac.rl.steps import Steps
from pysimt_sac.rl.targets import SlowCopy
from tests.engine.tiny import tiny_batch, tiny_model, tiny_sentences

ALPHA, GAMMA = 0.1, 0.9


@pytest.fixture
def actor():
    model = tiny_model(n_words=6, seed=4, model_class=MLENMT, out_logic="deep", tied_emb="2way").double()
    with torch.no_grad():
        model.dec.out2prob.bias[EOS] = 1.5  # so that some translations end and some are cut off
    return model


@pytest.fixture
def critics(actor):
    torch.manual_seed(0)
    pair = [Critic(actor.options, len(actor.trg_vocab)).double() for _ in range(2)]
    for critic in pair:
        for parameter in critic.parameters():
            torch.nn.init.normal_(parameter, std=0.6)
    return pair


def roll_out(actor, amount=5):
    batch = tiny_batch(actor, tiny_sentences(amount, 6, longest=7), tiny_sentences(amount, 6, seed=1, longest=7))
    with torch.no_grad():
        states = actor.states_of(batch)
        limits = step_limits(batch.lengths["trg"], longest=8, more=3)
        rollout = sample_rollout(actor.dec, states, limits, torch.Generator().manual_seed(0))
    translations = Translations.from_ids(rollout.words_TB, batch["trg"], actor.trg_vocab.tokens)
    earned = Rewarder(RewardOptions())(translations)
    potentials, scale = torch.from_numpy(earned.potentials_TB), torch.from_numpy(earned.scale_B)
    return Experience(batch["src"], batch["trg"], rollout.words_TB, potentials, scale, rollout.ended_B)


def update_losses(actor, critics, slow, experience, support):
    """The critics' and the actor's loss of one experience, and its number of steps; support 0: all words."""
    batch, words_TB, lengths_B = experience.batch("src", "trg"), experience.words_TB, experience.lengths_B
    steps = Steps.of(lengths_B)
    taken_N = steps.flatten(words_TB[1:])
    log_p_NV = actor.log_probs(actor.states_of(batch), words_TB, lengths_B)

    def q_of(networks, readouts, words):
        if words is None:
            return torch.stack([c.q_of_all(r) for c, r in zip(networks, readouts, strict=True)])
        return torch.stack([c.q_of(r, words) for c, r in zip(networks, readouts, strict=True)])

    if support:
        chosen = losses.find_support(log_p_NV, taken_N, support)
        log_pi_NA, words = losses.restricted_policy(log_p_NV, chosen), chosen.words_NK
    else:
        log_pi_NA, words = losses.policy(log_p_NV), None
    inputs = (batch["trg"], batch.lengths["trg"], words_TB, steps)
    readouts = [critic(*inputs) for critic in critics]
    with torch.no_grad():
        slow_networks = [copy.network for copy in slow]
        slow_q = q_of(slow_networks, [network(*inputs) for network in slow_networks], words)
        values_N = losses.soft_value(slow_q, log_pi_NA, ALPHA)
        rewards_N = steps.flatten(experience.rewards_TB)
        target_N = losses.td_target(rewards_N, steps.following(values_N), steps.ends_N, GAMMA)
    critic_loss = losses.critic_loss(q_of(critics, readouts, taken_N), target_N)
    actor_loss = losses.actor_loss(log_pi_NA, q_of(critics, readouts, words), ALPHA)
    return critic_loss, actor_loss, len(steps)


def sentence(experience, column):
    """One sentence of a batch, without any padding."""

    def cut(words_TB):
        return words_TB[words_TB[:, column] != PAD][:, column : column + 1]

    words_TB, keep = cut(experience.words_TB), slice(column, column + 1)
    return Experience(
        cut(experience.source_SB), cut(experience.reference_RB), words_TB,
        experience.potentials_TB[: len(words_TB) - 1, keep], experience.scale_B[keep], experience.ended_B[keep],
    )  # fmt: skip


@pytest.mark.parametrize("support", [0, 3])
def test_padding_changes_no_loss_and_no_gradient(actor, critics, support):
    slow = [SlowCopy(critic) for critic in critics]
    experience = roll_out(actor)
    assert len(set(experience.lengths_B.tolist())) > 2
    variables = [*actor.parameters(), *(parameter for critic in critics for parameter in critic.parameters())]

    def gradients(loss):
        found = torch.autograd.grad(loss, variables, allow_unused=True, materialize_grads=True, retain_graph=True)
        return torch.cat([gradient.flatten() for gradient in found])

    *together, n_steps = update_losses(actor, critics, slow, experience, support)
    alone = [update_losses(actor, critics, slow, sentence(experience, column), support) for column in range(5)]
    assert sum(steps for *_, steps in alone) == n_steps
    for which, whole in enumerate(together):
        parts = sum(found[which] * found[2] for found in alone) / n_steps
        torch.testing.assert_close(parts, whole)
        torch.testing.assert_close(gradients(parts), gradients(whole))


def test_more_padding_than_needed_changes_nothing(actor, critics):
    slow = [SlowCopy(critic) for critic in critics]
    experience = roll_out(actor)
    expected = update_losses(actor, critics, slow, experience, 3)

    def lengthen(words_TB):
        return torch.cat((words_TB, torch.zeros_like(words_TB[:2])))

    padded = dataclasses.replace(
        experience, source_SB=lengthen(experience.source_SB), reference_RB=lengthen(experience.reference_RB)
    )
    for one, other in zip(update_losses(actor, critics, slow, padded, 3), expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other))


@pytest.mark.parametrize("support", [0, 3])
def test_each_loss_moves_its_own_network_alone(actor, critics, support):
    slow = [SlowCopy(critic) for critic in critics]

    def touched(network):
        return any(parameter.grad is not None for parameter in network.parameters())

    critic_loss, actor_loss, _ = update_losses(actor, critics, slow, roll_out(actor), support)
    critic_loss.backward(retain_graph=True)
    assert [touched(network) for network in (actor, *critics)] == [False, True, True]
    for critic in critics:
        critic.zero_grad()
    actor_loss.backward()
    assert [touched(network) for network in (actor, *critics)] == [True, False, False]
    assert not any(touched(copy.network) for copy in slow)


def test_the_last_step_of_ended_and_of_cut_translations_has_its_reward_as_target(actor, critics):
    """Whatever the slow critics say about the states behind it."""
    experience = roll_out(actor)
    assert 0 < experience.ended_B.sum() < 5
    steps = Steps.of(experience.lengths_B)
    rewards_N = steps.flatten(experience.rewards_TB)
    target_N = losses.td_target(rewards_N, torch.full_like(rewards_N, 1e6), steps.ends_N, GAMMA)
    assert torch.equal(target_N[steps.ends_N], rewards_N[steps.ends_N])
    assert steps.ends_N.sum() == 5
    assert (target_N[~steps.ends_N] > 1e5).all()
