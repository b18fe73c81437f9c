"""The plan: what is done, what resumes, what is to do, and how long it takes."""

import dataclasses
import heapq
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.runner import Runner, Running, updates_made
from pysimt_sac.reproduce.stamps import Stamp
from pysimt_sac.reproduce.steps import Step, Training, Translating

DONE, TAKE_OVER, RESUME, TO_DO = "done", "take over", "resume", "to do"
# Cost of an update relative to maximum likelihood (benchmarks/README.md), without validations.
COST = {
    "SimultaneousNMT": 1.0,
    "MLENMT": 1.0,
    "MIXERNMT": 1.6,
    "VineNMT": 2.3,
    "SACUnsupNMT": 2.5,
    "SACNMT": 3.4,
    "ERACNMT": 4.8,
    "ACNMT": 4.8,
    "REINFORCENMT": 6.0,
    "MRTNMT": 10.0,
}
OTHER_COST = 4.0
PREPARING, SCORING = 60.0, 30.0  # seconds, assumed


@dataclass(frozen=True)
class Estimator:
    """Estimates times from finished and running steps, else from the matrix's assumptions.

    By step id: elsewhere, finished runs that will be taken over; running, seconds per update of running trainings.
    """

    matrix: Matrix
    steps: Sequence[Step]
    done: Mapping[str, Stamp]
    elsewhere: Mapping[str, Path] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)

    def seconds_per_update(self, training: Training) -> tuple[float, str]:
        """Return the seconds per update of a training, and the source of the number."""
        measured = [(step, pace) for step in self.steps if isinstance(step, Training) and (pace := self.pace(step))]
        same = [pace for step, pace in measured if step.system == training.system]
        if same:
            return statistics.fmean(same), "measured"
        cost = COST.get(training.model_type, OTHER_COST)
        if measured:
            plain = [pace / COST.get(step.model_type, OTHER_COST) for step, pace in measured]
            return cost * statistics.fmean(plain), "from other systems"
        return cost * self.matrix.seconds.update, "assumed"

    def pace(self, step: Training) -> float | None:
        """Return the seconds per update of a training, validations included; None if not measured yet."""
        if step.id not in self.done:
            return self.running.get(step.id)
        details = self.done[step.id].details
        return float(details["seconds"]) / max(1, int(details["timed_updates"]))

    def seconds(self, step: Step) -> tuple[float, str]:
        """Return how long a step still takes at most, and the source of the number."""
        if step.id in self.done or step.id in self.elsewhere:
            return 0.0, ""
        if isinstance(step, Training):
            pace, source = self.seconds_per_update(step)
            return pace * max(0, step.updates - updates_made(step.folder)), source
        if isinstance(step, Translating):
            measured = [
                self.done[other.id].seconds
                for other in self.steps
                if isinstance(other, Translating) and other.search == step.search and other.id in self.done
            ]
            if measured:
                return sum(measured) / len(measured), "measured"
            greedy = 3.0 if step.search == "gs" else 1.0  # greedy search is about this many times as fast
            return len(step.outputs) * 1000 * self.matrix.seconds.sentence / greedy, "assumed"
        return (PREPARING if step.id.startswith("prepare") else SCORING), "assumed"

    def status(self, step: Step) -> str:
        """Return whether a step is done, to be taken over, to be resumed, or to do."""
        if step.id in self.done:
            return DONE
        if step.id in self.elsewhere:
            return TAKE_OVER
        return RESUME if isinstance(step, Training) and updates_made(step.folder) else TO_DO


def makespan(seconds: Mapping[str, float], steps: Sequence[Step], jobs: int) -> float:
    """Return the time until the last step ends, if each starts as soon as it can on one of `jobs` workers."""
    left = [step for step in steps if seconds.get(step.id, 0.0) > 0]
    ended = {step.id: 0.0 for step in steps if step not in left}
    running: list[tuple[float, str]] = []
    now = 0.0
    while left or running:
        for step in list(left):
            if len(running) < jobs and all(name in ended for name in step.after if name in seconds):
                left.remove(step)
                heapq.heappush(running, (now + seconds[step.id], step.id))
        if not running:
            break  # the rest needs steps that are not in this list
        now, name = heapq.heappop(running)
        ended[name] = now
    return now


def describe(estimator: Estimator, steps: Sequence[Step], jobs: int, after: float) -> list[str]:
    """Return the lines of the plan. after: seconds of scoring after all translations."""
    lines, seconds = [], {}
    width = max(len(step.title) for step in steps if not isinstance(step, Translating))
    for step in steps:
        seconds[step.id], source = estimator.seconds(step)
        if not isinstance(step, Translating):
            lines.append(f"  {step.title:{width}}  {describe_step(estimator, step, seconds[step.id], source)}".rstrip())
    translations = [step.id for step in steps if isinstance(step, Translating)]
    to_do = [seconds[name] for name in translations if name not in estimator.done]
    progress = f"{len(translations) - len(to_do)} of {len(translations)} done, at most {in_words(sum(to_do))} left"
    lines.append(f"  {'translate':{width}}  {progress}")
    n_done = sum(estimator.status(step) == DONE for step in steps)
    total = sum(seconds.values()) + after
    whole = makespan(seconds, steps, jobs) + after / jobs
    lines.append(f"  {'score, compare and report':{width}}  about {in_words(after)}")
    lines.append(
        f"{n_done} of {len(steps)} steps are done; at most {in_words(total)} of work left, "
        f"{in_words(whole)} with {jobs} in parallel"
    )
    return lines


def describe_step(estimator: Estimator, step: Step, seconds: float, source: str) -> str:
    """Describe the status and time of a step."""
    status = estimator.status(step)
    if status == DONE:
        stamp = estimator.done[step.id]
        taken = f" from {stamp.details['adopted']}" if "adopted" in stamp.details else ""
        return f"done in {in_words(stamp.seconds)}{taken}"
    if status == TAKE_OVER:
        return f"{status}, from {estimator.elsewhere[step.id]}"
    text = f"{status:6} at most {in_words(seconds)} ({source})"
    if isinstance(step, Training):
        made = updates_made(step.folder)
        text += f", {made}/{step.updates} updates" if made else f", {step.updates} updates"
    return text


def describe_progress(estimator: Estimator, runner: Runner, steps: Sequence[Step]) -> str:
    """Describe overall progress in one line."""
    paces = {own.step.id: pace for own in runner.running if (pace := pace_of(own))}
    estimator = dataclasses.replace(estimator, running=paces)
    seconds = {step.id: estimator.seconds(step)[0] for step in steps}
    parts = []
    for own in runner.running:
        name, share = own.step.id, ""
        if isinstance(own.step, Training):
            made = updates_made(own.step.folder)
            share = f" {made}/{own.step.updates},"
            if name in paces:  # its own pace, not the mean of its system's runs
                seconds[name] = max(1.0, (own.step.updates - made) * paces[name])
        else:
            elapsed = time.monotonic() - own.started
            seconds[name] = max(1.0, seconds.get(name, 0.0) - elapsed, elapsed / 4)
        parts.append(f"{own.step.title}:{share} {in_words(seconds.get(name, 0.0))}")
    n_done = sum(step.id in runner.done for step in steps)
    whole = in_words(makespan(seconds, steps, runner.jobs))
    return f"{n_done}/{len(steps)} done, about {whole} left" + "".join(f" | {part}" for part in parts)


def pace_of(own: Running) -> float | None:
    """Return the seconds per update of a running training since it was started; None before the first update."""
    made = updates_made(own.step.folder) - own.first_update if isinstance(own.step, Training) else 0
    return (time.monotonic() - own.started) / made if made > 0 else None
