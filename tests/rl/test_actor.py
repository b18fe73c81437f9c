"""Scoring the words of given hypotheses against the policy itself; in chunks, and through pysimt's decoder protocol."""

import pytest
import torch

from pysimt_sac.core.policy import entropy, full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.network import output
from pysimt_sac.rl.collector import mean_state
from pysimt_sac.rl.policy import policy_at_steps
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import repeat_encoded, roll_out, select_encoded
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import engine_actor, protocol_actor, rollout

SENTENCES = torch.tensor([0, 0, 1, 2, 2, 2, 3])


@pytest.fixture
def rolled_out():
    """A model, a batch of four sources, and a rollout of seven hypotheses of them."""
    model = tiny_model(n_words=6, seed=4, out_logic="deep").double()
    batch = tiny_batch(model, tiny_sentences(4, 6), tiny_sentences(4, 6, seed=1))
    actor = engine_actor(model)
    with torch.no_grad():
        stepper = actor.stepper(select_encoded(actor.encode(batch), SENTENCES))
    return model, batch, roll_out(stepper, torch.full((7,), 6), torch.Generator().manual_seed(0))


def score(actor, batch, rollout):
    """The taken words, and the likelihood of the references."""
    encoded, steps = actor.encode(batch), Steps.of(rollout.lengths_B)
    taken = actor.taken_words(select_encoded(encoded, SENTENCES), rollout.tokens_TB, steps)
    return taken, actor.nll(encoded, batch["trg"])


def gradient(model, taken, nll):
    loss = taken.log_pi_N.sum() + 2 * taken.log_p_N.sum() + 3 * taken.entropy_N.sum() + nll
    gradients = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True, materialize_grads=True)
    return torch.cat([each.flatten() for each in gradients])


@pytest.mark.parametrize("how", ["at once", "in chunks", "step by step"])
def test_it_is_the_policy_at_the_words_that_were_taken(rolled_out, how, monkeypatch):
    model, batch, rollout = rolled_out
    expected_gradient = gradient(model, *score(engine_actor(model), batch, rollout))
    if how == "in chunks":
        monkeypatch.setattr(output, "CHUNK", 3)
    actor = protocol_actor(model) if how == "step by step" else engine_actor(model)
    found, nll = score(actor, batch, rollout)
    steps, several = Steps.of(rollout.lengths_B), select_encoded(actor.encode(batch), SENTENCES)
    log_p_NV = actor.log_probs(several, rollout.tokens_TB, steps)
    taken_N1 = steps.flatten(rollout.tokens_TB[1:]).unsqueeze(1)
    torch.testing.assert_close(found.log_p_N, log_p_NV.gather(1, taken_N1).squeeze(1))
    torch.testing.assert_close(found.log_pi_N, full_policy(log_p_NV).gather(1, taken_N1).squeeze(1))
    torch.testing.assert_close(found.entropy_N, entropy(full_policy(log_p_NV)))
    torch.testing.assert_close(gradient(model, found, nll), expected_gradient)
    assert found.states_NH.shape == (len(steps), actor.state_size)
    assert not found.states_NH.requires_grad


def test_gradients_of_several_terms_can_be_had_from_chunks(rolled_out, monkeypatch):
    model, batch, rollout = rolled_out
    monkeypatch.setattr(output, "CHUNK", 3)
    found, nll = score(engine_actor(model), batch, rollout)
    for term in (found.log_pi_N.sum(), found.entropy_N.sum()):
        gradients = torch.autograd.grad(term, [*model.parameters()], retain_graph=True, allow_unused=True)
        assert max(each.abs().max() for each in gradients if each is not None) > 0
    assert gradient(model, found, nll).norm() > 0


def test_the_policy_at_the_steps_of_hypotheses(rolled_out):
    model, batch, rollout = rolled_out
    actor = engine_actor(model)
    encoded = select_encoded(actor.encode(batch), SENTENCES)
    nothing = torch.zeros(len(rollout.tokens_TB) - 1, rollout.tokens_TB.size(1))
    experience = Experience(batch["src"], batch["trg"], rollout.tokens_TB, nothing, nothing[0])
    found, whole = (policy_at_steps(actor, encoded, experience, k, least=0.0) for k in (3, 0))
    expected = actor.taken_words(encoded, rollout.tokens_TB, found.steps)
    assert torch.equal(found.taken_N, found.steps.flatten(rollout.tokens_TB[1:]))
    assert whole.support is None
    torch.testing.assert_close(whole.log_pi_NA.gather(1, found.taken_N.unsqueeze(1)).squeeze(1), expected.log_pi_N)
    taken_NK = found.support.tokens_NK.eq(found.taken_N.unsqueeze(1)) & found.support.valid_NK
    assert (taken_NK.sum(1) == 1).all()  # the taken word is always there, and counted once


def test_encoded_sentences_can_be_chosen_and_repeated(rolled_out):
    model, batch, _ = rolled_out
    actor = engine_actor(model)
    encoded = actor.encode(batch)
    twice, chosen = repeat_encoded(encoded, 2), select_encoded(encoded, torch.tensor([0, 0, 1, 1, 2, 2, 3, 3]))
    for one, other in zip(twice["src"], chosen["src"], strict=True):
        assert torch.equal(one, other)
    assert repeat_encoded(encoded, 1) is encoded


def test_the_mean_state_of_a_source_does_not_depend_on_its_padding(rolled_out):
    model, batch, _ = rolled_out
    actor = engine_actor(model)
    together = mean_state(actor.encode(batch))
    assert not together.requires_grad
    for column, sentence in enumerate(tiny_sentences(4, 6)):
        alone = mean_state(actor.encode(tiny_batch(model, [sentence], ["w0"])))
        torch.testing.assert_close(alone[0], together[column])


def test_an_actors_networks_are_afterwards_in_the_mode_they_had():
    model = tiny_model(n_words=6, seed=4, dropout_out=0.5).train()
    batch = tiny_batch(model, tiny_sentences(6, 6))
    actor = engine_actor(model)

    def roll():
        return rollout(actor, batch, torch.full((6,), 8), torch.Generator().manual_seed(0)).tokens_TB

    with actor.training_mode(dropout=False):
        assert not model.dec.do_out.training
        assert torch.equal(roll(), roll())
    assert model.encoders["src"].training
    assert model.dec.do_out.training
    with pytest.raises(ValueError, match="inside"), actor.training_mode(dropout=False):
        raise ValueError("inside")
    assert model.dec.do_out.training
