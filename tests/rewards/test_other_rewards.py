"""chrF, TER and length, with sacrebleu as the oracle."""

import pytest
from sacrebleu.metrics import CHRF, TER

from pysimt_sac.rewards import RewardOptions, Translations, by_step
from pysimt_sac.rewards.chrf import ChrfReward
from pysimt_sac.rewards.incremental import ShapingOptions
from pysimt_sac.rewards.length import LengthReward
from pysimt_sac.rewards.ter import TerReward
from tests.rewards.random_texts import random_translations
from tests.rewards.rewarders import make_rewarder, rewards_of

WORDS = ["a", "b", "cat", "catch", "dogs", "hot"]
OPTIONS = ShapingOptions()
FINAL = ShapingOptions(shaping="final")


def columns(answer, translations):
    """Potentials by sentence, without what is behind its end."""
    table = by_step(answer, translations.steps).T.tolist()
    return [row[:steps] for row, steps in zip(table, translations.steps, strict=True)]


def sentences(translations):
    return zip(translations.hypotheses, translations.references, strict=True)


def test_chrf_of_every_prefix_is_sacrebleus():
    translations = random_translations(150, words=WORDS)
    oracle = CHRF()
    found = columns(ChrfReward(OPTIONS)(translations), translations)
    for potentials, (words, reference) in zip(found, sentences(translations), strict=True):
        for time, potential in enumerate(potentials, 1):
            expected = oracle.sentence_score(" ".join(words[:time]), [" ".join(reference)]).score / 100
            assert potential == pytest.approx(expected, abs=1e-12)


def test_ter_at_the_end_is_sacrebleus():
    translations = random_translations(150, words=[*WORDS, "Cat"])  # case does not matter
    oracle = TER()
    expected = [
        1 - oracle.sentence_score(" ".join(words), [" ".join(reference)]).score / 100
        for words, reference in sentences(translations)
    ]
    assert [row[-1] for row in columns(TerReward(OPTIONS)(translations), translations)] == pytest.approx(expected)
    assert [row[-1] for row in columns(TerReward(FINAL)(translations), translations)] == pytest.approx(expected)


def test_ter_grows_by_the_edit_distance_and_the_end_earns_what_a_shift_saves():
    # "c d a b" for "a b c d": no word in place helps until "a", "b"; then 4 edits without, 1 with a shift.
    translations = Translations([["c", "d", "a", "b"]], [["a", "b", "c", "d"]], [True])
    (row,) = columns(TerReward(OPTIONS)(translations), translations)
    assert row == pytest.approx([0.25, 0.5, 0.25, 0.0, 0.75])


def test_chrf_and_ter_do_not_match_unknown_words():
    translations = Translations([["<unk>", "cat"]], [["<unk>", "cat"]], [True])
    assert columns(TerReward(OPTIONS)(translations), translations)[0] == pytest.approx([0, 0.5, 0.5])
    known = Translations([["X", "cat"]], [["Y", "cat"]], [True])
    found, expected = (columns(ChrfReward(OPTIONS)(texts), texts) for texts in (translations, known))
    assert found == expected


@pytest.mark.parametrize("kind", [ChrfReward, TerReward])
def test_final_shaping_gives_the_same_score_at_the_end_alone(kind):
    translations = random_translations(50, words=WORDS)
    final = columns(kind(FINAL)(translations), translations)
    shaped = columns(kind(OPTIONS)(translations), translations)
    assert [row[-1] for row in final] == [row[-1] for row in shaped]
    assert not any(value for row in final for value in row[:-1])


def test_length_charges_surplus_at_once_and_lack_at_the_end():
    four = ["a", "b", "c", "d"]

    def length(words, ended):
        translations = Translations([words], [four], [ended])
        return columns(LengthReward(RewardOptions())(translations), translations)[0]

    assert length([*four, "e", "f"], ended=True) == [0, 0, 0, 0, -0.25, -0.5, -0.5]
    assert length(four[:1], ended=True) == [0, -0.75]
    assert length(four[:2], ended=False) == [0, -0.5]


@pytest.mark.parametrize("name", ["bleu", "gleu", "chrf", "ter", "length"])
def test_rewards_do_not_depend_on_which_sentences_share_a_batch(name):
    together = random_translations(30, seed=3)
    rewarder = make_rewarder(reward=name)
    rewards_TB = rewards_of(rewarder(together))
    for column, (words, reference) in enumerate(sentences(together)):
        alone = rewards_of(rewarder(Translations([words], [reference], [together.ended[column]])))[:, 0]
        assert rewards_TB[: len(alone), column].tolist() == pytest.approx(alone.tolist(), abs=1e-12)
        assert not rewards_TB[len(alone) :, column].any()
