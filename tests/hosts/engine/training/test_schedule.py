"""The learning rate's schedules, by numbers worked out by hand, and in the log of a run."""

import pytest

from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.hosts.engine.training.schedule import Schedule, plan_schedule
from tests.hosts.engine.dying_runs import last_state, log_lines, scalars


def factors(schedule, *updates):
    return [schedule(update) for update in updates]


def test_without_a_schedule_the_rate_is_left_alone():
    assert factors(Schedule(), 1, 7, 10**6) == [1, 1, 1]


def test_warm_up_rises_linearly_and_constant_stays():
    assert factors(Schedule("constant", warmup=4), 1, 2, 3, 4, 5, 999) == [0.25, 0.5, 0.75, 1, 1, 1]
    assert factors(Schedule("constant"), 1, 2) == [1, 1]


def test_linear_falls_in_equal_steps_to_its_end_and_stays_there():
    linear = Schedule("linear", warmup=2, total=6, final=0.2)
    assert factors(linear, 1, 2, 3, 4, 5, 6, 7) == pytest.approx([0.5, 1, 0.8, 0.6, 0.4, 0.2, 0.2])
    assert factors(Schedule("linear", total=4), 1, 2, 3, 4, 5) == pytest.approx([0.75, 0.5, 0.25, 0, 0])


def test_cosine_falls_as_half_a_wave():
    """cos of 60, 90 and 120 degrees is 1/2, 0 and -1/2."""
    cosine = Schedule("cosine", warmup=1, total=7, final=0.1)
    assert factors(cosine, 1, 3, 4, 5, 7, 8) == pytest.approx([1, 0.1 + 0.9 * 0.75, 0.55, 0.1 + 0.9 * 0.25, 0.1, 0.1])


def test_inverse_square_root_is_one_at_the_end_of_the_warm_up():
    assert factors(Schedule("inverse_sqrt", warmup=4), 2, 4, 16, 400) == pytest.approx([0.5, 1, 0.5, 0.1])
    assert factors(Schedule("inverse_sqrt"), 1, 4, 100) == pytest.approx([1, 0.5, 0.1])


@pytest.mark.parametrize(
    ("given", "train", "total"),
    [
        ({}, {"max_iterations": 50, "max_epochs": 7}, 50),
        ({}, {"max_iterations": 500, "max_epochs": 7}, 70),
        ({"lr_total": 33}, {"max_iterations": 500, "max_epochs": 7}, 33),
    ],
)
def test_the_length_is_the_shortest_of_what_is_said(given, train, total):
    recipe = RecipeOptions(lr_schedule="cosine", **given)
    assert plan_schedule(recipe, TrainOptions(**train), updates_per_epoch=10).total == total


def rates(folder):
    return {point["step"]: point["value"] for point in scalars(folder) if point["name"] == "lr"}


def test_the_log_shows_the_rate_that_was_used(toy, pysimt):
    """Two epochs of ten updates, `lr` 0.01; shown every other update."""
    words = ["model.lr_schedule:linear", "model.lr_warmup:4", "train.eval_freq:-1"]
    assert pysimt("train", "-C", toy.config, *words).status == 0
    found = rates(toy.run_folder)
    assert found == pytest.approx(
        {2: 0.005, 4: 0.01, 6: 0.00875, 8: 0.0075, 10: 0.00625, 12: 0.005, 14: 0.00375, 16: 0.0025, 18: 0.00125, 20: 0}
    )
    (log,) = toy.run_folder.glob("*.log")
    assert "Learning rate: linear, after a warm-up of 4 updates, to 0 of lr at update 20" in log.read_text()
    assert any("lr: 0.005 " in line for line in log_lines(toy.run_folder))


def test_the_schedule_multiplies_with_the_models_own_factor(toy, pysimt):
    words = ["train.model_type:MLENMT", "model.actor_warmup:10", "model.lr_schedule:constant", "model.lr_warmup:4"]
    assert pysimt("train", "-C", toy.config, *words, "train.max_epochs:1").status == 0
    found = rates(toy.run_folder)
    assert found == pytest.approx({2: 0.01 * 0.2 * 0.5, 4: 0.004, 6: 0.006, 8: 0.008, 10: 0.01})


def test_a_longer_run_keeps_the_schedule_it_began_with(toy, pysimt):
    words = ["model.lr_schedule:linear", "model.lr_final:0.1"]
    assert pysimt("train", "-C", toy.config, *words, "train.max_epochs:1").status == 0
    outcome = pysimt("train", "-C", toy.config, *words, "train.max_epochs:2")
    assert outcome.status == 0
    expected = "schedule keeps the 10 updates that the run began with; a new run would have 20"
    assert expected in outcome.err
    assert last_state(toy.run_folder)["progress"]["lr_total"] == 10
    found = rates(toy.run_folder)
    assert found[8] == pytest.approx(0.01 * 0.28)
    assert found[12] == found[20] == pytest.approx(0.001)
