"""`reward_unit: word`: which words count after which piece, by hand and against other ways of counting them."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF, TER

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.rewards import Translations, reward
from tests.rewards.random_texts import PIECES, random_translations, words_of
from tests.rewards.rewarders import make_rewarder
from tests.rewards.test_bleu import ORACLE
from tests.rewards.test_gleu import plain_gleu

FILTERS = "de-bpe,de-hyphen"


def rewarder(name, filters=FILTERS, **options):
    return make_rewarder(filters.split(","), reward=name, reward_unit="word", **options)


def gleu(hypothesis, reference, ended=True, filters=FILTERS):
    """GLEU's potentials of one sentence."""
    translations = Translations([hypothesis.split()], [reference.split()], [ended])
    return rewarder("gleu", filters)(translations).potentials_TB[:, 0].tolist()


def test_a_word_counts_with_its_last_piece():
    # Words: "katze schläft"; one of them is one of three n-grams.
    assert gleu("katz@@ e schläft", "kat@@ ze schläft") == pytest.approx([0, 1 / 3, 1, 1])
    assert gleu("kat@@ ze schl@@ äft", "katze schläft") == pytest.approx([0, 1 / 3, 1 / 3, 1, 1])


def test_at_the_end_an_unfinished_word_counts():
    assert gleu("katz@@", "katz a") == pytest.approx([0, 1 / 3])
    assert gleu("katz@@", "katz a", ended=False) == pytest.approx([1 / 3])
    assert gleu("a katz@@", "katz a", ended=False) == pytest.approx([1 / 3, 2 / 3])


def test_a_hyphen_reopens_the_word_before_it():
    assert gleu("well @-@ known man", "well @-@ known man") == pytest.approx([0, 0, 1 / 3, 1, 1])
    assert gleu("well @-@ known", "well known") == pytest.approx([1 / 3, 0, 0, 0])
    assert gleu("well @-@ known", "well known", ended=False) == pytest.approx([1 / 3, 0, 0])


def test_with_sentencepiece_the_next_word_tells_that_one_is_complete():
    assert gleu("▁kat ze ▁schläft", "▁katze ▁schläft", filters="de-spm") == pytest.approx([0, 0, 1 / 3, 1])
    assert gleu("▁kat ze ▁schläft", "▁katze ▁schläft", ended=False, filters="de-spm") == pytest.approx([0, 0, 1])


def test_characters_and_case():
    assert gleu("a b <s> c", "A B <s> C", filters="c2w,lower") == pytest.approx([0, 0, 1 / 3, 1 / 3, 1])


def test_pieces_that_are_no_word():
    assert gleu("@@", "a", ended=False) == [0]
    assert gleu("a @@", "a", ended=False) == [1, 1]
    assert gleu("@@ a", "a") == [0, 1, 1]
    assert gleu("", "a") == [0]


def test_a_word_with_an_unknown_piece_matches_nothing():
    assert gleu("a@@ <unk> b", "a@@ <unk> b") == pytest.approx([0, 0, 1 / 3, 1 / 3])


def test_words_without_filters_are_pieces():
    translations = random_translations(50, words=PIECES)
    found = make_rewarder(reward_unit="word")(translations)
    expected = make_rewarder()(translations)
    assert (found.potentials_TB == expected.potentials_TB).all()


def test_the_scale_counts_words():
    translations = Translations([["a"]], [["a@@", "b", "c", "@-@", "d"]], [True])
    assert rewarder("gleu")(translations).scale_B.tolist() == [2]


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("bleu", lambda words, reference: ORACLE.sentence_score(words, [reference]).score / 100),
        ("gleu", lambda words, reference: plain_gleu(words.split(), reference.split())),
        ("chrf", lambda words, reference: CHRF().sentence_score(words, [reference]).score / 100),
        ("ter", lambda words, reference: 1 - TER().sentence_score(words, [reference]).score / 100),
    ],
)
@pytest.mark.parametrize("shaping", ["padded", "final"])
@pytest.mark.parametrize("filters", [FILTERS, "de-bpe,de-hyphen,upper", "de-spm"])
def test_the_final_score_is_that_of_the_filtered_text(name, score, shaping, filters):
    pieces = ["▁a", "▁b", "c", "▁", "d"] if filters == "de-spm" else [piece for piece in PIECES if piece != "<unk>"]
    translations = random_translations(150, words=pieces)
    found = rewarder(name, filters, shaping=shaping, length_penalty=0.0)(translations)
    chain, compared = FilterChain(filters.split(",")), 0
    for words, reference, last in zip(
        translations.hypotheses, translations.references, found.potentials_TB[-1], strict=True
    ):
        words, reference = chain([" ".join(words), " ".join(reference)])
        if words.strip() and reference.strip():  # sacrebleu has its own opinion on empty lines
            assert last == pytest.approx(score(words, reference), abs=1e-12)
            compared += 1
    assert compared > 60


@pytest.mark.parametrize("name", ["bleu", "gleu", "chrf", "ter", "length"])
@pytest.mark.parametrize("shaping", ["padded", "bp", "final"])
def test_every_potential_is_that_of_the_complete_words(name, shaping):
    translations = random_translations(150, words=PIECES, seed=5)
    options = {"shaping": shaping, "length_penalty": 0.01, "length_penalty_at": "step"}
    found = rewarder(name, **options)(translations)
    in_pieces = make_rewarder(reward=name, **options)
    for column, (pieces, n_steps) in enumerate(zip(translations.hypotheses, translations.steps, strict=True)):
        reference = words_of(translations.references[column])
        for time in range(1, n_steps + 1):
            last = time == n_steps
            words = words_of(pieces[:time], whole=last)
            alone = in_pieces(Translations([words], [reference], [True])).potentials_TB[:, 0]
            expected = alone[-1] if last else alone[len(words) - 1] if words else 0
            assert found.potentials_TB[time - 1, column] == pytest.approx(expected, abs=1e-12)
        assert (found.potentials_TB[n_steps - 1 :, column] == found.potentials_TB[-1, column]).all()
        assert found.scale_B[column] == len(reference)


def test_the_users_own_reward_is_given_words(registry):
    @reward("last_words")
    def last_words(translations):
        assert all("@@" not in " ".join(words) for words in translations.hypotheses + translations.references)
        return [len(words) + (not ended) / 2 for words, ended in zip(
            translations.hypotheses, translations.ended, strict=True)]  # fmt: skip

    translations = Translations([["a@@", "b"], ["a", "@-@", "b"]], [["a"], ["b"]], [True, False])
    assert rewarder("last_words")(translations).potentials_TB.tolist() == [[0, 0], [0, 0], [1, 1.5]]


def test_the_users_own_reward_may_answer_by_the_step_of_words(registry):
    @reward("complete")
    def complete(translations):
        return [list(range(1, steps + 1)) for steps in translations.steps]

    translations = Translations([["a@@", "b", "c"], ["a", "@-@", "b"]], [["a"], ["b"]], [True, False])
    assert rewarder("complete")(translations).potentials_TB.T.tolist() == [[0, 1, 2, 3], [1, 0, 1, 1]]


def test_a_reward_that_learns_is_given_words(registry):
    @reward("words")
    class Remembers:
        def __init__(self, options):
            self.given = None

        def __call__(self, translations):
            return [0.0] * len(translations.hypotheses)

        def learn(self, samples):
            self.given = samples.hypotheses
            return {}

    one = rewarder("words")
    one.learn(Translations([["a", "@-@", "b", "c"]], [["a"]], [True]))
    assert one.parts["words"].given == [["a-b", "c"]]


def test_pieces_are_counted_as_ever():
    translations = random_translations(50, words=PIECES)
    found = make_rewarder(FILTERS.split(","))(translations)
    assert np.array_equal(found.potentials_TB, make_rewarder()(translations).potentials_TB)
