"""Every ready configuration runs unchanged in pysimt's loop, on a tiny text, past its first update of the actor.

The actor of each is where the configuration says, the folder of a run of maximum likelihood.
"""

import json
from pathlib import Path

import pytest

from pysimt_sac.hosts.engine.config.parser import read_config
from tests.hosts.pysimt.hosts import needs_pysimt, run_python

FOLDER = Path(__file__).resolve().parents[3] / "experiments"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.conf")) if not path.stem.startswith("base_")}
REFUSED = {name: "models of transformers train in the engine" for name in FILES if name.startswith("hf_")}
CONFIGS = {name: path for name, path in FILES.items() if name not in REFUSED}
ACTORS = ("mle", "demo_mle")
UPDATES = 8
QUICK = {"critic_pretrain_updates": 2, "gate_sentences": 4, "n_samples": 3, "rollout_max_len": 6}

# Runs commands in one process and writes down how each ended: its status and its last line of standard error.
RUN = """
import contextlib, io, json, sys
from pysimt_sac.cli import main
ended = {}
for name, command in json.load(sys.stdin).items():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main(command)
    ended[name] = [status, (said.getvalue().splitlines() or [""])[-1]]
print(json.dumps(ended))
"""


def starting(name, toy, *more):
    """A command that starts a configuration on a tiny text; all else, its actor included, is as it is written."""
    config = read_config(FILES[name])
    splits = {
        split: f"{{'src': '{toy.folder}/{split}.src', 'trg': '{toy.folder}/{split}.trg'}}" for split in ("train", "val")
    }
    words = [f"data.{split}_set:{files}" for split, files in splits.items()]
    words += [f"vocabulary.{side}:{toy.folder}/vocab.{side}" for side in ("src", "trg")]
    words += [f"train.save_path:{toy.folder}/runs", "train.disp_freq:1"]
    words += ["model.emb_dim:8", "model.enc_dim:16", "model.dec_dim:16"]
    words += [f"model.{key}:{value}" for key, value in QUICK.items() if key in config.model]
    return ["train", "-d", "cpu", "-C", str(FILES[name]), *more, *words]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A toy, and how the start of each configuration ended: the actors first, with an epoch and its validation."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("experiments") / "toy")
    commands = {f"actor {name}": starting(name, toy, "train.max_epochs:1") for name in ACTORS}
    for name in CONFIGS:
        commands[name] = starting(name, toy, "-s", "tiny", f"train.max_iterations:{UPDATES}")
    for name in REFUSED:
        of_transformers = name.startswith("hf_")  # without vocabularies
        commands[name] = ["train", "-C", str(FILES[name])] if of_transformers else starting(name, toy, "-s", "tiny")
    ended = json.loads(run_python(RUN, stdin=json.dumps(commands), PYSIMT_SAC_HOST="pysimt").splitlines()[-1])
    for name in ACTORS:
        assert ended[f"actor {name}"][0] == 0, ended[f"actor {name}"]
    return toy, ended


@needs_pysimt
@pytest.mark.parametrize("name", REFUSED)
def test_what_only_the_engine_has_is_refused_in_one_line(started, name):
    status, last_line = started[1][name]
    assert status == 2
    assert REFUSED[name] in last_line


@needs_pysimt
@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_starts_unchanged_in_pysimts_loop(started, name):
    toy, ended = started
    (status, last_line), run = ended[name], toy.folder / "runs" / f"{name}-tiny"
    assert status == 0, last_line
    (log,) = run.glob("*.log")
    assert log.read_text().splitlines()[0].split(" ", 2)[2].startswith("Host: pysimt ")
    (curves,) = run.glob("*.scalars.jsonl")
    points = [json.loads(line) for line in curves.read_text().splitlines()]
    assert [point["step"] for point in points if point["name"] == "train_LOSS"] == list(range(1, UPDATES + 1))
    assert None not in [point["value"] for point in points]
    assert list(run.glob("*.ckpt"))
    if read_config(CONFIGS[name]).train["pretrained_file"]:
        actor = "demo_mle" if name.startswith("demo_") else "mle"
        assert f"{toy.folder}/runs/{actor}/" in log.read_text()
        stages = [line for line in log.read_text().splitlines() if "Now learning: " in line]
        assert "actor" in stages[-1]
        assert [point["value"] for point in points if point["name"] == "train_LOSS"][-1] != 0  # as of critics alone
