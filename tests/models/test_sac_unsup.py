"""Unsupervised Soft Actor-Critic: its oracle by hand, where its gradient goes, and what it learns."""

import numpy as np
import pytest
import torch

from pysimt_sac.core.policy import Support, full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.hosts.engine.data.corpus import Text
from pysimt_sac.models.sac_unsup import aligned_steps, mean_of_others, oracle_q, reference_words
from pysimt_sac.rl import losses
from pysimt_sac.rl.replay import Experience
from tests.models import task


def experience(words, reference):
    """One sentence each, `<bos>` 1 ... `<eos>` 2."""
    tokens_TB, reference_RB = (torch.tensor(ids).unsqueeze(1) for ids in (words, reference))
    nothing = torch.zeros(len(words) - 1, 1)
    return Experience(reference_RB, reference_RB, tokens_TB, nothing, torch.ones(1))


def test_the_reference_is_laid_beside_the_translation():
    longer = experience([1, 5, 6, 7, 8, 2], [1, 5, 9, 7, 2])
    assert reference_words(longer).flatten().tolist() == [5, 9, 7, 2, 0]
    assert aligned_steps(longer).flatten().tolist() == [True, True, False, True, False]
    shorter = experience([1, 5, 2], [1, 5, 9, 7, 2])
    assert reference_words(shorter).flatten().tolist() == [5, 9]
    assert aligned_steps(shorter).flatten().tolist() == [True, True]


def test_the_oracle_by_hand():
    support = Support(torch.tensor([[5, 6, 7], [5, 6, 7]]), torch.ones(2, 3, dtype=torch.bool))
    certainty = torch.tensor([[0.0, 1.0, 0.5], [0.0, 1.0, 0.5]])
    found = oracle_q(support, torch.tensor([6, 6]), torch.tensor([True, False]), certainty, beta=0.3)
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.3, 0.15], [0.0, 0.3, 0.15]]))


def test_the_mean_of_the_others_at_the_same_step():
    steps = Steps.of(torch.tensor([4, 3, 3]))  # three, two and two steps; flat: by step, then by sentence
    returns = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert mean_of_others(returns, steps).tolist() == [2.5, 2.0, 1.5, 5.5, 5.0, 4.5, 0.0]


def model_after(updates=1, **options):
    model, corpus = task.make_model("SACUnsupNMT", 1, reward="unsup", **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    task.updates(model, corpus, updates, lr=1e-9)
    model.train()
    return model, corpus[corpus.batches(1)[0]]


@pytest.mark.parametrize("options", [{}, {"oracle": "return", "discriminator": "counts"}], ids=["gold", "return"])
def test_the_reward_reaches_the_actor_and_the_discriminator_does_not(options):
    model, batch = model_after(5, **options)
    term = model.session.algorithm.update(batch, 6).terms["rl"]
    assert model.session.gradient_norm(term) > 1e-4
    discriminator = model.session.algorithm.discriminator
    if discriminator.network is not None:
        before = [weight.detach().clone() for weight in discriminator.network.parameters()]
        for weight in discriminator.network.parameters():
            weight.grad = None
        term.backward()
        assert all(weight.grad is None for weight in discriminator.network.parameters())
        assert all(map(torch.equal, before, discriminator.network.parameters()))


def test_returns_are_divided_by_the_words_of_the_references(monkeypatch):
    """The number of sampled words depends on the policy: the gradient would not be that of the expected return."""
    model, batch = model_after(oracle="return", buffer_size=1)
    reference_RB = batch["trg"]
    batch["trg"] = torch.cat([reference_RB[:2], reference_RB[1:]])  # one word more than is sampled
    divisors, whole = [], losses.reinforce_loss
    monkeypatch.setattr(losses, "reinforce_loss", lambda *words: divisors.append(words[-1]) or whole(*words))
    algorithm = model.session.algorithm
    n_sampled = algorithm.update(batch, 2).n_items
    assert divisors == [int((reference_RB[1:] > 0).sum()) + batch.size]
    assert divisors != [n_sampled]


def test_during_its_warm_up_the_discriminator_learns_and_the_actor_does_not_move():
    """From labels that stay the same, so that there is something to learn: new ones are drawn for every rollout."""
    options = {"discriminator_warmup": 60, "discriminator_lr": 0.01, "health_freq": 1}
    model, corpus = task.make_model("SACUnsupNMT", 1, reward="unsup", **options)
    model.load_state_dict(task.actor(1))
    board = task.Board()
    model.start_training(board)
    algorithm, batch = model.session.algorithm, corpus[corpus.batches(1)[0]]
    first = algorithm.collector.collect(algorithm.actor, batch, 1)
    algorithm.collector.collect = lambda *_: first
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    task.updates(model, corpus, 60, lr=0.01)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    accuracy = board.curves["rl_unsup_accuracy"]
    assert set(board.curves["rl_chance_accuracy"].values()) == {0.25}
    assert accuracy[1] < accuracy[60]
    assert accuracy[60] > 0.4
    assert "rl_mle_loss" not in board.curves
    assert set(algorithm.update(batch, 61).terms) == {"rl", "mle"}  # now the actor, too


def test_a_constant_q_moves_nothing():
    logits = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).requires_grad_()
    log_pi = full_policy(logits.log_softmax(-1))
    (gradient,) = torch.autograd.grad(losses.actor_loss(log_pi, torch.full((1, 6, 9), 3.0), 0.0), logits)
    assert gradient.abs().max() < 1e-6
    q = torch.randn(1, 6, 9, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad(losses.actor_loss(full_policy(logits.log_softmax(-1)), q, 0.0), logits)
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_the_gold_oracle_alone_the_references_are_learned(seed):
    """beta 0: the policy moves to the word with which four of five references begin."""
    options = {"reward": "unsup", "reward_scale": 1.0, "oracle_beta": 0.0, "alpha": 0.0}
    before, after = (nll_of_bad(task.learn("SACUnsupNMT", seed, amount, **options)) for amount in (0, 60))
    assert after < before / 3


@torch.no_grad()
def nll_of_bad(model):
    """The loss per word of the translations that begin with their kind's bad word."""
    pairs = [pair for pair in task.PAIRS if pair[1].startswith("bad")]
    sides = {
        side: Text([pair[place] for pair in pairs], model.vocabs[side], side == "trg")
        for place, side in enumerate(("src", "trg"))
    }
    out = model(model.make_corpus(sides, len(pairs))[np.arange(len(pairs))])
    return out["loss"].item() / out["n_items"]


def test_other_rewards_alone_are_refused(toy, pysimt):
    outcome = pysimt("train", "-C", toy.config, "train.model_type:SACUnsupNMT", "model.reward:bleu")
    assert outcome.status == 2
    assert "lacks the part `unsup`" in outcome.error
