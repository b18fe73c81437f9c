"""What rewards are told besides words: source and number of the sentence, in every way that algorithms ask them."""

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.registry import REWARDS
from pysimt_sac.rewards import SourceTexts, Translations, reward
from pysimt_sac.rl.branching import BranchOptions, collect_branched
from pysimt_sac.rl.collector import Collector
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rewards.random_texts import random_translations
from tests.rewards.rewarders import make_rewarder
from tests.rl.tiny import make_setup

SOURCES = tiny_sentences(5, 6, longest=7)


@pytest.fixture
def seen():
    """What the reward `spy` was called with."""
    calls = []

    @reward("spy")
    def spy(translations):
        calls.append((translations.sources, translations.numbers, translations.hypotheses, translations.references))
        return [float(len(words)) for words in translations.hypotheses]

    yield calls
    del REWARDS.items["spy"]


def make(**options):
    """A model's collector with the spy, and a batch of sentences 10 to 14 of the training text."""
    model = tiny_model(n_words=6, seed=4, spread=0.4)
    targets = tiny_sentences(5, 6, seed=1, longest=7)
    batch = tiny_batch(model, SOURCES, targets)
    batch.indices = range(10, 15)
    setup = make_setup(model, filters=["de-bpe"], rollout_max_len=6, reward="spy", **options)
    return setup.actor, Collector(setup), batch, [target.split() for target in targets]


@pytest.mark.parametrize("unit", ["piece", "word"])
def test_samples_have_their_sources(seen, unit):
    actor, collector, batch, references = make(reward_unit=unit)
    collector.collect(actor, batch, 1, n_samples=3)
    ((sources, numbers, hypotheses, found),) = seen
    assert len(hypotheses) >= 15  # in words there may be prefixes behind them
    assert sources[:15] == [source for source in SOURCES for _ in range(3)]
    assert numbers[:15] == [number for number in range(10, 15) for _ in range(3)]
    assert found[:15] == [reference for reference in references for _ in range(3)]


@pytest.mark.parametrize("unit", ["piece", "word"])
def test_branches_and_other_next_words_have_theirs(seen, unit):
    actor, collector, batch, references = make(reward_unit=unit)
    collect_branched(actor, batch, collector, BranchOptions(branch_states=3, branch_min_probability=0.0), 1, True)
    assert len(seen) == 3  # the path, its other words, the branches
    for sources, numbers, hypotheses, found in seen:
        assert len(sources) == len(numbers) == len(hypotheses) == len(found)
        assert sources == [SOURCES[number - 10] for number in numbers]
        assert found == [references[number - 10] for number in numbers]
        assert set(numbers) == set(range(10, 15))


def test_words_that_later_pieces_changed_have_the_source_of_their_sentence(seen):
    source = SourceTexts(FakeIds([["x", "y@@", "z"], ["w"]]), FakeTokens(), [7, 3])
    pieces = [["well", "@-@", "known"], ["a"]]
    translations = Translations(pieces, [["a"], ["b"]], [True, True], source=source)
    make_rewarder(["de-bpe", "de-hyphen"], reward="spy", reward_unit="word")(translations)
    ((sources, numbers, hypotheses, _),) = seen
    assert hypotheses == [["well-known"], ["a"], ["well"]]  # the last: what the first was on its way
    assert sources == ["x yz", "w", "x yz"]
    assert numbers == [7, 3, 7]


class FakeTokens:
    """Every word is its own number."""

    def __getitem__(self, word):
        return word


class FakeWord(str):
    def __gt__(self, other):
        return True


class FakeIds:
    """Sentences in the place of a tensor."""

    def __init__(self, sentences):
        self.sentences = sentences

    def t(self):
        return self

    def tolist(self):
        return [[FakeWord(word) for word in sentence] for sentence in self.sentences]


class Untouchable:
    """Nobody may look at it."""

    def t(self):
        raise AssertionError("a source was made into text")


@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("name", ["bleu", "gleu", "chrf", "ter", "length"])
def test_rewards_that_do_not_ask_do_not_pay(name, unit):
    known = random_translations(4, seed=1)
    source = SourceTexts(Untouchable(), (), range(4))
    translations = Translations(known.hypotheses, known.references, known.ended, source=source)
    both = [
        make_rewarder(["de-bpe"], reward=name, reward_unit=unit)(each).potentials_TB for each in (known, translations)
    ]
    assert (both[0] == both[1]).all()
    with pytest.raises(AssertionError, match="made into text"):
        _ = translations.sources


def test_where_they_are_not_known():
    translations = Translations([["a"]], [["a"]], [True])
    assert translations.numbers is None
    with pytest.raises(UserError, match="the sources are not known here"):
        _ = translations.sources
    source = SourceTexts(FakeIds([["a"], ["b"]]), FakeTokens(), filters=FilterChain(["upper"]))
    both = Translations([["a"]] * 3, [["a"]] * 3, [True] * 3, source=source, sentences=[1, 1, 0])
    assert both.sources == ["B", "B", "A"]
    assert both.numbers is None
