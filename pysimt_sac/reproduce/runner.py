"""Run steps in parallel: start what is ready, record what has ended, and stop all of them cleanly on a signal."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pysimt_sac.core.curves import read_point
from pysimt_sac.core.errors import UserError, one_line
from pysimt_sac.core.files import make_folder
from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.hosts.engine.decoding.translation import checkpoint_to_use
from pysimt_sac.hosts.engine.training.interrupts import Interrupts
from pysimt_sac.reproduce.step_records import Step, StepRecord, StepRecords, commit
from pysimt_sac.reproduce.steps import Training

POLL = 0.1  # seconds between checks of the processes
TAIL = 4096  # bytes read from the end of a file to find its last line


@dataclass
class Running:
    """A running step."""

    step: Step
    process: subprocess.Popen[bytes]
    log: Path
    started: float
    first_update: int  # that a training had reached before
    commit: str  # of the code that started it


@dataclass
class Runner:
    """Runs steps. log: prints a message; show_progress: called regularly.

    done: records by step id, including earlier steps; failed: reasons by step id.
    """

    records: StepRecords
    jobs: int
    threads: int
    log: Callable[[str], None]
    show_progress: Callable[[], None]
    done: dict[str, StepRecord] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    waiting: list[Step] = field(default_factory=list)
    locked: set[str] = field(default_factory=set)

    def run(self, steps: Sequence[Step]) -> None:
        """Run all steps that are not done; on a signal, end all processes and raise `Interrupted`."""
        self.waiting = [step for step in steps if step.id not in self.done and step.id not in self.failed]
        with Interrupts() as interrupts:
            try:
                while self.waiting or self.running:
                    interrupts.check()
                    self.start_ready()
                    self.show_progress()
                    time.sleep(POLL)
                    self.collect()
            except BaseException:
                self.end_all()
                raise

    def start_ready(self) -> None:
        """Start steps while jobs are free; drop those that can no longer be done."""
        for step in list(self.waiting):
            if needed := [name for name in step.after if name in self.failed]:
                self.waiting.remove(step)
                self.failed[step.id] = f"not done: {step.title}, which needs {needed[0]}"
            elif len(self.running) < self.jobs and all(name in self.done for name in step.after):
                if isinstance(step, Training) and is_locked(step.folder):  # by a process of a killed reproduction
                    if step.id not in self.locked:
                        self.locked.add(step.id)
                        self.log(f"waiting: another process is training in {step.folder}")
                    continue
                self.waiting.remove(step)
                self.start(step)

    def start(self, step: Step) -> None:
        """Start a step's command in its own process group, so that Ctrl-C reaches it once, through this process."""
        log = make_folder(self.records.root / "logs") / f"{step.id}.log"
        for output in step.outputs:
            make_folder(output.parent)
        threads = {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        own = {"PYSIMT_SAC_HOST": "embedded", "PYTHONUNBUFFERED": "1"}
        words = [sys.executable, "-m", "pysimt_sac", *step.words]
        with open(log, "ab") as stream:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**os.environ, **threads, **own},
                start_new_session=True,
            )
        first = updates_made(step.folder) if isinstance(step, Training) else 0
        self.running.append(Running(step, process, log, time.monotonic(), first, commit()))
        self.log(f"{'resumed' if first else 'started'}: {step.title}")

    def collect(self) -> None:
        """Record the steps that succeeded, and report those that failed."""
        for own in [own for own in self.running if own.process.poll() is not None]:
            self.running.remove(own)
            seconds = time.monotonic() - own.started
            try:
                if own.process.returncode != 0:
                    raise UserError(reason_of(own.process.returncode, own.log))
                record = finish(self.records, own.step, seconds, own.commit)
            except UserError as error:
                self.failed[own.step.id] = f"failed: {own.step.title}: {error}; log: {own.log}"
                self.log(self.failed[own.step.id])
            else:
                self.done[own.step.id] = record
                self.log(f"done: {own.step.title}")

    def end_all(self) -> None:
        """Tell every process to save and stop, and wait for them."""
        for own in self.running:
            with contextlib.suppress(ProcessLookupError):
                own.process.send_signal(signal.SIGTERM)
        for own in self.running:
            own.process.wait()


def finish(records: StepRecords, step: Step, seconds: float, made_by: str) -> StepRecord:
    """Record a step that has ended; for a training, with the run's metadata."""
    if not isinstance(step, Training):
        return records.write(step, seconds, made_by, step.outputs, {})
    state, _ = load_state(step.folder)
    if state is None or not state["progress"]["ended"]:
        raise UserError("has not finished", step.folder, "give the same command again")
    progress = state["progress"]
    details = {name: progress[name] for name in ("update", "seconds", "timed_updates", "best", "seed")}
    best, scalars = checkpoint_to_use(step.folder).resolve(), step.folder / f"{state['exp_id']}.scalars.jsonl"
    details |= {"checkpoint": best.name, "curves": scalars.name}
    return records.write(step, progress["seconds"], made_by, [best, scalars], details)


def reason_of(status: int, log: Path) -> str:
    """Return why a process failed: the last error line of its log, or its last line."""
    lines = [line for line in tail(log).splitlines() if line.strip()]
    reasons = [line for line in lines if ": error: " in line][-1:] or lines[-1:]
    ended = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return one_line(f"{ended}; {reasons[0].strip()}" if reasons else ended)


def tail(path: Path) -> str:
    """Return the end of a text file."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, path.stat().st_size - TAIL))
            return stream.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def updates_made(folder: Path) -> int:
    """Return how many updates a run has logged."""
    newest = max(folder.glob("*.scalars.jsonl"), key=lambda path: path.stat().st_mtime, default=None)
    for line in reversed(tail(newest).splitlines() if newest else []):
        with contextlib.suppress(UserError):
            return read_point(line, newest).step
    return 0


def is_locked(folder: Path) -> bool:
    """Return whether another process is training in a folder."""
    path = folder / ".lock"
    if not path.exists():
        return False
    with open(path, "a") as lock:
        return not try_lock(lock)


def try_lock(stream: IO[str]) -> bool:
    """Lock an open file unless another process has; closing the file releases the lock."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the output folder."""
    with open(make_folder(folder) / ".lock", "w") as lock:
        if not try_lock(lock):
            raise UserError("another reproduction is running here", folder, "wait for it, or choose another --out")
        yield
