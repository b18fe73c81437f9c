"""Try everything on a GPU, in about five minutes: does it run, is it right, how fast is it?

    python benchmarks/gpu.py [-d DEVICE] [--quick]

Prints a report that can be sent to us as it is; docs/machines.md tells what has been run where.
`-d cpu --quick` tries the script itself.
"""

import argparse
import contextlib
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import torch
from workload import PAPER_TRAINING, find_corpus

from pysimt_sac.cli import main, main_sac
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.version import full_version
from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.hosts.engine.config.ready import ready_configs
from pysimt_sac.hosts.engine.decoding.greedy import greedy_stream
from pysimt_sac.hosts.engine.device import choose_device
from pysimt_sac.hosts.engine.training.optim import Optimizer

EARLY = ["model.critic_pretrain_updates:4", "model.gate_sentences:8"]


def wait(device: torch.device) -> None:
    """Wait until the device has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def describe(device: torch.device) -> None:
    """Say what this runs on."""
    print(f"pysimt_sac {full_version()}, torch {torch.__version__}, Python {platform.python_version()}")
    if device.type == "cuda":
        about = torch.cuda.get_device_properties(device)
        print(f"{about.name}, {about.total_memory / 1e9:.0f} GB, CUDA {torch.version.cuda}")
    else:
        print(f"{device}: {platform.processor() or platform.machine()}, {torch.get_num_threads()} threads")


def train(config: str, suffix: str, device: str, updates: int, *changes: str) -> Path:
    """Train a shipped configuration for some updates by the real command; return the run's folder."""
    path = ready_configs()[config]
    words = [f"train.max_iterations:{updates}", "train.eval_freq:-1", "train.disp_freq:4", *changes]
    done = main(["train", "--quiet", "-C", str(path), "-s", suffix, "-d", device, *words])
    if done:
        raise RuntimeError(f"{config} ended with status {done}")
    return Path(f"runs/{config}-{suffix}")


def losses(run: Path) -> list[float]:
    """Return the training losses of a run's curves."""
    (curves,) = run.glob("*.scalars.jsonl")
    points = map(json.loads, curves.read_text(encoding="utf-8").splitlines())
    return [point["value"] for point in points if point["name"] == "train_LOSS"]


def check_numbers(device: str) -> Path:
    """Compare a run without dropout on both devices, and a run that is stopped and resumed; return an actor."""
    still = ["model.dropout_emb:0", "model.dropout_ctx:0", "model.dropout_out:0"]
    pairs = zip(*(losses(train("demo_mle", place, place, 20, *still)) for place in ("cpu", device)), strict=True)
    difference = max(abs(one - other) / abs(one) for one, other in pairs)
    print(f"losses of 20 updates, relative to the CPU's: {difference:.1e} apart at most (expected: below 1e-3)")
    whole = train("demo_mle", "whole", device, 20)
    train("demo_mle", "parts", device, 9)
    weights = [load_state(run)[0]["weights"] for run in (whole, train("demo_mle", "parts", device, 20))]
    same = all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())
    print(f"stopped and resumed: {'the same bits' if same else 'NOT the same bits'} as undisturbed")
    return whole


def check_algorithms(device: str, actor: Path) -> None:
    """Let every algorithm make some updates, with the actor and without it, and translate with the result."""
    (checkpoint,) = actor.glob("*-final.ckpt")
    for config in (name for name in ready_configs() if name.startswith("demo_") and name != "demo_mle"):
        started = time.perf_counter()
        run = train(config, "try", device, 8, *EARLY, f"train.pretrained_file:{checkpoint}")
        status = main(["translate", str(run), "-s", "val", "-d", device, "-m", "30", "-o", f"out/{config}"])
        print(f"{config}: {'runs' if not status else 'does NOT translate'} ({time.perf_counter() - started:.0f} s)")


def measure(device: torch.device, folder: Path, quick: bool) -> None:
    """Time updates of the paper's model by maximum likelihood, and greedy search."""
    corpus = find_corpus(folder, n_sentences=2000 if quick else 29_000)
    for batch_size in (64, 256, 1024)[: 1 if quick else 3]:
        for precision in ("float32", "bfloat16"):
            torch.manual_seed(1)
            model = corpus.model(precision=precision).to(device).train()
            data = model.load_data("train", batch_size)
            optimizer = Optimizer(model, TrainOptions(**PAPER_TRAINING), higher_better=True)
            batches = [data[rows] for rows in data.batches(1)[: 4 if quick else 40]]
            n_words = 0
            for number, batch in enumerate([*batches[:2], *batches]):  # the first two warm up
                if number == 2:
                    wait(device)
                    started, n_words = time.perf_counter(), 0
                batch.device(device)
                optimizer.zero_grad()
                out = model(batch)
                (out["loss"] / out["n_items"]).backward()
                optimizer.clip()
                optimizer.step()
                n_words += int(out["n_items"])
            wait(device)
            speed = n_words / (time.perf_counter() - started)
            memory = torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else float("nan")
            print(f"batch {batch_size}, {precision}: {speed:,.0f} target words/s in training, peak {memory:.2f} GB")
    model.eval()
    data = model.load_data("val", 256, mode="beam")
    batches = [data[rows] for rows in data.batches(1)[: 1 if quick else 4]]
    for batch in batches:
        batch.device(device)
    with torch.no_grad():
        wait(device)
        started = time.perf_counter()
        found = sum(len(hypotheses) for _, hypotheses in greedy_stream(model, iter(batches), 40))
        wait(device)
    print(f"greedy search, untrained, 40 words each: {found / (time.perf_counter() - started):.0f} sentences/s")


def run() -> int:
    """Do all of it in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="gpu", help="gpu (default), cuda:N or cpu")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    args = parser.parse_args()
    device, started = choose_device(args.device), time.perf_counter()
    describe(device)
    with tempfile.TemporaryDirectory(prefix="pysimt_sac_gpu_") as folder:
        with contextlib.chdir(folder), contextlib.redirect_stderr(sys.stdout):
            if main_sac(["prepare", "demo", "--out", "data/demo"]):
                return 1
            check_algorithms(args.device, check_numbers(args.device))
        measure(device, Path(folder), args.quick)
    print(f"All of it took {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(run())
