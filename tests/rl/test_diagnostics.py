"""The gate lets critics through that know what words bring, and no others; divergence is noticed, and said once."""

import pytest
import torch

from pysimt_sac.engine.data.vocabulary import EOS
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.critic import CriticOptions
from pysimt_sac.rl.diagnostics import Gate, GateReport, gate_lines
from tests.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import engine_actor, make_setup

# The gate

WORDS = 6
WORD = "w1"  # number 5 of the vocabulary


@pytest.fixture
def setup():
    model = tiny_model(n_words=WORDS, seed=4)
    with torch.no_grad():
        model.dec.out2prob.bias[[EOS, 5]] = 1.0
    actor = engine_actor(model)
    assert actor.tokens[5] == WORD
    sides = tiny_sentences(16, WORDS, longest=4), tiny_sentences(16, WORDS, seed=1, longest=4)
    actor.load_batches = lambda split, size: [tiny_batch(model, *sides)]
    return make_setup(model, actor, reward_scale=1.0, rollout_max_len=8)


class Oracle:
    """Critics that know: Q is what the word adds to the number of its own kind, or the opposite of it."""

    def __init__(self, sign, **options):
        self.sign, self.options = sign, CriticOptions(gamma=0.0, support_least=0.0, **options)

    def readouts(self, experience, steps):
        return steps

    def q_of_taken(self, steps, taken_N):
        return self.sign * taken_N.eq(5).float().unsqueeze(0)

    def q_of_actions(self, steps, support):
        return self.sign * support.words_NK.eq(5).float().unsqueeze(0)


def fives(translations):
    """Word number 5 is worth one, at once."""
    return [
        [float(sum(word == WORD for word in words[: time + 1])) for time in range(len(words) + ended)]
        for words, ended in zip(translations.hypotheses, translations.ended, strict=True)
    ]


def collector(setup):
    made = Collector(setup)
    made.rewarder.parts["bleu"] = fives
    return made


def gate(setup, sign):
    return Gate(setup.actor, collector(setup), Oracle(sign), alpha=0.0)


def test_critics_that_know_pass(setup):
    report = gate(setup, 1.0).examine(16, seed=3)
    assert report.explained_variance == pytest.approx(1.0)
    assert report.ranking == 1.0
    assert report.passed
    assert report.n_sentences == 16
    assert "passed" in report.lines()[0]


def test_critics_that_are_wrong_do_not(setup):
    report = gate(setup, -1.0).examine(16, seed=3)
    assert report.explained_variance < 0
    assert report.ranking == 0.0
    assert not report.passed
    assert "Warning" in report.lines()[1]


def test_a_figure_that_does_not_exist_fails():
    assert not GateReport(float("nan"), 0.9, 4).passed


def test_the_same_seed_finds_the_same_and_the_run_s_random_state_stays(setup):
    door = gate(setup, 1.0)
    before = torch.get_rng_state(), door.collector.generator.get_state()
    first = [door.examine(16, seed=3) for _ in range(2)]
    assert first[0] == first[1]
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], door.collector.generator.get_state())


def test_the_gate_stands_before_the_actors_first_stage_and_can_be_left_out(setup):
    assert gate_lines(setup, collector(setup), Oracle(1.0), "critics alone", alpha=0.0) == []
    assert gate_lines(setup, collector(setup), Oracle(1.0, gate_sentences=0), "actor and critics", alpha=0.0) == []
    (line,) = gate_lines(setup, collector(setup), Oracle(1.0, gate_sentences=16), "actor and critics", alpha=0.0)
    assert line.startswith("Gate, 16 validation sentences")
