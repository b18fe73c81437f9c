"""Steps in parallel: a failure stops only what needs it; the runner waits for a run that another process trains."""

import fcntl

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.runner import Runner, own_folder, reason_of
from pysimt_sac.reproduce.step_records import Step, StepRecords
from pysimt_sac.reproduce.steps import Training


@pytest.fixture
def logged():
    return []


@pytest.fixture
def runner(tmp_path, logged):
    return Runner(StepRecords(tmp_path), 2, 1, logged.append, lambda: None)


def test_a_failed_step_stops_only_what_needs_it(runner, logged, tmp_path):
    reference = tmp_path / "ref.de"
    reference.write_text("ein hund .\n")
    hypothesis = tmp_path / "hyp.de"
    hypothesis.write_text("ein hund .\n")
    output = tmp_path / "scores/good.json"
    score = ("score", "--metrics", "bleu", "--ref", str(reference), "--format", "json", "-o", str(output))
    steps = [
        Step("bad", "a bad step", "1", ("score", "--ref", str(reference), str(tmp_path / "nothing"))),
        Step("needs", "a step that needs it", "2", ("host",), after=("bad",)),
        Step("good", "a good step", "3", (*score, str(hypothesis)), (output,)),
    ]
    runner.run(steps)
    assert set(runner.done) == {"good"}
    assert runner.records.read("good").outputs[0].path == "scores/good.json"
    log = tmp_path / "logs/bad.log"
    line = runner.failed["bad"]
    assert line.startswith("failed: a bad step: exit status 2; pysimt-sac score: error: ")
    assert line.endswith(f"; log: {log}")
    assert "nothing: no such" in log.read_text()
    assert runner.failed["needs"] == "not done: a step that needs it, which needs bad"
    assert line in logged


def test_a_step_that_does_not_write_its_output_has_failed(runner, tmp_path):
    runner.run([Step("host", "ask", "1", ("host",), (tmp_path / "absent.json",))])
    assert "absent.json: was not written" in runner.failed["host"]


def test_the_runner_waits_for_a_run_that_another_process_trains(runner, logged, tmp_path):
    folder = tmp_path / "runs/mle"
    folder.mkdir(parents=True)
    runner.waiting = [Training("train", "train MLE", "1", ("host",), folder=folder)]
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runner.start_ready()
        runner.start_ready()
        assert runner.running == []
        assert logged == [f"waiting: another process is training in {folder}"]
    runner.start_ready()
    assert [own.step.id for own in runner.running] == ["train"]
    runner.end_all()


def test_two_reproductions_cannot_share_a_folder(tmp_path):
    with own_folder(tmp_path), pytest.raises(UserError, match="another reproduction is running"), own_folder(tmp_path):
        pass
    with own_folder(tmp_path):
        pass


def test_the_reason_of_a_failure_is_the_last_error_in_its_log(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("pysimt-sac train: error: no space left\nbye\n")
    assert reason_of(2, log) == "exit status 2; pysimt-sac train: error: no space left"
    assert reason_of(-9, tmp_path / "none") == "ended by SIGKILL"
