"""Steps side by side: a failure stops only what needs it; a run that another process trains is waited for."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.orphans import VARIABLE
from pysimt_sac.reproduce.runner import Runner, own_folder, reason_of
from pysimt_sac.reproduce.stamps import Stamps
from pysimt_sac.reproduce.steps import Step, Training


@pytest.fixture
def told():
    return []


@pytest.fixture
def runner(tmp_path, told):
    return Runner(Stamps(tmp_path), 2, 1, told.append, lambda runner: None)


def test_a_failed_step_stops_only_what_needs_it(runner, told, tmp_path):
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
    assert runner.stamps.read("good").outputs[0].path == "scores/good.json"
    log = tmp_path / "logs/bad.log"
    line = runner.failed["bad"]
    assert line.startswith("failed: a bad step: exit status 2; pysimt-sac score: error: ")
    assert line.endswith(f"; log: {log}")
    assert "nothing: no such" in log.read_text()
    assert runner.failed["needs"] == "not done: a step that needs it, which needs bad"
    assert line in told


def test_a_step_that_does_not_write_what_it_should_has_failed(runner, tmp_path):
    runner.run([Step("host", "ask", "1", ("host",), (tmp_path / "absent.json",))])
    assert "absent.json: was not written" in runner.failed["host"]


def test_a_run_that_another_process_trains_is_waited_for(runner, told, tmp_path):
    folder = tmp_path / "runs/mle"
    folder.mkdir(parents=True)
    runner.waiting = [Training("train", "train MLE", "1", ("host",), folder=folder)]
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runner.start_ready()
        runner.start_ready()
        assert runner.running == []
        assert told == [f"waiting: another process is training in {folder}"]
    runner.start_ready()
    assert [own.step.id for own in runner.running] == ["train"]
    runner.end_all()


def test_one_reproduction_at_a_time_works_in_a_folder(tmp_path):
    with own_folder(tmp_path), pytest.raises(UserError, match="another reproduction is running"), own_folder(tmp_path):
        pass
    with own_folder(tmp_path):
        pass


def test_why_a_process_ended(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("pysimt-sac train: error: no space left\nbye\n")
    assert reason_of(2, log) == "exit status 2; pysimt-sac train: error: no space left"
    assert reason_of(-9, tmp_path / "none") == "ended by SIGKILL"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_what_was_started_ends_with_who_started_it():
    """A parent that starts a child, says its number, and is killed."""
    child = "from pysimt_sac.reproduce.orphans import end_with_parent; end_with_parent(); print('ready', flush=True)\n"
    child += "import signal; signal.pause()"
    parent = (
        "import os, subprocess, sys, signal\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE, start_new_session=True,\n"
        f"                         env={{**os.environ, {VARIABLE!r}: str(os.getpid())}})\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        watch = os.pidfd_open(pid)
        process.send_signal(signal.SIGKILL)
    signal.alarm(20)  # if it does not end, neither would this test
    wait_for_end(watch)
    signal.alarm(0)
    os.close(watch)


def wait_for_end(watch):
    """Wait for a process that is not a child of ours."""
    import select

    poll = select.poll()
    poll.register(watch, select.POLLIN)
    assert poll.poll(20_000)


def test_a_child_whose_parent_is_gone_already_does_not_begin():
    code = "from pysimt_sac.reproduce.orphans import end_with_parent; end_with_parent(); print('began')"
    environment = {**os.environ, VARIABLE: "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (143, "")
