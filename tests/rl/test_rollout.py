"""The flat layout of real steps by hand; sampling against the policy, against scoring in one pass, in every batch."""

import math

import pytest
import torch

from pysimt_sac.core.policy import full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import BOS, EOS, PAD
from pysimt_sac.hosts.engine.decoding.greedy import greedy_search
from pysimt_sac.hosts.engine.nmt import real_positions
from pysimt_sac.hosts.pysimt.stepper import PysimtStepper
from pysimt_sac.network.stepper import RecurrentStepper
from pysimt_sac.rl.rollout import Trace, repeat_batch, roll_out, select_encoded, step_limits
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import ACTORS, ProtocolDecoder, engine_actor, rollout

# Steps: <bos> a <eos> | <bos> a b <eos> | <bos> <eos>: two, three and one steps
WORDS = torch.tensor([[1, 1, 1], [5, 5, 2], [2, 6, 0], [0, 2, 0]])
STEPS = Steps.of(torch.tensor([3, 4, 2]))


def test_steps_by_hand():
    assert STEPS.shape == (3, 3)
    assert len(STEPS) == 6
    assert STEPS.positions_N.tolist() == [0, 1, 2, 3, 4, 7]
    assert STEPS.sentences_N.tolist() == [0, 1, 2, 0, 1, 1]
    assert STEPS.times_N.tolist() == [0, 0, 0, 1, 1, 2]


def test_the_order_is_that_of_the_models_log_probabilities():
    assert torch.equal(STEPS.positions_N, real_positions(WORDS.ne(PAD).sum(0)))
    assert STEPS.flatten(WORDS[1:]).tolist() == [5, 5, 2, 2, 6, 2]


def test_padding_and_flattening_undo_each_other():
    values = torch.arange(1.0, 7.0)
    padded = STEPS.pad(values)
    assert padded.tolist() == [[1, 2, 3], [4, 5, 0], [0, 6, 0]]
    assert torch.equal(STEPS.flatten(padded), values)


def test_values_of_sentences():
    assert STEPS.of_sentences(torch.tensor([7.0, 8.0, 9.0])).tolist() == [7, 8, 9, 7, 8, 8]


# Rollouts

LIMITS = torch.tensor([1, 3, 9, 12, 12, 7])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(seed=4, **options):
    model = tiny_model(n_words=6, seed=seed, out_logic="deep", **options).double()
    return model, tiny_batch(model, tiny_sentences(6, n_words=6, longest=9))


def roll(model, batch, limits=LIMITS, seed=0, forced_TB=None):
    return rollout(engine_actor(model), batch, limits, generator(seed), forced_TB)


def test_the_layout():
    found = roll(*make())
    assert (found.tokens_TB[0] == BOS).all()
    assert found.tokens_TB.shape == (int(found.lengths_B.max()), 6)
    n_ended = 0
    for row, length, limit in zip(found.tokens_TB.t().tolist(), found.lengths_B.tolist(), LIMITS.tolist(), strict=True):
        assert row[length:] == [PAD] * (len(row) - length)
        assert all(word > EOS for word in row[1 : length - 1])
        assert length - 1 <= limit
        ended = row[length - 1] == EOS
        assert ended or length - 1 == limit
        n_ended += ended
    assert 0 < n_ended < 6  # both kinds are in the test


class Recorder:
    """A stepper that remembers the log-probabilities it was asked for, in the order of `Steps`."""

    def __init__(self, stepper):
        self.stepper, self.device, self.seen = stepper, stepper.device, []

    def log_probs(self, tokens_BK):
        self.seen.append(self.stepper.log_probs(tokens_BK).squeeze(1))
        return self.seen[-1].unsqueeze(1)

    def keep_sentences(self, indices):
        self.stepper.keep_sentences(indices)


@pytest.mark.parametrize("kind", ACTORS)
def test_scoring_again_in_one_pass_gives_the_probabilities_that_were_drawn_from(kind):
    model, batch = make()
    actor = ACTORS[kind](model)
    encoded = actor.encode(batch)
    recorder = Recorder(
        RecurrentStepper(model.dec, encoded) if kind == "engine" else PysimtStepper(ProtocolDecoder(model.dec), encoded)
    )
    found = roll_out(recorder, LIMITS, generator())
    assert torch.equal(found.tokens_TB, roll(model, batch).tokens_TB)
    assert torch.equal(found.tokens_TB, rollout(actor, batch, LIMITS, generator()).tokens_TB)
    steps = Steps.of(found.lengths_B)
    drawn_from_NV = full_policy(torch.cat(recorder.seen))
    log_pi_NV = full_policy(actor.log_probs(encoded, found.tokens_TB, steps))
    torch.testing.assert_close(log_pi_NV, drawn_from_NV, rtol=1e-5, atol=1e-6)
    assert log_pi_NV.requires_grad
    assert not drawn_from_NV.requires_grad


def test_a_rollout_repeats_with_its_generator_and_leaves_the_global_one_alone():
    model, batch = make()
    before = torch.get_rng_state()
    first, second, third = roll(model, batch), roll(model, batch), roll(model, batch, seed=1)
    assert torch.equal(first.tokens_TB, second.tokens_TB)
    assert first.tokens_TB.shape != third.tokens_TB.shape or not torch.equal(first.tokens_TB, third.tokens_TB)
    assert torch.equal(before, torch.get_rng_state())


def test_the_generator_moves_on_by_the_same_amount_whatever_is_drawn():
    one, other = generator(), generator()
    for seed, source in ((1, one), (2, other)):
        model, batch = make(seed)
        rollout(engine_actor(model), batch, LIMITS, source)
    assert torch.equal(one.get_state(), other.get_state())


def test_sentences_that_end_leave_and_change_nothing_for_the_others():
    model, batch = make()
    together = roll(model, batch)
    unlimited = roll(model, batch, torch.full((6,), 12))
    for column, limit in enumerate(LIMITS.tolist()):
        length = int(together.lengths_B[column])
        assert torch.equal(together.tokens_TB[:length, column], unlimited.tokens_TB[:length, column])
        assert length == min(int(unlimited.lengths_B[column]), limit + 1)


def test_words_are_drawn_as_often_as_the_policy_says():
    model = tiny_model(n_words=3, seed=2)
    actor, batch = engine_actor(model), tiny_batch(model, ["w0 w1"] * 4000)
    first = roll(model, batch, torch.ones(4000, dtype=torch.long)).tokens_TB[1]
    tokens_TB = torch.tensor([[BOS], [EOS]]).expand(2, 4000)
    log_p = actor.log_probs(actor.encode(batch), tokens_TB, Steps.of(torch.full((4000,), 2)))
    for word, expected in enumerate(full_policy(log_p)[0].exp().tolist()):
        tolerance = 4 * math.sqrt(expected * (1 - expected) / 4000)
        assert first.eq(word).double().mean().item() == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("kind", ACTORS)
def test_padding_and_beginning_are_never_drawn_however_likely_they_are(kind):
    model, batch = make()
    with torch.no_grad():
        model.dec.out2prob.bias[[PAD, BOS]] = 20.0
        actor = ACTORS[kind](model)
        found = rollout(actor, batch, LIMITS, generator())
        taken = actor.taken_words(actor.encode(batch), found.tokens_TB, Steps.of(found.lengths_B))
    assert not torch.isin(found.tokens_TB[1], torch.tensor([PAD, BOS])).any()
    assert not found.tokens_TB[1:].eq(BOS).any()
    assert taken.log_pi_N.isfinite().all()


def test_a_rollout_begins_with_the_words_that_are_forced():
    model, batch = make()
    forced_TB = torch.zeros(3, 6, dtype=torch.long)
    forced_TB[0], forced_TB[1, ::2] = 5, 4
    rollouts = [roll(model, batch, torch.full((6,), 6), seed, forced_TB) for seed in range(4)]
    for found in rollouts:
        assert found.tokens_TB[1].eq(5).all()
        assert found.tokens_TB[2, ::2].eq(4).all()
    assert len(torch.stack([found.tokens_TB[2, 1::2] for found in rollouts]).unique()) > 1


def test_without_a_generator_a_rollout_is_greedy():
    model, batch = make()
    tokens_TB = rollout(engine_actor(model), batch, torch.full((6,), 7)).tokens_TB
    found = [[word for word in row if word > EOS] for row in tokens_TB.t().tolist()]
    assert found == [hypothesis.words for hypothesis in greedy_search(model, batch, 7)]


def test_limits():
    lengths = torch.tensor([3, 12, 60])  # with <bos> and <eos>: references of 1, 10 and 58 words
    assert step_limits(lengths, longest=50).tolist() == [11, 20, 50]


def test_a_repeated_batch_has_the_same_sentences_side_by_side():
    _, batch = make()
    twice = repeat_batch(batch, 2)
    assert twice.size == 12
    assert torch.equal(twice["src"][:, ::2], batch["src"])
    assert torch.equal(twice["src"][:, 1::2], batch["src"])
    assert twice.lengths["src"].tolist() == batch.lengths["src"].repeat_interleave(2).tolist()


def test_a_temperature_sharpens_what_is_drawn():
    model = tiny_model(n_words=3, seed=2)
    actor, batch, limits = engine_actor(model), tiny_batch(model, ["w0 w1"] * 4000), torch.ones(4000, dtype=torch.long)
    first = rollout(actor, batch, limits, generator(), temperature=0.5).tokens_TB[1]
    tokens_TB = torch.tensor([[BOS], [EOS]]).expand(2, 4000)
    log_p = actor.log_probs(actor.encode(batch), tokens_TB, Steps.of(torch.full((4000,), 2)))
    expected = full_policy(log_p)[0].exp().square()
    expected /= expected.sum()
    for word, probability in enumerate(expected.tolist()):
        tolerance = 4 * math.sqrt(probability * (1 - probability) / 4000)
        assert first.eq(word).double().mean().item() == pytest.approx(probability, abs=tolerance)


# Recording and forking


def traced(kind, seed=0):
    """A sampled rollout with what it recorded, and the stepper that it has used up."""
    model, batch = make()
    actor = ACTORS[kind](model)
    with torch.no_grad():
        encoded = actor.encode(batch)
    stepper, trace = actor.stepper(encoded), Trace(3, int(LIMITS.max()), 6, torch.device("cpu"))
    found = roll_out(stepper, LIMITS, generator(seed), trace=trace)
    return actor, encoded, stepper, trace, found


@pytest.mark.parametrize("kind", ACTORS)
@torch.no_grad()
def test_a_trace_has_what_a_computation_step_by_step_gives(kind):
    actor, encoded, _, trace, found = traced(kind)
    slow = actor.stepper(encoded)  # which keeps all sentences
    for step, tokens_B in enumerate(found.tokens_TB[:-1]):
        log_pi_BV = full_policy(slow.log_probs(tokens_B.unsqueeze(1)).squeeze(1))
        for sentence in range(6):
            if found.lengths_B[sentence] - 1 > step:
                expected = log_pi_BV[sentence].topk(3)
                assert torch.equal(trace.tokens_TBK[step, sentence], expected.indices)
                torch.testing.assert_close(trace.log_pi_TBK[step, sentence], expected.values.float())
                torch.testing.assert_close(trace.states_TBH[step, sentence], slow.decoder_states()[sentence])
            else:
                assert trace.tokens_TBK[step, sentence].tolist() == [PAD] * 3
                assert trace.log_pi_TBK[step, sentence].tolist() == [-math.inf] * 3
                assert not trace.states_TBH[step, sentence].any()


@pytest.mark.parametrize("kind", ACTORS)
@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_a_forked_state_goes_on_as_a_rollout_from_the_start_with_its_prefix(kind, sampled):
    actor, encoded, stepper, trace, found = traced(kind)
    n_compared, limit = 0, 12
    for sentence in range(6):
        alone, here = select_encoded(encoded, torch.tensor([sentence])), torch.tensor([sentence])
        for step in range(int(found.lengths_B[sentence]) - 1):
            for word_1 in trace.tokens_TBK[step, sentence].unsqueeze(1):
                if word_1 != EOS:
                    forced_TB = torch.cat((found.tokens_TB[1 : step + 1, sentence], word_1)).unsqueeze(1)
                    draws, same_draws = (generator(5), generator(5)) if sampled else (None, None)
                    expected = roll_out(actor.stepper(alone), torch.tensor([limit]), draws, forced_TB)
                    if same_draws is not None:  # those that the prefix took
                        torch.rand(step + 1, 1, generator=same_draws, dtype=torch.float64)
                    forked = stepper.fork(here, trace.states_TBH[step, here])
                    continued = roll_out(forked, torch.tensor([limit - step - 1]), same_draws, first_B=word_1)
                    assert torch.equal(continued.tokens_TB, expected.tokens_TB[step + 1 :])
                    n_compared += len(continued.tokens_TB) > 2
    assert n_compared > 20


@pytest.mark.parametrize("kind", ACTORS)
def test_several_forks_at_once_leave_each_other_and_their_origin_alone(kind):
    _, _, stepper, trace, found = traced(kind)
    states_C, times_C = torch.tensor([3, 3, 2, 4]), torch.tensor([1, 0, 2, 0])
    assert (found.lengths_B[states_C] - 1 > times_C).all()
    forked = stepper.fork(states_C, trace.states_TBH[times_C, states_C])
    limits_C, tokens_C = torch.tensor([8, 3, 5, 8]), torch.tensor([4, 5, 6, 7])
    together = roll_out(forked, limits_C, None, first_B=tokens_C)
    for column in range(4):
        pick = torch.tensor([column])
        alone = stepper.fork(states_C[pick], trace.states_TBH[times_C[pick], states_C[pick]])
        expected = roll_out(alone, limits_C[pick], None, first_B=tokens_C[pick])
        length = int(together.lengths_B[column])
        assert torch.equal(together.tokens_TB[:length, column], expected.tokens_TB[:, 0])
        assert length == int(expected.lengths_B[0])
