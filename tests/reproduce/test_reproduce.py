"""A whole reproduction through the command line, undisturbed and killed at many moments: the same figures."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from tests.reproduce.tiny import TESTS, kill, make_inputs, start, words

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Inputs, and one undisturbed reproduction in `whole`."""
    folder = tmp_path_factory.mktemp("reproduce")
    make_inputs(folder)
    with start(folder, "whole") as process:
        log = process.stderr.read()
    assert process.returncode == 0, log
    (folder / "log.txt").write_text(log)
    return folder


def figures(out):
    """All of a results.json but times and versions."""
    found = json.loads((out / "results.json").read_text())
    runs = [(run["system"], run["validation"], run["best"]) for run in found["runs"]]
    return {"runs": runs, **{name: found[name] for name in ("scores", "missing", "data")}}


def tables(out):
    """All tables but that of times."""
    text = (out / "tables.md").read_text()
    return text[text.index("| system | run |") :]


def test_everything_is_in_one_folder(folder):
    out = folder / "whole"
    results = json.loads((out / "results.json").read_text())
    assert [(run["system"], run["seed"]) for run in results["runs"]] == [("MLE", 1), ("SAC BLEU", 1)]
    run = results["runs"][1]
    assert (run["updates"], len(run["validation"]["BLEU"])) == (8, 3)
    assert run["lp_alpha"] in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
    assert results["primary"] == {"metric": "BLEU"}
    assert results["systems"][1]["settings"]["train"]["max_iterations"] == 8
    assert set(results["data"]["inputs"]) == {f"{split}.{language}" for split in ("train", "val", *TESTS)
                                              for language in ("en", "de")}  # fmt: skip
    for part in ("all", "noUNK", "ambiguous", "cases"):
        found = {score["test_set"] for score in results["scores"] if score["part"] == part}
        assert found == ({*TESTS, "pooled"} if part in ("all", "cases") else {*TESTS})
    for key in ("multi30k", "lexical-all", "ambiguous"):
        assert f"**{key}: " in tables(out)
    assert str(folder) not in (out / "results.json").read_text()
    assert "| en-de | MLE | paper | 38.5 |" in tables(out).replace("**", "")
    assert "|  | MLE | own, 1 run |" in tables(out)
    assert "<!DOCTYPE html>" in (out / "report.html").read_text()
    log = (folder / "log.txt").read_text()
    assert "  train MLE, seed 1       to do  at most 2 min (assumed), 140 updates\n" in log


def test_what_is_done_is_not_done_again(folder, capsys):
    before = {path: path.stat().st_mtime_ns for path in (folder / "whole").rglob("*.*") if "steps" in path.parts}
    first = figures(folder / "whole")
    assert main_sac(words(folder, "whole")) == 0
    assert "started" not in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert figures(folder / "whole") == first
    assert main_sac([*words(folder, "whole"), "--plan"]) == 0
    assert "6 of 6 steps are done" in capsys.readouterr().out


def test_a_failed_run_is_reported_and_the_tables_are_made_without_it(folder, capsys):
    """With a learning rate at which weights soon are no numbers."""
    bad = '[[system]]\nname = "Bad"\nconfig = "mle"\noverrides = ["train.lr:1e30", "train.gclip:0"]\n'
    path = folder / "more.toml"
    path.write_text((folder / "matrix.toml").read_text() + bad)
    first = figures(folder / "whole")
    command = [*words(folder, "whole"), "--matrix", str(path)]
    assert main_sac(command) == 1
    log = capsys.readouterr().err
    assert "failed: train Bad, seed 1: exit status 2; pysimt-sac train: error: " in log
    assert f"; log: {folder}/whole/logs/train-bad-s1-" in log
    assert "started: train MLE" not in log
    after = figures(folder / "whole")
    assert (after["runs"], after["scores"]) == (first["runs"], first["scores"])
    assert "- Not done: train Bad, seed 1." in tables(folder / "whole")
    assert main_sac(words(folder, "whole")) == 0
    assert figures(folder / "whole") == first


def test_tables_of_nothing_cannot_be_made(folder, capsys):
    assert main_sac([*words(folder, "nothing"), "--tables"]) == 2
    assert "nothing has been translated yet" in capsys.readouterr().err


def test_killed_at_many_moments_it_ends_with_the_same_figures(folder):
    """By SIGKILL, alone or with all that it had started, and by Ctrl-C in the middle of a training."""
    stop_at(folder, "started: prepare multi30k", lambda process: kill(process, with_children=True))
    stop_at(folder, "started: train MLE", lambda process: kill(process, with_children=False))
    stop_at(folder, "train MLE", interrupt)
    stop_at(folder, "done: train MLE", lambda process: kill(process, with_children=True))
    stop_at(folder, "done: score", lambda process: kill(process, with_children=False))
    with start(folder, "killed") as process:
        log = process.stderr.read()
    assert process.returncode == 0, log
    assert "started: prepare" not in log
    assert "started: train MLE" not in log
    assert figures(folder / "killed") == figures(folder / "whole")
    assert tables(folder / "killed") == tables(folder / "whole")


def stop_at(folder, moment, stop):
    """Start the reproduction, and stop it when it says something."""
    process = start(folder, "killed")
    is_step = re.compile(r"\d\d:\d\d:\d\d ")  # not a line of the plan
    assert any(moment in line and is_step.match(line) for line in process.stderr), moment
    stop(process)


def interrupt(process):
    """Ctrl-C, when the actor has begun to learn."""
    logs = Path(process.args[process.args.index("--out") + 1]) / "logs"
    while "epoch" not in "".join(path.read_text() for path in logs.glob("train-mle*.log")):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
    process.send_signal(signal.SIGINT)
    log = process.communicate()[1]
    assert process.returncode == 130
    assert "all states are saved. To resume: pysimt-sac reproduce en-de" in log
    assert list(logs.parent.glob("runs/mle/*/train_state.pt"))
