"""The arithmetic of several processes, by hand: what is whose, where rows are, and what shares add up to."""

import torch
from pysimt_sac.core.statistics import combine, explained_variance_of, largest_of, mean_of, share_of, spread_of

from pysimt_sac.core.distributed import World, world
from pysimt_sac.rl.losses import explained_variance
from pysimt_sac.rl.replay import Branches, Choices, Experience, join_shards, local_shard
from tests.distributed.processes import call


def member(rank, size):
    one = World()
    one.rank, one.size = rank, size
    return one


def test_all_sentences_are_somebodys():
    assert [range(7)[member(rank, 3).local_slice(7)] for rank in range(3)] == [range(2), range(2, 4), range(4, 7)]
    assert member(0, 3).can_shard(3)
    assert not member(0, 3).can_shard(2)
    assert not member(0, 1).can_shard(9)


ORDERS = ([0, 0, 1, 2], [0, 1, 1], [])  # of the rows of three processes


def test_rows_are_found_among_those_of_all(tmp_path):
    def find():
        world.global_batch_size = 5
        return world.global_rows(torch.tensor(ORDERS[world.rank], dtype=torch.long))

    found = call(3, tmp_path / "out", find)
    # All rows: 0 0 0 | 1 1 1 | 2, in each group the first process's before the second's
    assert [places.tolist() for places, _ in found] == [[0, 1, 3, 6], [2, 4, 5], []]
    assert {total for _, total in found} == {7}


def test_rows_of_sentences_are_found_without_asking():
    first, second = member(0, 2), member(1, 2)
    first.global_batch_size = second.global_batch_size = 5
    assert first.global_rows_of_batch(2)[0].tolist() == [0, 1, 5, 6]
    assert second.global_rows_of_batch(2)[0].tolist() == [2, 3, 4, 7, 8, 9]
    assert first.global_rows_of_batch(2)[1] == 10


def test_numbers_are_drawn_as_for_the_whole(tmp_path):
    def make(shape):
        return torch.arange(shape[0] * shape[1]).view(shape)

    def draw():
        world.global_batch_size = 5
        return world.draw(make, n_steps=3 - world.rank, n_columns=1 + world.rank)

    found = call(2, tmp_path / "out", draw)
    assert [part.tolist() for part in found] == [[[0], [3], [6]], [[1, 2], [4, 5]]]


VALUES = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])


def test_shares_add_up(tmp_path):
    def shares():
        world.global_batch_size = 5
        own = VALUES[world.local_slice(5)]
        weight = torch.tensor(3.0, requires_grad=True)
        world.backward(world.mean(weight * own), [weight])
        gradient = weight.grad
        figures = combine(
            {
                "mean": mean_of(own),
                "largest": largest_of(own),
                "spread": spread_of(own),
                "share": share_of(own.sum()),
                "explained": explained_variance_of(own.sqrt(), own),
                "same": 7.0,
                "nothing": mean_of(own[:0]),
                **({"rare": mean_of(own)} if world.rank else {}),
            }
        )
        return (
            world.global_count(len(own)),
            world.global_max(len(own)),
            float(world.global_sum(own.sum())),
            float(gradient),
            figures,
        )

    def check(found):
        count, largest, total, gradient, figures = found
        assert (count, largest, total) == (5, 3, 31.0)
        assert abs(gradient - 31 / 5) < 1e-6
        expected = {"mean": 6.2, "largest": 16.0, "share": 31.0, "same": 7.0, "rare": 28 / 3}
        expected["spread"] = float(VALUES.std(correction=0))
        expected["explained"] = float(explained_variance(VALUES.sqrt(), VALUES))
        assert figures.keys() == expected.keys()
        assert all(abs(figures[name] - value) < 1e-5 for name, value in expected.items())

    for found in call(2, tmp_path / "out", shares):
        check(found)


def test_what_is_not_divided_counts_once(tmp_path):
    def gradient():
        weight = torch.tensor(3.0, requires_grad=True)
        world.backward(weight * weight, [weight])
        return float(weight.grad)

    assert call(3, tmp_path / "out", gradient) == [6.0, 6.0, 6.0]


def test_gradients_of_any_shape_are_added_up(tmp_path):
    def gradients():
        world.global_batch_size = 2
        weights = [torch.zeros(shape, requires_grad=True) for shape in ((2, 3), (), (4,), (3, 2))]
        weights[0].grad = torch.arange(6.0).view(3, 2).t() + world.rank  # its columns are neighbours in memory
        weights[1].grad = torch.tensor(2.0 - world.rank)
        weights[3].grad = torch.ones(3, 2)
        world.all_reduce_gradients(weights)
        return [weight.grad for weight in weights]

    for first, second, none, last in call(2, tmp_path / "out", gradients):
        assert first.tolist() == [[1, 5, 9], [3, 7, 11]]
        assert (float(second), none, last.tolist()) == (3.0, None, [[2, 2]] * 3)


# Seven sentences of the replay buffer, the last of which has the longest hypothesis
LENGTHS = torch.tensor([2, 3, 2, 4, 3, 2, 5])  # `<bos>` and `<eos>` counted


def experience():
    real_TB = torch.arange(5).unsqueeze(1) < LENGTHS
    tokens_TB = torch.arange(35).view(5, 7) * real_TB + real_TB
    potentials_TB = torch.arange(28.0).view(4, 7)
    for column, length in enumerate(LENGTHS.tolist()):
        potentials_TB[length - 1 :, column] = potentials_TB[length - 2, column]
    real_TB1 = real_TB[1:].unsqueeze(-1)
    choices = Choices(
        torch.arange(28).view(4, 7, 1) * real_TB1,
        torch.zeros(4, 7, 1).masked_fill(~real_TB1, -torch.inf),
        torch.ones(4, 7, 1) * real_TB1,
    )
    sentences_M = torch.tensor([0, 2, 5, 6, 2, 6])
    numbers_MK = torch.arange(12).view(6, 2)
    branches = Branches(
        torch.tensor([0, 1, 0, 2, 0, 3]), sentences_M, numbers_MK, numbers_MK > 3, numbers_MK / 2, numbers_MK / 4
    )
    sides = torch.arange(21).view(3, 7) + 1
    return Experience(
        sides, sides + 50, tokens_TB, potentials_TB, torch.arange(7.0), branches=branches, choices=choices
    )


def test_parts_of_an_experience_make_it_whole_again(monkeypatch):
    whole, parts = experience(), []
    for rank in range(3):
        monkeypatch.setattr(world, "rank", rank)
        monkeypatch.setattr(world, "size", 3)
        parts.append(local_shard(whole))
    assert [part.size for part in parts] == [2, 2, 3]
    assert [len(part.tokens_TB) for part in parts] == [3, 4, 5]
    assert all(part.global_batch_size for part in parts)
    joined = join_shards([part.tensors() for part in parts])
    expected = whole.tensors()
    assert joined.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(joined[name], value), name
