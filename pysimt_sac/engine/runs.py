"""A run's folder: its name, its lock, and what is already in it.

`save_path/CONFNAME[-SUFFIX]/` belongs to one run. Training again with the same command goes on where it stopped; a
different configuration is refused; `--restart` moves the old run aside.
"""

import fcntl
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pysimt_sac.engine.checkpoint import load_state
from pysimt_sac.engine.config import Options, result_changing_differences
from pysimt_sac.errors import UserError
from pysimt_sac.files import make_folder, why


@dataclass
class Run:
    """An opened run: nobody else may train in its folder until this process ends."""

    folder: Path
    exp_id: str
    state: dict[str, Any] | None
    remark: str
    lock: IO[str]

    @property
    def subfolder(self) -> str:
        """The run's name: that of its folder."""
        return self.folder.name


def run_folder(options: Options, suffix: str) -> Path:
    """Where a configuration's run lives."""
    save_path = options.train.get("save_path")
    if not save_path:
        raise UserError("save_path is not set", f"{options.filename} [train]", "e.g. save_path: ./runs")
    name = Path(options.filename).stem + (f"-{suffix}" if suffix else "")
    return Path(save_path) / name


def open_run(options: Options, suffix: str = "", restart: bool = False) -> Run:
    """Create or re-open the run of a configuration."""
    folder = run_folder(options, suffix)
    make_folder(folder)
    lock = lock_folder(folder)
    if restart:
        move_aside(folder)
    state, remark = load_state(folder)
    if state is None:
        exp_id = f"{options.train['model_type'].lower()}-r{secrets.token_hex(3)[:5]}"
        return Run(folder, exp_id, None, remark, lock)
    differing = result_changing_differences(state["config"], options.to_dict())
    if differing:
        todo = "undo the change, give the new run another name with -s SUFFIX, or start over with --restart"
        raise UserError(f"another configuration was trained here; changed: {'; '.join(differing)}", folder, todo)
    return Run(folder, state["exp_id"], state, remark, lock)


def lock_folder(folder: Path) -> IO[str]:
    """Hold the folder's lock until the process ends, however it ends."""
    path = folder / ".lock"
    try:
        lock = open(path, "w")  # noqa: SIM115 - held open as long as the run lives
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError("another process is training here", folder, "wait for it, or use -s SUFFIX") from error
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", folder) from error
    return lock


def move_aside(folder: Path) -> None:
    """Move all files of an old run into `old-N` beside the new one's."""
    items = [item for item in folder.iterdir() if item.name != ".lock" and not item.name.startswith("old-")]
    if not items:
        return
    number = 1 + max([int(item.name[4:]) for item in folder.glob("old-*") if item.name[4:].isdigit()], default=0)
    place = make_folder(folder / f"old-{number}")
    for item in items:
        try:
            shutil.move(item, place / item.name)
        except OSError as error:
            raise UserError(f"cannot be moved aside: {why(error)}", item) from error
