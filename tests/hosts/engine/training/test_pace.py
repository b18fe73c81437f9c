"""How long a run has taken, and how long it may still take."""

import re

import pytest
import torch

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.training import pace
from pysimt_sac.hosts.engine.training.pace import Pace, Stopwatch, in_words
from pysimt_sac.hosts.engine.training.progress import Progress
from tests.hosts.engine.dying_runs import last_state


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5900, "98 min"),
        (6000, "1 h 40 min"),
        (47 * 3600, "47 h 00 min"),
        (50 * 3600, "2 d 02 h"),
    ],
)
def test_lengths_of_time_are_for_people(seconds, words):
    assert in_words(seconds) == words


def test_the_updates_left_are_what_both_limits_allow():
    """Epoch 2 of 4 at batch 6 of 10, two batches an update: 2 + 2 x 5 are left, or 15 - 8."""

    def left(progress, **limits):
        return Stopwatch(progress, TrainOptions(max_epochs=4, **limits), 10, 2).updates_left()

    progress = Progress(epoch=2, batch=6, update=8)
    assert left(progress) == 12
    assert left(progress, max_iterations=15) == 7
    assert left(Progress(epoch=5, update=20)) == 0


def test_time_is_counted_across_resumptions_and_what_is_left_follows_from_the_pace(monkeypatch):
    clock = iter([100.0, 103.0, 105.0, 107.5])
    monkeypatch.setattr(pace.time, "monotonic", lambda: next(clock))
    progress = Progress(seconds=592.5, timed_updates=100, update=100)
    watch = Stopwatch(progress, TrainOptions(max_epochs=50), 10)
    watch.read()
    assert progress.seconds == 595.5
    watch.read()
    assert str(watch) == "time spent: 10 min, left: at most 50 min for 500 updates"


def test_a_clock_that_is_set_back_does_not_change_the_pace(monkeypatch):
    counted = Pace()
    monkeypatch.setattr(pace.time, "time", lambda: 0.0)
    counted.count(100)
    assert counted.words_per_second < 1e9


def test_every_validation_tells_it_and_a_resumed_run_goes_on_counting(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_iterations:9").status == 0
    state = last_state(toy.run_folder)
    assert 0 < state["progress"]["seconds"] < 600
    state["progress"]["seconds"] += 7200
    torch.save(state, toy.run_folder / "train_state.pt")
    assert pysimt("train", "-C", toy.config, "train.max_epochs:3").status == 0
    (log,) = toy.run_folder.glob("*.log")
    told = log.read_text()[log.read_text().index("Resuming") :]
    found = re.findall(r"time spent: (.*), left: at most (.*) for (\d+) updates", told)
    assert [row[2] for row in found] == ["20", "10", "0"]
    assert all(row[0].startswith("2 h 0") for row in found)
    assert found[0][1].startswith("4 h 0")
    assert found[1][1] in ("60 min", "61 min")
    assert found[2][1] == "0 s"
