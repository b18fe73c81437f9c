"""The gate lets critics through that know what words bring, and no others; it changes nothing of the run."""

import pytest
import torch

from pysimt_sac.engine.data.vocabulary import EOS
from pysimt_sac.models import MLENMT
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl.gate import Gate, GateReport
from pysimt_sac.rl.options import CriticOptions
from pysimt_sac.rl.player import Player
from pysimt_sac.rl.rollout import sample_rollout
from tests.engine.tiny import tiny_batch, tiny_model, tiny_sentences

WORDS = 6


@pytest.fixture
def actor():
    model = tiny_model(n_words=WORDS, seed=4, model_class=MLENMT)
    with torch.no_grad():
        model.dec.out2prob.bias[[EOS, 5]] = 1.0
    sides = tiny_sentences(16, WORDS, longest=4), tiny_sentences(16, WORDS, seed=1, longest=4)
    model.validation_batches = lambda n_sentences: [tiny_batch(model, *sides)]
    return model


class Oracle:
    """Critics that know: Q is what the word adds to the number of its own kind, or the opposite of it."""

    def __init__(self, sign):
        self.sign = sign

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


WORD = ""


def gate(actor, monkeypatch, sign):
    monkeypatch.setitem(globals(), "WORD", actor.trg_vocab_tokens[5])
    player = Player(RewardOptions(reward_scale=1.0), longest=8, dropout=False, permuted=False, seed=1)
    player.rewarder.parts["bleu"] = fives
    return Gate(actor, player, Oracle(sign), CriticOptions(gamma=0.0, support_least=0.0), alpha=0.0)


def test_critics_that_know_pass(actor, monkeypatch):
    report = gate(actor, monkeypatch, 1.0).examine(16, seed=3)
    assert report.explained_variance == pytest.approx(1.0)
    assert report.ranking == 1.0
    assert report.passed
    assert report.n_sentences == 16
    assert "passed" in report.lines()[0]


def test_critics_that_are_wrong_do_not(actor, monkeypatch):
    report = gate(actor, monkeypatch, -1.0).examine(16, seed=3)
    assert report.explained_variance < 0
    assert report.ranking == 0.0
    assert not report.passed
    assert "Warning" in report.lines()[1]


def test_a_figure_that_does_not_exist_fails():
    assert not GateReport(float("nan"), 0.9, 4).passed


def test_the_same_seed_finds_the_same_and_the_run_s_random_state_stays(actor, monkeypatch):
    door = gate(actor, monkeypatch, 1.0)
    before = torch.get_rng_state(), door.player.generator.get_state()
    first = [door.examine(16, seed=3) for _ in range(2)]
    assert first[0] == first[1]
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], door.player.generator.get_state())


def test_a_rollout_begins_with_the_words_that_are_forced(actor):
    batch = next(iter(actor.validation_batches(16)))
    forced_TB = torch.zeros(3, 16, dtype=torch.long)
    forced_TB[0], forced_TB[1, ::2] = 5, 4
    generator = torch.Generator().manual_seed(1)
    rollout = sample_rollout(actor.dec, actor.states_of(batch), torch.full((16,), 6), generator, forced_TB)
    assert rollout.words_TB[1].eq(5).all()
    assert rollout.words_TB[2, ::2].eq(4).all()
    assert len(rollout.words_TB[2, 1::2].unique()) > 1


def test_without_a_generator_a_rollout_is_greedy(actor):
    from pysimt_sac.engine.decoding.greedy import greedy_search

    batch = next(iter(actor.validation_batches(16)))
    rollout = sample_rollout(actor.dec, actor.states_of(batch), torch.full((16,), 7), None)
    found = [[word for word in row if word > EOS] for row in rollout.words_TB.t().tolist()]
    assert found == [hypothesis.words for hypothesis in greedy_search(actor, batch, 7)]
