"""Figures as files: SVG, without dependencies, and PNG with matplotlib."""

import math
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write
from pysimt_sac.evaluation.report.figures import (
    COLOURS,
    DASHES,
    HEIGHT,
    LEFT,
    WIDTH,
    Figure,
    finite,
    line_styles,
    make_axis,
    number_label,
    svg,
    tag,
)


def standalone_svg(figure: Figure) -> str:
    """Return an SVG file with title, legend and styles."""
    style = (
        "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.line,.axis{fill:none;stroke-width:1.8}"
        ".axis{stroke:#444;stroke-width:1}.grid{stroke:#ddd}.guide{stroke:#999;stroke-dasharray:1 2}" + line_styles()
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
    """Write a figure as .svg or .png, depending on the file's suffix."""
    match path.suffix.lower():
        case ".svg":
            with atomic_write(path) as stream:
                stream.write(standalone_svg(figure))
        case ".png":
            save_png(figure, path)
        case _:
            raise UserError("figures are written as .svg or .png", path, "choose one of these suffixes")


def save_png(figure: Figure, path: Path) -> None:
    """Write a PNG with matplotlib."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        hint = "pip install 'pysimt_sac[figures]', or write an .svg, which does not need it"
        raise UserError("a PNG needs matplotlib, which is not installed", path, hint) from error
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
    if figure.guide is not None:
        axes.axhline(figure.guide, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, title=figure.title)
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    with atomic_write(path, "wb") as stream:
        canvas.savefig(stream, format="png", dpi=150)
