"""Starting several processes that work together, as torchrun would, and comparing what they leave behind.

Forking is much quicker than torchrun, which is tested by itself (`test_torchrun.py`).
"""

import json
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

PORT_LENGTH = 8  # of the message to each process
stores: list[dist.TCPStore] = []


def environment(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a process."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {name: str(number) for name, number in numbers.items()} | {
        "MASTER_ADDR": "127.0.0.1",
        "TORCHELASTIC_RUN_ID": "test",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def start(size: int, action, folder: Path) -> list[int]:
    """Fork processes that do something, each with its output in FOLDER/RANK.out and .err; their ids.

    The store's thread takes locks of the C library. A process forked meanwhile would inherit them locked, and hang. So
    the store comes last, and the processes wait for its port.
    """
    folder.mkdir(exist_ok=True)
    ports, port_out = os.pipe()
    children = []
    for rank in range(size):
        if child := os.fork():
            children.append(child)
            continue
        status: Any = 99
        try:
            os.environ.update(environment(rank, size, int(os.read(ports, PORT_LENGTH))))
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
            status = action(rank)
        except SystemExit as stop:
            status = stop.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    stores.append(store)  # as torchrun does, keep it until all have ended
    os.write(port_out, f"{store.port:{PORT_LENGTH}}".encode() * size)
    for end in (ports, port_out):
        os.close(end)
    return children


def wait(children: list[int]) -> list[int]:
    """Their exit statuses, negative if a signal ended one."""
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stores.clear()
    return statuses


def pysimt_sac(*words):
    """What `pysimt-sac WORDS` does, in a process that is started."""

    def action(rank):
        from pysimt_sac.cli import main_sac

        return main_sac([str(word) for word in words])

    return action


def run(size: int, folder: Path, *words) -> None:
    """`pysimt-sac WORDS` in so many processes, all of which must succeed."""
    statuses = wait(start(size, pysimt_sac(*words), folder))
    assert statuses == [0] * size, "".join(path.read_text() for path in sorted(folder.glob("?.err")))


def call(size: int, folder: Path, function) -> list[Any]:
    """What a function returns in each of several processes that have found each other."""
    from pysimt_sac.core.distributed import world

    def action(rank):
        with world.joined():
            (folder / f"{rank}.answer").write_bytes(pickle.dumps(function()))
        return 0

    statuses = wait(start(size, action, folder))
    assert statuses == [0] * size, "".join(path.read_text() for path in sorted(folder.glob("?.err")))
    return [pickle.loads((folder / f"{rank}.answer").read_bytes()) for rank in range(size)]


# What is left of a run


def last_state(folder: Path, all_ranks: bool = False) -> dict[str, Any]:
    """All of the last training state that an interruption must not change; all_ranks: what the other ranks have."""
    state = torch.load(folder / "train_state.pt", weights_only=True)
    progress = {name: state["progress"][name] for name in ("epoch", "batch", "update", "scores", "train_loss", "ended")}
    parts = ("weights", "optimizer", "average", "model", "random", *(("other_ranks",) if all_ranks else ()))
    return {"progress": progress} | {part: state[part] for part in parts}


def points(folder: Path) -> dict[tuple[str, int], float]:
    """All points of all curves: losses, metrics, validation scores."""
    (curves,) = folder.glob("*.scalars.jsonl")
    found = (json.loads(line) for line in curves.read_text().splitlines())
    return {(point["name"], point["step"]): point["value"] for point in found}


def differences(one: Any, other: Any, tolerance: float, where: str = "") -> list[str]:
    """Where two nested values differ, numbers by more than a part of the largest, or of 0.1 if it is less."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return [f"{where}: only in one of them {sorted(map(str, one.keys() ^ other.keys()))}"]
        return [text for key in one for text in differences(one[key], other[key], tolerance, f"{where}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return [f"{where}: {len(one)} and {len(other)} items"]
        pairs = enumerate(zip(one, other, strict=True))
        return [text for i, pair in pairs for text in differences(*pair, tolerance, f"{where}[{i}]")]
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return tensor_differences(one, other, tolerance, where)
    if isinstance(one, float) and isinstance(other, float):
        same = one == other or abs(one - other) <= tolerance * max(abs(other), 0.1) or (one != one and other != other)
        return [] if same else [f"{where}: {one} and {other}"]
    return [] if one == other else [f"{where}: {one!r} and {other!r}"]


def tensor_differences(one: torch.Tensor, other: torch.Tensor, tolerance: float, where: str) -> list[str]:
    if one.shape != other.shape:
        return [f"{where}: {tuple(one.shape)} and {tuple(other.shape)}"]
    if not one.is_floating_point() or not one.numel():
        return [] if torch.equal(one, other) else [f"{where}: tensors differ"]
    finite = other[other.isfinite()].abs()
    atol = tolerance * float(finite.max()) if finite.numel() else 0.0
    if torch.allclose(one, other, rtol=0, atol=atol, equal_nan=True):
        return []
    return [f"{where}: {float((one - other).abs().max()):.3g}, where the largest is {float(finite.max()):.3g}"]
