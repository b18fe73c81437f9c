"""Several processes: shards, means of gradients and of metrics by hand, seeds, and who is waited for."""

import os
import sys
import time

import pytest
import torch

from pysimt_sac.core import distributed
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import optimizer_step, seed_of_rank, world
from pysimt_sac.hosts.engine.training.console import SILENT, log_to_console
from tests.distributed.processes import call, start, wait


def test_all_sentences_are_somebodys():
    batch = Batch({"src": torch.arange(14).view(2, 7) + 1}, range(10, 17))
    shards = [batch.shard(rank, 3) for rank in range(3)]
    assert [list(shard.indices) for shard in shards] == [[10, 11], [12, 13], [14, 15, 16]]
    assert torch.equal(torch.cat([shard["src"] for shard in shards], 1), batch["src"])
    assert [shard.lengths["src"].tolist() for shard in shards] == [[2, 2], [2, 2], [2, 2, 2]]
    assert batch.shard(0, 1) is batch
    assert all(batch.shard(rank, 8) is batch for rank in range(8))  # too small to be divided


def test_gradients_are_averaged_by_what_they_are_means_over(tmp_path):
    def average():
        weights = [torch.zeros(shape, requires_grad=True) for shape in ((2, 3), (), (4,), (3, 2))]
        weights.append(torch.zeros(5))  # frozen
        world.average_gradients(weights, weight=1.0)
        nowhere = [weight.grad for weight in weights]  # no process has one: the optimiser skips these weights
        weights[0].grad = torch.arange(6.0).view(3, 2).t() + 4 * world.rank  # its columns are neighbours in memory
        weights[1].grad = torch.tensor(2.0)
        if world.rank:
            weights[3].grad = torch.ones(3, 2)
        world.average_gradients(weights, weight=1.0 + 2 * world.rank)
        return nowhere, [weight.grad for weight in weights]

    for nowhere, (first, second, none, last, frozen) in call(2, tmp_path / "out", average):
        assert nowhere == [None] * 5
        assert frozen is None
        assert first.tolist() == [[3, 5, 7], [4, 6, 8]]
        assert (float(second), none.tolist(), last.tolist()) == (2.0, [0] * 4, [[0.75, 0.75]] * 3)


VALUES = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])


def test_a_step_on_shards_is_that_on_the_whole(tmp_path):
    def step():
        weight = torch.tensor(3.0, requires_grad=True)
        own = VALUES[:2] if world.rank == 0 else VALUES[2:]
        norm = optimizer_step(torch.optim.SGD([weight], lr=1.0), (weight * own).mean(), len(own), max_norm=2.0)
        return float(norm), weight.item()

    for norm, weight in call(2, tmp_path / "out", step):
        assert norm == pytest.approx(6.2)
        assert weight == pytest.approx(3 - 2)  # the clipped gradient


def test_metrics_are_averaged_over_the_processes_that_have_them(tmp_path):
    def report():
        rare = {"rare": torch.tensor(5.0)} if world.rank == 1 else {}
        numbers = float(world.all_reduce(torch.tensor(1.0 + world.rank))), world.all_reduce_max(world.rank)
        return world.average_metrics({"mean": torch.tensor(3.0 * world.rank), **rare}), numbers, seed_of_rank(7)

    found = call(3, tmp_path / "out", report)
    assert [metrics for metrics, _, _ in found] == [{"mean": 3.0, "rare": 5.0}] * 3
    assert [numbers for _, numbers, _ in found] == [(6.0, 2)] * 3
    assert found[0][2] == 7
    assert len({seed for _, _, seed in found}) == 3
    assert world.average_metrics({"mean": torch.tensor(2.0)}) == {"mean": 2.0}


@pytest.mark.parametrize("late", [0, 1])
def test_a_process_that_the_others_wait_for_is_named(tmp_path, monkeypatch, late):
    monkeypatch.setattr(distributed, "SLOW", 0.5)
    told = tmp_path / "out" / f"{1 - late}.err"

    def meet():
        log_to_console(SILENT)
        while world.rank == late and f"Waiting for process {late} of 2 for 0 s" not in told.read_text():
            time.sleep(0.01)
        world.barrier()

    call(2, tmp_path / "out", meet)
    assert told.read_text().count("Waiting for process") == 1
    assert (tmp_path / "out" / f"{late}.err").read_text() == ""


def test_a_process_that_never_comes_is_given_up(tmp_path):
    def action(rank):
        with world.joined(minutes=0.02):
            while rank and "has not answered for 0.02 minutes" not in (tmp_path / "0.err").read_text():
                time.sleep(0.01)
            try:
                world.barrier()
            except distributed.UserError as error:
                print(error, file=sys.stderr)
                os._exit(2)
        return 0

    assert 2 in wait(start(2, action, tmp_path))
