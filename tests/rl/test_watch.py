"""Divergence is noticed, said once, and said again only after it was well in between."""

import pytest

from pysimt_sac.rl.watch import Watch

WELL = {"length_ratio": 1.0, "entropy": 1.0, "largest_q": 5.0, "largest_return": 5.0, "q": 3.0, "return": 2.9}
WELL["gradient_rl"] = 0.1  # the actor learns


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length_ratio": 0.7}, "too short"),
        ({"length_ratio": 1.4}, "too long"),
        ({"entropy": 0.1}, "raise alpha"),
        ({"largest_q": 16.0}, "target_clip"),
        ({"q": 6.0}, "promise"),
    ],
)
def test_each_illness_is_named_with_what_to_change(change, words):
    watch = Watch()
    assert watch.look(WELL) == []
    (warning,) = watch.look({**WELL, **change})
    assert words in warning
    assert watch.look({**WELL, **change}) == []
    assert watch.look(WELL) == []
    assert len(watch.look({**WELL, **change})) == 1


def test_critics_that_still_learn_alone_may_be_wrong():
    alone = {name: value for name, value in WELL.items() if name != "gradient_rl"}
    assert Watch().look({**alone, "q": 9.0}) == []


def test_a_restored_watch_remembers_the_first_entropy_and_what_it_said():
    one, other = Watch(), Watch()
    one.look(WELL)
    assert len(one.look({**WELL, "entropy": 0.1})) == 1
    other.load_state_dict(one.state_dict())
    assert other.look({**WELL, "entropy": 0.1}) == []
    assert len(other.look({**WELL, "entropy": 0.1, "q": 9.0})) == 1


def test_algorithms_without_critics_are_watched_too():
    assert Watch().look({"length_ratio": 1.1}) == []
    assert len(Watch().look({"length_ratio": 0.5})) == 1
