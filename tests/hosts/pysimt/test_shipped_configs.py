"""All configurations that pysimt ships: those that it can run, algorithms train; all others are refused in one line."""

import json
from collections import Counter
from pathlib import Path

import pytest

from pysimt_sac.hosts.choice import pysimt_folder
from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, run_python
from tests.hosts.pysimt.images import write_images
from tests.hosts.pysimt.test_experiments import RUN
from tests.models.runs import points

pytestmark = NEEDS_PYSIMT

ALGORITHMS = {
    "SACNMT": {"critic_pretrain_updates": 1, "gate_sentences": 4, "support_size": 6, "buffer_size": 4},
    "VineNMT": {},
    "REINFORCENMT": {},
}
UPDATES = 3
SIZES = {
    "rnn": {"emb_dim": 8, "enc_dim": 8, "dec_dim": 8, "aux_proj_dim": 8},
    "transformers": {"model_dim": 8, "num_heads": 2, "enc_ff_dim": 8, "dec_ff_dim": 8, "enc_n_layers": 1},
}
SIZES["transformers"]["dec_n_layers"] = 1


def shipped():
    """The configurations by their names, such as en-de/rnn-nmt/wait3-rnn."""
    folder = pysimt_folder().parent / "configs"
    return {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.conf"))}


def run_name(name, algorithm):
    return f"{name.replace('/', '-')}-{algorithm}"


def is_trained(name):
    """Whether pysimt can run it: its Transformers have no image encoder."""
    return "transformers-mmt/" not in name


def starting(name, path, algorithm, toy, images):
    """A command that starts one of them on a tiny text, with one key changed: `model_type`."""
    sides = {side: toy.folder / f"vocab.{side}" for side in ("src", "trg")}
    options = {**SIZES[name.split("/")[1].split("-")[0]], "rollout_max_len": 4, **ALGORITHMS[algorithm]}
    kind, n_features = ("Numpy", 3) if name.endswith("-oc") else ("ObjectDetections", 4)
    words = [f"data.{split}_set.image:{images[kind][split]}" for split in ("train", "val") if "-mmt/" in name]
    options |= {"aux_dim": n_features} if "-mmt/" in name else {}
    words += [f"data.{split}_set.{side}:{toy.folder}/{split}.{side}" for split in ("train", "val") for side in sides]
    words += [f"vocabulary.{side}:{file}" for side, file in sides.items()]
    words += [f"train.save_path:{toy.folder}/runs", "train.tensorboard_dir:", "train.disp_freq:1", "train.batch_size:8"]
    words += [f"train.max_iterations:{UPDATES}", "train.eval_freq:-1", f"train.model_type:{algorithm}"]
    words += [f"model.{key}:{value}" for key, value in options.items()]
    return ["train", "-d", "cpu", "-C", str(path), "-s", run_name(name, algorithm), *words]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A toy, and how each start ended."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("shipped") / "toy")
    images = write_images(toy)
    commands = {
        run_name(name, algorithm): starting(name, path, algorithm, toy, images)
        for name, path in shipped().items()
        for algorithm in (ALGORITHMS if is_trained(name) else ["SACNMT"])
    }
    return toy, json.loads(run_python(RUN, stdin=json.dumps(commands), PYSIMT_SAC_HOST="pysimt").splitlines()[-1])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_configuration_that_pysimt_can_run_takes_an_algorithm(ended, algorithm):
    toy, ends = ended
    names = [name for name in shipped() if is_trained(name)]
    assert Counter(name.split("/")[1] for name in names) == {"rnn-nmt": 16, "transformers-nmt": 16, "rnn-mmt": 48}
    failed = {name: ends[run_name(name, algorithm)] for name in names if ends[run_name(name, algorithm)][0]}
    assert failed == {}
    for name in names:
        run = toy.folder / "runs" / f"{Path(name).name}-{run_name(name, algorithm)}"
        losses = points(run, "train_LOSS")
        assert sorted(losses) == list(range(1, UPDATES + 1))
        assert losses[UPDATES] != 0  # as of critics alone


def test_every_other_configuration_is_refused_in_a_line_that_says_why(ended):
    _, ends = ended
    names = [name for name in shipped() if not is_trained(name)]
    assert len(names) == 36
    for name in names:
        status, line = ends[run_name(name, "SACNMT")]
        assert status == 2
        assert "pysimt's Transformers have no image encoder" in line
