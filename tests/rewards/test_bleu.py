"""Sentence BLEU against sacrebleu, the shaped potentials by hand and against their formula."""

import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from pysimt_sac.rewards import Translations, by_step
from pysimt_sac.rewards.bleu import BleuOptions, BleuReward
from tests.rewards.random_texts import random_translations, without_unknown

ORACLE = BLEU(smooth_method="add-k", smooth_value=1, tokenize="none", effective_order=True)


def sacrebleu_score(words, reference):
    hypothesis = " ".join(without_unknown(words, "hyp"))
    return ORACLE.sentence_score(hypothesis, [" ".join(without_unknown(reference, "ref"))]).score / 100


def potentials(translations, **options):
    answer = BleuReward(BleuOptions(**{"length_penalty": 0.0, **options}))(translations)
    return by_step(answer, translations.steps)


def one(words, reference, ended=True, **options):
    """The potentials of one sentence, as a list."""
    return potentials(Translations([words.split()], [reference.split()], [ended]), **options)[:, 0].tolist()


@pytest.mark.parametrize("shaping", ["padded", "bp", "final"])
def test_the_last_potential_is_sacrebleus_sentence_bleu(shaping):
    translations = random_translations(500)
    last = potentials(translations, shaping=shaping)[-1]
    expected = [sacrebleu_score(*pair) for pair in zip(translations.hypotheses, translations.references, strict=True)]
    assert last == pytest.approx(expected, abs=1e-12)
    assert len({round(score, 6) for score in expected}) > 50


def test_effective_order_makes_no_difference_to_it():
    plain = BLEU(smooth_method="add-k", smooth_value=1, tokenize="none")
    for words, reference in (("a b", "a b"), ("a", "a b c"), ("x", "a b"), ("a b c d e", "a b c x e")):
        assert plain.corpus_score([words], [[reference]]).score / 100 == pytest.approx(one(words, reference)[-1])


def test_every_potential_of_bp_shaping_is_the_prefixs_bleu():
    translations = random_translations(100, seed=1)
    found = potentials(translations, shaping="bp")
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        for time in range(1, len(words) + 1):
            assert found[time - 1, column] == pytest.approx(sacrebleu_score(words[:time], reference), abs=1e-12)


def test_padded_shaping_by_hand():
    # Reference of 5: up to 5, 4, 3, 2 n-grams. After "a": m = 1, 0, 0, 0; after "a b": 2, 1, 0, 0; "x" adds nothing.
    first = (1 / 5 * 1 / 5 * 1 / 4 * 1 / 3) ** 0.25
    second = (2 / 5 * 2 / 5 * 1 / 4 * 1 / 3) ** 0.25
    final = math.exp(1 - 5 / 3) * (2 / 3 * (1 + 1) / (2 + 1) * (0 + 1) / (1 + 1) * 1) ** 0.25
    assert one("a b x", "a b c d e") == pytest.approx([first, second, second, final])
    assert one("a b x", "a b c d e", ended=False) == pytest.approx([first, second, final])


def padded_by_formula(words, reference):
    """m_1 / L * prod (m_n + 1) / (max(L - n + 1, 0) + 1), with n-grams counted in the plainest way."""
    length = len(reference)
    words, reference = without_unknown(words, "hyp"), without_unknown(reference, "ref")
    product = 1.0
    for n in range(1, 5):
        have = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        want = [tuple(reference[i : i + n]) for i in range(length - n + 1)]
        matches = sum(min(have.count(ngram), want.count(ngram)) for ngram in set(have))
        product *= matches / length if n == 1 else (matches + 1) / (max(length - n + 1, 0) + 1)
    return product**0.25


def test_padded_shaping_follows_its_formula_up_to_the_references_length_and_never_falls_there():
    translations = random_translations(300, seed=2)
    found = potentials(translations)
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        last = min(translations.steps[column] - 1, len(reference))
        before = [padded_by_formula(words[:time], reference) for time in range(1, last + 1)]
        assert found[:last, column].tolist() == pytest.approx(before, abs=1e-12)
        assert (np.diff(found[:last, column]) >= 0).all()


def test_beyond_the_references_length_padded_shaping_is_the_prefixs_own_bleu():
    translations, compared = random_translations(300, seed=2), 0
    found = potentials(translations)
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        for time in range(len(reference), len(words) + 1):  # from t = L on: there both formulas agree
            assert found[time - 1, column] == pytest.approx(sacrebleu_score(words[:time], reference), abs=1e-12)
            compared += time > len(reference)
    assert compared > 50


def test_each_word_too_many_costs_at_once_and_the_end_costs_nothing_more():
    # Reference "a b": the third word leaves m = 2, 1, 0, 0 of 3, 2, 1, 0 n-grams, the fourth of 4, 3, 2, 1.
    third = (2 / 3 * (1 + 1) / (2 + 1) * 1 / (1 + 1) * 1) ** 0.25
    fourth = (2 / 4 * (1 + 1) / (3 + 1) * 1 / (2 + 1) * 1 / (1 + 1)) ** 0.25
    first = (1 / 2 * (0 + 1) / (1 + 1)) ** 0.25
    assert one("a b x x", "a b") == pytest.approx([first, 1.0, third, fourth, fourth])
    assert one("a b x x", "a b", ended=False) == pytest.approx([first, 1.0, third, fourth])


def test_a_perfect_translation_earns_one_and_its_end_only_what_is_left():
    assert one("a b c d e", "a b c d e") == pytest.approx([*one("a b c d e", "a b c d e")[:4], 1.0, 1.0])
    assert one("a", "a") == pytest.approx([1.0, 1.0])


def test_final_shaping_gives_all_at_the_last_step():
    assert one("a b", "a b", shaping="final") == pytest.approx([0, 0, 1])
    assert one("a b", "a b", ended=False, shaping="final") == pytest.approx([0, 1])


@pytest.mark.parametrize("ended", [True, False])
def test_the_length_penalty_at_the_end(ended):
    penalised = one("a b c", "a b c d e", ended, length_penalty=0.01)
    plain = one("a b c", "a b c d e", ended)
    assert penalised[:-1] == plain[:-1]
    assert penalised[-1] == pytest.approx(plain[-1] - 0.02)


def test_the_length_penalty_at_every_step():
    penalised = one("a b c", "a b", length_penalty=0.01, length_penalty_at="step")
    assert penalised == pytest.approx(np.subtract(one("a b c", "a b"), [0.01, 0.0, 0.01, 0.01]))


def test_an_unknown_word_matches_nothing_not_even_itself():
    assert one("<unk> <unk>", "<unk> <unk>") == [0, 0, 0]
    assert one("a <unk> b", "a <unk> b")[-1] == pytest.approx(sacrebleu_score(["a", "hyp", "b"], ["a", "ref", "b"]))


def test_no_words_at_all_are_worth_nothing():
    assert one("", "a b") == [0]
    assert one("x y", "a b") == [0, 0, 0]
