"""Figures of training curves: validation, training, and the algorithms' diagnostics.

Curves that cannot be compared have separate figures: fine-tuning starts near its final level, training from random
weights far below it, and a reinforcement loss is not a likelihood. `assets/curves.toml` explains the curves.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pysimt_sac.core.files import read_toml
from pysimt_sac.evaluation.report.charts import Figure, Point, Series, file_name, system_style, thin_out
from pysimt_sac.evaluation.report.runs import ReportSystem, RunFolder

SECTIONS = ("validation", "training", "diagnostics", "more")  # those of the last one are collapsed
GRADIENT_RATIO = "gradient_ratio"  # computed from the norms of both terms
REWARD = "rl_reward_"
LOSSES = {"train_LOSS", "epoch_LOSS"}
REINFORCEMENT = "reinforcement"
NOTE_ON_REINFORCED = "each algorithm's own objective: compare a line only with itself"


@dataclass(frozen=True)
class Curve:
    """What the page says about a curve, a value to compare it with, and its section."""

    title: str = ""
    note: str = ""
    guide: float | None = None
    section: str = "more"


CURVES = {
    name: Curve(**about)
    for name, about in read_toml(Path(__file__).parent / "assets/curves.toml", "list of curves").items()
}


def about(name: str) -> Curve:
    """Return what the page says about a curve; one that is not listed has a title only."""
    if name.startswith("val_"):
        return Curve(f"Validation {name.removeprefix('val_').replace('LOSS', 'loss')}", section="validation")
    if name.startswith(REWARD):
        return replace(CURVES[REWARD], title=f"Reward: {name.removeprefix(REWARD).replace('_', ' ')}")
    found, plain = CURVES.get(name, Curve()), name.removeprefix("rl_").replace("_", " ")
    return replace(found, title=found.title or plain[:1].upper() + plain[1:])


def place_on_page(name: str) -> tuple[int, int]:
    """Return the section of a curve and its place in the list; those that are not listed come last."""
    listed = [*CURVES, name].index(REWARD if name.startswith(REWARD) else name)
    return SECTIONS.index(about(name).section), listed


def curve_figures(systems: Sequence[ReportSystem]) -> list[Figure]:
    """Return the figures in the order of the page: validation, training, diagnostics, and the rest, collapsed."""
    names = dict.fromkeys(name for system in systems for run in system.runs for name in all_curves(run))
    return [figure for name in sorted(names, key=place_on_page) for figure in name_figures(name, systems)]


def all_curves(run: RunFolder) -> dict[str, tuple[Point, ...]]:
    """Return a run's curves, and the ratio of the gradient norms of both terms."""
    reinforcement, likelihood = (dict(run.curves.get(f"rl_gradient_{term}", ())) for term in ("rl", "mle"))
    common = sorted(step for step in set(reinforcement) & set(likelihood) if likelihood[step] > 0)
    ratio = tuple((step, reinforcement[step] / likelihood[step]) for step in common)
    return {**run.curves, GRADIENT_RATIO: ratio} if ratio else run.curves


def name_figures(name: str, systems: Sequence[ReportSystem]) -> list[Figure]:
    """Return the figures of one curve: one for each kind of run that must not share an axis."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for number, system in enumerate(systems):
        kinds: dict[tuple[str, str], list[tuple[Point, ...]]] = {}
        for run in system.runs:
            if name in (curves := all_curves(run)):
                kinds.setdefault(kind_of_run(run, name), []).append(curves[name])
        for kind, runs in kinds.items():
            groups.setdefault(kind, []).extend(series_of(system.name, system_style(number), runs))
    starts, losses = ({kind[place] for kind in groups} for place in range(2))
    figures, curve = [], about(name)
    for (start, loss), lines in groups.items():
        apart = ", ".join([start] * (len(starts) > 1) + [loss] * (len(losses) > 1))
        title = curve.title + (f": {apart}" if apart else "")
        figures.append(
            Figure(
                title=title,
                x_label="updates",
                y_label="",
                series=tuple(lines),
                guide=curve.guide,
                section=curve.section,
                caption=title,
                note=NOTE_ON_REINFORCED if loss == REINFORCEMENT else curve.note,
                file=f"curve-{file_name(f'{name} {apart}'.strip())}",
            )
        )
    return figures


def series_of(name: str, style: int, lines: Sequence[tuple[Point, ...]]) -> list[Series]:
    """Return the mean of a system's runs and their range at the updates that all have; each run if there are none."""
    values = [dict(points) for points in lines]
    common = sorted(set(values[0]).intersection(*values))
    if len(lines) == 1 or not common:
        return [Series(name, tuple(thin_out(points)), style) for points in lines]
    mean = thin_out([(step, statistics.fmean(own[step] for own in values)) for step in common])
    band = tuple((min(own[step] for own in values), max(own[step] for own in values)) for step, _ in mean)
    return [Series(name, tuple(mean), style, band)]


def kind_of_run(run: RunFolder, name: str) -> tuple[str, str]:
    """Return the kind of a run for a curve: where it started and, for losses, the kind of its loss."""
    start = "fine-tuning" if run.fine_tuned else "from random weights"
    loss = REINFORCEMENT if run.reinforced else "likelihood"
    return start, loss if name in LOSSES else ""
