"""Latency of simultaneous translation, by hand and by pysimt's own scorers."""

import json

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.latency import read_latency
from tests.hosts.pysimt.hosts import needs_pysimt, run_python

RECORDS = ["0 0 1 0 1 0 1 1", "0 0 0 1 1 1 1", "", "R W R W W"]
BY_HAND = {  # of each sentence: AP, AL, DAL; the last: |x| = 2, |y| = 3, g = 1 2 2
    "0 0 1 0 1 0 1 1": (13 / 16, 2, 2),
    "0 0 0 1 1 1 1": (1, 3, 3),
    "R W R W W": (5 / 6, (1 + 4 / 3) / 2, (1 + 4 / 3 + 4 / 3) / 3),
}
ORACLE = """
import json, sys
from pysimt.metrics.simnmt import AVLScorer, AVPScorer
lines = sys.argv[1:]
print(json.dumps([scorer(add_trg_eos=False).compute(lines).score for scorer in (AVPScorer, AVLScorer)]))
"""


def write(folder, lines):
    path = folder / "a.test.wait3.acts"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("line", BY_HAND)
def test_latencies_are_those_computed_by_hand(tmp_path, line):
    assert tuple(vars(read_latency(write(tmp_path, [line]))).values()) == pytest.approx(BY_HAND[line])


@needs_pysimt
def test_proportion_and_lagging_are_pysimts(tmp_path):
    expected = json.loads(run_python(ORACLE, *filter(None, RECORDS)))
    found = read_latency(write(tmp_path, RECORDS))
    assert [found.average_proportion, found.average_lagging] == pytest.approx(expected)


def test_score_shows_the_latency_of_translations_whose_actions_lie_beside_them(tmp_path, capsys):
    write(tmp_path, RECORDS[:2])
    for name in ("a.test.wait3.gs", "b.test.gs", "ref"):
        (tmp_path / name).write_text("ein mann .\neine frau .\n")
    files = [str(tmp_path / name) for name in ("a.test.wait3.gs", "b.test.gs")]
    assert main_sac(["score", "--ref", str(tmp_path / "ref"), *files, "--metrics", "bleu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [number for number, line in enumerate(lines) if line.startswith("latency")]
    assert lines[row].split() == ["latency", "AP", "↓", "AL", "↓", "DAL", "↓"]
    assert lines[row + 2].split() == ["a.test.wait3.gs", "0.906", "2.500", "2.500"]
    assert not lines[row + 3].startswith("b.test")


@pytest.mark.parametrize("line", ["0 0", "1 0", "0 2 1", "a man"])
def test_what_is_no_record_is_refused(tmp_path, line):
    with pytest.raises(UserError, match="line 2 is no record of actions"):
        read_latency(write(tmp_path, ["0 1", line]))
