"""The plan: what is done, what resumes, what is to do, and how long it takes."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.runner import Running, updates_made
from pysimt_sac.reproduce.step_records import Step, StepRecord
from pysimt_sac.reproduce.steps import Training, Translating

# Cost of an update relative to maximum likelihood (benchmarks/README.md), without validations.
COST = {
    "SimultaneousNMT": 1.0,
    "MLENMT": 1.0,
    "MIXERNMT": 1.6,
    "VineNMT": 2.3,
    "SACUnsupNMT": 4.0,
    "SACNMT": 4.5,
    "BranchedSACNMT": 3.4,
    "ERACNMT": 4.8,
    "ACNMT": 4.8,
    "REINFORCENMT": 6.0,
    "MRTNMT": 10.0,
}
OTHER_COST = 4.0
PREPARING, SCORING = 60.0, 30.0  # seconds, assumed


@dataclass(frozen=True)
class Estimator:
    """Estimates times from finished steps, by step id, and from running ones.

    What has not been measured is taken from the matrix's assumptions.
    """

    matrix: Matrix
    steps: Sequence[Step]
    done: Mapping[str, StepRecord]
    running: Sequence[Running] = ()

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
        if step.id in self.done:
            details = self.done[step.id].details
            return float(details["seconds"]) / max(1, int(details["timed_updates"]))
        for own in self.running:
            if own.step is step and (made := updates_made(step.folder) - own.first_update) > 0:
                return (time.monotonic() - own.started) / made
        return None

    def seconds(self, step: Step) -> tuple[float, str]:
        """Return how long a step still takes at most, and the source of the number."""
        if step.id in self.done:
            return 0.0, ""
        if isinstance(step, Training):
            assumed, source = self.seconds_per_update(step)
            return (self.pace(step) or assumed) * max(0, step.updates - updates_made(step.folder)), source
        if isinstance(step, Translating):
            alike = [other for other in self.steps if isinstance(other, Translating) and other.search == step.search]
            if measured := [self.done[other.id].seconds for other in alike if other.id in self.done]:
                return statistics.fmean(measured), "measured"
            greedy = 3.0 if step.search == "gs" else 1.0  # greedy search is about this many times as fast
            return len(step.outputs) * 1000 * self.matrix.seconds.sentence / greedy, "assumed"
        return (PREPARING if step.id.startswith("prepare") else SCORING), "assumed"


def duration(seconds: Mapping[str, float], steps: Sequence[Step], jobs: int) -> float:
    """Return the time that steps need with `jobs` workers: their work shared, but at least the longest chain."""
    chain: dict[str, float] = {}  # until the end of a step, if nothing but what it needs comes before
    for step in steps:  # those that a step needs come before it
        chain[step.id] = seconds[step.id] + max((chain.get(name, 0.0) for name in step.after), default=0.0)
    return max([sum(seconds[step.id] for step in steps) / jobs, *chain.values()])


def describe(estimator: Estimator, jobs: int, after: float) -> list[str]:
    """Return the lines of the plan. after: seconds of scoring after all translations."""
    steps, lines, seconds = estimator.steps, [], {}
    width = max(len(step.title) for step in steps if not isinstance(step, Translating))
    for step in steps:
        seconds[step.id], source = estimator.seconds(step)
        if not isinstance(step, Translating):
            lines.append(f"  {step.title:{width}}  {describe_step(estimator, step, seconds[step.id], source)}".rstrip())
    translations = [step.id for step in steps if isinstance(step, Translating)]
    to_do = [seconds[name] for name in translations if name not in estimator.done]
    progress = f"{len(translations) - len(to_do)} of {len(translations)} done, at most {in_words(sum(to_do))} left"
    lines.append(f"  {'translate':{width}}  {progress}")
    lines.append(f"  {'score, compare and report':{width}}  about {in_words(after)}")
    n_done = sum(step.id in estimator.done for step in steps)
    whole = duration(seconds, steps, jobs) + after / jobs
    lines.append(
        f"{n_done} of {len(steps)} steps are done; at most {in_words(sum(seconds.values()) + after)} of work left, "
        f"{in_words(whole)} with {jobs} in parallel"
    )
    return lines


def describe_step(estimator: Estimator, step: Step, seconds: float, source: str) -> str:
    """Describe the status and time of a step."""
    if step.id in estimator.done:
        return f"done in {in_words(estimator.done[step.id].seconds)}"
    made = updates_made(step.folder) if isinstance(step, Training) else 0
    text = f"{'resume' if made else 'to do':6} at most {in_words(seconds)} ({source})"
    if isinstance(step, Training):
        text += f", {made}/{step.updates} updates" if made else f", {step.updates} updates"
    return text


def describe_progress(estimator: Estimator, jobs: int) -> str:
    """Describe overall progress in one line."""
    seconds = {step.id: estimator.seconds(step)[0] for step in estimator.steps}
    parts = []
    for own in estimator.running:
        name, share = own.step.id, ""
        if isinstance(own.step, Training):
            share = f" {updates_made(own.step.folder)}/{own.step.updates},"
        else:
            elapsed = time.monotonic() - own.started
            seconds[name] = max(seconds[name] - elapsed, elapsed / 4)
        seconds[name] = max(1.0, seconds[name])
        parts.append(f"{own.step.title}:{share} {in_words(seconds[name])}")
    n_done = sum(step.id in estimator.done for step in estimator.steps)
    whole = in_words(duration(seconds, estimator.steps, jobs))
    return f"{n_done}/{len(seconds)} done, about {whole} left" + "".join(f" | {part}" for part in parts)
