"""What `pysimt-sac reproduce` shows on a terminal and elsewhere."""

import io

import pytest

from pysimt_sac.commands import reproduce


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        raise OSError


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_on_a_terminal_the_last_line_says_how_far_everything_is(monkeypatch, clock):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    console = reproduce.Console()
    console.show_progress(lambda: "too soon")
    clock[0] += reproduce.EVERY_ON_TERMINAL
    console.show_progress(lambda: "1/6 done")
    console.log("done: train")
    blank = "\r" + " " * len("1/6 done") + "\r"
    start, _, end = shown.getvalue().partition(blank)
    assert start == "1/6 done"
    assert end.endswith(" done: train\n")


def test_elsewhere_a_line_comes_now_and_then(monkeypatch, clock, capsys):
    console = reproduce.Console()
    for seconds, line in ((1.0, "too soon"), (reproduce.EVERY, "1/6 done"), (1.0, "again too soon")):
        clock[0] += seconds
        console.show_progress(lambda line=line: line)
    assert [line[9:] for line in capsys.readouterr().err.splitlines()] == ["1/6 done"]


def test_a_folder_that_no_configuration_could_name(tmp_path):
    with pytest.raises(Exception, match=r"a \$ cannot be part"):
        reproduce.checked_out(tmp_path / "a$b")
