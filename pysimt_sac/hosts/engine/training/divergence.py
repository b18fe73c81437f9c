"""Divergence detection, by the running mean of the training loss and by the loss of each validation.

Both are negative log-likelihoods per word: guessing among V words gives log V.
"""

import math

from pysimt_sac.core.metrics import Metric
from pysimt_sac.hosts.engine.training.progress import Progress

RECENT = 5  # reports in a running mean
FAR = 3.0  # times the best: warn
LOST = 5.0  # times the best, and worse than guessing: no score of such a validation counts as best
WORSE_THAN_GUESSING = 2.0  # times log V: the same, without a best to compare with
HELP = "the run diverges: lower lr or gclip, or raise lr_warmup"


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
    many_times = best is not None and loss > LOST * best.score and loss > guessing
    return many_times or loss > WORSE_THAN_GUESSING * guessing


def watch_validation(progress: Progress, n_words: int, lost: bool) -> str:
    """Return a warning about the last recorded validation: always if lost, else once in a row."""
    losses, best = progress.scores.get("LOSS", []), progress.best.get("LOSS")
    if not losses:
        return ""
    if lost:
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
