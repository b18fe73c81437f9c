"""`pysimt-sac plot`: curves of runs in the terminal, or as SVG files."""

import json

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.commands.plot import text_chart
from pysimt_sac.evaluation.report.charts import Figure, Series


@pytest.fixture
def runs(tmp_path):
    """Two runs with curves and nothing else, as while they train; a process is writing the second's last line."""
    for name, scores in (("a", [10, 20, 30]), ("b", [10, 40])):
        (tmp_path / name).mkdir()
        points = [{"step": 50 * n, "name": "val_BLEU", "value": score} for n, score in enumerate(scores)]
        points.append({"step": 100, "name": "lr", "value": 0.1})
        text = "".join(json.dumps(point) + "\n" for point in points) + '{"step": 1' * (name == "b")
        (tmp_path / name / f"mle-{name}.scalars.jsonl").write_text(text)
    return [str(tmp_path / name) for name in "ab"]


@pytest.mark.parametrize("columns", [80, 120])
def test_validation_curves_are_drawn_as_wide_as_the_terminal(runs, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main_sac(["plot", *runs]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Validation BLEU   o a   x b"
    assert columns - 12 <= max(map(len, shown)) <= columns
    assert not any("Learning rate" in line or "\033" in line for line in shown)
    assert [line.split()[-1] for line in shown if line.strip().startswith("0 ")] == ["100"]


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right():
    chart = text_chart(Figure("t", "updates", "", (Series("a", ((0, 0), (10, 1)), 0),)), 40, coloured=False)
    rows = [line.partition("|")[2] for line in chart.splitlines() if "|" in line]
    places = [(row.index("o"), row.rindex("o")) for row in rows]
    assert places[0][1] == 27
    assert places[-1][0] == 0
    assert [first for first, _ in places] == sorted((first for first, _ in places), reverse=True)


def test_chosen_curves_become_files(runs, tmp_path, capsys):
    assert main_sac(["plot", f"mine={runs[0]}", "--curves", "lr,val_BLEU", "-o", str(tmp_path / "curves.svg")]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["curves-lr.svg", "curves-val_BLEU.svg"]
    assert ">mine</text>" in (tmp_path / "curves-lr.svg").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--curves", "val_BLUE"], "did you mean 'val_BLEU'"), (["nowhere"], "nowhere: has no curves")],
)
def test_what_is_not_there_is_an_error(runs, capsys, words, message):
    assert main_sac(["plot", runs[0], *words]) == 2
    assert message in capsys.readouterr().err
