"""Line charts, and forest plots of differences, as SVG.

The SVG has classes (`s0`, `s1`, ...) instead of colours, so that the page can style it for light and dark mode.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pysimt_sac.core.files import atomic_write

Point = tuple[float, float]

# A palette for colour-blind readers; each colour has its own dash pattern.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#7b5ea7", "#555555", "#a65628")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "", "6 2 1 2 1 2")
REFERENCE_STYLE = 6  # grey, never used for systems
SYSTEM_STYLES = tuple(style for style in range(len(COLOURS)) if style != REFERENCE_STYLE)
WIDTH, HEIGHT = 460.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 44.0
TICKS = 5
LABELS, ROW = 112.0, 19.0  # of a forest plot: the width of the test sets' names, the height of a row
LONGEST_LABEL = 17  # characters


@dataclass(frozen=True)
class Series:
    """A named line; `style` is an index into COLOURS and DASHES.

    band: of a mean, the lowest and the highest value at each point.
    """

    name: str
    points: tuple[Point, ...]
    style: int
    band: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A line chart. With `log_y`, the y axis is log(1 + y), which includes 0.

    guide: a value to compare with, drawn as a thin line; section, caption, note: its place and explanation on the page;
    file: its file name without suffix.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False
    guide: float | None = None
    section: str = ""
    caption: str = ""
    note: str = ""
    file: str = ""

    def svg(self) -> str:
        """Return the chart as an SVG element, to be styled by the page."""
        drawn = [finite(line.points) for line in self.series]
        x_axis = make_axis([0.0, *(x for points in drawn for x, _ in points)], LEFT, WIDTH - RIGHT)
        heights = [y for points in drawn for _, y in points] + [
            y for line in self.series for ends in line.band for y in ends
        ]
        guide = [self.guide] if self.guide is not None else []
        y_axis = make_axis([*heights, *guide], HEIGHT - BOTTOM, TOP, self.log_y, margin=0.04)
        label = html.escape(f"{self.title}: {', '.join(dict.fromkeys(line.name for line in self.series))}")
        parts = [
            f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
            f'aria-label="{label}" data-x="{html.escape(self.x_label)}">',
            *frame(self, x_axis, y_axis),
            *(line_across("guide", y_axis.place(value)) for value in guide),
        ]
        for line, points in zip(self.series, drawn, strict=True):
            if line.band:
                both = list(zip(points, line.band, strict=True))
                lower = [f"{x_axis.place(x):.1f},{y_axis.place(low):.1f}" for (x, _), (low, _) in both]
                upper = [f"{x_axis.place(x):.1f},{y_axis.place(high):.1f}" for (x, _), (_, high) in both]
                parts.append(tag("polygon", class_=f"band s{line.style}", points=" ".join([*lower, *reversed(upper)])))
            # For the tooltip: the values themselves, since coordinates are rounded.
            shown = {"data_name": line.name, "data_values": " ".join(f"{x:.7g},{y:.5g}" for x, y in points)}
            if len(points) == 1:
                (x, y), *_ = points
                parts.append(
                    tag("circle", class_=f"dot s{line.style}", cx=x_axis.place(x), cy=y_axis.place(y), r=4, **shown)
                )
            elif points:
                places = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in points)
                parts.append(tag("polyline", class_=f"line s{line.style}", points=places, **shown))
        return "".join([*parts, "</svg>"])

    def height(self) -> float:
        """Return the chart's height."""
        return HEIGHT

    def legend(self) -> dict[str, int]:
        """Return the names of the lines and their styles."""
        return {line.name: line.style for line in self.series}


def file_name(name: str) -> str:
    """Make a name safe as a file name."""
    return re.sub(r"[^\w-]+", "-", name)


def system_style(number: int) -> int:
    """Return the style of a system in all figures of a report."""
    return SYSTEM_STYLES[number % len(SYSTEM_STYLES)]


@dataclass(frozen=True)
class Axis:
    """Maps values to coordinates between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def scaled(self, value: float) -> float:
        """Return the value on the axis's scale."""
        return math.log1p(value) if self.log else value

    def place(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = self.scaled(self.low), self.scaled(self.high)
        return self.start + (self.scaled(value) - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values within the axis's range."""
        if self.log:
            powers = [0.0, *(10.0**power for power in range(0, 13))]
            return [value for value in powers if self.low <= value <= self.high]
        step = round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def labels(self) -> list[tuple[str, float]]:
        """Return the ticks as text with their coordinates."""
        ticks = self.ticks()
        texts = [number_label(tick) for tick in ticks] if self.log else tick_labels(ticks)
        return [(text, self.place(tick)) for text, tick in zip(texts, ticks, strict=True)]


def round_step(step: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not below `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def make_axis(values: Iterable[float], start: float, end: float, log: bool = False, margin: float = 0.0) -> Axis:
    """Make an axis that includes all values.

    margin: space at both ends, as a fraction of the range.
    """
    found = list(values)
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if log:
        low = 0.0
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        around = abs(high) / 10 or 1.0
        low, high = (low, high + around) if log else (low - around, high + around)
    elif not log:
        low, high = low - margin * (high - low), high + margin * (high - low)
    return Axis(low, high, start, end, log)


def finite(points: Iterable[Point]) -> list[Point]:
    """Drop points with NaN or infinity."""
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def number_label(value: float) -> str:
    """Format a number briefly: 0.001, 12.5, 30k."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Format numbers with enough decimals to distinguish them: 86.95, 87.00, 87.05."""
    step = min((abs(second - first) for first, second in pairwise(ticks)), default=0.0)
    largest = max(map(abs, ticks), default=0.0)
    if not step or step < 1e-6:
        return [number_label(value) for value in ticks]
    unit, sign = (1e6, "M") if largest >= 1e6 else (1e3, "k") if largest >= 1e4 else (1.0, "")
    decimals = max(0, -math.floor(math.log10(step / unit) + 1e-9))
    return [f"{value / unit:.{decimals}f}{sign}" if value else "0" for value in ticks]


def thin_out(points: Sequence[Point], most: int = 400) -> list[Point]:
    """Reduce to about `most` points: the lowest and highest of each interval."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    kept: list[Point] = [points[0]]
    for start in range(0, len(points), size):
        part = points[start : start + size]
        ends = sorted({min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])})
        kept += [point for point in ends if point != kept[-1]]
    return [*kept, points[-1]] if kept[-1] != points[-1] else kept


def tag(name: str, text: str = "", **attributes: object) -> str:
    """Return an escaped element; underscores in attribute names become hyphens, floats are rounded."""
    shown = {
        key.rstrip("_").replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else html.escape(str(value))
        for key, value in attributes.items()
    }
    opening = " ".join([name, *(f'{key}="{value}"' for key, value in shown.items())])
    return f"<{opening}>{html.escape(text)}</{name}>"


def line_across(css_class: str, place: float) -> str:
    """Return a horizontal line across the whole chart."""
    return tag("line", class_=css_class, x1=LEFT, x2=WIDTH - RIGHT, y1=place, y2=place)


def frame(figure: Figure, x_axis: Axis, y_axis: Axis) -> list[str]:
    """Return axes, ticks and labels."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for label, place in y_axis.labels():
        parts.append(line_across("grid", place))
        parts.append(tag("text", label, x=LEFT - 6, y=place + 4, text_anchor="end"))
    for label, place in x_axis.labels():
        parts.append(tag("line", class_="axis", x1=place, x2=place, y1=bottom, y2=bottom + 4))
        parts.append(tag("text", label, x=place, y=bottom + 17, text_anchor="middle"))
    parts.append(tag("polyline", class_="axis", points=f"{LEFT:g},{TOP:g} {LEFT:g},{bottom:g} {right:g},{bottom:g}"))
    parts.append(tag("text", figure.x_label, x=(LEFT + right) / 2, y=HEIGHT - 8, text_anchor="middle"))
    turned = f"translate(13 {(TOP + bottom) / 2:g}) rotate(-90)"
    parts.append(tag("text", figure.y_label, transform=turned, text_anchor="middle"))
    return parts


@dataclass(frozen=True)
class Effect:
    """A system's difference from the baseline on one test set, and its 95% intervals over sentences and seeds."""

    name: str
    style: int
    test_set: str
    value: float
    sentences: Point
    seeds: Point | None

    def describe(self) -> str:
        """Describe the effect in words, for a tooltip."""
        seeds = "" if self.seeds is None else f"; over seeds {self.seeds[0]:+.2f} to {self.seeds[1]:+.2f}"
        low, high = self.sentences
        return f"{self.name}, {self.test_set}: {self.value:+.2f}; 95% over sentences {low:+.2f} to {high:+.2f}{seeds}"


@dataclass(frozen=True)
class Forest:
    """A forest plot of one metric: a line for each system on each test set. What is better is on the right."""

    title: str
    series: tuple[Effect, ...]
    higher_is_better: bool
    file: str

    def svg(self) -> str:
        """Return the plot as an SVG element: a thin line over sentences, a thick one over seeds."""
        sign = 1 if self.higher_is_better else -1
        bottom, right = self.height() - BOTTOM, WIDTH - RIGHT
        ends = [end for effect in self.series for pair in (effect.sentences, effect.seeds or ()) for end in pair]
        axis = make_axis([0.0, *(sign * end for end in ends)], LABELS, right, margin=0.04)
        parts = [
            f'<svg class="forest" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {self.height():g}" '
            f'role="img" aria-label="{html.escape(self.title)}">'
        ]
        for tick, label in zip(axis.ticks(), tick_labels([sign * tick for tick in axis.ticks()]), strict=True):
            place = axis.place(tick)
            css_class = "axis" if abs(tick) < 1e-12 else "grid"
            parts.append(tag("line", class_=css_class, x1=place, x2=place, y1=TOP, y2=bottom))
            parts.append(tag("text", label, x=place, y=bottom + 16, text_anchor="middle"))
        parts.append(tag("text", "better →", x=right, y=bottom + 34, text_anchor="end"))
        for number, effect in enumerate(self.series):
            y = TOP + ROW * (number + 0.5)
            if number == 0 or effect.test_set != self.series[number - 1].test_set:
                name = effect.test_set
                label = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
                parts.append(tag("text", label, x=2, y=y + 4))
            parts.append(f"<g><title>{html.escape(effect.describe())}</title>")
            for css_class, pair in (("line", effect.sentences), ("line seeds", effect.seeds)):
                if pair:
                    x1, x2 = (axis.place(sign * end) for end in pair)
                    parts.append(tag("line", class_=f"{css_class} s{effect.style}", x1=x1, x2=x2, y1=y, y2=y))
            x = axis.place(sign * effect.value)
            parts.append(tag("circle", class_=f"dot s{effect.style}", cx=x, cy=y, r=4.5) + "</g>")
        return "".join([*parts, "</svg>"])

    def height(self) -> float:
        """Return the plot's height."""
        return TOP + ROW * len(self.series) + BOTTOM

    def legend(self) -> dict[str, int]:
        """Return the names of the systems and their styles."""
        return {effect.name: effect.style for effect in self.series}


def line_styles() -> str:
    """Return the CSS of all line styles."""
    rules = []
    for number, (colour, dash) in enumerate(zip(COLOURS, DASHES, strict=True)):
        rules.append(f".s{number}{{stroke:{colour}{f';stroke-dasharray:{dash}' if dash else ''}}}")
        rules.append(f".dot.s{number},.band.s{number}{{fill:{colour}}}")
    return "\n".join(rules)


STANDALONE = (
    "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.line,.axis{fill:none;stroke-width:1.8}"
    ".axis{stroke:#444;stroke-width:1}.grid{stroke:#ddd}.guide{stroke:#999;stroke-dasharray:1 2}"
    ".band{stroke:none;opacity:.18}.line.seeds{stroke-width:5;stroke-dasharray:none}"
)


def save_figure(figure: Figure | Forest, path: Path) -> None:
    """Write a figure as an SVG file with title, legend and styles."""
    height, names, row = figure.height(), figure.legend(), 18.0
    total = height + 26 + row * len(names) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {total:g}" width="{WIDTH * 1.5:g}">',
        f"<style>{STANDALONE}{line_styles()}</style>",
        tag("rect", width=WIDTH, height=total, fill="white"),
        tag("text", figure.title, class_="title", x=8, y=17),
        f'<svg y="26" width="{WIDTH:g}" height="{height:g}">{figure.svg()}</svg>',
    ]
    for number, (name, style) in enumerate(names.items()):
        place = 26 + height + row * (number + 0.5)
        parts.append(tag("line", class_=f"line s{style}", x1=LEFT, x2=LEFT + 30, y1=place, y2=place))
        parts.append(tag("text", name, x=LEFT + 38, y=place + 4))
    with atomic_write(path) as stream:
        stream.write("".join([*parts, "</svg>\n"]))
