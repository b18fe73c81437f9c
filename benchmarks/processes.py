"""Two processes of one thread against one process of two threads: updates with the same whole batches.

Both take turns, batch by batch, so that the machine's drift cancels. `run.py --only processes` calls this; it starts
itself again under torchrun, with a third process that works alone while the other two wait.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from algorithms import Board, load_actor, some_batches
from workload import PAPER_TRAINING, find_corpus, temporary_folder

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.engine.config.options import TrainOptions
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.engine.device import keep_freed_memory
from pysimt_sac.engine.distributed import world
from pysimt_sac.engine.training.gradients import gather_gradients
from pysimt_sac.engine.training.optim import Optimizer
from pysimt_sac.hosts.embedded import model_class

NAMES = ("SimultaneousNMT", "SACNMT")
CPU = torch.device("cpu")


def updates_of(name: str, corpus):
    """A model, and a function that lets it update on a batch, as the training loop does."""
    options = {"critic_pretrain_epochs": 0, "gate_sentences": 0, "health_freq": 1_000_000_000}
    torch.manual_seed(1)
    model = model_class(MODELS.get(name))(corpus.options(**(options if name != NAMES[0] else {})))
    model.setup()
    model.reset_parameters()
    load_actor(model)
    model.register_tensorboard(Board())
    optimizer, count = Optimizer(model.train(), TrainOptions(**PAPER_TRAINING), higher_better=True), 0

    def update(batch):
        nonlocal count
        count += 1
        optimizer.zero_grad()
        gather_gradients(model, [batch], CPU, count, 1)
        optimizer.clip()
        optimizer.step()

    return model, update


def take_turns(updates: dict, batches: list, rounds: int, rank: int) -> dict[str, list[float]]:
    """The best seconds of each algorithm's update on each batch, by the pair, or by the third process alone."""
    best = {name: [float("inf")] * len(batches) for name in updates}
    for _ in range(rounds):
        for place, batch in enumerate(batches):
            for name, update in updates.items():
                for turn_of_pair in (True, False):
                    dist.barrier()
                    if turn_of_pair == (rank < 2):
                        started = time.perf_counter()
                        update(batch)
                        best[name][place] = min(best[name][place], time.perf_counter() - started)
    return best


def work(rounds: int, n_batches: int) -> None:
    """One of three processes: the first two are a pair, the third is alone and has two threads."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1 if rank < 2 else 2)
    keep_freed_memory()
    pair = dist.new_group([0, 1])
    if rank < 2:
        world.rank, world.size, world.group = rank, 2, pair
    with temporary_folder() as folder:
        corpus = find_corpus(Path(folder), n_sentences=5000)
        built = {name: updates_of(name, corpus) for name in NAMES}
        batches = some_batches(built[NAMES[0]][0], n_batches)
        found = take_turns({name: update for name, (_, update) in built.items()}, batches, rounds, rank)
    everybodys = [None] * 3
    dist.all_gather_object(everybodys, {name: sum(times) / len(times) for name, times in found.items()})
    if rank == 0:
        rows = [{"model": name, "two processes": everybodys[0][name], "one": everybodys[2][name]} for name in NAMES]
        print(json.dumps(rows))
    dist.destroy_process_group()


def measure_processes(rounds: int, quick: bool) -> list[dict]:
    """Seconds per update of each algorithm, by two processes and by one."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    arguments = [__file__, str(rounds), "2" if quick else "4"]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([*torchrun, *arguments], env=environment, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[{")))


def show_processes(rows: list[dict]) -> None:
    print(f"\n{'processes':<20}{'2 of 1 thread':>15}{'1 of 2 threads':>16}{'speed':>8}")
    for row in rows:
        ratio = row["one"] / row["two processes"]
        print(f"{row['model']:<20}{row['two processes']:>13.3f} s{row['one']:>14.3f} s{ratio:>6.2f} x")


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]))
