"""Sampling against the policy, against rescoring in one pass, and in every batch composition."""

import math

import pytest
import torch

from pysimt_sac.engine.data.vocabulary import BOS, EOS, PAD
from pysimt_sac.models import MLENMT
from pysimt_sac.rl.losses import policy
from pysimt_sac.rl.rollout import network_mode, sample_rollout, step_limits
from pysimt_sac.rl.steps import Steps
from tests.engine.tiny import tiny_batch, tiny_model, tiny_sentences

LIMITS = torch.tensor([1, 3, 9, 12, 12, 7])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(seed=4, **options):
    model = tiny_model(n_words=6, seed=seed, model_class=MLENMT, out_logic="deep", **options).double()
    return model, tiny_batch(model, tiny_sentences(6, n_words=6, longest=9))


class PysimtLikeDecoder:
    """Knows `f_init`, `f_next` and `get_emb`, and no more."""

    def __init__(self, dec):
        self.f_init, self.f_next, self.get_emb = dec.f_init, dec.f_next, dec.get_emb


def roll(model, batch, limits=LIMITS, seed=0):
    with torch.no_grad():
        return sample_rollout(model.dec, model.states_of(batch), limits, generator(seed))


def test_the_layout():
    rollout = roll(*make())
    assert (rollout.words_TB[0] == BOS).all()
    assert rollout.words_TB.shape == (int(rollout.lengths_B.max()), 6)
    assert rollout.log_pi_TB.shape == (len(rollout.words_TB) - 1, 6)
    for row, length, ended, limit in zip(
        rollout.words_TB.t().tolist(),
        rollout.lengths_B.tolist(),
        rollout.ended_B.tolist(),
        LIMITS.tolist(),
        strict=True,
    ):
        assert row[length:] == [PAD] * (len(row) - length)
        assert all(word > EOS for word in row[1 : length - 1])
        assert length - 1 <= limit
        assert ended == (row[length - 1] == EOS)
        assert ended or length - 1 == limit
    assert 0 < rollout.ended_B.sum() < 6  # both kinds are in the test


@pytest.mark.parametrize("pysimt_like", [False, True])
def test_scoring_again_in_one_pass_gives_the_same_probabilities(pysimt_like):
    model, batch = make()
    rollout = roll(model, batch)
    if pysimt_like:
        model.__dict__["dec"] = PysimtLikeDecoder(model.dec)  # shadows the module without registering
        again = roll(model, batch)
        assert torch.equal(again.words_TB, rollout.words_TB)
        torch.testing.assert_close(again.log_pi_TB, rollout.log_pi_TB)
    steps = Steps.of(rollout.lengths_B)
    log_pi_NV = policy(model.log_probs(model.states_of(batch), rollout.words_TB, rollout.lengths_B))
    taken_N = steps.flatten(rollout.words_TB[1:])
    torch.testing.assert_close(
        log_pi_NV.gather(1, taken_N.unsqueeze(1)).squeeze(1), steps.flatten(rollout.log_pi_TB), rtol=1e-5, atol=1e-6
    )
    assert log_pi_NV.requires_grad
    assert not rollout.log_pi_TB.requires_grad


def test_a_rollout_repeats_with_its_generator_and_leaves_the_global_one_alone():
    model, batch = make()
    before = torch.get_rng_state()
    first, second, third = roll(model, batch), roll(model, batch), roll(model, batch, seed=1)
    assert torch.equal(first.words_TB, second.words_TB)
    assert first.words_TB.shape != third.words_TB.shape or not torch.equal(first.words_TB, third.words_TB)
    assert torch.equal(before, torch.get_rng_state())


def test_the_generator_moves_on_by_the_same_amount_whatever_is_drawn():
    one, other = generator(), generator()
    for seed, source in ((1, one), (2, other)):
        model, batch = make(seed)
        with torch.no_grad():
            sample_rollout(model.dec, model.states_of(batch), LIMITS, source)
    assert torch.equal(one.get_state(), other.get_state())


def test_sentences_that_end_leave_and_change_nothing_for_the_others():
    model, batch = make()
    together = roll(model, batch)
    unlimited = roll(model, batch, torch.full((6,), 12))
    for column, limit in enumerate(LIMITS.tolist()):
        length = int(together.lengths_B[column])
        assert torch.equal(together.words_TB[:length, column], unlimited.words_TB[:length, column])
        assert length == min(int(unlimited.lengths_B[column]), limit + 1)


def test_words_are_drawn_as_often_as_the_policy_says():
    model = tiny_model(n_words=3, seed=2, model_class=MLENMT)
    batch = tiny_batch(model, ["w0 w1"] * 4000)
    first = roll(model, batch, torch.ones(4000, dtype=torch.long)).words_TB[1]
    log_p = model.log_probs(model.states_of(batch), torch.tensor([[BOS], [EOS]]).expand(2, 4000))
    for word, expected in enumerate(policy(log_p)[0].exp().tolist()):
        tolerance = 4 * math.sqrt(expected * (1 - expected) / 4000)
        assert first.eq(word).double().mean().item() == pytest.approx(expected, abs=tolerance)


def test_padding_and_beginning_are_never_drawn_however_likely_they_are():
    model, batch = make()
    with torch.no_grad():
        model.dec.out2prob.bias[[PAD, BOS]] = 20.0
    rollout = roll(model, batch)
    assert not torch.isin(rollout.words_TB[1], torch.tensor([PAD, BOS])).any()
    assert not rollout.words_TB[1:].eq(BOS).any()
    assert rollout.log_pi_TB.isfinite().all()


def test_limits():
    lengths = torch.tensor([3, 12, 60])  # with <bos> and <eos>: references of 1, 10 and 58 words
    assert step_limits(lengths, longest=50).tolist() == [11, 20, 50]


def test_a_network_is_afterwards_in_the_mode_it_had():
    model, batch = make(dropout_out=0.5)
    model.train()
    with network_mode(model, training=False):
        assert not model.dec.do_out.training
        assert torch.equal(roll(model, batch).words_TB, roll(model, batch).words_TB)
    assert model.training
    assert model.dec.do_out.training
    with pytest.raises(ValueError, match="inside"), network_mode(model, training=False):
        raise ValueError("inside")
    assert model.training
