"""Measure training and search, alternating what is compared so that the machine's drift cancels out.

    python benchmarks/run.py [--quick] [--only PART] [--out FILE.json] [--compare OLDER.json]

Prints ratios, GFLOP/s and the share of this machine's matrix-product peak, measured at the same time.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from algorithms import measure_algorithms, show_algorithms
from processes import measure_processes, show_processes
from reference import ReferenceNMT, beam_step_by_step, greedy_step_by_step
from workload import PAPER_TRAINING, Corpus, find_corpus, shared_folder, temporary_folder, update_flops

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from pysimt_sac.hosts.engine.decoding.greedy import greedy_stream
from pysimt_sac.hosts.engine.decoding.search import beam_search
from pysimt_sac.hosts.engine.decoding.translation import load_model
from pysimt_sac.hosts.engine.device import choose_device, keep_freed_memory
from pysimt_sac.hosts.engine.training.optim import Optimizer


def seconds(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def matmul_peak() -> float:
    """Return the GFLOP/s of a large matrix product, the best of several."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return 2 * 1024**3 / min(seconds(lambda: a @ b) for _ in range(20)) / 1e9


def alternate(actions: dict, batches: dict, rounds: int) -> dict[str, float]:
    """Return how long each action takes over its batches: the sum of the best times per batch.

    In every round, all actions run on their first batch, one after the other, then on their second, and so on.
    """
    best = {name: [float("inf")] * len(batches[name]) for name in actions}
    for _ in range(rounds + 1):  # the first one is slow; later ones beat it
        for place in range(max(map(len, batches.values()))):
            for name, action in actions.items():
                if place < len(batches[name]):
                    spent = seconds(lambda action=action, batch=batches[name][place]: action(batch))
                    best[name][place] = min(best[name][place], spent)
    return {name: sum(times) for name, times in best.items()}


def engine_trainer(model):
    """Return a function that makes one update, as the engine's training loop does."""
    optimizer = Optimizer(model.train(), TrainOptions(**PAPER_TRAINING), higher_better=False)

    def update(batch):
        optimizer.zero_grad()
        out = model(batch)
        (out["loss"] / out["n_items"]).backward()
        optimizer.clip()
        optimizer.step()

    return update


def plain_trainer(model):
    """Return a function that makes one update with torch's own optimiser."""
    parameters = [p for p in model.train().parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=PAPER_TRAINING["lr"], weight_decay=PAPER_TRAINING["l2_reg"])

    def update(batch):
        optimizer.zero_grad()
        out = model(batch)
        (out["loss"] / out["n_items"]).backward()
        torch.nn.utils.clip_grad_norm_(parameters, PAPER_TRAINING["gclip"])
        optimizer.step()
        out["loss"].item()

    return update


def pysimt_model(corpus: Corpus):
    """Return pysimt's own model, or None if pysimt cannot be imported."""
    if importlib.util.find_spec("pysimt") is None:
        return None
    from pysimt.utils.device import DeviceManager

    DeviceManager("cpu")
    from pysimt.config import Options
    from pysimt.models import SimultaneousNMT

    sections = corpus.options().to_dict()
    for key, path in sections["data"]["val_set"].items():
        sections["data"]["val_set"][key] = Path(path)
    model = SimultaneousNMT(Options.from_dict(sections))
    model.setup()
    model.reset_parameters()
    return model


def same_sentences(data, n_batches: int):
    """Return batches of the same sentences, grouped by source and target length, and by source length alone."""
    lengths = np.quantile(data.bucket_lengths, [0.15, 0.5, 0.85]).astype(int)
    chosen = [
        np.flatnonzero(data.bucket_lengths == length)[: n_batches * data.batch_size // 3]
        for length in np.unique(lengths)
    ]
    size, ours, by_source = data.batch_size, [], []
    for bucket in chosen:
        sorted_ = bucket[np.argsort(data.tie_lengths[bucket], kind="stable")]
        ours += [sorted_[start : start + size] for start in range(0, len(bucket), size)]
        by_source += [bucket[start : start + size] for start in range(0, len(bucket), size)]
    return ours, by_source


def measure_training(corpus: Corpus, rounds: int, n_batches: int) -> dict:
    """Time each trainer on the same batches, then on the same sentences in its own batches, scaled to an epoch."""
    model = corpus.model()
    data = model.load_data("train", PAPER_TRAINING["batch_size"])
    reference = ReferenceNMT(corpus.options())
    reference.setup()
    reference.reset_parameters()
    trainers = {"engine": engine_trainer(model), "step by step": plain_trainer(reference)}
    theirs = pysimt_model(corpus)
    if theirs is not None:
        trainers["pysimt"] = plain_trainer(theirs)
    ours, by_source = same_sentences(data, n_batches)
    sample, sample_by_source = [data[indices] for indices in ours], [data[indices] for indices in by_source]

    result = {"batches": len(sample)}
    peak = [matmul_peak()]
    same = alternate(trainers, dict.fromkeys(trainers, sample), rounds)
    peak.append(matmul_peak())
    own = {name: sample if name == "engine" else sample_by_source for name in trainers}
    own = alternate(trainers, own, rounds)
    peak.append(matmul_peak())
    flops = sum(
        update_flops(batch.size, batch["src"].numel(), batch["trg"][1:].numel(), int(batch["trg"][1:].ne(0).sum()))
        for batch in sample
    )
    result["seconds per update"] = {name: spent / len(sample) for name, spent in same.items()}
    n_sentences = sum(batch.size for batch in sample)
    result["seconds per epoch"] = {name: spent / n_sentences * len(data) for name, spent in own.items()}
    result["matrix peak GFLOP/s"] = max(peak)
    result["engine GFLOP/s"] = flops / same["engine"] / 1e9
    result["share of peak"] = result["engine GFLOP/s"] / max(peak)
    return result


def measure_search(corpus: Corpus, rounds: int, n_batches: int) -> dict:
    """Time greedy search and beam 6, batches of 32, with the shared trained model if available, else random weights."""
    shared, max_len = shared_folder(), 60
    checkpoint = shared / "checkpoints/pysimt-mle-en-de.ckpt" if shared else None
    if checkpoint and checkpoint.exists():
        overrides = [f"vocabulary.{side}:{path}" for side, path in corpus.vocabulary.items()]
        model = load_model(load_checkpoint(checkpoint), choose_device("cpu"), overrides)
        model.opts.data["test_set"] = dict(corpus.test)
    else:
        model, max_len = corpus.model().eval(), 16
    data = model.load_data("test", 32, mode="beam")
    batches = [data[indices] for indices in data.batches()]
    batches = batches[:: max(1, len(batches) // n_batches)][:n_batches]
    n_sentences = sum(batch.size for batch in batches)

    def each(search):
        return lambda batches: [search(batch) for batch in batches]

    actions = {
        "greedy, engine": lambda batches: list(greedy_stream(model, batches, max_len)),
        "greedy, step by step": each(lambda batch: greedy_step_by_step(model, batch, max_len)),
        "beam 6, engine": each(lambda batch: beam_search(model, batch, 6, max_len)),
        "beam 6, step by step": each(lambda batch: beam_step_by_step(model, batch, 6, max_len)),
    }
    theirs = pysimt_model(corpus)
    if theirs is not None:
        theirs.load_state_dict(model.state_dict())
        theirs.train(False)
        for name, kind in (("greedy, pysimt", "gs"), ("beam 6, pysimt", "bs")):
            actions[name] = pysimt_search(theirs, kind, max_len)
    spent = alternate(actions, {name: [batches] for name in actions}, rounds)
    return {"sentences per second": {name: n_sentences / value for name, value in spent.items()}}


def pysimt_search(model, kind, max_len):
    """Return a function that runs pysimt's own translator on our batches, without its progress bar."""
    from pysimt.translators import get_translator

    class Loader(list):
        class batch_sampler:
            batch_size, store_indices = 32, False

    loader = Loader()
    translator = get_translator(kind)(model, loader, out_prefix="", batch_size=32, max_len=max_len)
    if kind == "bs":
        translator.beam_size = 6

    def search(batches):
        loader[:] = batches
        with torch.no_grad(), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            translator.run()

    return search


GROWTH = """
import json, sys, time
import torch
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from run import engine_trainer
from workload import generate, temporary_folder
from pysimt_sac.hosts.engine.device import keep_freed_memory
from pysimt_sac.hosts.engine.decoding.search import beam_search
import numpy as np
keep_freed_memory()
def peak():  # resource.getrusage would include the parent's
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1e6
what, batch_size, length, n_vocab, beam = sys.argv[2], *map(int, sys.argv[3:7])
with temporary_folder() as folder:
    corpus = generate(Path(folder), 100, (9797, n_vocab))
    model = corpus.model()
    words = [" ".join(f"w{(i * 7 + j) % 5000}" for j in range(length)) for i in range(batch_size)]
    from pysimt_sac.hosts.engine.data.corpus import Text
    sides = {"src": Text(words, model.src_vocab, False), "trg": Text(words, model.trg_vocab, True)}
    batch = model.make_corpus(sides, batch_size)[np.arange(batch_size)]
    if what == "train":
        update = engine_trainer(model)
        action = lambda: update(batch)
    else:
        model.eval()
        action = lambda: beam_search(model, batch, beam, length)
    best = 1e9
    for _ in range(4):
        started = time.perf_counter(); action(); best = min(best, time.perf_counter() - started)
print(json.dumps({"seconds": best, "peak GB": peak()}))
"""


def measure_growth(quick: bool) -> list[dict]:
    """Measure time and peak memory of an action as one size grows, each in a separate process."""
    usual = {"batch": 64, "length": 14, "vocabulary": 6405, "beam": 6}
    steps = {
        "train": {"batch": [16, 64, 128], "length": [7, 14, 28, 56], "vocabulary": [6405, 12810, 25620]},
        "search": {"beam": [1, 3, 6, 12], "batch": [16, 32, 64]},
    }
    rows = []
    for what, axes in steps.items():
        for axis, values in axes.items():
            for value in values[:2] if quick else values:
                sizes = {**usual, axis: value}
                arguments = [str(Path(__file__).parent), what, *(str(size) for size in sizes.values())]
                done = subprocess.run(
                    [sys.executable, "-c", GROWTH, *arguments], capture_output=True, text=True, check=True
                )
                rows.append({"what": what, "axis": axis, "value": value, **json.loads(done.stdout.splitlines()[-1])})
    return rows


def show_training(training: dict) -> None:
    print(f"\n{'training':<24}{'s/update':>10}{'ratio':>8}{'min/epoch':>12}{'ratio':>8}")
    updates, epochs = training["seconds per update"], training["seconds per epoch"]
    for name in updates:
        ratios = updates[name] / updates["engine"], epochs[name] / epochs["engine"]
        print(f"{name:<24}{updates[name]:>10.3f}{ratios[0]:>8.2f}{epochs[name] / 60:>12.2f}{ratios[1]:>8.2f}")
    print(
        f"engine: {training['engine GFLOP/s']:.0f} GFLOP/s, {training['share of peak']:.0%} of the matrix-product peak "
        f"({training['matrix peak GFLOP/s']:.0f} GFLOP/s)"
    )


def show_search(search: dict) -> None:
    print(f"\n{'search, batch 32':<24}{'sentences/s':>12}{'engine is':>12}")
    speeds = search["sentences per second"]
    for name, value in speeds.items():
        kind = name.split(",")[0]
        print(f"{name:<24}{value:>12.1f}{speeds[f'{kind}, engine'] / value:>10.2f} x")


def show_growth(rows: list[dict]) -> None:
    print(f"\n{'growth':<10}{'axis':<12}{'value':>8}{'seconds':>10}{'peak GB':>10}")
    for row in rows:
        print(f"{row['what']:<10}{row['axis']:<12}{row['value']:>8}{row['seconds']:>10.3f}{row['peak GB']:>10.2f}")


def show_change(report: dict, older: dict) -> None:
    """Compare with an older run where both have measured the same."""
    if "training" in report and "training" in older:
        before, now = (each["training"]["share of peak"] for each in (older, report))
        print(f"\nbefore: {before:.0%} of the peak (now {now:.0%})")
    if "search" in report and "search" in older:
        speeds = [each["search"]["sentences per second"] for each in (older, report)]
        for kind in ("greedy", "beam 6"):
            old, new = (each[f"{kind}, engine"] / each[f"{kind}, step by step"] for each in speeds)
            print(f"before: {kind} {old:.2f} times the step-by-step search (now {new:.2f})")


PARTS = {
    "training": (lambda corpus, rounds, quick: measure_training(corpus, rounds, 6 if quick else 16), show_training),
    "search": (lambda corpus, rounds, quick: measure_search(corpus, rounds, 4 if quick else 10), show_search),
    "growth": (lambda corpus, rounds, quick: measure_growth(quick), show_growth),
    "algorithms": (lambda corpus, rounds, quick: measure_algorithms(corpus, quick), show_algorithms),
    "processes": (lambda corpus, rounds, quick: measure_processes(rounds, quick), show_processes),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes")
    parser.add_argument("--only", choices=PARTS, help="measure only this part")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--compare", type=Path, help="JSON of an older run")
    args = parser.parse_args()
    rounds = 3 if args.quick else 5
    torch.manual_seed(1)
    keep_freed_memory()  # as our own commands do; what they are compared with benefits, too
    with temporary_folder() as folder:
        corpus = find_corpus(Path(folder))
        machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
        print(f"\n{machine}; {corpus.name}; batch 64, the paper's sizes; best of several rounds", flush=True)
        report = {"machine": machine, "corpus": corpus.name, "rounds": rounds}
        for name in [args.only] if args.only else PARTS:
            measure, show = PARTS[name]
            report[name] = measure(corpus, rounds, args.quick)
            show(report[name])
    if args.compare:
        show_change(report, json.loads(args.compare.read_text()))
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
