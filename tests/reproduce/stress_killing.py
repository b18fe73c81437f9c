"""Kill a reproduction with SIGKILL at random moments of all its steps, alone or with all it has started.

What comes out must be what comes out undisturbed.

By hand, because it takes minutes:  python tests/reproduce/stress_killing.py --kills 20 --seed 1
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.reproduce.test_reproduce import figures, tables
from tests.reproduce.tiny import kill, make_inputs, start


def run(folder: Path, out: str) -> float:
    """Run to the end; return the seconds it took."""
    started = time.time()
    with start(folder, out) as process:
        assert process.stderr is not None
        log = process.stderr.read()
    assert process.returncode == 0, log
    return time.time() - started


def done(out: Path) -> list[Path]:
    """The steps that are done."""
    return list((out / "steps").glob("*.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder)
        length, total = run(folder, "whole"), len(done(folder / "whole"))
        for number in range(args.kills):
            process = start(folder, "killed")
            assert process.stderr is not None
            next(process.stderr)  # the plan: before it there is nothing to kill
            while process.poll() is None and len(done(folder / "killed")) < number * total // args.kills:
                time.sleep(0.02)
            try:
                process.wait(rng.uniform(0, 2 * length / total))
            except subprocess.TimeoutExpired:
                with_children = rng.random() < 0.5
                kill(process, with_children)
                left = len(done(folder / "killed"))
                whom = "all" if with_children else "parent"
                print(f"kill {number + 1}, {whom}: {left} of {total} steps done", flush=True)
            else:
                print("ended before the kill", flush=True)
                break
        run(folder, "killed")
        assert figures(folder / "killed") == figures(folder / "whole")
        assert tables(folder / "killed") == tables(folder / "whole")
        print("The same figures and tables")


if __name__ == "__main__":
    main()
