"""Edit counts equal sacrebleu's, sentence by sentence."""

import random

import pytest
from sacrebleu.metrics.lib_ter import translation_edit_rate

from pysimt_sac.evaluation.scoring import ter
from pysimt_sac.evaluation.scoring.ter import count_edits


@pytest.mark.parametrize(
    ("hypothesis", "reference", "edits"),
    [
        ("a b c", "a b c", 0),
        ("a x c", "a b c", 1),
        ("c d e a b", "a b c d e", 1),  # one block moved
        ("b a d c", "a b c d", 2),  # two shifts
        ("", "a b", 2),
        ("a b", "", 2),
        ("", "", 0),
        ("a a a a", "a", 3),
    ],
)
def test_edits_counted_by_hand(hypothesis, reference, edits):
    assert count_edits(hypothesis.split(), reference.split()) == edits


def random_pair(rng):
    vocabulary = rng.choice([3, 8, 60])
    length = rng.choice([2, 8, 20, 40])
    reference = [str(rng.randrange(vocabulary)) for _ in range(rng.randint(0, length))]
    hypothesis = list(reference)
    for _ in range(rng.randint(0, 3)):
        if len(hypothesis) > 2:
            start, end = sorted(rng.sample(range(len(hypothesis)), 2))
            block = hypothesis[start:end]
            del hypothesis[start:end]
            place = rng.randint(0, len(hypothesis))
            hypothesis[place:place] = block
    if rng.random() < 0.3:
        rng.shuffle(hypothesis)
    return [str(rng.randrange(vocabulary)) if rng.random() < 0.1 else word for word in hypothesis], reference


@pytest.mark.parametrize("seed", range(4))
def test_edits_equal_sacrebleus(seed):
    rng = random.Random(seed)
    for _ in range(100):
        hypothesis, reference = random_pair(rng)
        assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]


def test_a_path_that_leaves_sacrebleus_band_is_left_to_sacrebleu(monkeypatch):
    calls = []

    def spy(hypothesis, reference):
        calls.append(1)
        return translation_edit_rate(hypothesis, reference)

    monkeypatch.setattr(ter, "translation_edit_rate", spy)
    head, body, tail = (
        [f"{name}{number}" for number in range(size)] for name, size in (("h", 26), ("b", 30), ("t", 26))
    )
    # The beginning is missing, and as much is added at the end: the words that match are 26 off the diagonal.
    hypothesis, reference = [*body, *tail], [*head, *body]
    assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]
    assert calls
