"""Statistics of prefixes: whatever was pushed and popped before, they are those of the prefix."""

import random

import pytest

from pysimt_sac.rewards.bleu import WordMatches
from pysimt_sac.rewards.chrf import CharacterMatches
from pysimt_sac.rewards.incremental import move
from pysimt_sac.rewards.length import Lengths
from pysimt_sac.rewards.ter import Edits
from tests.rewards.random_texts import WORDS


def test_matches_are_clipped_and_come_back_when_a_word_goes():
    counts = WordMatches(["a", "a", "b"])
    for word in ("a", "a", "a"):
        counts.push(word)
    assert counts.values(False) == [2, 1, 0, 0, 3, 3]  # the third "a", and the second "a a", are too many
    counts.pop()
    counts.push("b")
    assert counts.values(False) == [3, 2, 1, 0, 3, 3]


@pytest.mark.parametrize("kind", [WordMatches, CharacterMatches, Edits, Lengths])
def test_a_walk_over_prefixes_leaves_nothing_behind(kind):
    rng = random.Random(1)
    reference = rng.choices(WORDS, k=8)
    walking, current = kind(reference), []
    for _ in range(200):
        wanted = current[: rng.randint(0, len(current))] + rng.choices(WORDS, k=rng.randint(0, 3))
        move(walking, current, wanted)
        current = wanted[:10]
        move(walking, wanted, current)
        fresh = kind(reference)
        move(fresh, [], current)
        for terminal in (False, True):
            assert walking.values(terminal) == fresh.values(terminal)
