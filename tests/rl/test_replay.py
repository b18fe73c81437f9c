"""The ring, uniform drawing, memory known in advance, and a state that survives saving."""

import io

import pytest
import torch

from pysimt_sac.rl.replay import Experience, Replay, bytes_needed


def experience(number, size=2, source=3, reference=4, steps=5, labels=False):
    """One whose numbers say which it is."""
    return Experience(
        source_SB=torch.full((source, size), number),
        reference_RB=torch.full((reference, size), number),
        words_TB=torch.full((steps + 1, size), number),
        potentials_TB=torch.rand(steps, size, generator=torch.Generator().manual_seed(number), dtype=torch.float64),
        scale_B=torch.full((size,), float(number)),
        ended_B=torch.tensor([True, False] * (size // 2)),
        z_TB=torch.full((steps, size), number) if labels else None,
        learnt_TB=torch.full((steps, size), 0.5 * number) if labels else None,
        born=number,
    )


def numbers(replay):
    return sorted(entry.born for entry in replay.entries)


def test_the_oldest_makes_room():
    replay = Replay(3, seed=1)
    for number in range(1, 6):
        replay.add(experience(number))
    assert len(replay) == 3
    assert numbers(replay) == [3, 4, 5]
    assert replay.mean_age(update=10) == pytest.approx((7 + 6 + 5) / 3)


def test_drawing_is_uniform_and_repeats_with_its_seed():
    def draws(seed, amount=900):
        replay = Replay(3, seed)
        for number in range(3):
            replay.add(experience(number))
        return [replay.sample().born for _ in range(amount)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    for number in range(3):
        assert draws(1).count(number) == pytest.approx(300, abs=60)  # four standard deviations


def test_drawing_does_not_touch_the_global_random_state():
    replay = Replay(3, seed=1)
    replay.add(experience(1))
    before = torch.get_rng_state()
    replay.sample()
    assert torch.equal(before, torch.get_rng_state())


def test_what_comes_out_is_what_went_in():
    stored = experience(7, labels=True)
    replay = Replay(2, seed=1)
    replay.add(stored)
    drawn = replay.sample()
    for name, value in stored.tensors().items():
        torch.testing.assert_close(drawn.tensors()[name], value, check_dtype=False)
    assert drawn.words_TB.dtype == torch.int64


def test_what_is_stored_does_not_change_with_the_tensors_it_came_from():
    replay = Replay(2, seed=1)
    source = experience(7)
    replay.add(source)
    source.scale_B.zero_()
    source.ended_B.fill_(True)
    assert replay.sample().scale_B.tolist() == [7, 7]
    assert replay.sample().ended_B.tolist() == [True, False]


def test_rewards_are_the_scaled_growth_of_the_potentials_and_nothing_after_the_end():
    potentials = torch.tensor([[0.25, 0.5], [0.75, 0.5]])  # the second sentence has one step
    words = torch.tensor([[1, 1], [5, 2], [2, 0]])
    batch = Experience(words, words, words, potentials, torch.tensor([4.0, 2.0]), torch.tensor([True, True]))
    assert batch.rewards_TB.tolist() == [[1, 1], [2, 0]]
    assert batch.potentials_before_TB.tolist() == [[0, 0], [0.25, 0.5]]
    assert batch.lengths_B.tolist() == [3, 2]
    pair = batch.batch("src", "trg")
    assert pair.size == 2
    assert pair.lengths["trg"].tolist() == [3, 2]


def test_the_memory_is_known_in_advance():
    for labels in (False, True):
        replay = Replay(3, seed=1)
        for number in range(5):
            replay.add(experience(number, size=2, source=3, reference=4, steps=5, labels=labels))
        assert replay.nbytes == bytes_needed(3, 2, 3, 4, 5, labels)


@pytest.mark.parametrize("amount", [0, 2, 5])
@pytest.mark.parametrize("labels", [False, True])
def test_a_restored_memory_goes_on_as_the_other_would_have(amount, labels):
    one = Replay(3, seed=1)
    for number in range(amount):
        one.add(experience(number, steps=number + 1, source=number + 1, labels=labels))
        one.sample()
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other = Replay(3, seed=9)
    other.load_state_dict(torch.load(file, weights_only=True))
    for replay in (one, other):
        replay.add(experience(8, labels=labels))
    assert [entry.born for entry in one.entries] == [entry.born for entry in other.entries]
    for _ in range(5):
        mine, theirs = one.sample(), other.sample()
        assert mine.born == theirs.born
        assert mine.tensors().keys() == theirs.tensors().keys()
        assert all(torch.equal(mine.tensors()[name], theirs.tensors()[name]) for name in mine.tensors())
