"""The results of validations and of the whole run, in words."""

from pysimt_sac.core.metrics import Metric
from pysimt_sac.hosts.engine.training.progress import Progress


def validation_details(progress: Progress, results: list[Metric], improved: list[Metric]) -> list[str]:
    """Return a log line for every metric of the last validation."""
    lines = []
    for metric in results:
        best = progress.best.get(metric.name)
        note = f"best: {best.score:.3f} at {best.validation}" if best else "none counts as best so far"
        note = "best so far" if metric in improved else note
        lines.append(f"Validation {progress.validation} - {metric.name}: {metric.score:.3f} ({note})")
    return lines


def validation_line(progress: Progress, results: list[Metric], improved: list[Metric]) -> str:
    """Return the same in one line for the console."""
    parts = []
    for metric in results:
        best = progress.best.get(metric.name)
        note = f"(best {best.score:.3f} at {best.validation})" if best else "(not counted)"
        parts.append(f"{metric.name} {metric.score:.3f} {'best' if metric in improved else note}")
    return f"Validation {progress.validation}: {', '.join(parts)}"


def closing_lines(progress: Progress, first: str) -> list[str]:
    """Return the final report on a run's best checkpoint: where it is, and whether training improved anything."""
    best = progress.best.get(first)
    if best is None:
        return []
    found = f"{first} {best.score:.3f} at validation {best.validation}"
    lines = [f"Best checkpoint: {found}, {best.file}"]
    if 0 <= best.update < progress.first_update or best.update == 0:
        when = f"before the first update of the weights, number {progress.first_update}"
        lines.append(
            f"Warning: the best checkpoint is the starting point ({found}, {when}): training brought no improvement"
        )
    elif best.validation == 1 and progress.validation > 1:
        others = f"{progress.validation - 1} later validations"
        lines.append(
            f"Warning: the best checkpoint is that of the first validation: none of the {others} improved on it"
        )
    return lines
