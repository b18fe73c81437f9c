"""The update of Soft Actor-Critic: padding changes no loss and no gradient, each loss moves its own network alone."""

import dataclasses

import pytest
import torch

from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.models import SAC
from pysimt_sac.rl import losses
from pysimt_sac.rl.replay import Experience
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import make_setup

AMOUNT, GAMMA, TAU = 5, 0.9, 0.25
OPTIONS = {
    "alpha": 0.1,
    "gamma": GAMMA,
    "tau": TAU,
    "support_min_probability": 0.0,
    "rollout_max_len": 8,
    "buffer_size": 1,
}
OPTIONS |= {"branch_states": 0, "known_reward": False, "gradient_dropout": False}  # the paper's algorithm
OPTIONS |= {"critic_pretrain_epochs": 0, "critic_init": "random", "critic_gclip": 1e9, "gate_sentences": 0}


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


def make(model, **options):
    """The algorithm, with random critics and other random target networks."""
    sac = SAC(make_setup(model, **{**OPTIONS, **options}))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for network in (*sac.critics.critics, *(copied.network for copied in sac.critics.targets)):
            for parameter in network.parameters():
                parameter.normal_(std=0.6, generator=generator)
    return sac


def batch_of(model):
    return tiny_batch(model, tiny_sentences(AMOUNT, 6, longest=7), tiny_sentences(AMOUNT, 6, seed=1, longest=7))


def collect(model):
    sac = make(model)
    found = sac.collector.collect(sac.actor, batch_of(model), 0.1, 1)
    assert len(set(found.lengths_B.tolist())) > 2
    assert 0 < found.tokens_TB.eq(EOS).any(0).sum() < AMOUNT
    return found


def update(sac, experience):
    """One update on this experience, whatever is rolled out."""
    sac.collector.collect = lambda *_: experience
    return sac.update(experience.batch("src", "trg"), update=1, epoch=1)


def flat(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients])


def results(model, experience, support):
    """Losses and gradients of an update: the actor's two terms and the critics' loss."""
    sac = make(model, support=support)
    loss = update(sac, experience)
    weights = [*model.parameters()]
    found = {"critics": (sac.metrics["critic_loss"], flat(weight.grad for weight in sac.critics.parameters))}
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


@pytest.mark.parametrize("support", [0, 3])
def test_padding_changes_no_loss_and_no_gradient(model, support):
    experience = collect(model)
    together, n_items = results(model, experience, support)
    alone = [results(model, sentence(experience, column), support) for column in range(AMOUNT)]
    for name, (loss, gradient) in together.items():
        assert sum(counts[name] for _, counts in alone) == n_items[name]
        for whole, which in ((loss, 0), (gradient, 1)):
            parts = sum(found[name][which] * counts[name] for found, counts in alone) / n_items[name]
            torch.testing.assert_close(parts, whole, rtol=1e-6, atol=1e-7)  # potentials have single precision
        assert gradient.abs().max() > 1e-3


def test_more_padding_than_needed_changes_nothing(model):
    experience = collect(model)

    def lengthen(tokens_TB):
        return torch.cat((tokens_TB, torch.zeros_like(tokens_TB[:2])))

    padded = dataclasses.replace(
        experience, source_SB=lengthen(experience.source_SB), reference_RB=lengthen(experience.reference_RB)
    )
    expected, found = (results(model, each, support=3)[0] for each in (experience, padded))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])


def touched(network):
    return any(parameter.grad is not None for parameter in network.parameters())


def weights(*networks):
    return [parameter.detach().clone() for network in networks for parameter in network.parameters()]


@pytest.mark.parametrize("support", [0, 3])
@pytest.mark.parametrize("alpha", [0.1, "auto"])
def test_each_loss_moves_its_own_network_alone(model, support, alpha):
    experience, sac = collect(model), make(model, support=support, alpha=alpha)
    critics, targets = sac.critics.critics, [copied.network for copied in sac.critics.targets]
    before = {name: weights(*networks) for name, networks in
              (("actor", [model]), ("critics", critics), ("targets", targets))}  # fmt: skip
    loss = update(sac, experience)
    assert [touched(network) for network in (model, *critics, *targets)] == [False, True, True, False, False]
    assert all(map(torch.equal, before["actor"], weights(model)))
    assert not any(map(torch.equal, before["critics"], weights(*critics)))
    averaged = zip(before["targets"], weights(*critics), weights(*targets), strict=True)
    for old, online, new in averaged:  # no gradient: Polyak averaging alone
        torch.testing.assert_close(new, (1 - TAU) * old + TAU * online)
    for critic in critics:
        critic.zero_grad()
    alpha_gradient = sac.temperature.log_alpha.grad.clone() if alpha == "auto" else None
    sum(loss.terms.values()).backward()
    assert [touched(network) for network in (model, *critics, *targets)] == [True, False, False, False, False]
    assert alpha_gradient is None or torch.equal(alpha_gradient, sac.temperature.log_alpha.grad)


def test_while_the_critics_learn_alone_the_actor_has_no_loss(model):
    experience, sac = collect(model), make(model, critic_pretrain_epochs=1, critic_pretrain_target="td")
    before = weights(*sac.critics.critics)
    assert update(sac, experience).terms == {}
    assert not touched(model)
    assert not any(map(torch.equal, before, weights(*sac.critics.critics)))


@pytest.mark.parametrize("support", [0, 3])
def test_the_last_step_of_ended_and_of_truncated_hypotheses_has_its_reward_as_target(model, support, monkeypatch):
    """Whatever the target networks say about the states behind it."""
    experience, sac = collect(model), make(model, support=support)
    with torch.no_grad():
        for copied in sac.critics.targets:
            copied.network.value.bias.fill_(1e6)
    targets, original = [], losses.critic_loss
    monkeypatch.setattr(losses, "critic_loss", lambda q, target: targets.append(target) or original(q, target))
    update(sac, experience)
    (target_N,) = targets
    steps = Steps.of(experience.lengths_B)
    rewards_N = steps.flatten(experience.rewards_TB)
    assert steps.ends_N.sum() == AMOUNT
    torch.testing.assert_close(target_N[steps.ends_N], rewards_N[steps.ends_N].double())
    assert (target_N[~steps.ends_N] > 1e5).all()


def test_the_actor_sees_the_critics_as_they_were_before_their_step(model, monkeypatch):
    experience, sac = collect(model), make(model, support=0)
    steps = Steps.of(experience.lengths_B)
    with torch.no_grad():
        expected = sac.critics.q_of_actions(sac.critics.readouts(experience, steps), None)
    seen, original = [], losses.actor_loss
    monkeypatch.setattr(losses, "actor_loss", lambda log_pi, q, alpha: seen.append(q) or original(log_pi, q, alpha))
    update(sac, experience)
    torch.testing.assert_close(seen[0], expected)
