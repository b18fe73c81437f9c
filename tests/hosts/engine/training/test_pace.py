"""How long a run has taken, and how long it may still take."""

import re

import pytest
import torch

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.training import pace
from pysimt_sac.hosts.engine.training.pace import Stopwatch, describe_time, in_words, updates_left
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
    progress = Progress(epoch=2, batch=6, update=8)
    assert updates_left(progress, TrainOptions(max_epochs=4), 10, 2) == 12
    assert updates_left(progress, TrainOptions(max_epochs=4, max_iterations=15), 10, 2) == 7
    assert updates_left(Progress(epoch=5, update=20), TrainOptions(max_epochs=4), 10, 2) == 0


def test_the_time_left_follows_from_the_pace():
    assert describe_time(Progress(seconds=30), 50) == "time spent: 30 s"
    told = describe_time(Progress(seconds=600, timed_updates=100), 400)
    assert told == "time spent: 10 min, left: at most 40 min for 400 updates"


def test_the_watch_adds_to_the_books(monkeypatch):
    clock = iter([100.0, 103.0, 107.5])
    monkeypatch.setattr(pace.time, "monotonic", lambda: next(clock))
    progress = Progress(seconds=60)
    watch = Stopwatch(progress)
    assert [watch.read(), watch.read()] == [63, 67.5]
    assert progress.seconds == 67.5


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


def test_a_state_of_a_version_that_did_not_count_time_goes_on(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1").status == 0
    state = last_state(toy.run_folder)
    for name in ("seconds", "timed_updates", "lr_total"):
        del state["progress"][name]
    del state["average"]
    torch.save(state, toy.run_folder / "train_state.pt")
    assert pysimt("train", "-C", toy.config).status == 0
    progress = last_state(toy.run_folder)["progress"]
    assert (progress["update"], progress["timed_updates"]) == (20, 10)
