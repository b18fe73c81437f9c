"""`pysimt-sac plot`: draw the curves of runs, finished or not, in the terminal or as SVG files."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.evaluation.report.charts import Figure, Point, Series, make_axis, save_figure, system_style
from pysimt_sac.evaluation.report.curves import about
from pysimt_sac.evaluation.report.runs import name_runs, read_curves

EPILOG = """Without --curves, the validation curves. A run that is still training is drawn as far as it has come; repeat
the command to see more, e.g. with `watch`."""
MARKS, COLOURS = "ox+*#%@&", (34, 31, 32, 35, 33, 36)
HEIGHT, MARGIN = 14, 10
CURVES = ".scalars.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="a run's folder")
    parser.add_argument(
        "--curves", metavar="NAME,...", help="curves to draw, e.g. val_BLEU,rl_reward; `all`: all of them"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="SVG", help="write NAME-CURVE.svg instead, for each curve")


def run(args: argparse.Namespace) -> int:
    """Draw one figure per curve, with a line for each run."""
    runs = {name: newest_curves(folder) for name, folder in name_runs(args.runs)}
    names = chosen_curves(args.curves, list(dict.fromkeys(curve for curves in runs.values() for curve in curves)))
    for name in names:
        lines = [
            Series(system, curves[name], system_style(number))
            for number, (system, curves) in enumerate(runs.items())
            if name in curves
        ]
        figure = Figure(about(name).title, "updates", "", tuple(lines))
        if args.output:
            place = args.output.with_name(f"{args.output.stem}-{name}.svg")
            save_figure(figure, place)
            print(f"wrote {place}")
        else:
            print(text_chart(figure, shutil.get_terminal_size().columns, has_colours()), end="\n\n")
    return 0


def newest_curves(folder: Path) -> dict[str, tuple[Point, ...]]:
    """Return the curves of a folder's last run by name."""
    files = sorted(folder.glob(f"*{CURVES}"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise UserError("has no curves", folder, "give the folder of a run that has begun: SAVE_PATH/CONFIG[-SUFFIX]")
    curves = read_curves(folder, files[-1].name.removesuffix(CURVES))
    if not curves:
        raise UserError("has no point of a curve yet", folder, "try again after its first lines of metrics")
    return curves


def chosen_curves(given: str | None, known: list[str]) -> list[str]:
    """Return the names of the curves to draw."""
    if given is None:
        return [name for name in known if name.startswith("val_")] or known
    names = known if given == "all" else [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UserError(f"no run has a curve {name!r}", "--curves", did_you_mean(name, known))
    return names


def has_colours() -> bool:
    """Return whether standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def text_chart(figure: Figure, columns: int, coloured: bool) -> str:
    """Draw a line chart in characters; each line has its own mark, and every point is joined to the next."""
    width = max(20, columns - MARGIN - 2)
    points = [point for line in figure.series for point in line.points]
    x_axis = make_axis([0.0, *(x for x, _ in points)], 0, width - 1)
    y_axis = make_axis([y for _, y in points], HEIGHT - 1, 0)
    rows = [[" "] * width for _ in range(HEIGHT)]
    for number, line in enumerate(figure.series):
        mark = MARKS[number % len(MARKS)]
        mark = f"\033[{COLOURS[number % len(COLOURS)]}m{mark}\033[0m" if coloured else mark
        for (x, y), (next_x, next_y) in zip(line.points, [*line.points[1:], line.points[-1]], strict=True):
            first, last = round(x_axis.place(x)), round(x_axis.place(next_x))
            for column in range(first, last + 1):
                part = (column - first) / max(1, last - first)
                rows[round(y_axis.place(y + part * (next_y - y)))][column] = mark
    labels = {round(place): text for text, place in y_axis.labels()}
    scale = [" "] * width
    for text, place in x_axis.labels():
        start = min(round(place), width - len(text))
        scale[start : start + len(text)] = text
    legend = "   ".join(f"{MARKS[n % len(MARKS)]} {line.name}" for n, line in enumerate(figure.series))
    drawn = [f"{labels.get(n, ''):>{MARGIN}} |{''.join(row)}".rstrip() for n, row in enumerate(rows)]
    axis = [f"{'':{MARGIN}} +{'-' * width}", f"{'':{MARGIN}}  {''.join(scale)}".rstrip()]
    return "\n".join([f"{figure.title}   {legend}", *drawn, *axis])
