"""The actors of both hosts over one network: the engine's one-pass way against pysimt's protocol, step by step."""

import pytest
import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rl.critic import TargetNetwork
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import engine_actor, protocol_actor, rollout

DEEP = {"out_logic": "deep", "tied_emb": "2way", "n_encoders": 2, "att_bottleneck": "hid"}
NETWORKS = [DEEP, {"att_type": "dot"}, {"enc_type": "lstm"}, {"enc_bidirectional": False, "dec_inp_activ": "tanh"}]
AMOUNT = 6


@pytest.fixture(params=NETWORKS, ids=["deep", "dot attention", "lstm", "one direction"])
def both(request):
    """One network as both hosts' actor, a batch, and hypotheses of different lengths."""
    model = tiny_model(n_words=6, seed=4, **request.param).double()
    with torch.no_grad():
        model.dec.out2prob.bias[EOS] = 0.5
    batch = tiny_batch(model, tiny_sentences(AMOUNT, 6), tiny_sentences(AMOUNT, 6, seed=1))
    engine, pysimt = engine_actor(model), protocol_actor(model)
    assert not hasattr(pysimt.decoder, "unroll")  # nothing but the protocol
    limits = torch.tensor([1, 3, 8, 8, 8, 5])
    hypotheses = rollout(engine, batch, limits, torch.Generator().manual_seed(0))
    assert len(set(hypotheses.lengths_B.tolist())) > 2
    return model, batch, (engine, pysimt), limits, hypotheses


def gradient(model, *values):
    loss = sum(value.square().sum() for value in values)
    found = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True, materialize_grads=True)
    return torch.cat([each.flatten() for each in found])


def assert_agree(model, values):
    """Both actors' values, and the gradients of their squares."""
    for one, other in zip(*values, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(*(gradient(model, *each) for each in values))


def test_encoding_agrees_and_nothing_is_kept(both):
    model, batch, actors, *_ = both
    encoded = [actor.encode(batch) for actor in actors]
    assert encoded[0].keys() == encoded[1].keys() == {"src"}
    assert_agree(model, [[states["src"][0]] for states in encoded])
    assert torch.equal(encoded[0]["src"][1], encoded[1]["src"][1])
    bare = Batch({"src": batch["src"]})  # a batch to translate has no target
    assert torch.equal(actors[1].encode(bare)["src"][0], encoded[1]["src"][0])


@pytest.mark.parametrize("seed", [None, 0, 1], ids=["greedy", "sampled", "sampled again"])
def test_rollouts_agree(both, seed):
    _, batch, actors, limits, _ = both
    forced_TB = torch.zeros(2, AMOUNT, dtype=torch.long)
    forced_TB[0, ::2] = 5
    for given in (None, forced_TB):
        rollouts = []
        for actor in actors:
            generator = None if seed is None else torch.Generator().manual_seed(seed)
            rollouts.append(rollout(actor, batch, limits, generator, given))
        assert torch.equal(rollouts[0].tokens_TB, rollouts[1].tokens_TB)
        assert torch.equal(rollouts[0].lengths_B, rollouts[1].lengths_B)


def test_log_probabilities_agree(both):
    model, batch, actors, _, hypotheses = both
    steps = Steps.of(hypotheses.lengths_B)
    found = [[actor.log_probs(actor.encode(batch), hypotheses.tokens_TB, steps)] for actor in actors]
    assert found[0][0].shape == (len(steps), len(actors[0].tokens))
    assert_agree(model, found)


@pytest.mark.parametrize(("k", "least"), [(0, 0.0), (3, 0.0), (4, 0.2), (50, 0.0)])
@pytest.mark.parametrize("several", [False, True], ids=["the taken word", "and another"])
def test_policies_agree_with_a_support_and_without(both, k, least, several):
    model, batch, actors, _, hypotheses = both
    steps = Steps.of(hypotheses.lengths_B)
    taken = steps.flatten(hypotheses.tokens_TB[1:])
    if several:
        taken = torch.stack((taken, torch.full_like(taken, 7)), 1)
    found = [actor.policy(actor.encode(batch), hypotheses.tokens_TB, steps, taken, k, least) for actor in actors]
    (_, one), (_, other) = found
    if k == 0:
        assert one is None
        assert other is None
        assert_agree(model, [[log_pi.exp()] for log_pi, _ in found])
    else:
        assert torch.equal(one.tokens_NK, other.tokens_NK)
        assert torch.equal(one.valid_NK, other.valid_NK)
        assert_agree(model, [[log_pi[support.valid_NK]] for log_pi, support in found])


def test_the_taken_words_agree(both):
    model, batch, actors, _, hypotheses = both
    steps = Steps.of(hypotheses.lengths_B)
    found = [actor.taken_words(actor.encode(batch), hypotheses.tokens_TB, steps) for actor in actors]
    assert_agree(model, [each[:3] for each in found])
    for actor, taken in zip(actors, found, strict=True):
        assert taken.states_NH.shape == (len(steps), actor.state_size)
        assert not taken.states_NH.requires_grad


def test_the_likelihood_of_references_agrees_and_is_the_models_own_loss(both):
    model, batch, actors, *_ = both
    found = [[actor.nll(actor.encode(batch), batch["trg"])] for actor in actors]
    assert_agree(model, found)
    out = model(batch)
    torch.testing.assert_close(found[0][0], out["loss"] / out["n_items"])


def test_embeddings_and_names_agree(both):
    _, batch, (engine, pysimt), *_ = both
    assert torch.equal(engine.embed(batch["trg"]), pysimt.embed(batch["trg"]))
    assert (engine.source, engine.target, engine.tokens) == (pysimt.source, pysimt.target, pysimt.tokens)
    assert engine.source_tokens == pysimt.source_tokens
    assert engine.device == pysimt.device


def test_an_actor_over_other_weights_is_another_one(both):
    model, batch, actors, _, hypotheses = both
    steps = Steps.of(hypotheses.lengths_B)
    copies = [actor.with_networks(TargetNetwork(actor.networks).network) for actor in actors]
    before = [actor.log_probs(actor.encode(batch), hypotheses.tokens_TB, steps) for actor in copies]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    for actor, copied, expected in zip(actors, copies, before, strict=True):
        assert torch.equal(copied.log_probs(copied.encode(batch), hypotheses.tokens_TB, steps), expected)
        assert not torch.equal(actor.log_probs(actor.encode(batch), hypotheses.tokens_TB, steps), expected)


@pytest.fixture(params=["engine", "pysimt"])
def waiting(both, request):
    """Each host's wait-k actor over the same network, and the log-probabilities that it must have, by cut sources."""
    model, batch, (engine, pysimt), _, hypotheses = both
    tokens_TB, state, expected = hypotheses.tokens_TB, None, []
    states_SBC, mask_SB = pysimt.encode(batch)["src"]
    for step, tokens_B in enumerate(tokens_TB[:-1]):
        read = {"src": (states_SBC[: 2 + step], mask_SB[: 2 + step])}
        log_p_BV, state = pysimt.decoder.f_next(read, pysimt.embed(tokens_B), state)
        expected.append(log_p_BV)
    model.dec.wait = pysimt.wait = 2
    return {"engine": engine, "pysimt": pysimt}[request.param], batch, hypotheses, torch.stack(expected)


def test_a_wait_k_actor_scores_what_its_policy_has_read(waiting):
    actor, batch, hypotheses, expected_TBV = waiting
    steps = Steps.of(hypotheses.lengths_B)
    found = actor.log_probs(actor.encode(batch), hypotheses.tokens_TB, steps)
    torch.testing.assert_close(found, steps.flatten(expected_TBV))
    actor.decoder.wait = actor.wait = None
    assert not torch.allclose(actor.log_probs(actor.encode(batch), hypotheses.tokens_TB, steps), found)


@torch.no_grad()
def test_a_wait_k_stepper_reads_a_word_at_each_step_and_its_forks_go_on_from_there(waiting):
    """Forks from different steps of different sentences, in one stepper."""
    actor, batch, hypotheses, expected_TBV = waiting
    stepper, tokens_TB, traced = actor.stepper(actor.encode(batch)), hypotheses.tokens_TB, []
    words = slice(EOS, None)  # the others are forbidden
    for step, tokens_B in enumerate(tokens_TB[:-1]):
        found_BV = stepper.log_probs(tokens_B.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(found_BV[:, words], expected_TBV[step][:, words])
        traced.append(stepper.decoder_states())
    sentences_C, times_C = torch.tensor([4, 2, 2]), torch.tensor([0, 3, 1])
    states_CH = torch.stack(traced)[times_C, sentences_C]
    taken = actor.taken_words(actor.encode(batch), tokens_TB, Steps.of(hypotheses.lengths_B))
    assert taken.states_NH.size(1) == actor.state_size
    forked = stepper.fork(sentences_C, states_CH)
    forked.keep_sentences(torch.tensor([2, 0]))
    for ahead in (1, 2):
        times, sentences = times_C[[2, 0]] + ahead, sentences_C[[2, 0]]
        found_CV = forked.log_probs(tokens_TB[times, sentences].unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(found_CV[:, words], expected_TBV[times, sentences][:, words])
