"""Unsupervised Soft Actor-Critic: its oracle by hand, where its gradient goes, and what it learns."""

import math

import numpy as np
import pytest
import torch

from pysimt_sac.core.policy import Support, full_policy
from pysimt_sac.hosts.engine.data.corpus import Text
from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.models.sac_unsup import SACUnsup, oracle_q
from pysimt_sac.rewards.count_bonus import count_bonus, expected_bonus
from pysimt_sac.rl import losses
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.models import task


def test_the_oracle_by_hand():
    support = Support(torch.tensor([[5, 6, 7], [5, 6, 7]]), torch.ones(2, 3, dtype=torch.bool))
    certainty = torch.tensor([[0.0, 1.0, 0.5], [0.0, 1.0, 0.5]])
    found = oracle_q(support, torch.tensor([6, 6]), torch.tensor([True, False]), certainty, beta=0.3)
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.3, 0.15], [0.0, 0.3, 0.15]]))


def start(**options):
    """The algorithm with the task's actor, and a batch."""
    model, corpus = task.make_model("SACUnsupNMT", 1, reward="unsup", **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    return model.train(), corpus[corpus.batches(1)[0]]


def bonuses(monkeypatch, batch, model):
    """What an update adds to Q: source, word, its probability and its bonus, of every word of the support."""
    found, algorithm = [], model.session.algorithm
    ask = algorithm.bonus

    def listen(encoded, policy, support):
        bonus_NK = ask(encoded, policy, support)
        for row, column in support.valid_NK.nonzero().tolist():
            place = policy.steps.sentences_N[row], support.tokens_NK[row, column]
            values = policy.log_pi_NA[row, column].exp(), bonus_NK[row, column]
            found.append((*map(int, place), *map(float, values)))
        return bonus_NK

    monkeypatch.setattr(algorithm, "bonus", listen)
    algorithm.update(batch, 1)
    return found


@pytest.mark.parametrize("bonus", ["network", "counts", "policy", "frequency"])
def test_the_reward_reaches_the_actor_and_what_makes_it_learns_nothing_from_it(bonus):
    model, batch = start(bonus=bonus)
    loss = model.session.algorithm.update(batch, 1)
    assert model.session.gradient_norm(loss.terms["rl"]) > 1e-4
    assert set(loss.terms) == {"rl", "mle"}
    assert set(model.session.algorithm.parts) == {"collector"}


def test_counts_are_those_of_the_samples(monkeypatch):
    model, batch = start(bonus="counts", unsup_samples=5)
    found = bonuses(monkeypatch, batch, model)
    tokens_TC = model.session.algorithm.collector.samples.tokens_TB
    assert tokens_TC.size(1) == 5 * batch.size
    for sentence, word, _, bonus in found:
        n = int((tokens_TC[1:, 5 * sentence : 5 * sentence + 5] == word).sum())
        assert bonus == pytest.approx(count_bonus(n, 4), abs=1e-6)


def test_the_limit_is_that_of_the_policys_own_probabilities(monkeypatch):
    model, batch = start(bonus="policy", unsup_samples=5, n_labels=3)
    for _, _, probability, bonus in bonuses(monkeypatch, batch, model):
        assert bonus == pytest.approx(expected_bonus(torch.tensor(probability), 5, 3).item(), abs=1e-5)


def test_the_static_control_depends_on_the_word_alone(monkeypatch):
    model, batch = start(bonus="frequency")
    for _, word, _, bonus in bonuses(monkeypatch, batch, model):
        assert bonus == pytest.approx(math.log(4) * math.log(word + 1) / math.log(len(model.trg_vocab)), abs=1e-5)


def test_a_network_learns_the_labels_of_the_samples_of_an_update():
    """The policy is uniform: most words are drawn once or twice. Chance is a quarter."""
    options = {"reward": "unsup", "rollout_max_len": 8, "unsup_samples": 4, "discriminator_steps": 200}
    model = tiny_model(40, spread=0.5, model_class=model_class(SACUnsup), emb_dim=16, enc_dim=16, **options)
    torch.nn.init.zeros_(model.dec.out2prob.weight)
    model.start_training(task.Board())
    algorithm = model.train().session.algorithm
    sources, references = (tiny_sentences(10, 40, seed, longest=8) for seed in (1, 2))
    algorithm.update(tiny_batch(model, sources, references), 1)
    found = {name: float(value) for name, value in algorithm.report(1).items()}
    assert found["unsup_accuracy"] > 0.6
    assert found["chance_accuracy"] == 0.25
    assert found["unsup_accuracy"] <= found["best_accuracy"]
    assert 1.39 > found["unsup_n_1"] > found["unsup_n_2_to_3"] > 0.2


def test_a_permuted_bonus_is_another_for_the_same_words():
    gradients = []
    for permute in (False, True):
        model, batch = start(bonus="counts", permute_bonus=permute, oracle_beta=1.0)
        gradients.append(model.session.gradient_norm(model.session.algorithm.update(batch, 1).terms["rl"]))
    assert gradients[0] != gradients[1]


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
    assert "reward: must be `unsup`: Q ignores any other" in outcome.error
