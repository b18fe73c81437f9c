"""kill -9 of any process at random moments, and going on with one, two and three processes in turn.

    python -m tests.distributed.stress_kills [KILLS] [VARIANT]

In the end the outcome must be that of a run that nobody disturbed. Not part of the tests: it takes minutes.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import make_toy
from tests.distributed.conftest import NETWORK
from tests.distributed.processes import differences, last_state, points, pysimt_sac, run, start, wait
from tests.distributed.test_training import words


def main(kills: int, variant: str) -> None:
    toy = make_toy(Path(tempfile.mkdtemp()) / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:8", *NETWORK)
    runs = {
        name: [*words(toy, name, variant, 300), "train.checkpoint_freq:2", "train.patience:1000"]
        for name in ("calm", "stormy")
    }
    started = time.monotonic()
    run(1, toy.folder / "out", *runs["calm"])
    usual, rng = time.monotonic() - started, random.Random(1)
    folders = [toy.folder / "runs" / f"toy-{name}" for name in runs]
    for number in range(kills):
        children = start(size := 1 + number % 3, pysimt_sac(*runs["stormy"]), toy.folder / "out")
        time.sleep(5 + rng.uniform(0.05, 0.2) * usual)
        victim = rng.randrange(size)
        os.kill(children[victim], signal.SIGKILL)
        killed = time.monotonic()
        statuses = wait(children)
        saved = (folders[1] / "train_state.pt").exists() and last_state(folders[1])["progress"]["update"]
        seconds = time.monotonic() - killed
        print(f"killed {victim} of {size}: {statuses} after {seconds:.1f} s, saved: update {saved}", flush=True)
    run(2, toy.folder / "out", *runs["stormy"])
    found = differences(points(folders[1]), points(folders[0]), 1e-5)
    found += differences(last_state(folders[1]), last_state(folders[0]), 1e-4)
    print("the same as the undisturbed run" if not found else found[:20])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2] if len(sys.argv) > 2 else "SACNMT")
