"""The `remote` reward: another process or a server scores translations, such as COMET or a language model.

A command is started once and stays: it has an environment of its own, and loads its model once. It reads a batch as
lines of JSON, `{"source": ..., "hypothesis": ..., "reference": ...}`, and after the last an empty line; it writes one
number per line, in order. A URL gets the same as a POST request, `{"pairs": [...]}`, and answers `{"scores": [...]}`.
A command that dies is started again, once for each batch. `experiments/workers/` has ready ones.

A hypothesis earns its score at its last step. The text is in words, whatever `reward_unit` says; scores that are
already known come from a cache.
"""

import contextlib
import dataclasses
import http.client
import json
import math
import os
import queue
import shlex
import signal
import subprocess
import threading
import urllib.error
import urllib.request
import weakref
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import IO, NamedTuple

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.rewards.base import Floats, Translations, reward
from pysimt_sac.rewards.lookahead import Lookahead


@dataclasses.dataclass(frozen=True)
class RemoteOptions:
    """The `[model]` keys of the `remote` reward."""

    remote_worker: str = option("", "`remote`: the command that scores, or a URL that begins with http")
    remote_timeout: float = option(600.0, "`remote`: seconds to wait for the scores of a batch", above=0)
    remote_batch: int = option(256, "`remote`: most translations in one batch", minimum=1)
    remote_cache: int = option(100_000, "`remote`: scores kept, so that no translation is scored twice", minimum=0)


class Example(NamedTuple):
    """What is scored."""

    source: str
    hypothesis: str
    reference: str


class WorkerDiedError(Exception):
    """The process ended before it had answered."""


class Command:
    """A process that scores, started on demand."""

    def __init__(self, words: str, timeout: float) -> None:
        self.words, self.timeout = words, timeout
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, examples: Sequence[Example]) -> list[str]:
        """Return the lines that answer a batch; start the process again if it dies."""
        try:
            return self.ask(examples)
        except WorkerDiedError:
            self.stop()
        try:
            return self.ask(examples)
        except WorkerDiedError as error:
            status, said = self.stop(), " ".join(self.last_words)[-300:]
            what = f"died twice on the same batch, with status {status}{f': {said}' if said else ''}"
            raise UserError(what, self.words, "run it alone with a line of JSON, and mend it") from error

    def start(self) -> subprocess.Popen[str]:
        """Start the process, and threads that read what it writes, so that neither side waits for the other."""
        try:
            process = subprocess.Popen(
                shlex.split(self.words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UserError(f"cannot be started: {error}", self.words, "correct remote_worker") from error
        weakref.finalize(self, kill, process)
        self.answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.last_words: deque[str] = deque(maxlen=5)
        assert process.stdout is not None
        assert process.stderr is not None
        self.threads = [
            threading.Thread(target=pass_on, args=(process.stdout, self.answers), daemon=True),
            threading.Thread(target=keep_last, args=(process.stderr, self.last_words), daemon=True),
        ]
        for thread in self.threads:
            thread.start()
        return process

    def ask(self, examples: Sequence[Example]) -> list[str]:
        """Send a batch and return as many lines."""
        self.process = process = self.process or self.start()
        if not self.answers.empty() and process.poll() is None:
            self.stop()
            raise UserError("wrote more lines than it was asked for", self.words, "write one number per line of JSON")
        assert process.stdin is not None
        text = "".join(json.dumps(example._asdict(), ensure_ascii=False) + "\n" for example in examples)
        threading.Thread(target=send, args=(process.stdin, f"{text}\n"), daemon=True).start()
        lines: list[str] = []
        while len(lines) < len(examples):
            try:
                line = self.answers.get(timeout=self.timeout)
            except queue.Empty as error:
                self.stop()
                what = f"wrote {len(lines)} of {len(examples)} numbers, and then nothing for {self.timeout:g} s"
                hint = "raise remote_timeout, or lower remote_batch"
                raise UserError(what, self.words, hint) from error
            if line is None:
                raise WorkerDiedError
            lines.append(line)
        return lines

    def stop(self) -> int | None:
        """End the process and all that it has started; return its status."""
        process, self.process = self.process, None
        if process is None:
            return None
        kill(process)
        for thread in self.threads:
            thread.join(timeout=5)
        return process.returncode


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with contextlib.suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]


def send(stream: IO[str], text: str) -> None:
    """Write to a worker, which may not be reading; that it has died is seen where its answers are read."""
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


def pass_on(stream: IO[str], answers: "queue.SimpleQueue[str | None]") -> None:
    """Pass on lines that are not empty, and None at the end."""
    with stream:
        for line in stream:
            if line.strip():
                answers.put(line.strip())
    answers.put(None)


def keep_last(stream: IO[str], lines: deque[str]) -> None:
    """Keep the last lines of a stream."""
    with stream:
        lines.extend(line.strip() for line in stream)


class Server:
    """A URL that scores."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url, self.timeout = url, timeout

    def __call__(self, examples: Sequence[Example]) -> list[object]:
        """Return the answer's scores."""
        body = json.dumps({"pairs": [example._asdict() for example in examples]}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                answer = json.load(response)
        except ValueError as error:
            raise UserError("answered something that is not JSON", self.url) from error
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise UserError(f"does not answer: {reason}", self.url, "is the server running?") from error
        scores = answer.get("scores") if isinstance(answer, dict) else answer
        if not isinstance(scores, list) or len(scores) != len(examples):
            amount = f"{len(scores)}" if isinstance(scores, list) else "no list of"
            raise UserError(f"answered {amount} scores for {len(examples)} translations", self.url)
        return scores


class Worker:
    """A command or a server that scores, with a cache."""

    def __init__(self, options: RemoteOptions, where: str = "[model] remote_worker") -> None:
        if not options.remote_worker:
            raise UserError("is missing", where, "e.g. remote_worker: python my_worker.py, or http://localhost:8000")
        self.options, self.cache = options, OrderedDict[Example, float]()
        is_url = options.remote_worker.startswith(("http://", "https://"))
        self.ask: Command | Server = (Server if is_url else Command)(options.remote_worker, options.remote_timeout)

    def scores(self, examples: Sequence[Example]) -> list[float]:
        """Return a score for each example; only new ones are sent, in batches."""
        new = [example for example in dict.fromkeys(examples) if example not in self.cache]
        found: dict[Example, float] = {}
        for start in range(0, len(new), self.options.remote_batch):
            batch = new[start : start + self.options.remote_batch]
            found.update(zip(batch, map(self.number, self.ask(batch)), strict=True))
        for example in examples:
            if example in self.cache:
                self.cache.move_to_end(example)
                found[example] = self.cache[example]
        self.cache.update(found)
        while len(self.cache) > self.options.remote_cache:
            self.cache.popitem(last=False)
        return [found[example] for example in examples]

    def number(self, answer: object) -> float:
        """Return an answer as a number."""
        try:
            value = float(answer)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            what = f"answered {str(answer)[:80]!r}, which is not a finite number"
            raise UserError(what, self.options.remote_worker, "write one number per line, and nothing else")
        return value


@reward("remote")
class RemoteReward:
    """The score of a whole translation by a worker, earned at its last step."""

    options_class = RemoteOptions
    counts_words = True

    def __init__(self, options: RemoteOptions) -> None:
        self.worker = Worker(options)

    def __call__(self, translations: Translations) -> list[float]:
        """Return the scores."""
        sides = translations.sources, translations.hypotheses, translations.references
        rows = zip(*sides, strict=True)
        return self.worker.scores([Example(source, " ".join(words), " ".join(gold)) for source, words, gold in rows])

    def next_growth(self, lookahead: Lookahead) -> Floats:
        """Return what candidate next words earn: the score if they end the translation, else nothing."""
        sources, places, examples = lookahead.candidates.translations.sources, [], []
        for source, gold, prefixes in zip(sources, lookahead.references, lookahead.prefixes, strict=True):
            for words, terminal in prefixes:
                places.append(terminal)
                if terminal:
                    examples.append(Example(source, " ".join(words), " ".join(gold)))
        potentials_P = np.zeros(len(places))
        potentials_P[np.array(places, dtype=bool)] = self.worker.scores(examples)
        return lookahead.growth(potentials_P)
