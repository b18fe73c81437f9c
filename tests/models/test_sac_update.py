"""The update of Soft Actor-Critic: soft values, padding, targets, and what each loss moves."""

import dataclasses
import itertools

import pytest
import torch

from pysimt_sac.core.policy import entropy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.models import SAC
from pysimt_sac.rl import losses
from pysimt_sac.rl.policy import known_rewards, policy_at_steps
from pysimt_sac.rl.replay import Experience
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import make_setup

AMOUNT, GAMMA, TAU, ALPHA = 5, 0.9, 0.25, 0.1
OPTIONS = {"alpha": ALPHA, "gamma": GAMMA, "tau": TAU, "support_min_probability": 0.0, "rollout_max_len": 8}
OPTIONS |= {"buffer_size": 1, "gradient_dropout": False, "gate_sentences": 0}
KINDS = {
    "the paper's": {"support_size": 0},
    "support": {"support_size": 3, "alpha": "auto"},
    "lambda-returns": {"support_size": 3, "lambda_return": 0.6},
    "known reward": {"support_size": 3, "known_reward": True},
}


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def model():
    made = tiny_model(n_words=6, seed=4, out_logic="deep", tied_emb="2way")
    with torch.no_grad():
        made.dec.out2prob.bias[EOS] = 1.5  # so that some hypotheses end and some are truncated
    return made


@pytest.mark.parametrize("lambda_return", [0.0, 0.5, 1.0])
def test_on_a_chain_of_three_states_targets_lead_to_the_exact_soft_values(lambda_return):
    """Two words go on to the next state, the third is `<eos>`; after the third state, hypotheses are truncated."""
    rewards_SA = torch.tensor([[0.1, 1.0, 0.7], [0.5, -0.3, 0.2], [2.0, 0.4, 0.0]])
    log_pi_SA = torch.tensor([[0.2, -0.5, 0.1], [1.0, 0.3, -1.0], [-0.7, 0.9, 0.4]]).log_softmax(-1)
    exact_SA, after = torch.zeros(3, 3), 0.0
    for state in (2, 1, 0):
        exact_SA[state] = rewards_SA[state] + GAMMA * torch.tensor([after, after, 0.0])
        after = sum(log_pi_SA[state].exp() * (exact_SA[state] - ALPHA * log_pi_SA[state]))
    paths = [[2]] + [[first, 2] for first in (0, 1)]
    paths += [[*start, last] for start in itertools.product((0, 1), repeat=2) for last in (0, 1, 2)]
    steps = Steps.of(torch.tensor([len(path) + 1 for path in paths]))
    states_N = steps.times_N
    words_N = torch.tensor([paths[sentence][time] for time, sentence in zip(states_N, steps.sentences_N, strict=True)])
    weights_N = steps.of_sentences(steps.pad(log_pi_SA[states_N, words_N]).sum(0).exp())  # how often each is sampled
    inputs = entropy(log_pi_SA[states_N]), steps, GAMMA, ALPHA, lambda_return
    q_SA = torch.zeros(3, 3)
    for _ in range(100):
        values_N = losses.soft_value(torch.stack((q_SA, q_SA + 1))[:, states_N], log_pi_SA[states_N], ALPHA)
        target_N = losses.lambda_returns(rewards_SA[states_N, words_N], values_N, *inputs)
        visits_SA, sums_SA = torch.zeros(3, 3), torch.zeros(3, 3)
        visits_SA.index_put_((states_N, words_N), weights_N, accumulate=True)
        sums_SA.index_put_((states_N, words_N), weights_N * target_N, accumulate=True)
        q_SA = sums_SA / visits_SA
    torch.testing.assert_close(q_SA, exact_SA, rtol=0, atol=1e-5)


def make(model, **options):
    """The algorithm, with random critics and other random target networks."""
    sac = SAC(make_setup(model, **{**OPTIONS, **options}))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for network in (*sac.critics.networks(target=False), *sac.critics.networks(target=True)):
            for parameter in network.parameters():
                parameter.normal_(std=0.6, generator=generator)
    return sac


@pytest.fixture
def experience(model):
    """Hypotheses of several lengths, some of them truncated."""
    sac = make(model)
    batch = tiny_batch(model, tiny_sentences(AMOUNT, 6, longest=7), tiny_sentences(AMOUNT, 6, seed=1, longest=7))
    found = sac.collector.collect(sac.actor, batch, 1)
    assert len(set(found.lengths_B.tolist())) > 2
    assert 0 < found.tokens_TB.eq(EOS).any(0).sum() < AMOUNT
    return found


def update(sac, experience):
    """One update on this experience, whatever is rolled out."""
    sac.collector.collect = lambda *_: experience
    return sac.update(experience.batch, 1)


def flat(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients])


def results(model, experience, kind):
    """Losses and gradients of an update, the actor's two terms and the critics' loss, and what each is a mean over."""
    sac = make(model, **KINDS[kind])
    loss, weights = update(sac, experience), [*model.parameters()]
    critics = [weight.grad for critic in sac.critics.critics for weight in critic.parameters()]
    found = {"critics": (sac.metrics["critic_loss"], flat(critics))}
    for name, term in loss.terms.items():
        gradients = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True, materialize_grads=True)
        found[name] = (term.detach(), flat(gradients))
    n_words = int(experience.reference_RB[1:].ne(PAD).sum())
    return found, {"critics": loss.n_items, "rl": loss.n_items, "mle": n_words}


def sentence(experience, column):
    """One sentence of a batch, without any padding."""

    def cut(tokens_TB):
        return tokens_TB[tokens_TB[:, column] != PAD][:, column : column + 1]

    tokens_TB, keep = cut(experience.tokens_TB), slice(column, column + 1)
    return Experience(
        cut(experience.source_SB), cut(experience.reference_RB), tokens_TB,
        experience.potentials_TB[: len(tokens_TB) - 1, keep], experience.scale_B[keep],
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_loss_and_no_gradient(model, experience, kind):
    together, n_items = results(model, experience, kind)
    alone = [results(model, sentence(experience, column), kind) for column in range(AMOUNT)]
    for name, (loss, gradient) in together.items():
        assert sum(counts[name] for _, counts in alone) == n_items[name]
        for whole, which in ((loss, 0), (gradient, 1)):
            parts = sum(found[name][which] * counts[name] for found, counts in alone) / n_items[name]
            torch.testing.assert_close(parts, whole, rtol=1e-6, atol=1e-7)  # potentials have single precision
        assert gradient.abs().max() > 1e-3

    def lengthen(tokens_TB):
        return torch.cat((tokens_TB, torch.zeros_like(tokens_TB[:2])))

    sides = {"source_SB": lengthen(experience.source_SB), "reference_RB": lengthen(experience.reference_RB)}
    padded, _ = results(model, dataclasses.replace(experience, **sides), kind)
    for name in together:
        torch.testing.assert_close(padded[name], together[name])


def touched(network):
    return any(parameter.grad is not None for parameter in network.parameters())


def weights(*networks):
    return [parameter.detach().clone() for network in networks for parameter in network.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_each_loss_moves_its_own_network_alone(model, experience, kind):
    sac = make(model, **KINDS[kind])
    critics, targets = sac.critics.critics, sac.critics.networks(target=True)
    before = weights(model), weights(*critics), weights(*targets)
    loss = update(sac, experience)
    assert [touched(network) for network in (model, *critics, *targets)] == [False, True, True, False, False]
    assert all(map(torch.equal, before[0], weights(model)))
    assert not any(map(torch.equal, before[1], weights(*critics)))
    for old, online, new in zip(before[2], weights(*critics), weights(*targets), strict=True):
        torch.testing.assert_close(new, (1 - TAU) * old + TAU * online)  # no gradient: Polyak averaging alone
    for critic in critics:
        critic.zero_grad()
    learned = sac.temperature.learned
    alpha_gradient = sac.temperature.log_alpha.grad.clone() if learned else None
    sum(loss.terms.values()).backward()
    assert [touched(network) for network in (model, *critics, *targets)] == [True, False, False, False, False]
    assert not learned or torch.equal(alpha_gradient, sac.temperature.log_alpha.grad)


def test_while_the_critics_learn_alone_the_actor_has_no_loss(model, experience):
    sac = make(model, critic_pretrain_updates=1)
    before = weights(*sac.critics.critics)
    assert update(sac, experience).terms == {}
    assert not touched(model)
    assert not any(map(torch.equal, before, weights(*sac.critics.critics)))


def recorded(monkeypatch, name):
    """The arguments of every call of a loss."""
    calls, original = [], getattr(losses, name)
    monkeypatch.setattr(losses, name, lambda *args: calls.append(args) or original(*args))
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_step_of_ended_and_of_truncated_hypotheses_has_its_reward_as_target(
    model, experience, kind, monkeypatch
):
    """Whatever the target networks say about the states behind it."""
    sac, calls = make(model, **KINDS[kind]), recorded(monkeypatch, "critic_loss")
    with torch.no_grad():
        for network in sac.critics.networks(target=True):
            network.value.bias.fill_(1e6)
    update(sac, experience)
    ((_, target_N),) = calls
    steps, rewards_N = experience.steps, experience.steps.flatten(experience.rewards_TB)
    ends_N = steps.times_N == steps.of_sentences(experience.lengths_B) - 2
    assert ends_N.sum() == AMOUNT
    torch.testing.assert_close(target_N[ends_N], rewards_N[ends_N].double())
    assert (target_N[~ends_N] > 1e5).all()


@pytest.mark.parametrize("known", [False, True])
def test_targets_and_the_actors_q_are_those_of_equations_7_to_10(model, experience, known, monkeypatch):
    """The actor sees the critics as they were before their step; known rewards are part of Q everywhere."""
    sac = make(model, support_size=3, known_reward=known)
    with torch.no_grad():
        policy = policy_at_steps(sac.actor, sac.actor.encode(experience.batch), experience, 3, 0.0)
        known_N, known_NA = known_rewards(sac.collector, sac.actor, experience, policy, known)
        q_INA, target_INA = (
            known_NA + sac.critics.q_of_actions(sac.critics.readouts(experience, target), policy.support, target)
            for target in (False, True)
        )
        q_IN = known_N + sac.critics.q_of_taken(sac.critics.readouts(experience), policy.taken_N)
    pi_NA = policy.log_pi_NA.exp()
    values_TB = experience.steps.pad((pi_NA * (target_INA.amin(0) - ALPHA * policy.log_pi_NA)).sum(1))
    expected_TB = experience.rewards_TB.double()
    expected_TB[:-1] += GAMMA * values_TB[1:]
    calls = {name: recorded(monkeypatch, name) for name in ("critic_loss", "actor_loss")}
    loss = update(sac, experience)
    ((found_IN, target_N),), ((_, found_INA, alpha),) = calls.values()
    torch.testing.assert_close(target_N, experience.steps.flatten(expected_TB))
    torch.testing.assert_close(found_IN, q_IN)
    torch.testing.assert_close(found_INA, q_INA)
    assert float(alpha) == ALPHA
    expected = (pi_NA * (ALPHA * policy.log_pi_NA - q_INA.amin(0))).sum(1).mean()
    torch.testing.assert_close(loss.terms["rl"], expected)


def test_it_learns_from_stored_experience(model, experience):
    sac = make(model, support_size=3)
    sac.replay.add(experience)
    sac.replay.add = lambda _: None
    batch = tiny_batch(model, tiny_sentences(2, 6, seed=8), tiny_sentences(2, 6, seed=9))
    assert sac.update(batch, 1).n_items == len(experience.steps)
