"""Figures: where points are drawn, and that nothing a name contains can harm."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from pysimt_sac.evaluation.report.charts import (
    Axis,
    Figure,
    Series,
    make_axis,
    number_label,
    round_step,
    save_figure,
    thin_out,
    tick_labels,
)


def test_places_on_a_linear_axis():
    axis = Axis(10, 20, 100, 0)
    assert [axis.place(value) for value in (10, 15, 20)] == [100, 50, 0]
    assert axis.ticks() == [10, 12, 14, 16, 18, 20]


def test_zero_has_a_place_on_a_logarithmic_axis():
    axis = Axis(0, 999, 0, 3, log=True)
    assert axis.place(0) == 0
    assert axis.place(9) == pytest.approx(1)
    assert axis.place(999) == pytest.approx(3)
    assert axis.ticks() == [0, 1, 10, 100]


def test_equal_values_still_have_an_axis():
    axis = make_axis([0.001, 0.001], 0, 1)
    assert axis.low < 0.001 < axis.high
    assert axis.place(0.001) == pytest.approx(0.5)
    assert make_axis([], 0, 1).place(0.5) == 0.5


@pytest.mark.parametrize(("step", "rounded"), [(0.9, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (0.03, 0.05), (400, 500)])
def test_steps_are_round(step, rounded):
    assert round_step(step) == pytest.approx(rounded)


@pytest.mark.parametrize(
    ("value", "label"), [(0, "0"), (0.00095, "0.00095"), (12.5, "12.5"), (1500, "1500"), (30000, "30k"), (2e6, "2M")]
)
def test_labels_are_short(value, label):
    assert number_label(value) == label


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([86.95, 87.0, 87.05], ["86.95", "87.00", "87.05"]),
        ([0, 0.0005, 0.001], ["0", "0.0005", "0.0010"]),
        ([9800, 10000, 10200], ["9.8k", "10.0k", "10.2k"]),
        ([-5, 0, 5], ["-5", "0", "5"]),
        ([1e6, 1.2e6], ["1.0M", "1.2M"]),
        ([7], ["7"]),
    ],
)
def test_tick_labels_have_the_decimals_that_tell_them_apart(ticks, labels):
    assert tick_labels(ticks) == labels


def test_thinning_keeps_ends_and_peaks():
    points = [(float(x), 1.0) for x in range(10_000)]
    points[5_001] = (5001.0, 99.0)
    points[7_003] = (7003.0, -99.0)
    kept = thin_out(points, 200)
    assert len(kept) < 250
    assert {points[0], points[-1], points[5_001], points[7_003]} <= set(kept)
    assert kept == sorted(kept)
    assert thin_out(points[:10]) == points[:10]


def test_svg_is_well_formed_and_escaped(tmp_path):
    nasty = '<script>alert("x")</script> & co'
    figure = Figure(
        nasty, nasty, nasty, (Series(nasty, ((0, 1), (1, math.nan), (2, 3)), 0), Series("one", ((1, 2),), 1))
    )
    save_figure(figure, tmp_path / "f.svg")
    for text in (figure.svg(), (tmp_path / "f.svg").read_text()):
        root = ElementTree.fromstring(text)
        names = {element.tag.split("}")[1] for element in root.iter()}
        assert "script" not in names
        assert {"polyline", "circle", "text"} <= names
    line = next(e for e in ElementTree.fromstring(figure.svg()).iter() if e.get("class") == "line s0")
    assert len(line.get("points").split()) == 2  # what is not a number is left out


def test_a_figure_is_written_as_an_svg_file_with_title_and_legend(tmp_path):
    figure = Figure("t", "x", "y", (Series("a", ((0, 0), (1, 100)), 0), Series("b", ((1, 5),), 1)), log_y=True)
    save_figure(figure, tmp_path / "f.svg")
    texts = [element.text for element in ElementTree.parse(tmp_path / "f.svg").getroot().iter()]
    assert {"t", "a", "b"} <= set(texts)


def test_a_band_reaches_from_the_lowest_to_the_highest_value():
    series = Series("a", ((0, 1), (10, 2)), 0, band=((0, 2), (1, 3)))
    root = ElementTree.fromstring(Figure("t", "x", "y", (series,)).svg())
    (band,) = [element for element in root.iter() if element.get("class") == "band s0"]
    corners = [tuple(map(float, corner.split(","))) for corner in band.get("points").split()]
    line = next(element for element in root.iter() if element.get("class") == "line s0")
    (x0, _), (x1, _) = (tuple(map(float, point.split(","))) for point in line.get("points").split())
    assert [x for x, _ in corners] == [x0, x1, x1, x0]
    heights = [y for _, y in corners]  # lowest 0 and 1, highest 3 and 2: larger values are further up
    assert heights[0] - heights[3] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert heights[0] > heights[3]
