"""Measure the cost of an update of every experiment, relative to maximum likelihood, on the same batches.

All models start from the same weights and run in one process. All of them update on a batch before the next one, so
that the machine's drift cancels out. Peak memory is measured in a separate process per experiment.
`run.py --only algorithms` calls this.
"""

import contextlib
import dataclasses
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from workload import PAPER_TRAINING, Corpus, find_corpus, shared_folder, temporary_folder

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_weights
from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.engine.config.ready import ready_configs
from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.optim import Optimizer

CPU = torch.device("cpu")
PLAIN = "mle"
EXPERIMENTS = (PLAIN, "mixer", "reinforce", "sac_unsup", "vine", "branched_sac", "sac_bleu")
EXPERIMENTS += ("ac", "erac", "sac_paper", "mrt")
CHANGES = {"mrt": {"n_samples": 20}}  # a hundred take too much time and memory
# Critics and actor learn from the first update on; no diagnostics, which would be timed, too.
AT_ONCE = {"critic_pretrain_updates": 0, "gate_sentences": 0, "health_freq": 1_000_000_000}
TURN = 2  # updates of each model per batch: critics may learn only in every second one
USUAL_LENGTH = 14  # of translations by an untrained actor


class Board:
    """Discards what algorithms log."""

    def say(self, line: str) -> None: ...

    def log_scalar(self, name: str, value: float, step: int) -> None: ...


class TimedRewarder:
    """A rewarder that measures its own time."""

    def __init__(self, rewarder) -> None:
        self.rewarder, self.seconds = rewarder, 0.0

    def __call__(self, *args):
        started = time.perf_counter()
        answer = self.rewarder(*args)
        self.seconds += time.perf_counter() - started
        return answer

    def __getattr__(self, name: str):
        return getattr(self.rewarder, name)


class Updater:
    """The updates of one experiment, with its optimiser."""

    def __init__(self, name: str, corpus: Corpus) -> None:
        config = read_config(ready_configs()[name])
        registered, options = MODELS.get(config.train["model_type"]), {**config.model, **CHANGES.get(name, {})}
        known = {field.name for cls in getattr(registered, "option_classes", ()) for field in dataclasses.fields(cls)}
        options |= {key: value for key, value in AT_ONCE.items() if key in known}
        torch.manual_seed(1)
        self.model = model_class(registered)(corpus.options(**options))
        self.model.setup()
        self.model.reset_parameters()
        load_actor(self.model)
        self.model.start_training(Board())
        self.optimizer = Optimizer(self.model.train(), TrainOptions(**PAPER_TRAINING), higher_better=True)
        self.update, self.rewarder = 0, None
        if name != PLAIN:
            collector = self.model.session.algorithm.collector
            collector.rewarder = self.rewarder = TimedRewarder(collector.rewarder)

    def __call__(self, batch) -> float:
        """Return the seconds per update on a batch."""
        started = time.perf_counter()
        for _ in range(TURN):
            self.update += 1
            self.optimizer.zero_grad()
            gather_gradients(self.model, [batch], CPU, self.update, 1)
            self.optimizer.clip()
            self.optimizer.step()
        return (time.perf_counter() - started) / TURN


def load_actor(model) -> None:
    """Load the shared trained model if there is one; else make random weights end translations at a usual length."""
    shared = shared_folder()
    checkpoint = shared / "checkpoints/pysimt-mle-en-de.ckpt" if shared else None
    if checkpoint and checkpoint.exists():
        load_weights(model, load_checkpoint(checkpoint).weights, checkpoint)
        return
    with torch.no_grad():
        model.dec.out2prob.bias[EOS] += math.log(len(model.trg_vocab) / USUAL_LENGTH)


def some_batches(model, amount: int, size: int = PAPER_TRAINING["batch_size"]) -> list:
    """Return batches from across the training text's lengths."""
    data = model.load_data("train", size)
    lengths = np.quantile(data.bucket_lengths, np.linspace(0.1, 0.9, amount)).astype(int)
    return [data[np.flatnonzero(data.bucket_lengths == length)[: data.batch_size]] for length in lengths]


def measure_algorithms(corpus: Corpus, quick: bool) -> list[dict]:
    """Return a row per experiment: seconds, multiple of the plain update, share of the reward, memory."""
    updaters = {name: Updater(name, corpus) for name in EXPERIMENTS}
    batches = some_batches(updaters[PLAIN].model, 3 if quick else 4)
    best = {name: [math.inf] * len(batches) for name in updaters}
    total = dict.fromkeys(updaters, 0.0)
    for _ in range(2 if quick else 3):
        for place, batch in enumerate(batches):
            for name, updater in updaters.items():
                spent = updater(batch)
                total[name] += TURN * spent
                best[name][place] = min(best[name][place], spent)
    seconds = {name: sum(times) / len(batches) for name, times in best.items()}
    return [
        {
            "experiment": name,
            "seconds per update": seconds[name],
            "times the plain update": seconds[name] / seconds[PLAIN],
            "share of the reward": updater.rewarder.seconds / total[name] if updater.rewarder else 0.0,
            "peak GB": memory_of(name),
        }
        for name, updater in updaters.items()
    ]


def memory_of(name: str) -> float:
    """Return the peak memory of a process that makes a few updates, in GB."""
    done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def update_and_tell(name: str) -> None:
    """Print this process's peak memory in GB; resource.getrusage would include its parent's."""
    with temporary_folder() as folder:
        updater = Updater(name, find_corpus(Path(folder), n_sentences=2000))
        for batch in some_batches(updater.model, 3):
            updater(batch)
    with contextlib.suppress(FileNotFoundError), open("/proc/self/status") as status:
        print(json.dumps(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e6))
        return
    print("NaN")  # only Linux reports it


def show_algorithms(rows: list[dict]) -> None:
    print(f"\n{'algorithms':<20}{'s/update':>10}{'x plain':>10}{'reward':>10}{'peak GB':>10}")
    for row in rows:
        name, *figures = row.values()
        print(f"{name:<20}{figures[0]:>10.3f}{figures[1]:>10.2f}{figures[2]:>10.1%}{figures[3]:>10.2f}")


if __name__ == "__main__":
    update_and_tell(sys.argv[1])
