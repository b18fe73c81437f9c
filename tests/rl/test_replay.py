"""The ring, uniform drawing, memory known in advance, and a state that survives saving."""

import dataclasses
import io

import pytest
import torch

from pysimt_sac.rl.replay import IN_USE, Branches, Choices, Experience, ReplayBuffer
from pysimt_sac.rl.rollout import repeat_batch


def experience(number, size=2, source=3, reference=4, steps=5):
    """One whose numbers say which it is."""
    return Experience(
        source_SB=torch.full((source, size), number),
        reference_RB=torch.full((reference, size), number),
        tokens_TB=torch.full((steps + 1, size), number),
        potentials_TB=torch.rand(steps, size, generator=torch.Generator().manual_seed(number), dtype=torch.float64),
        scale_B=torch.full((size,), float(number)),
        created_at_update=number,
    )


def branched(number, size=2, steps=5, n_states=None):
    """One with branches, as many as its number says, and likeliest words."""
    generator = torch.Generator().manual_seed(number)
    n_states = number if n_states is None else n_states
    places = (torch.randint(most, (n_states,), generator=generator) for most in (steps, size))
    tokens_MK, tokens_TBK = (
        torch.randint(2, 9, shape, generator=generator) for shape in ((n_states, 3), (steps, size, 3))
    )
    rewards, returns = (torch.randn(n_states, 3, generator=generator) for _ in range(2))
    log_pi, known = (torch.randn(steps, size, 3, generator=generator) for _ in range(2))
    return dataclasses.replace(
        experience(number, size, steps=steps),
        branches=Branches(*places, tokens_MK, tokens_MK.gt(3), rewards, returns),
        choices=Choices(tokens_TBK, log_pi, known),
    )


def assert_same(one, other):
    """Numbers, types and shapes."""
    assert one.tensors().keys() == other.tensors().keys()
    for name, value in one.tensors().items():
        torch.testing.assert_close(other.tensors()[name], value, rtol=0, atol=0)
    assert one.created_at_update == other.created_at_update


def numbers(replay):
    return sorted(entry.created_at_update for entry in replay.entries)


def test_the_oldest_makes_room():
    replay = ReplayBuffer(3, seed=1)
    for number in range(1, 6):
        replay.add(experience(number))
    assert len(replay) == 3
    assert numbers(replay) == [3, 4, 5]
    assert replay.metrics(update=10) == pytest.approx({"replay_fill": 1, "replay_age": (7 + 6 + 5) / 3})


def test_drawing_is_uniform_and_repeats_with_its_seed():
    def draws(seed, amount=900):
        replay = ReplayBuffer(3, seed)
        for number in range(3):
            replay.add(experience(number))
        return [replay.sample().created_at_update for _ in range(amount)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    for number in range(3):
        assert draws(1).count(number) == pytest.approx(300, abs=60)  # four standard deviations


def test_drawing_does_not_touch_the_global_random_state():
    replay = ReplayBuffer(3, seed=1)
    replay.add(experience(1))
    before = torch.get_rng_state()
    replay.sample()
    assert torch.equal(before, torch.get_rng_state())


def test_what_comes_out_is_what_went_in():
    stored = experience(7)
    replay = ReplayBuffer(2, seed=1)
    replay.add(stored)
    drawn = replay.sample()
    for name, value in stored.tensors().items():
        torch.testing.assert_close(drawn.tensors()[name], value, check_dtype=False)
    assert drawn.tokens_TB.dtype == torch.int64


def test_what_is_stored_does_not_change_with_the_tensors_it_came_from():
    replay = ReplayBuffer(2, seed=1)
    source = experience(7)
    replay.add(source)
    source.scale_B.zero_()
    source.tokens_TB.fill_(9)
    assert replay.sample().scale_B.tolist() == [7, 7]
    assert replay.sample().tokens_TB.eq(7).all()


def test_rewards_are_the_scaled_growth_of_the_potentials_and_nothing_after_the_end():
    potentials = torch.tensor([[0.25, 0.5], [0.75, 0.5]])  # the second sentence has one step
    words = torch.tensor([[1, 1], [5, 2], [2, 0]])
    batch = Experience(words, words, words, potentials, torch.tensor([4.0, 2.0]))
    assert batch.rewards_TB.tolist() == [[1, 1], [2, 0]]
    assert batch.potentials_before_TB.tolist() == [[0, 0], [0.25, 0.5]]
    assert batch.lengths_B.tolist() == [3, 2]
    assert batch.returns_B.tolist() == batch.rewards_TB.sum(0).tolist() == [3, 1]
    pair = batch.batch
    assert pair.size == 2
    assert pair.lengths["trg"].tolist() == [3, 2]


def test_some_hypotheses_can_be_selected():
    whole = experience(3, size=4)
    some = whole.select(torch.tensor([2, 0]))
    assert torch.equal(some.potentials_TB, whole.potentials_TB[:, [2, 0]])
    assert all(value.size(-1) == 2 for value in some.tensors().values())
    assert some.created_at_update == 3


def test_what_else_was_in_a_batch_stays_with_its_sentences():
    """Two inputs that only the host knows: one of five places with three numbers, one of numbered things."""
    others = {"image": torch.randn(3, 5, 4).permute(1, 2, 0), "thing": torch.arange(8).view(2, 4, 1)}
    whole = dataclasses.replace(experience(3, size=4), others=others)
    some, batch = whole.select(torch.tensor([2, 0])), whole.batch
    assert batch.lengths.keys() == {"src", "trg"}
    for name, values in others.items():
        assert torch.equal(some.others[name], values[:, [2, 0]])
        assert torch.equal(batch[name], values)
        assert torch.equal(batch.shard(1, 2)[name], values[:, 2:])
        assert torch.equal(repeat_batch(batch, 2)[name], values[:, [0, 0, 1, 1, 2, 2, 3, 3]])
    one, other = ReplayBuffer(2, seed=1), ReplayBuffer(2, seed=1)
    for entry in (whole, some):
        one.add(entry)
    other.load_state_dict(one.state_dict())
    for replay in (one, other):
        found = {drawn.tokens_TB.size(1): drawn.batch for drawn in (replay.sample() for _ in range(20))}
        for name, values in others.items():
            torch.testing.assert_close(found[4][name], values, rtol=0, atol=0)
            assert found[4][name].is_contiguous()  # in both, since matrix products depend on it in their last bits
            torch.testing.assert_close(found[2][name], values[:, [2, 0]], rtol=0, atol=0)


@pytest.mark.parametrize("amount", [0, 2, 5])
def test_a_restored_memory_goes_on_as_the_other_would_have(amount):
    one = ReplayBuffer(3, seed=1)
    for number in range(amount):
        one.add(experience(number, steps=number + 1, source=number + 1))
        one.sample()
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other = ReplayBuffer(3, seed=9)
    other.load_state_dict(torch.load(file, weights_only=True))
    for replay in (one, other):
        replay.add(experience(8))
    assert [entry.created_at_update for entry in one.entries] == [entry.created_at_update for entry in other.entries]
    for _ in range(5):
        mine, theirs = one.sample(), other.sample()
        assert mine.created_at_update == theirs.created_at_update
        assert mine.tensors().keys() == theirs.tensors().keys()
        assert all(torch.equal(mine.tensors()[name], theirs.tensors()[name]) for name in mine.tensors())


def test_branches_survive_being_stored_drawn_saved_and_restored():
    one = ReplayBuffer(3, seed=1)
    stored = {number: branched(number, steps=number + 2) for number in range(5)}  # the first has no branched state
    for entry in stored.values():
        one.add(entry)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other = ReplayBuffer(3, seed=9)
    other.load_state_dict(torch.load(file, weights_only=True))
    seen = set()
    for _ in range(20):
        mine, theirs = one.sample(), other.sample()
        assert_same(mine, theirs)
        expected = stored[mine.created_at_update]
        potentials_TB = expected.potentials_TB.float()  # stored in single precision
        assert_same(mine, dataclasses.replace(expected, potentials_TB=potentials_TB))
        assert isinstance(theirs.branches, Branches)
        assert isinstance(theirs.choices, Choices)
        seen.add(mine.created_at_update)
    assert seen == {2, 3, 4}


def test_a_buffer_with_entries_without_any_branched_state_is_restored():
    one, other = ReplayBuffer(3, seed=1), ReplayBuffer(3, seed=1)
    for number in (0, 3, 0):
        one.add(branched(number))
    other.load_state_dict(one.state_dict())
    assert [len(entry.branches.times_M) for entry in other.entries] == [0, 3, 0]
    assert other.entries[0].branches.tokens_MK.shape == (0, 3)


def test_branches_are_stored_in_small_types_and_moved_and_converted_with_the_rest():
    original = branched(3)
    replay = ReplayBuffer(1, seed=1)
    replay.add(original)
    (entry,) = replay.entries
    assert entry.branches.tokens_MK.dtype == entry.choices.tokens_TBK.dtype == torch.int32
    assert entry.branches.valid_MK.dtype == torch.bool
    assert entry.converted(IN_USE).branches.tokens_MK.dtype == torch.int64
    original.branches.returns_MK.zero_()  # what is stored is a copy
    assert entry.branches.returns_MK.any()
    moved = original.to(torch.device("meta"))
    assert {value.device.type for value in moved.tensors().values()} == {"meta"}
    assert moved.branches.tokens_MK.shape == original.branches.tokens_MK.shape
    assert_same(original.to(torch.device("cpu")), original)


def test_tensors_of_parts_have_their_names():
    names = branched(2).tensors()
    assert {"branches.times_M", "branches.returns_MK", "choices.rewards_TBK", "tokens_TB"} <= set(names)
    assert not any(name.startswith(("branches", "choices")) for name in experience(2).tensors())


def pair(words, reference):
    """One sentence each, `<bos>` 1 ... `<eos>` 2."""
    tokens_TB, reference_RB = (torch.tensor(ids).unsqueeze(1) for ids in (words, reference))
    nothing = torch.zeros(len(words) - 1, 1)
    return Experience(reference_RB, reference_RB, tokens_TB, nothing, torch.ones(1))


def test_the_reference_is_laid_beside_the_translation():
    longer = pair([1, 5, 6, 7, 8, 2], [1, 5, 9, 7, 2])
    assert longer.reference_words_TB.flatten().tolist() == [5, 9, 7, 2, 0]
    assert longer.aligned_TB.flatten().tolist() == [True, True, False, True, False]
    shorter = pair([1, 5, 2], [1, 5, 9, 7, 2])
    assert shorter.reference_words_TB.flatten().tolist() == [5, 9]
    assert shorter.aligned_TB.flatten().tolist() == [True, True]
