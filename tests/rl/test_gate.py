"""The gate lets critics through that know what words bring, and no others."""

import dataclasses

import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticOptions
from pysimt_sac.rl.gate import GateReport, Ranking, check_critics, examine, gate_lines
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import engine_actor, make_setup

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


def report(setup, sign, **options):
    return examine(setup, collector(setup), Oracle(sign, **options), alpha=0.0, n_sentences=16)


def test_critics_that_know_pass(setup):
    found = report(setup, 1.0)
    assert found.explained_variance == pytest.approx(1.0)
    assert found.everywhere.q == found.at_ends.q == 1.0
    assert found.everywhere.reward == 0.5  # it is 0 for all words that differ in what they bring
    assert 0 < found.everywhere.log_pi < 1
    assert 0 < found.at_ends.n_states <= found.everywhere.n_states
    assert found.passed
    assert "passed" in found.lines()[0]


def test_critics_that_are_wrong_do_not(setup):
    found = report(setup, -1.0)
    assert found.explained_variance < 0
    assert found.everywhere.q == 0.0
    assert not found.passed
    assert "NOT passed" in found.lines()[0]
    assert "Warning" in found.lines()[1]


def test_it_examines_what_the_actor_will_follow(setup):
    """With a known reward that is r + f: if f is 0, Q ranks as the reward does, and no better."""
    found = report(setup, 0.0, known_reward=True)
    assert found.everywhere.q == found.everywhere.reward == 0.5
    assert not found.passed
    assert report(setup, 0.5, known_reward=True).everywhere.q == 1.0


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


def test_the_same_seed_finds_the_same_and_the_runs_random_state_stays(setup):
    before = torch.get_rng_state()
    assert report(setup, 1.0) == report(setup, 1.0)
    assert torch.equal(before, torch.get_rng_state())


def test_there_is_no_dropout_in_an_examination(setup):
    expected = report(setup, 1.0)
    setup.actor.networks.train()
    assert report(setup, 1.0) == expected
    assert setup.actor.decoder.do_out.training


def test_critics_of_an_actor_without_doubts_cannot_pass(setup):
    """It leaves nothing to compare, in any sentence."""
    with torch.no_grad():
        setup.actor.decoder.out2prob.bias[5] = 100.0
    found = report(setup, 1.0)
    assert found.everywhere.n_states == 0
    assert not found.passed


def test_the_gate_can_be_left_out(setup):
    def lines(**options):
        changed = dataclasses.replace(setup, section={**setup.section, **options})
        return gate_lines(changed, Collector(setup).rewarder, Oracle(1.0), alpha=0.0)

    assert lines(gate_sentences=0) == []
    (line, *_) = lines(gate_sentences=16)
    assert line.startswith("Gate: explained variance")


def test_a_missing_validation_set_is_reported_before_the_critics_learn(setup, monkeypatch):
    def missing(n_sentences):
        raise UserError("unknown split 'val'", "toy.conf [data]")
        yield

    monkeypatch.setattr(setup.actor, "validation_batches", missing)
    with pytest.raises(UserError, match="unknown split"):
        check_critics(setup, CriticOptions())
    check_critics(dataclasses.replace(setup, section={**setup.section, "gate_sentences": 0}), CriticOptions())
