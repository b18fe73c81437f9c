"""A run's folder: its name, its lock, and what is already in it.

`save_path/CONFNAME[-SUFFIX]/` belongs to one run. Training again with the same command resumes where it stopped; a
different configuration is refused; `--restart` moves the old run aside. Until a run begins, its folder is unchanged,
so that a mistake found while reading data leaves no trace.
"""

import contextlib
import fcntl
import functools
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, make_folder, open_in_folder, remove_leftovers, why
from pysimt_sac.hosts.engine.checkpoint import EXP_ID, load_state
from pysimt_sac.hosts.engine.config.parser import Options, config_text, result_changing_differences
from pysimt_sac.hosts.engine.data.moved_files import checksums, same_value

held_locks: set[IO[str]] = set()


def release_locks_in_child() -> None:
    """Release the run's lock in a data-loading process, which may outlive a killed run by some seconds."""
    for lock in held_locks:
        lock.close()
    held_locks.clear()


os.register_at_fork(after_in_child=release_locks_in_child)


@dataclass
class Run:
    """An open run: no other process may train in its folder until it is closed or this process ends."""

    folder: Path
    exp_id: str = ""
    state: dict[str, Any] | None = None
    remark: str = ""
    restart: bool = False
    config: str = ""  # the merged configuration, kept in the folder for reference
    begun: bool = False
    created: list[Path] = field(default_factory=list)  # what was created to hold the lock, innermost first
    lock: IO[str] | None = None

    @property
    def subfolder(self) -> str:
        """The run's name, which is its folder's."""
        return self.folder.name

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start writing to the folder; everything that can be checked beforehand has been."""
        if not world.is_main:
            return
        remove_leftovers(self.folder)
        if self.restart:
            move_aside(self.folder)
        self.begun = True
        with atomic_write(self.folder / f"{self.exp_id}.conf") as stream:
            stream.write(self.config)

    def close(self) -> None:
        """Release the folder; if the run never began, remove what was created for it."""
        if not self.begun:
            for path in self.created:
                with contextlib.suppress(OSError):
                    path.unlink() if path.is_file() else path.rmdir()
        if self.lock:
            held_locks.discard(self.lock)
            self.lock.close()


def run_folder(options: Options, suffix: str) -> Path:
    """Return the folder of a configuration's run."""
    save_path = options.train.get("save_path")
    if not save_path:
        raise UserError("save_path is not set", f"{options.filename} [train]", "e.g. save_path: ./runs")
    if "/" in suffix or "\0" in suffix:
        raise UserError(f"{suffix!r} cannot be part of a file name", "-s", "e.g. -s seed2")
    name = Path(options.filename).stem + (f"-{suffix}" if suffix else "")
    return Path(save_path) / name


def open_run(options: Options, suffix: str = "", restart: bool = False, host: str = "embedded") -> Run:
    """Open a run for all ranks; only rank 0 holds the folder's lock and reads what is in it."""
    opened: list[Run] = []

    def open_and_describe() -> dict[str, Any]:
        opened.append(run := lock_run(options, suffix, restart, host))
        return {"folder": run.folder, "exp_id": run.exp_id, "state": run.state, "remark": run.remark}

    described = world.broadcast_from_main(open_and_describe)
    return opened[0] if opened else Run(**described)


def lock_run(options: Options, suffix: str, restart: bool, host: str) -> Run:
    """Lock the folder of a configuration's run and read what is in it; the caller must close the run."""
    run = Run(run_folder(options, suffix), restart=restart, config=config_text(options))
    try:
        lock_folder(run)
        if not restart:
            run.state, run.remark = find_state(run.folder, options, host)
        run.exp_id = run.state["exp_id"] if run.state else (abandoned_exp_id(run) or new_exp_id(options))
    except BaseException:
        run.close()
        raise
    return run


def new_exp_id(options: Options) -> str:
    """Return a new experiment id in pysimt's format."""
    return f"{options.train['model_type'].lower()}-r{secrets.token_hex(3)[:5]}"


def abandoned_exp_id(run: Run) -> str:
    """Return the id of a run that ended before saving anything; it is reused, so that nothing is left behind."""
    begun = {path.stem for pattern in ("*.log", "*-r?????.conf") for path in run.folder.glob(pattern)}
    ids = [name for name in begun if EXP_ID.fullmatch(name) and not list(run.folder.glob(f"{name}*.ckpt"))]
    return "" if run.restart or len(ids) != 1 else ids[0]


def find_state(folder: Path, options: Options, host: str = "embedded") -> tuple[dict[str, Any] | None, str]:
    """Return the state to resume from, if any, and a remark; refuse one of another configuration or host."""
    state, remark = load_state(folder)
    if state:
        began = state.get("host", "embedded")
        if began != host:
            hint = f"set PYSIMT_SAC_HOST={began}, name the new run with -s SUFFIX, or start over with --restart"
            raise UserError(f"this run began on another host: {began}, not {host}", folder, hint)
        # pysimt's states have no checksums of files; then names are compared, and later its loop compares the text.
        same = functools.partial(same_value, known=state.get("files", {}))
        differing = result_changing_differences(state["config"], options.to_dict(), same)
        if differing:
            hint = "undo the change, give the new run another name with -s SUFFIX, or start over with --restart"
            raise UserError(f"another configuration was trained here; changed: {'; '.join(differing)}", folder, hint)
    return state, remark


def files_of_run(config: dict[str, Any]) -> dict[str, int]:
    """Return the checksums of all files that the rest of a run depends on, so that it can resume if they have moved.

    It already has the actor's weights, whatever has become of `pretrained_file`.
    """
    used = {key: config["data"].get(key) for key in ("train_set", "val_set")}
    train = {key: value for key, value in config["train"].items() if key != "pretrained_file"}
    return checksums([used, train, config["model"], config["vocabulary"]])


def lock_folder(run: Run) -> None:
    """Lock the folder until this process ends, however it ends; record what had to be created for it."""
    path = run.folder / ".lock"
    run.created = [place for place in (path, *path.parents) if not os.path.lexists(place)]
    make_folder(run.folder)
    try:
        while run.lock is None:
            lock = open_in_folder(path)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                run.lock = lock
                held_locks.add(lock)
            else:  # a run that never began has just removed the file that we locked
                lock.close()
    except BlockingIOError as error:
        lock.close()
        run.created = []  # another process uses them now
        raise UserError("another process is training here", run.folder, "wait for it, or use -s SUFFIX") from error
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", path, "choose another save_path") from error


def move_aside(folder: Path) -> None:
    """Move all files of an old run into a subfolder `old-N`."""
    items = [item for item in folder.iterdir() if item.name != ".lock" and not item.name.startswith("old-")]
    if not items:
        return
    number = 1 + max([int(item.name[4:]) for item in folder.glob("old-*") if item.name[4:].isdecimal()], default=0)
    place = make_folder(folder / f"old-{number}")
    for item in items:
        try:
            shutil.move(item, place / item.name)
        except OSError as error:
            raise UserError(f"cannot be moved aside: {why(error)}", item) from error
