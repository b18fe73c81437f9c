"""Line charts: SVG, which needs nothing, and PNG by matplotlib.

The SVG has classes (`s0`, `s1`, ...) instead of colours, so that the page can style it for light and dark mode.
`standalone_svg` includes the styles.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.errors import UserError
from pysimt_sac.files import atomic_write

Point = tuple[float, float]

# A palette for colour-blind readers; each colour has its own dash pattern.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#7b5ea7", "#555555", "#a65628")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "", "6 2 1 2 1 2")
STYLES = len(COLOURS)
REFERENCE_STYLE = 6  # grey, never used for systems
SYSTEM_STYLES = tuple(style for style in range(STYLES) if style != REFERENCE_STYLE)
WIDTH, HEIGHT = 460.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 44.0
TICKS = 5


@dataclass(frozen=True)
class Series:
    """A named line; `style` is an index into COLOURS and DASHES."""

    name: str
    points: tuple[Point, ...]
    style: int | None = None


@dataclass(frozen=True)
class Figure:
    """Lines in one chart. With `log_y`, the y axis is log(1 + y), which includes 0."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False

    def style_of(self, number: int) -> int:
        """The style of a line, by default its number."""
        style = self.series[number].style
        return (number if style is None else style) % STYLES


def system_style(number: int) -> int:
    """The style of a system in all figures of a report."""
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
        """The value on the axis's scale."""
        return math.log1p(value) if self.log else value

    def place(self, value: float) -> float:
        """The coordinate of a value."""
        low, high = self.scaled(self.low), self.scaled(self.high)
        return self.start + (self.scaled(value) - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values within the axis."""
        if self.log:
            powers = [0.0, *(10.0**power for power in range(0, 13))]
            return [value for value in powers if self.low <= value <= self.high]
        step = round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def round_step(step: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def make_axis(values: Iterable[float], start: float, end: float, log: bool = False) -> Axis:
    """An axis that includes all values."""
    found = list(values)
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if log:
        low = 0.0
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = abs(high) / 10 or 1.0
        low, high = (low, high + margin) if log else (low - margin, high + margin)
    return Axis(low, high, start, end, log)


def finite(points: Iterable[Point]) -> list[Point]:
    """Points without NaN and infinities."""
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def number_label(value: float) -> str:
    """A short number: 0.001, 12.5, 30k."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def thin_out(points: Sequence[Point], most: int = 400) -> list[Point]:
    """Reduce to about `most` points: the lowest and the highest of each interval."""
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
    """An escaped element; underscores in attribute names become hyphens, numbers are rounded."""
    shown = {
        key.rstrip("_").replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else html.escape(str(value))
        for key, value in attributes.items()
    }
    opening = " ".join([name, *(f'{key}="{value}"' for key, value in shown.items())])
    return f"<{opening}>{html.escape(text)}</{name}>"


def svg(figure: Figure) -> str:
    """The figure as an SVG element, to be styled by the page."""
    drawn = [(figure.style_of(number), finite(line.points)) for number, line in enumerate(figure.series)]
    x_axis = make_axis((x for _, points in drawn for x, _ in points), LEFT, WIDTH - RIGHT)
    y_axis = make_axis((y for _, points in drawn for _, y in points), HEIGHT - BOTTOM, TOP, figure.log_y)
    label = html.escape(f"{figure.title}: {', '.join(dict.fromkeys(line.name for line in figure.series))}")
    parts = [
        f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{label}">',
        *frame(figure, x_axis, y_axis),
    ]
    for style, points in drawn:
        if len(points) == 1:
            (x, y), *_ = points
            parts.append(tag("circle", class_=f"dot s{style}", cx=x_axis.place(x), cy=y_axis.place(y), r=4))
        elif points:
            places = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in points)
            parts.append(tag("polyline", class_=f"line s{style}", points=places))
    return "".join([*parts, "</svg>"])


def frame(figure: Figure, x_axis: Axis, y_axis: Axis) -> list[str]:
    """Axes, ticks and labels."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in y_axis.ticks():
        place = y_axis.place(value)
        parts.append(tag("line", class_="grid", x1=LEFT, x2=right, y1=place, y2=place))
        parts.append(tag("text", number_label(value), x=LEFT - 6, y=place + 4, text_anchor="end"))
    for value in x_axis.ticks():
        place = x_axis.place(value)
        parts.append(tag("line", class_="axis", x1=place, x2=place, y1=bottom, y2=bottom + 4))
        parts.append(tag("text", number_label(value), x=place, y=bottom + 17, text_anchor="middle"))
    parts.append(tag("polyline", class_="axis", points=f"{LEFT:g},{TOP:g} {LEFT:g},{bottom:g} {right:g},{bottom:g}"))
    parts.append(tag("text", figure.x_label, x=(LEFT + right) / 2, y=HEIGHT - 8, text_anchor="middle"))
    turned = f"translate(13 {(TOP + bottom) / 2:g}) rotate(-90)"
    parts.append(tag("text", figure.y_label, transform=turned, text_anchor="middle"))
    return parts


def line_styles() -> str:
    """CSS of all line styles."""
    rules = []
    for number, (colour, dash) in enumerate(zip(COLOURS, DASHES, strict=True)):
        rules.append(f".s{number}{{stroke:{colour}{f';stroke-dasharray:{dash}' if dash else ''}}}")
        rules.append(f".dot.s{number}{{fill:{colour}}}")
    return "\n".join(rules)


def standalone_svg(figure: Figure) -> str:
    """An SVG file with title, legend and styles."""
    style = (
        "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.line,.axis{fill:none;stroke-width:1.8}"
        ".axis{stroke:#444;stroke-width:1}.grid{stroke:#ddd}" + line_styles()
    )
    row = 18.0
    legend_height = row * len(figure.series) + 8
    total = HEIGHT + 26 + legend_height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {total:g}" width="{WIDTH * 1.5:g}">',
        f"<style>{style}</style>",
        tag("rect", width=WIDTH, height=total, fill="white"),
        tag("text", figure.title, class_="title", x=8, y=17),
        f'<svg y="26" width="{WIDTH:g}" height="{HEIGHT:g}">{svg(figure)}</svg>',
    ]
    for number, line in enumerate(figure.series):
        place = 26 + HEIGHT + row * (number + 0.5)
        look = f"line s{figure.style_of(number)}"
        parts.append(tag("line", class_=look, x1=LEFT, x2=LEFT + 30, y1=place, y2=place))
        parts.append(tag("text", line.name, x=LEFT + 38, y=place + 4))
    return "".join([*parts, "</svg>\n"])


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as .svg or .png, by the file's ending."""
    match path.suffix.lower():
        case ".svg":
            with atomic_write(path) as stream:
                stream.write(standalone_svg(figure))
        case ".png":
            save_png(figure, path)
        case _:
            raise UserError("figures are written as .svg or .png", path, "choose one of these endings")


def save_png(figure: Figure, path: Path) -> None:
    """Draw with matplotlib."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        todo = "pip install 'pysimt_sac[figures]', or write an .svg, which needs nothing"
        raise UserError("a PNG needs matplotlib, which is not installed", path, todo) from error
    canvas = Canvas(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    for number, line in enumerate(figure.series):
        style, points = figure.style_of(number), finite(line.points)
        dash = tuple(map(float, DASHES[style].split()))
        axes.plot(
            [x for x, _ in points],
            [math.log1p(y) if figure.log_y else y for _, y in points],
            color=COLOURS[style],
            linestyle=(0, dash) if dash else "-",
            marker="o" if len(points) == 1 else "",
            label=line.name,
        )
    if figure.log_y:
        ticks = make_axis((y for line in figure.series for _, y in finite(line.points)), 0, 1, log=True).ticks()
        axes.set_yticks([math.log1p(tick) for tick in ticks], [number_label(tick) for tick in ticks])
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, title=figure.title)
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    with atomic_write(path, "wb") as stream:
        canvas.savefig(stream, format="png", dpi=150)
