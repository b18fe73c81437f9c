"""kill -9 of either of two processes at random moments of training, again and again.

    python -m tests.distributed.stress_kills [KILLS] [MODEL_TYPE]

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
from tests.distributed.conftest import DROPOUT, NETWORK
from tests.distributed.processes import differences, last_state, points, pysimt_sac, run, start, wait
from tests.distributed.test_training import SAMPLING

SIZE, UPDATES = 2, 300


def saved_update(folder: Path) -> int:
    """The update of the last saved state; 0 if there is none."""
    return int(last_state(folder)["progress"]["update"]) if (folder / "train_state.pt").exists() else 0


def wait_for_update(folder: Path, update: int, children: list[int]) -> None:
    """Until a state of this update or a later one has been saved; all processes must be working until then."""
    while saved_update(folder) < update:
        assert not any(os.waitpid(child, os.WNOHANG)[0] for child in children), "a process has ended by itself"
        time.sleep(0.02)


def main(kills: int, model_type: str) -> None:
    toy = make_toy(Path(tempfile.mkdtemp()) / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:8", *NETWORK)
    changes = [f"train.model_type:{model_type}", *NETWORK, *DROPOUT, *SAMPLING[model_type], "train.checkpoint_freq:2"]
    changes += ["train.max_epochs:100", f"train.max_iterations:{UPDATES}", "train.patience:1000"]
    changes += [f"train.pretrained_file:{toy.folder}/runs/toy-actor"]
    runs = {name: ["train", "-C", toy.config, "-s", name, *changes] for name in ("calm", "stormy")}
    run(SIZE, toy.folder / "out", *runs["calm"])
    calm, stormy = (toy.folder / "runs" / f"toy-{name}" for name in runs)
    rng = random.Random(1)
    moments = sorted(rng.sample(range(2, UPDATES - 10), kills))
    for moment in moments:
        children = start(SIZE, pysimt_sac(*runs["stormy"]), toy.folder / "out")
        wait_for_update(stormy, moment, children)
        time.sleep(rng.uniform(0, 0.2))  # anywhere within an update, a validation or a save
        victim = rng.randrange(SIZE)
        os.kill(children[victim], signal.SIGKILL)
        killed = time.monotonic()
        statuses, seconds = wait(children), time.monotonic() - killed
        told = f"{statuses} after {seconds:.1f} s, saved: update {saved_update(stormy)}"
        print(f"killed {victim} of {SIZE}: {told}", flush=True)
    run(SIZE, toy.folder / "out", *runs["stormy"])
    found = differences(points(stormy), points(calm), 0.0)
    found += differences(last_state(stormy, all_ranks=True), last_state(calm, all_ranks=True), 0.0)
    print("the same as the undisturbed run" if not found else found[:20])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2] if len(sys.argv) > 2 else "SACNMT")
