"""The verdict of a report: a sentence for each system, and forest plots of the differences from the baseline."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from pysimt_sac.evaluation.comparison import Comparison, MetricComparison, SystemScore
from pysimt_sac.evaluation.report.figures import (
    BOTTOM,
    RIGHT,
    TOP,
    WIDTH,
    Point,
    file_name,
    make_axis,
    system_style,
    tag,
    tick_labels,
)
from pysimt_sac.evaluation.significance import SIGNIFICANT

LABELS, ROW = 112.0, 19.0  # width of the test sets' names, height of a row


def verdicts(comparison: Comparison) -> list[str]:
    """Return a sentence for each system but the baseline, by the first metric."""
    part = comparison.metrics[0]
    return [verdict(part, system) for system in part.systems[1:]]


def verdict(part: MetricComparison, system: SystemScore) -> str:
    """Say whether a system is better than the baseline, as far as seeds or sentences show it."""
    name, first, found = system.system, part.systems[0], system.against_baseline
    assert found is not None
    if found.identical:
        return f"{name} translates exactly like {first.system}."
    is_better = (found.difference > 0) == part.higher_is_better
    amount = f"{'better' if is_better else 'worse'} than {first.system} by {abs(found.difference):.2f} {part.metric}"
    sign = 1 if found.difference > 0 else -1
    over = found.seeds or found.interval
    low, high = sorted((sign * over.low, sign * over.high))
    seeds = f"95% over {found.seeds.seeds} seeds" if found.seeds else "95% over test sentences"
    where = f"{seeds} {low:.2f} to {high:.2f}"
    if low <= 0:
        gain = f"{found.difference:+.2f} {part.metric}, {seeds} {over.low:+.2f} to {over.high:+.2f}"
        runs = (
            f" (these runs do: p {found.p:.2g} over test sentences)" if found.seeds and found.p <= SIGNIFICANT else ""
        )
        return f"{name} is not shown to differ from {first.system}: {gain}{runs}."
    if found.seeds:
        return f"{name} is {amount}, {where}."
    single = 1 in (len(system.runs), len(first.runs))
    why = "one run does not show what another seed would give" if single else "the runs are not paired by seed"
    return f"In these runs {name} is {amount}, {where}; {why}."


def forests(comparisons: Sequence[Comparison], names: Sequence[str]) -> list["Forest"]:
    """Return a plot for each metric, of all systems on all test sets. names: of the report's systems, in order."""
    plots: dict[str, list[Effect]] = {}
    directions = {}
    for comparison in comparisons:
        for part in comparison.metrics:
            directions[part.metric] = part.higher_is_better
            for system in part.systems:
                found = system.against_baseline
                if found and not found.identical and part.metric != "length":
                    seeds = (found.seeds.low, found.seeds.high) if found.seeds else None
                    interval = (found.interval.low, found.interval.high)
                    where = (system.system, system_style(names.index(system.system)), comparison.test_set)
                    plots.setdefault(part.metric, []).append(Effect(*where, found.difference, interval, seeds))
    return [
        Forest(f"Difference in {name}", tuple(effects), directions[name], f"differences-{file_name(name)}")
        for name, effects in plots.items()
    ]


@dataclass(frozen=True)
class Effect:
    """A system's difference from the baseline on one test set, and its 95% intervals over sentences and seeds."""

    name: str
    style: int
    test_set: str
    value: float
    sentences: Point
    seeds: Point | None


@dataclass(frozen=True)
class Forest:
    """A forest plot of one metric: a line for each system on each test set. What is better is on the right."""

    title: str
    series: tuple[Effect, ...]
    higher_is_better: bool
    file: str

    def svg(self) -> str:
        """Return the plot as an SVG element: a thin line over sentences, a thick one over seeds."""
        return forest_svg(self)

    def height(self) -> float:
        """Return the plot's height."""
        return TOP + ROW * len(self.series) + BOTTOM

    def legend(self) -> dict[str, int]:
        """Return the names of the systems and their styles."""
        return {effect.name: effect.style for effect in self.series}


def forest_svg(figure: Forest) -> str:
    """Return a forest plot as an SVG element."""
    sign = 1 if figure.higher_is_better else -1
    bottom, right = figure.height() - BOTTOM, WIDTH - RIGHT
    ends = [end for effect in figure.series for pair in (effect.sentences, effect.seeds or ()) for end in pair]
    axis = make_axis([0.0, *(sign * end for end in ends)], LABELS, right, margin=0.04)
    parts = [
        f'<svg class="forest" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {figure.height():g}" '
        f'role="img" aria-label="{html.escape(figure.title)}">'
    ]
    for tick, label in zip(axis.ticks(), tick_labels([sign * tick for tick in axis.ticks()]), strict=True):
        place = axis.place(tick)
        css_class = "axis" if abs(tick) < 1e-12 else "grid"
        parts.append(tag("line", class_=css_class, x1=place, x2=place, y1=TOP, y2=bottom))
        parts.append(tag("text", label, x=place, y=bottom + 16, text_anchor="middle"))
    parts.append(tag("text", "better →", x=right, y=bottom + 34, text_anchor="end"))
    for number, effect in enumerate(figure.series):
        y = TOP + ROW * (number + 0.5)
        if number == 0 or effect.test_set != figure.series[number - 1].test_set:
            parts.append(tag("text", shorten(effect.test_set), x=2, y=y + 4))
        parts.append(f"<g><title>{html.escape(describe(effect))}</title>")
        for css_class, pair in (("line", effect.sentences), ("line seeds", effect.seeds)):
            if pair:
                x1, x2 = (axis.place(sign * end) for end in pair)
                parts.append(tag("line", class_=f"{css_class} s{effect.style}", x1=x1, x2=x2, y1=y, y2=y))
        x = axis.place(sign * effect.value)
        parts.append(tag("circle", class_=f"dot s{effect.style}", cx=x, cy=y, r=4.5) + "</g>")
    return "".join([*parts, "</svg>"])


def shorten(name: str, most: int = 17) -> str:
    """Cut a name that does not fit beside a plot."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def describe(effect: Effect) -> str:
    """Describe an effect in words, for a tooltip."""
    seeds = "" if effect.seeds is None else f"; over seeds {effect.seeds[0]:+.2f} to {effect.seeds[1]:+.2f}"
    low, high = effect.sentences
    return f"{effect.name}, {effect.test_set}: {effect.value:+.2f}; 95% over sentences {low:+.2f} to {high:+.2f}{seeds}"
