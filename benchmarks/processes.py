"""Compare two processes of one thread with one process of two threads: updates on the same whole batches.

Both take turns, batch by batch, so that the machine's drift cancels out. `run.py --only processes` calls this; it
restarts itself under torchrun, with a third process that works alone while the other two wait.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from algorithms import PLAIN, Updater, some_batches
from workload import find_corpus, temporary_folder

from pysimt_sac.core.distributed import world
from pysimt_sac.hosts.engine.device import keep_freed_memory

EXPERIMENTS = (PLAIN, "sac_bleu")
BATCH_SIZES = (64, 128)  # of all processes together


def take_turns(updaters: dict[str, Updater], batches: list, rounds: int, rank: int) -> dict[str, list[float]]:
    """Return the best seconds per update of each experiment on each batch, by the pair or by the third process."""
    best = {name: [float("inf")] * len(batches) for name in updaters}
    for _ in range(rounds):
        for place, batch in enumerate(batches):
            for name, updater in updaters.items():
                for turn_of_pair in (True, False):
                    dist.barrier()
                    if turn_of_pair == (rank < 2):
                        best[name][place] = min(best[name][place], updater(batch))
    return best


def work(rounds: int, n_batches: int) -> None:
    """Run one of three processes: the first two are a pair, the third works alone with two threads."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1 if rank < 2 else 2)
    keep_freed_memory()
    pair = dist.new_group([0, 1])
    if rank < 2:
        world.rank, world.size, world.group = rank, 2, pair
    with temporary_folder() as folder:
        corpus = find_corpus(Path(folder), n_sentences=5000)
        updaters, found = {name: Updater(name, corpus) for name in EXPERIMENTS}, {}
        for size in BATCH_SIZES:
            times = take_turns(updaters, some_batches(updaters[PLAIN].model, n_batches, size), rounds, rank)
            found |= {(name, size): sum(of_batches) / n_batches for name, of_batches in times.items()}
    of_all = [None] * 3
    dist.all_gather_object(of_all, found)
    if rank == 0:
        rows = [
            {"experiment": name, "batch": size, "two processes": seconds, "one": of_all[2][name, size]}
            for (name, size), seconds in of_all[0].items()
        ]
        print(json.dumps(rows))
    dist.destroy_process_group()


def measure_processes(rounds: int, quick: bool) -> list[dict]:
    """Return seconds per update for each experiment and batch size, with two processes and with one."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    arguments = [__file__, str(rounds), "2" if quick else "4"]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([*torchrun, *arguments], env=environment, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[{")))


def show_processes(rows: list[dict]) -> None:
    print(f"\n{'processes':<20}{'batch':>6}{'2 of 1 thread':>15}{'1 of 2 threads':>16}{'speed':>8}")
    for row in rows:
        pair, alone = row["two processes"], row["one"]
        print(f"{row['experiment']:<20}{row['batch']:>6}{pair:>13.3f} s{alone:>14.3f} s{alone / pair:>6.2f} x")


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]))
