"""The outcome of validations and of the whole run, in words, and whether the model has diverged.

Losses are negative log-likelihoods per word: guessing among V words gives log V.
"""

import math
from pathlib import Path

from pysimt_sac.core.metrics import Metric
from pysimt_sac.hosts.engine.training.progress import Progress

RECENT = 5  # reports in a running mean
FAR = 3.0  # times the best: warn
DIVERGED = 5.0  # times the best, and worse than guessing: no score of such a validation counts as best
WORSE_THAN_GUESSING = 2.0  # times log V: the same, without a best to compare with
HELP = "the run diverges: lower lr or gclip, or raise lr_warmup"


def validation_lines(progress: Progress, results: list[Metric], improved: list[Metric]) -> tuple[list[str], str]:
    """Return the last validation's scores as lines of the log, one for each metric, and as one line of the console."""
    lines, parts = [], []
    for metric in results:
        best, long, short = progress.best.get(metric.name), "none counts as best so far", "(not counted)"
        if metric in improved:
            long, short = "best so far", "best"
        elif best:
            long, short = (f"{prefix} {best.score:.3f} at {best.validation}" for prefix in ("best:", "(best"))
            short += ")"
        lines.append(f"Validation {progress.validation} - {metric.name}: {metric.score:.3f} ({long})")
        parts.append(f"{metric.name} {metric.score:.3f} {short}")
    return lines, f"Validation {progress.validation}: {', '.join(parts)}"


def sample_lines(progress: Progress, samples: list[tuple[str, str]]) -> list[str]:
    """Return translations of the first validation and of this one beside their references; keep the first ones."""
    progress.first_samples = progress.first_samples or [hypothesis for hypothesis, _ in samples]
    lines = []
    for before, (now, reference) in zip(progress.first_samples, samples, strict=False):
        lines += [f"before:    {before}", f"now:       {now if now != before else '(the same)'}"]
        lines.append(f"reference: {reference}")
    return lines


def closing_lines(progress: Progress, first: str, folder: Path) -> list[str]:
    """Return the final report on a run: where its best checkpoint is, and whether training improved anything."""
    best, lines = progress.best.get(first), []
    if best:
        found = f"{first} {best.score:.3f} at validation {best.validation}"
        lines.append(f"Best checkpoint: {found}, {best.file}")
        if best.file and not (folder / best.file).exists():
            lines.append("Warning: the best checkpoint has been deleted during the run; the last one is kept")
        elif best.update == 0 or best.update < progress.first_update:
            when = f"before the first update of the weights, number {progress.first_update}"
            lines.append(
                f"Warning: the best checkpoint is the starting point ({found}, {when}): training brought no improvement"
            )
        elif best.validation == 1 and progress.validation > 1:
            others = f"{progress.validation - 1} later validations"
            lines.append(
                f"Warning: the best checkpoint is that of the first validation: none of the {others} improved on it"
            )
    if progress.diverged or progress.diverges:
        kept = "use the best checkpoint" if best else "there is no other"
        lines.append(f"Warning: the model has diverged; the last checkpoint is of no use, and {kept}")
    return lines


def is_far_above(loss: float, best: float) -> bool:
    """Return whether a loss is many times the best; small losses may be, without harm."""
    return loss > FAR * best + 1 and best > 0


def watch_training(progress: Progress, loss: float) -> str:
    """Record a reported loss; return a warning if the running mean has just risen far above its lowest."""
    progress.recent_losses = [*progress.recent_losses, loss][-RECENT:]
    if len(progress.recent_losses) < RECENT:
        return ""
    mean, before = sum(progress.recent_losses) / RECENT, progress.diverges
    progress.lowest_loss = min(progress.lowest_loss, mean)
    progress.diverges = is_far_above(mean, progress.lowest_loss)
    if before or not progress.diverges:
        return ""
    lowest = f"its lowest was {progress.lowest_loss:.3g}"
    return f"Warning: the training loss is {mean:.3g}, the mean of {RECENT} reports, and {lowest}; {HELP}"


def has_diverged(results: list[Metric], progress: Progress, n_words: int) -> bool:
    """Return whether a validation's loss shows that the model has diverged, whatever its other scores are."""
    loss = next((metric.score for metric in results if metric.name == "LOSS"), 0.0)
    best, guessing = progress.best.get("LOSS"), math.log(n_words)
    many_times = best is not None and loss > DIVERGED * best.score and loss > guessing
    return many_times or loss > WORSE_THAN_GUESSING * guessing


def watch_validation(progress: Progress, n_words: int) -> str:
    """Return a warning about the last recorded validation: always if the model has diverged, else once in a row."""
    losses, best = progress.scores.get("LOSS", []), progress.best.get("LOSS")
    if not losses:
        return ""
    if progress.diverged:
        return (
            f"Warning: the validation loss is {losses[-1]:.6g} per word where guessing gives {math.log(n_words):.3g}; "
            f"{HELP}. No score of this validation counts as best"
        )
    if best is None or not is_far_above(losses[-1], best.score):
        return ""
    if losses[:-1] and is_far_above(losses[-2], best.score):
        return ""
    times = f"{losses[-1] / best.score:.1f} times its best, {best.score:.3g} at validation {best.validation}"
    return f"Warning: the validation loss is {losses[-1]:.3g}, {times}; the run may diverge"
