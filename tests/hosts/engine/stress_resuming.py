"""Kill a training run with SIGKILL at random moments, through the real command line, and compare the outcomes.

By hand, because it takes minutes:  python tests/hosts/engine/stress_resuming.py --kills 20 --seed 1
The run saves every third update, so that many of the kills hit a save; how many did is counted by what they left.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.conftest import Toy, make_toy
from tests.hosts.engine.dying_runs import assert_same_run, last_state, scalars, tensorboard_points

OPTIONS = [
    "train.max_epochs:60",
    "train.eval_freq:7",
    "train.checkpoint_freq:3",
    "train.n_checkpoints:2",
    "train.lr_decay:plateau",
    "train.lr_decay_patience:3",
    "train.lr_decay_factor:0.7",
    "train.lr_decay_revert:True",
]


def command(toy: Toy, suffix: str) -> list[str]:
    words = ["train", "-C", str(toy.config), "-s", suffix, *OPTIONS, f"train.tensorboard_dir:{toy.folder}/tb"]
    return [sys.executable, "-m", "pysimt_sac", *words]


def kill_after(words: list[str], delay: float) -> bool:
    """Start the command, wait until it trains, kill it after a delay; whether it was still alive."""
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith(("Training on", "Resuming")):
                break
        time.sleep(delay)
        alive = process.poll() is None
        process.kill()
    return alive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        toy = make_toy(Path(folder) / "toy")
        started = time.time()
        subprocess.run(command(toy, "whole"), check=True, stderr=subprocess.DEVNULL)
        length = time.time() - started
        run, whole = toy.folder / "runs/toy-killed", toy.folder / "runs/toy-whole"
        in_saves = 0
        for number in range(args.kills):
            alive = kill_after(command(toy, "killed"), rng.uniform(0, length / args.kills))
            left = [path.name for path in run.glob("*") if path.name.endswith((".tmp", ".new"))]
            in_saves += bool(left)
            print(f"kill {number + 1}: {'alive' if alive else 'already done'}; left {left}", flush=True)
        subprocess.run(command(toy, "killed"), check=True, stderr=subprocess.DEVNULL)
        assert_same_run(whole, run)
        points = [tensorboard_points(next((toy.folder / "tb" / name).iterdir())) for name in (run.name, whole.name)]
        assert points[0] == points[1]
        assert len(points[0]) == len(scalars(run)) == len({(point["name"], point["step"]) for point in scalars(run)})
        told = f"{last_state(run)['progress']['update']} updates, {len(points[0])} points of curves"
        print(f"The same: {told}; {args.kills} kills, {in_saves} of them in a save")


if __name__ == "__main__":
    main()
