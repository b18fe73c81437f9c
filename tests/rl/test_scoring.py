"""Scoring translations again, against the policy itself; in parts, and with a decoder of pysimt's kind."""

import pytest
import torch

from pysimt_sac.engine.decoding.protocol import select_states
from pysimt_sac.engine.network import output
from pysimt_sac.models import REINFORCENMT
from pysimt_sac.rl import losses, scoring
from pysimt_sac.rl.baseline import LearntBaseline
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import sample_rollout
from tests.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.test_rollout import PysimtLikeDecoder

SENTENCES = torch.tensor([0, 0, 1, 2, 2, 2, 3])


@pytest.fixture
def played():
    """A model, a batch of four sources, and seven translations of them."""
    model = tiny_model(n_words=6, seed=4, model_class=REINFORCENMT, out_logic="deep").double()
    batch = tiny_batch(model, tiny_sentences(4, 6), tiny_sentences(4, 6, seed=1))
    with torch.no_grad():
        states = select_states(model.states_of(batch), SENTENCES)
        rollout = sample_rollout(model.dec, states, torch.full((7,), 6), torch.Generator().manual_seed(0))
    zeros_TB = torch.zeros(len(rollout.words_TB) - 1, 7)
    sides = (batch[side][:, SENTENCES] for side in ("src", "trg"))
    return model, batch, Experience(*sides, rollout.words_TB, zeros_TB, torch.ones(7), rollout.ended_B), rollout


def rescore(model, batch, experience):
    return scoring.rescore(model, batch, experience, SENTENCES, dropout=False, with_nll=True)


def gradient(model, scored):
    loss = scored.log_pi_N.sum() + 2 * scored.log_p_N.sum() + 3 * scored.entropy_N.sum() + scored.nll
    gradients = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True, materialize_grads=True)
    return torch.cat([each.flatten() for each in gradients])


@pytest.mark.parametrize("how", ["at once", "in parts", "step by step"])
def test_it_is_the_policy_at_the_words_that_were_taken(played, how, monkeypatch):
    model, batch, experience, rollout = played
    expected = rescore(model, batch, experience)
    expected_gradient = gradient(model, expected)
    if how == "in parts":
        monkeypatch.setattr(output, "CHUNK", 3)
    if how == "step by step":
        model.__dict__["dec"] = PysimtLikeDecoder(model.dec)
    found = rescore(model, batch, experience)
    several = select_states(model.states_of(batch), SENTENCES)
    log_p_NV = model.log_probs(several, rollout.words_TB, rollout.lengths_B)
    taken_N1 = found.steps.flatten(rollout.words_TB[1:]).unsqueeze(1)
    torch.testing.assert_close(found.log_p_N, log_p_NV.gather(1, taken_N1).squeeze(1))
    torch.testing.assert_close(found.log_pi_N, losses.policy(log_p_NV).gather(1, taken_N1).squeeze(1))
    torch.testing.assert_close(found.entropy_N, losses.entropy(losses.policy(log_p_NV)))
    torch.testing.assert_close(found.log_pi_B, rollout.log_pi_TB.sum(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient(model, found), expected_gradient)
    assert found.states_NH.shape == (len(found.steps), scoring.state_size(model))


def test_gradients_of_several_terms_can_be_had_from_parts(played, monkeypatch):
    model, batch, experience, _ = played
    monkeypatch.setattr(output, "CHUNK", 3)
    found = rescore(model, batch, experience)
    norms = [model.gradient_norm(term) for term in (found.log_pi_N.sum(), found.entropy_N.sum())]
    assert all(norm > 0 for norm in norms)
    assert gradient(model, found).norm() > 0


def test_a_learnt_baseline_learns_and_moves_nothing_else(played):
    model, batch, experience, _ = played
    found = rescore(model.float(), batch, experience)
    baseline = LearntBaseline(scoring.state_size(model), 0.05, torch.device("cpu"))
    assert baseline(found.states_NH).abs().max() == 0
    returns_N = found.states_NH.sum(1) + 3
    errors = [baseline.learn(baseline(found.states_NH), returns_N).item() for _ in range(300)]
    assert errors[-1] < 0.01 * errors[0]
    assert all(parameter.grad is None for parameter in model.parameters())
    other = LearntBaseline(scoring.state_size(model), 0.05, torch.device("cpu"))
    other.load_state_dict(baseline.state_dict())
    assert torch.equal(other(found.states_NH), baseline(found.states_NH))
    assert other.learn(other(found.states_NH), returns_N) == baseline.learn(baseline(found.states_NH), returns_N)
