"""pysimt trains and translates with one process: several are refused, in one line."""

import os
import subprocess
import sys

import pytest

from tests.hosts.pysimt.hosts import NEEDS_PYSIMT

pytestmark = NEEDS_PYSIMT


@pytest.mark.parametrize("command", ["train", "translate"])
def test_several_processes_are_refused_in_one_line(toy, command):
    words = {"train": ["-C", toy.config], "translate": ["-s", "val", "-o", toy.folder / "out", "any.ckpt"]}[command]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYSIMT_SAC_HOST": "pysimt"}
    done = subprocess.run(
        [*torchrun, "-m", "pysimt_sac", command, *map(str, words)], capture_output=True, text=True, env=environment
    )
    (line,) = [line for line in done.stderr.splitlines() if ": error: " in line]
    assert "trains and translates with one process, not with 2" in line
    assert done.returncode != 0
    assert not toy.run_folder.exists()
