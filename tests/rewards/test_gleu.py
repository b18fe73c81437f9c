"""GLEU by hand, against a plain implementation, and as a potential."""

from collections import Counter

import numpy as np
import pytest

from pysimt_sac.rewards import Translations, by_step
from pysimt_sac.rewards.gleu import GleuReward
from pysimt_sac.rewards.incremental import ShapingOptions
from tests.rewards.random_texts import random_translations, without_unknown
from tests.rewards.rewarders import make_rewarder


def plain_gleu(words, reference):
    """min(precision, recall) over all n-grams of one to four words, from multisets."""
    mine, theirs = (
        Counter(tuple(text[start : start + n]) for n in range(1, 5) for start in range(len(text) - n + 1))
        for text in (without_unknown(words, "hyp"), without_unknown(reference, "ref"))
    )
    matches = (mine & theirs).total()
    return min(matches / mine.total(), matches / theirs.total()) if matches else 0.0


def potentials(translations, **options):
    return by_step(GleuReward(ShapingOptions(**options))(translations), translations.steps)


def one(words, reference, ended=True, **options):
    translations = Translations([words.split()], [reference.split()], [ended])
    return potentials(translations, **options)[:, 0].tolist()


def test_by_hand():
    # The reference has 4 + 3 + 2 + 1 = 10 n-grams. "a": 1; "a b": a, b, a b; "x" adds none; "d": d alone.
    assert one("a b x d", "a b c d") == pytest.approx([1 / 10, 3 / 10, 3 / 10, 4 / 10, 4 / 10])
    # Whole: all 10. A fifth word makes 5 + 4 + 3 + 2 = 14 n-grams, a sixth 6 + 5 + 4 + 3 = 18.
    assert one("a b c d x x", "a b c d") == pytest.approx([0.1, 0.3, 0.6, 1.0, 10 / 14, 10 / 18, 10 / 18])
    # Clipped: the reference has "a" twice and "a a" once, of 2 + 1 n-grams; three words have 3 + 2 + 1.
    assert one("a a a", "a a", ended=False) == pytest.approx([1 / 3, 1.0, 3 / 6])
    assert one("a", "a") == [1, 1]
    assert one("", "a b") == [0]


def test_every_potential_is_the_prefixs_gleu_and_the_end_changes_nothing():
    translations = random_translations(300)
    found = potentials(translations)
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        for time in range(1, translations.steps[column] + 1):
            assert found[time - 1, column] == pytest.approx(plain_gleu(words[:time], reference), abs=1e-12)
        if translations.ended[column] and words:
            assert found[len(words), column] == found[len(words) - 1, column]


def test_it_does_not_fall_before_the_references_length_nor_stays_without_a_match_beyond_it():
    translations = random_translations(300, seed=4)
    found = potentials(translations)
    for column, (words, reference) in enumerate(zip(translations.hypotheses, translations.references, strict=True)):
        growth = np.diff(found[: len(words), column], prepend=0.0)
        assert (growth[: len(reference)] >= 0).all()
        assert all(growth[time] < 0 for time in range(len(reference), len(words))
                   if words[time] not in reference and found[time - 1, column] > 0)  # fmt: skip


def test_unknown_words_match_nothing():
    assert one("<unk> a", "<unk> a") == pytest.approx([0, 1 / 3, 1 / 3])


def test_final_shaping_gives_all_at_the_last_step():
    assert one("a b", "a b", shaping="final") == [0, 0, 1]
    assert one("a b", "a b", ended=False, shaping="final") == [0, 1]


def test_it_is_found_by_its_name():
    translations = random_translations(30)
    found = make_rewarder(reward="gleu")(translations)
    assert found.parts["gleu"].tolist() == potentials(translations)[-1].tolist()
