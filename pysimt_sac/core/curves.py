"""A run's curves: a file of points, one JSON object in each line."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import parse, read_lines
from pysimt_sac.core.records import restore


@dataclass(frozen=True)
class Point:
    """A point of a curve; the value is None if it was not finite."""

    step: int
    name: str
    value: float | None

    def line(self) -> str:
        """Return the point as a line of a file."""
        return json.dumps(asdict(self)) + "\n"


def read_point(line: str, where: object) -> Point:
    """Return the point in a line. where: its place, for errors."""
    try:
        return restore(Point, parse("JSON", line, where))  # type: ignore[no-any-return]
    except TypeError as error:
        raise UserError(f"is not a point of a curve: {error}", where) from error


def read_points(path: Path) -> Iterator[Point]:
    """Yield the points of all curves, in the order in which they were written."""
    lines = read_lines(path, "file of curves")
    for number, line in enumerate(lines, 1):
        try:
            yield read_point(line, f"{path}, line {number}")
        except UserError:
            if number < len(lines):  # a running process may still be writing the last line
                raise
