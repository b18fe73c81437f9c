"""The gate lets critics through that know what words bring, and no others; divergence is noticed, and said once."""

import dataclasses

import pytest
import torch

from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticOptions
from pysimt_sac.rl.diagnostics import Gate, GateReport, Ranking, gate_lines, random_states
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import engine_actor, make_setup

# The gate

WORDS = 6
WORD = "w1"  # number 5 of the vocabulary


@pytest.fixture
def setup():
    model = tiny_model(n_words=WORDS, seed=6, dropout_out=0.5)
    with torch.no_grad():
        model.dec.out2prob.bias[EOS], model.dec.out2prob.bias[5] = 1.1, 0.2
    actor = engine_actor(model)
    assert actor.tokens[5] == WORD
    sides = tiny_sentences(16, WORDS, longest=4), tiny_sentences(16, WORDS, seed=1, longest=4)
    actor.load_batches = lambda split, size: [tiny_batch(model, *sides)]
    return make_setup(model, actor, reward_scale=1.0, rollout_max_len=8)


class Oracle:
    """Critics that know what a first word brings in the end, or the opposite of it; see `late_fives`."""

    def __init__(self, sign, **options):
        self.sign, self.options = sign, CriticOptions(support_min_probability=0.0, **options)

    def readouts(self, experience):
        steps = experience.steps
        first_N = experience.tokens_TB[1].index_select(0, steps.sentences_N)
        return torch.stack((first_N, steps.times_N), 1)

    def q_of(self, states_N2, tokens_NK):
        first_N1, times_N1 = states_N2.split(1, 1)
        return self.sign * torch.where(times_N1 == 0, tokens_NK, first_N1).eq(5).float()

    def q_of_taken(self, states_N2, taken_N):
        return self.q_of(states_N2, taken_N.unsqueeze(1)).t()

    def q_of_words(self, states_N2, rows_M, tokens_MK):
        return self.q_of(states_N2[rows_M], tokens_MK).unsqueeze(0)


def late_fives(translations):
    """Who begins with word number 5 earns one in the end, whatever follows; what comes before the end earns nothing."""
    return [float(words[:1] == [WORD]) for words in translations.hypotheses]


def collector(setup):
    made = Collector(setup)
    made.rewarder.parts["bleu"] = late_fives
    return made


def gate(setup, sign, **options):
    return Gate(setup.actor, collector(setup), Oracle(sign, **options), alpha=0.0)


def test_critics_that_know_pass(setup):
    report = gate(setup, 1.0).examine(16, seed=3)
    assert report.explained_variance == pytest.approx(1.0)
    assert report.everywhere.q == report.at_ends.q == 1.0
    assert report.everywhere.reward == 0.5  # it is 0 for all words that differ in what they bring
    assert 0 < report.everywhere.log_pi < 1
    assert report.passed
    assert "passed" in report.lines()[0]


def test_critics_that_are_wrong_do_not(setup):
    report = gate(setup, -1.0).examine(16, seed=3)
    assert report.explained_variance < 0
    assert report.everywhere.q == 0.0
    assert not report.passed
    assert "NOT passed" in report.lines()[0]
    assert "Warning" in report.lines()[1]


def test_every_sentence_has_a_state_and_those_that_may_end_are_a_stratum(setup):
    report = gate(setup, 1.0).examine(16, seed=3)
    assert 16 <= report.everywhere.n_states <= 32
    assert 8 <= report.at_ends.n_states < report.everywhere.n_states


def test_it_examines_what_the_actor_will_follow(setup):
    """With a known reward that is r + f: if f is 0, Q ranks as the reward does, and no better."""
    report = gate(setup, 0.0, known_reward=True).examine(16, seed=3)
    assert report.everywhere.q == report.everywhere.reward == 0.5
    assert not report.passed
    assert gate(setup, 0.5, known_reward=True).examine(16, seed=3).everywhere.q == 1.0


@pytest.mark.parametrize(
    ("explained", "ranking", "passed"),
    [
        (0.5, Ranking(0.7, 0.6, 0.65, 9), True),
        (0.2, Ranking(0.7, 0.6, 0.65, 9), False),
        (0.5, Ranking(0.6, 0.6, 0.5, 9), False),
        (0.5, Ranking(0.6, 0.5, 0.6, 9), False),
        (float("nan"), Ranking(0.9, 0.1, 0.1, 9), False),
        (0.5, Ranking(float("nan"), 0.1, 0.1, 9), False),
    ],
)
def test_q_must_explain_returns_and_rank_better_than_what_costs_nothing(explained, ranking, passed):
    assert GateReport(explained, ranking, ranking).passed == passed


def test_the_same_seed_finds_the_same_and_the_run_s_random_state_stays(setup):
    door = gate(setup, 1.0)
    before = torch.get_rng_state(), door.collector.generator.get_state()
    first = [door.examine(16, seed=3) for _ in range(2)]
    assert first[0] == first[1]
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], door.collector.generator.get_state())


def test_there_is_no_dropout_in_an_examination(setup):
    expected = gate(setup, 1.0).examine(16, seed=3)
    setup.actor.networks.train()
    assert gate(setup, 1.0).examine(16, seed=3) == expected
    assert setup.actor.decoder.do_out.training


def test_critics_of_an_actor_without_doubts_cannot_pass(setup):
    """It leaves nothing to compare, in any sentence."""
    door = gate(setup, 1.0)
    door.options = dataclasses.replace(door.options, support_min_probability=0.999)
    report = door.examine(16, seed=3)
    assert report.everywhere.n_states == 0
    assert not report.passed


def test_one_random_state_of_each_sentence_that_has_one():
    steps = Steps.of(torch.tensor([4, 3, 2]))  # three, two and one steps: 0 1 2 | 3 4 | 5 in the flat order
    allowed_N = torch.tensor([True, False, False, True, True, True])
    drawn = {tuple(random_states(steps, allowed_N, torch.Generator().manual_seed(seed)).tolist()) for seed in range(20)}
    for rows in drawn:
        assert steps.sentences_N[list(rows)].tolist() == [0, 1]  # the third has none
        assert allowed_N[list(rows)].all()
    assert len(drawn) > 1


def test_the_gate_can_be_left_out(setup):
    def lines(n_sentences):
        changed = dataclasses.replace(setup, section={**setup.section, "gate_sentences": n_sentences})
        return gate_lines(changed, collector(setup), Oracle(1.0), alpha=0.0)

    assert lines(0) == []
    (line,) = lines(16)
    assert line.startswith("Gate: explained variance 1.00")
