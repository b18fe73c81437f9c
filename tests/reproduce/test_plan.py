"""Estimated times: measured where something has been measured, with several steps in parallel."""

import json

from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.matrix import read_matrix
from pysimt_sac.reproduce.plan import Estimator, describe, describe_progress, duration
from pysimt_sac.reproduce.runner import Running
from pysimt_sac.reproduce.step_records import Step, StepRecord


def step(name, *after):
    return Step(name, name, name, (), after=after)


def record(step, seconds, updates):
    return StepRecord(step.id, step.key, (), seconds, "abc", {}, (), {"seconds": seconds, "timed_updates": updates})


def test_the_time_of_steps_in_parallel_is_their_shared_work_or_their_longest_chain():
    steps = [step("a"), step("b"), step("c", "a"), step("d", "a", "b")]
    seconds = {"a": 3.0, "b": 5.0, "c": 4.0, "d": 1.0}
    assert duration(seconds, steps, 1) == 13
    assert duration(seconds, steps, 2) == 7  # a and c
    assert duration({**seconds, "a": 0.0}, steps, 2) == 6  # b and d


def test_a_time_is_assumed_until_one_was_measured(plan, inputs):
    work = plan(seeds=2)
    steps, matrix = work.steps(), read_matrix(inputs / "matrix.toml")
    (mle, mle2), (sac, sac2) = ([run for run in work.trainings if run.system == name] for name in ("MLE", "SAC BLEU"))
    fresh = Estimator(matrix, steps, {})
    assert (mle.updates, sac.updates) == (4 * (5 + 30), 8)  # 40 sentences, 8 at a time, and batches that are not full
    assert fresh.seconds(mle) == (140 * 1.0, "assumed")
    assert fresh.seconds(sac) == (8 * 3.4, "assumed")
    done = {mle.id: record(mle, 48.0, 24)}
    measured = Estimator(matrix, steps, done)
    assert measured.seconds(mle) == (0.0, "")
    assert measured.seconds(mle2) == (140 * 2.0, "measured")
    assert measured.seconds(sac) == (8 * 2.0 * 3.4, "from other systems")
    done[sac2.id] = record(sac2, 40.0, 8)
    assert measured.seconds(sac) == (8 * 5.0, "measured")


def test_a_stopped_run_needs_the_rest_of_its_updates(plan, inputs):
    work = plan()
    (mle, _), matrix = work.trainings, read_matrix(inputs / "matrix.toml")
    mle.folder.mkdir(parents=True)
    points = [{"step": 18, "name": "train_LOSS", "value": 1.0}]
    (mle.folder / "x.scalars.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points) + '{"step": 2')
    estimator = Estimator(matrix, work.steps(), {})
    assert estimator.seconds(mle) == (122.0, "assumed")
    lines = describe(estimator, 1, 10.0)
    assert "  train MLE, seed 1       resume at most 2 min (assumed), 18/140 updates" in lines
    assert "  train SAC BLEU, seed 1  to do  at most 27 s (assumed), 8 updates" in lines


def test_the_pace_of_running_steps_is_the_estimate_for_waiting_ones(plan, inputs, monkeypatch):
    work = plan(seeds=2)
    matrix = read_matrix(inputs / "matrix.toml")
    mle = work.trainings[0]
    running = [Running(mle, None, inputs, 1000.0, 10, "abc")]
    monkeypatch.setattr("pysimt_sac.reproduce.plan.time.monotonic", lambda: 1060.0)

    def left(*steps):
        return describe_progress(Estimator(matrix, steps, {}, running), 1)

    seconds = 2 * 140 + 2 * 8 * 3.4
    assert left(*work.trainings) == f"0/4 done, about {in_words(seconds)} left | train MLE, seed 1: 0/140, 2 min"
    mle.folder.mkdir(parents=True)
    (mle.folder / "x.scalars.jsonl").write_text('{"step": 30, "name": "train_LOSS", "value": 1.0}\n')
    seconds = 3 * (110 + 140) + 2 * 8 * 3 * 3.4  # 20 updates took 60 seconds
    assert left(*work.trainings) == f"0/4 done, about {in_words(seconds)} left | train MLE, seed 1: 30/140, 6 min"
    for started, expected in ((1000.0, "2 min"), (260.0, "3 min")):  # 200 s were assumed, validation set included
        running[:] = [Running(work.translations[0], None, inputs, started, 0, "abc")]
        assert left(work.translations[0]).endswith(f"| {work.translations[0].title}: {expected}")
