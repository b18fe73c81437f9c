"""Run steps side by side: start what is ready, stamp what has ended, and end all of them in order at a signal."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pysimt_sac.engine.checkpoint import load_state, state_fits
from pysimt_sac.engine.decoding.translation import checkpoint_to_use
from pysimt_sac.engine.training.interrupts import Interrupts
from pysimt_sac.engine.training.progress import Progress
from pysimt_sac.errors import UserError, shorten
from pysimt_sac.files import make_folder
from pysimt_sac.reproduce.orphans import VARIABLE
from pysimt_sac.reproduce.stamps import Stamp, Stamps, commit
from pysimt_sac.reproduce.steps import Step, Training

POLL = 0.1  # seconds between looks at the processes
TAIL = 4096  # bytes of a file's end that are read for its last line


@dataclass
class Running:
    """A step under way."""

    step: Step
    process: subprocess.Popen[bytes]
    log: Path
    started: float
    first_update: int  # that a training had made before
    commit: str  # of the code that it was started with


@dataclass
class Runner:
    """Runs steps. tell: says what happens; show: how far everything is, called now and then.

    done: stamps by the step's id, of earlier steps, too; failed: why, by the step's id.
    """

    stamps: Stamps
    jobs: int
    threads: int
    tell: Callable[[str], None]
    show: Callable[["Runner"], None]
    done: dict[str, Stamp] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    waiting: list[Step] = field(default_factory=list)
    locked: set[str] = field(default_factory=set)

    def run(self, steps: Sequence[Step]) -> None:
        """Run all steps that are not done; raise `Interrupted` when a signal came, with all processes ended."""
        self.waiting = [step for step in steps if step.id not in self.done and step.id not in self.failed]
        with Interrupts() as interrupts:
            try:
                while self.waiting or self.running:
                    interrupts.check()
                    self.start_ready()
                    self.show(self)
                    time.sleep(POLL)
                    self.collect()
            except BaseException:
                self.end_all()
                raise

    def start_ready(self) -> None:
        """Start steps while there is room; drop those that can no longer be done."""
        for step in list(self.waiting):
            if needed := [name for name in step.after if name in self.failed]:
                self.waiting.remove(step)
                self.failed[step.id] = f"not done: {step.title}, which needs {needed[0]}"
            elif len(self.running) < self.jobs and all(name in self.done for name in step.after):
                if isinstance(step, Training) and is_locked(step.folder):
                    self.wait_for(step)  # a process that a killed reproduction has left behind
                    continue
                self.waiting.remove(step)
                self.start(step)

    def wait_for(self, step: Training) -> None:
        """Say, once, that another process is at a step."""
        if step.id not in self.locked:
            self.locked.add(step.id)
            self.tell(f"waiting: another process trains in {step.folder}")

    def start(self, step: Step) -> None:
        """Start a step's command, in a process group of its own: a Ctrl-C reaches it through us, and once."""
        log = make_folder(self.stamps.root / "logs") / f"{step.id}.log"
        for output in step.outputs:
            make_folder(output.parent)
        threads = {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        own = {VARIABLE: str(os.getpid()), "PYSIMT_SAC_HOST": "embedded", "PYTHONUNBUFFERED": "1"}
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
        self.tell(f"{'resumed' if first else 'started'}: {step.title}")

    def collect(self) -> None:
        """Stamp what has ended well, and say what has not."""
        for own in [own for own in self.running if own.process.poll() is not None]:
            self.running.remove(own)
            seconds = time.monotonic() - own.started
            try:
                if own.process.returncode != 0:
                    raise UserError(reason_of(own.process.returncode, own.log))
                stamp = finish(self.stamps, own.step, seconds, own.commit)
            except UserError as error:
                self.failed[own.step.id] = f"failed: {own.step.title}: {error}; log: {own.log}"
                self.tell(self.failed[own.step.id])
            else:
                self.done[own.step.id] = stamp
                self.tell(f"done: {own.step.title}")

    def end_all(self) -> None:
        """Have every process save and stop, and wait for them."""
        for own in self.running:
            with contextlib.suppress(ProcessLookupError):
                own.process.send_signal(signal.SIGTERM)
        for own in self.running:
            own.process.wait()


def finish(stamps: Stamps, step: Step, seconds: float, made_by: str | None = None, **more: Any) -> Stamp:
    """Stamp a step that has ended; of a training, with its books."""
    if not isinstance(step, Training):
        return stamps.write(step.id, step.key, step.words, seconds, step.outputs, made_by=made_by)
    state, _ = load_state(step.folder)
    with state_fits(step.folder):
        progress = Progress.from_dict(state["progress"]).to_dict() if state else {}  # of earlier versions, too
    if state is None or not progress["ended"]:
        raise UserError("has not ended", step.folder, "give the same command again")
    details = {name: progress[name] for name in ("update", "seconds", "timed_updates", "best", "seed")}
    best, scalars = checkpoint_to_use(step.folder).resolve(), step.folder / f"{state['exp_id']}.scalars.jsonl"
    details |= {"checkpoint": best.name, "curves": scalars.name, **more}
    return stamps.write(step.id, step.key, step.words, progress["seconds"], [best, scalars], details, made_by)


def reason_of(status: int, log: Path) -> str:
    """Why a process failed: the last line of its log that says so, or its last line."""
    lines = [line for line in tail(log).splitlines() if line.strip()]
    reasons = [line for line in lines if ": error: " in line][-1:] or lines[-1:]
    ended = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return shorten(f"{ended}; {reasons[0].strip()}" if reasons else ended)


def tail(path: Path) -> str:
    """The end of a text file."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, path.stat().st_size - TAIL))
            return stream.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def updates_made(folder: Path) -> int:
    """How many updates a run has logged."""
    newest = max(folder.glob("*.scalars.jsonl"), key=lambda path: path.stat().st_mtime, default=None)
    for line in reversed(tail(newest).splitlines() if newest else []):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["step"])
    return 0


def is_locked(folder: Path) -> bool:
    """Whether another process trains in a folder."""
    path = folder / ".lock"
    if not path.exists():
        return False
    with open(path, "a") as lock:
        return not try_lock(lock)


def try_lock(stream: IO[str]) -> bool:
    """Lock an open file, unless another process has; the lock ends with the file."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Be the only reproduction in a folder."""
    with open(make_folder(folder) / ".lock", "w") as lock:
        if not try_lock(lock):
            raise UserError("another reproduction works here", folder, "wait for it, or choose another --out")
        yield
