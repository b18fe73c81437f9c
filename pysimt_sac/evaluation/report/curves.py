"""Figures of training curves: validation, training, and the algorithms' diagnostics.

Curves that cannot be compared have separate figures: fine-tuning starts near its final level, training from random
weights far below it, and a reinforcement loss is not a likelihood.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pysimt_sac.evaluation.report.curve_notes import DIAGNOSTICS, GRADIENT_RATIO, meaning
from pysimt_sac.evaluation.report.figures import Figure, NamedFigure, Point, Series, file_name, system_style, thin_out
from pysimt_sac.evaluation.report.input import ReportSystem
from pysimt_sac.evaluation.report.run_folder import RunFolder

TITLES = {
    "train_LOSS": "Training loss",
    "epoch_LOSS": "Training loss, mean of each epoch",
    "gradient_norm": "Gradient norm",
    "lr": "Learning rate",
}
LOSSES = {"train_LOSS", "epoch_LOSS"}
SHOWN_TRAINING = {"train_LOSS"}
MEANING_OF_REINFORCED = "each algorithm's own objective: compare a line only with itself"


@dataclass(frozen=True)
class Line:
    """A curve of one run; the number of its system determines its style."""

    number: int
    system: str
    run: RunFolder
    points: tuple[Point, ...]


def curve_figures(systems: Sequence[ReportSystem]) -> list[NamedFigure]:
    """Return the figures in the order of the page: validation, training, diagnostics, and the rest, collapsed."""
    names = dict.fromkeys(name for system in systems for run in system.runs for name in all_curves(run))
    validation = [name for name in names if name.startswith("val_")]
    training = [name for name in TITLES if name in names]
    shown = [name for name in DIAGNOSTICS if name in names]
    rest = [name for name in names if name not in {*validation, *training, *shown}]
    sections = (
        ("validation", validation),
        ("training", [name for name in training if name in SHOWN_TRAINING]),
        ("diagnostics", shown),
        ("more", [*(name for name in training if name not in SHOWN_TRAINING), *rest]),
    )
    return [
        figure for section, members in sections for name in members for figure in name_figures(section, name, systems)
    ]


def all_curves(run: RunFolder) -> dict[str, tuple[Point, ...]]:
    """Return a run's curves, and the ratio of the gradient norms of both terms."""
    reinforcement, likelihood = (dict(run.curves.get(f"rl_gradient_{term}", ())) for term in ("rl", "mle"))
    common = sorted(step for step in set(reinforcement) & set(likelihood) if likelihood[step] > 0)
    ratio = tuple((step, reinforcement[step] / likelihood[step]) for step in common)
    return {**run.curves, GRADIENT_RATIO: ratio} if ratio else run.curves


def name_figures(section: str, name: str, systems: Sequence[ReportSystem]) -> list[NamedFigure]:
    """Return the figures of one curve: one for each kind of run that must not share an axis."""
    lines = [
        Line(number, system.name, run, curves[name])
        for number, system in enumerate(systems)
        for run in system.runs
        if name in (curves := all_curves(run))
    ]
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault(kind_of_run(line.run, name), []).append(line)
    starts, losses = ({kind[place] for kind in groups} for place in range(2))
    figures = []
    for (start, loss), own in groups.items():
        apart = [start] * (len(starts) > 1) + [loss] * (len(losses) > 1)
        figures.append(curve_figure(section, name, own, ", ".join(apart)))
    return figures


def kind_of_run(run: RunFolder, name: str) -> tuple[str, str]:
    """Return the kind of a run for a curve: where it started and, for losses, the kind of its loss."""
    start = "fine-tuning" if run.fine_tuned else "from random weights"
    loss = "reinforcement" if run.reinforced else "likelihood"
    return start, loss if name in LOSSES else ""


def curve_figure(section: str, name: str, lines: Sequence[Line], apart: str) -> NamedFigure:
    """Make a figure with a line for each run; runs of a system share a style."""
    title = curve_title(name) + (f": {apart}" if apart else "")
    known = DIAGNOSTICS.get(name)
    note = known.note if known else meaning(name)
    if name in LOSSES and any(line.run.reinforced for line in lines):
        note = MEANING_OF_REINFORCED
    figure = Figure(title, "updates", "", tuple(curve_series(lines)), guide=known.guide if known else None)
    return NamedFigure(section, f"curve-{file_name(f'{name} {apart}'.strip())}", figure, title, note)


def curve_title(name: str) -> str:
    """Return a curve's title."""
    if name in DIAGNOSTICS:
        return DIAGNOSTICS[name].title
    if name in TITLES:
        return TITLES[name]
    if name.startswith("val_"):
        return f"Validation {name.removeprefix('val_').replace('LOSS', 'loss')}"
    plain = name.removeprefix("rl_").removeprefix("train_").replace("_", " ")
    return plain[:1].upper() + plain[1:]


def curve_series(lines: Iterable[Line]) -> list[Series]:
    """Convert lines to series, thinned out for drawing."""
    return [Series(line.system, tuple(thin_out(line.points)), system_style(line.number)) for line in lines]
