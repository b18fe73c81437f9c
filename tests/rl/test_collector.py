"""What is collected: layout, scores, the permuted control, statistics, rewards that learn, and a saved state."""

import io

import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rewards import Translations
from pysimt_sac.rl.collector import RECENT, Collector, derangement
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rewards.rewarders import make_rewarder
from tests.rl.tiny import engine_actor, make_setup, rollout


@pytest.fixture
def model():
    made = tiny_model(n_words=6, seed=4, out_logic="deep", dropout_out=0.5)
    with torch.no_grad():
        made.dec.out2prob.bias[EOS] = 0.5  # so that some hypotheses end and some are truncated
    return made


def batch_of(model, amount=5):
    return tiny_batch(model, tiny_sentences(amount, 6, longest=7), tiny_sentences(amount, 6, seed=1, longest=7))


def collect(model, n_samples=1, forced_TB=None, **options):
    setup = make_setup(model, rollout_max_len=6, **options)
    collector = Collector(setup)
    return collector, collector.collect(setup.actor, batch_of(model), 7, n_samples, forced_TB)


def test_an_experience_has_the_rewarders_potentials_and_scale(model):
    collector, found = collect(model)
    batch = batch_of(model)
    assert torch.equal(found.source_SB, batch["src"])
    assert torch.equal(found.reference_RB, batch["trg"])
    assert found.created_at_update == 7
    translations = Translations.from_ids(found.tokens_TB, batch["trg"], model.trg_vocab.tokens)
    assert 0 < sum(translations.ended) < 5
    expected = make_rewarder()(translations)
    torch.testing.assert_close(found.potentials_TB, torch.from_numpy(expected.potentials_TB).float())
    torch.testing.assert_close(found.scale_B, torch.from_numpy(expected.scale_B).float())
    assert collector.last is found


def test_several_hypotheses_of_a_source_stand_side_by_side(model):
    _, found = collect(model, n_samples=3)
    batch = batch_of(model)
    for sample in range(3):
        assert torch.equal(found.source_SB[:, sample::3], batch["src"])
        assert torch.equal(found.reference_RB[:, sample::3], batch["trg"])
    assert len({tuple(words) for words in found.tokens_TB.t().tolist()}) > 5


def test_words_that_are_given_come_first_and_always_fit(model):
    reference_TB = batch_of(model)["trg"][1:]
    assert len(reference_TB) > 6  # more than rollout_max_len
    _, found = collect(model, forced_TB=reference_TB)
    assert torch.equal(found.tokens_TB, batch_of(model)["trg"])
    assert found.returns_B.tolist() == pytest.approx(found.scale_B.tolist())  # BLEU 1


def test_it_samples_without_dropout_and_leaves_the_networks_as_they_were(model):
    model.train()
    words = [collect(model)[1].tokens_TB for _ in range(2)]
    assert torch.equal(*words)
    assert model.dec.do_out.training
    draws = (torch.Generator().manual_seed(1) for _ in range(4))
    with_dropout = [
        rollout(engine_actor(model), batch_of(model), torch.full((5,), 6), draw).tokens_TB for draw in draws
    ]
    assert len({tuple(found.flatten().tolist()) for found in with_dropout}) > 1


def test_the_permuted_control_gives_the_same_rewards_to_other_sentences(model):
    _, right = collect(model)
    _, permuted = collect(model, permute_rewards=True)
    assert torch.equal(right.tokens_TB, permuted.tokens_TB)
    finals = [found.potentials_TB[-1] for found in (right, permuted)]
    assert sorted(finals[0].tolist()) == sorted(finals[1].tolist())
    assert not torch.equal(*finals)


@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_nobody_keeps_the_own_rewards_in_the_permuted_control(n):
    for seed in range(20):
        order = derangement(n, torch.Generator().manual_seed(seed))
        assert sorted(order.tolist()) == list(range(n))
        assert n == 1 or not (order == torch.arange(n)).any()


def test_the_permuted_control_needs_rewards_that_do_not_learn(model):
    with pytest.raises(UserError, match="permute_rewards: cannot be combined with a reward that learns"):
        Collector(make_setup(model, reward="bleu:0.7,unsup:0.3", permute_rewards=True))


def test_statistics_are_means_over_the_last_batches(model):
    setup = make_setup(model, rollout_max_len=6)
    collector = Collector(setup)
    assert collector.metrics == {}
    for _ in range(RECENT + 3):
        found = collector.collect(setup.actor, batch_of(model), 1)
    assert len(collector.recent) == RECENT
    last, batch = collector.recent[-1], batch_of(model)
    ended_B = found.tokens_TB.eq(EOS).any(0)
    assert last["truncated"] == 5 - int(ended_B.sum())
    assert last["words"] == int((found.lengths_B - 1 - ended_B.long()).sum())
    assert last["reference_words"] == int((batch.lengths["trg"] - 2).sum())
    collector.recent = [last]
    assert collector.metrics["truncated"] == last["truncated"] / 5
    assert collector.metrics["length_ratio"] == last["words"] / last["reference_words"]
    assert collector.metrics["reward_bleu"] == pytest.approx(found.potentials_TB[-1].mean().item(), abs=1e-6)


def test_looking_is_not_learning(model):
    """A greedy rollout that is only scored counts in no statistics, and draws nothing."""
    setup = make_setup(model, rollout_max_len=6)
    collector, batch = Collector(setup), batch_of(model)
    before = collector.generator.get_state()
    _, rollout = collector.roll_out(setup.actor, batch, generator=None)
    collector.score(setup.actor, batch, rollout)
    assert collector.recent == []
    assert collector.last is None
    assert torch.equal(before, collector.generator.get_state())


def test_rewards_that_learn_are_given_samples_of_every_source(model):
    setup = make_setup(model, rollout_max_len=6, reward="bleu:1,unsup:0.5", unsup_samples=3)
    collector, batch = Collector(setup), batch_of(model)
    found = collector.collect(setup.actor, batch, 1)
    assert collector.samples.tokens_TB.size(1) == 3 * batch.size
    part = collector.rewarder.parts["unsup"]
    assert sum(sum(draws.values()) for draws in part.draws.values()) == int((collector.samples.tokens_TB > EOS).sum())
    plain = collect(model)[1]
    assert torch.equal(found.tokens_TB, plain.tokens_TB)  # the path is drawn first
    assert 0 < collector.metrics["unsup_mean"] < 1.4


@pytest.mark.parametrize("reward", ["bleu", "bleu:1,unsup:0.5"])
def test_a_restored_collector_goes_on_as_the_other_would_have(model, reward):
    setup = make_setup(model, rollout_max_len=6, reward=reward)
    one, other, batch = Collector(setup), Collector(setup), batch_of(model)
    for _ in range(3):
        one.collect(setup.actor, batch, 1)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    found = [collector.collect(setup.actor, batch, 2).tensors() for collector in (one, other)]
    assert found[0].keys() == found[1].keys()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    assert one.metrics == other.metrics
