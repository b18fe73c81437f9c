"""Does a run diverge? The running mean of its training loss is watched, and the loss of each validation.

Both are negative log-likelihoods per word: who guesses among V words has log V.
"""

import math

from pysimt_sac.engine.metrics import Metric
from pysimt_sac.engine.training.progress import Progress

RECENT = 5  # reports in a running mean
FAR = 3.0  # times the best: a warning
LOST = 5.0  # times the best, and worse than guessing: nothing of such a validation is the best so far
WORSE_THAN_GUESSING = 2.0  # times log V: no need to know a best
HELP = "the run diverges: lower lr or gclip, or raise lr_warmup"


def is_far_above(loss: float, best: float) -> bool:
    """Whether a loss is many times the best; small ones may be, without harm."""
    return loss > FAR * best + 1 and best > 0


def watch_training(progress: Progress, loss: float) -> str:
    """Note the loss of a report; a warning when the running mean begins to be far above its lowest, else nothing."""
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


def is_lost(results: list[Metric], progress: Progress, n_words: int) -> bool:
    """Whether a validation's loss says that the model has forgotten all, whatever its other scores are."""
    loss = next((metric.score for metric in results if metric.name == "LOSS"), 0.0)
    best, guessing = progress.best.get("LOSS"), math.log(n_words)
    many_times = best is not None and loss > LOST * best.score and loss > guessing
    return many_times or loss > WORSE_THAN_GUESSING * guessing


def watch_validation(progress: Progress, n_words: int, lost: bool) -> str:
    """A warning about a validation that has been recorded, if the one before it gave none, else nothing."""
    losses, best = progress.scores.get("LOSS", []), progress.best.get("LOSS")
    if not losses:
        return ""
    if lost:
        return (
            f"Warning: the validation loss is {losses[-1]:.6g} per word where guessing has {math.log(n_words):.3g}; "
            f"{HELP}. Nothing of this validation counts as best"
        )
    if best is None or not is_far_above(losses[-1], best.score):
        return ""
    if losses[:-1] and is_far_above(losses[-2], best.score):
        return ""
    times = f"{losses[-1] / best.score:.1f} times its best, {best.score:.3g} at validation {best.validation}"
    return f"Warning: the validation loss is {losses[-1]:.3g}, {times}; the run may diverge"
