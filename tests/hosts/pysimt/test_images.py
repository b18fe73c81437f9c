"""Images beside the text: every algorithm trains with them, and what cannot be trained is refused in one line."""

import json

import numpy as np
import pytest

from pysimt_sac import models  # noqa: F401 - registers our models
from pysimt_sac.core.registry import MODELS
from tests.hosts.pysimt.hosts import (
    COMMAND,
    NEEDS_PYSIMT,
    pysimt_commands,
    run_folder,
    run_python,
    start_python,
    train,
    training,
    translating,
    translation,
)
from tests.hosts.pysimt.images import add_images
from tests.hosts.pysimt.test_experiments import RUN
from tests.hosts.pysimt.test_models import VARIANTS, changes_for
from tests.models.runs import points

pytestmark = NEEDS_PYSIMT

IMAGES = ["enc_bidirectional:False", "aux_dim:3", "aux_proj_dim:16", "mm_fusion_op:sum"]
BY_WORDS = "MLENMT by words"
KINDS = [BY_WORDS, *(name for name in MODELS.items if not name.startswith("Simultaneous")), *VARIANTS]
UPDATES = 4


def test_a_split_without_images_is_refused_in_one_line(toy):
    words = ["train.model_type:SACNMT", "model.direction:src:Text, image:Numpy -> trg:Text"]
    done = start_python(COMMAND, *training(toy, "refused", *words), PYSIMT_SAC_HOST="pysimt")
    assert done.returncode == 2
    assert "[data] train_set: has no image (add" in done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A toy with images, and how the training with each algorithm ended."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("images") / "toy")
    add_images(toy, "Numpy")
    quick = [f"train.max_iterations:{UPDATES}", "train.disp_freq:1", "train.eval_freq:-1"]
    quick += [f"model.{option}" for option in IMAGES]
    commands = {}
    for kind in KINDS:
        words = [word for word in changes_for(kind) if not word.startswith(("train.max_iter", "model.critic_pretrain"))]
        alone = (
            ["model.critic_pretrain_updates:1"] if any("critic_pretrain" in word for word in changes_for(kind)) else []
        )
        commands[kind] = [str(word) for word in training(toy, kind.replace(" ", "_"), *words, *quick, *alone)]
    return toy, json.loads(run_python(RUN, stdin=json.dumps(commands), PYSIMT_SAC_HOST="pysimt").splitlines()[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_every_algorithm_trains_an_actor_that_sees_images(ended, kind):
    toy, ends = ended
    assert ends[kind][0] == 0, ends[kind]
    run = run_folder(toy, kind.replace(" ", "_"))
    losses = points(run, "train_LOSS")
    assert sorted(losses) == list(range(1, UPDATES + 1))
    (curves,) = run.glob("*.scalars.jsonl")
    assert None not in [json.loads(line)["value"] for line in curves.read_text().splitlines()]  # not finite
    assert losses[UPDATES] != 0  # as of critics alone


def test_our_search_sees_the_images_too(toy):
    """With one hypothesis it is pysimt's greedy search; with wrong images, neither finds the same."""
    add_images(toy, "Numpy")
    (toy.folder / "out").mkdir()
    words = ["train.model_type:MLENMT", "model.translator_type:bs", *(f"model.{option}" for option in IMAGES)]
    (best,) = train("pysimt", toy, "beam", *words).glob("*.best.bleu.ckpt")
    searches = {"ours": ["-f", "bs", "-k", "1"], "theirs": ["-f", "gs"]}
    wrong = ["-x", f"data.val_set.image:{toy.folder}/other.npy"]
    np.save(toy.folder / "other.npy", 9 * np.load(toy.folder / "val.npy")[::-1])
    commands = [translating(best, toy.folder / f"out/{name}", *search) for name, search in searches.items()]
    commands += [
        translating(best, toy.folder / f"out/{name}-wrong", *search, *wrong) for name, search in searches.items()
    ]
    pysimt_commands("pysimt", *commands)
    found = [
        [translation(toy.folder / f"out/{name}{images}", suffix=suffix) for images in ("", "-wrong")]
        for name, suffix in (("ours", "beam1.raw"), ("theirs", "gs.raw"))
    ]
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("direction:src:Text, image:ImageFolder -> trg:Text", "SACNMT trains models of src:Text, alone or with image:"),
        ("direction:src:Text, other:Text -> trg:Text", "SACNMT trains models of src:Text, alone or with image:"),
        ("direction:image:Numpy -> trg:Text", "SACNMT trains models of src:Text, alone or with image:"),
        ("n_heads:1", "n_heads is for an encoder that attends to an image"),
        ("data.train_set.image:nowhere.npy", "train_set: refused by pysimt: nowhere.npy does not exist."),
        ("aux_dim:5", "train_set: its images have 3 features, aux_dim says 5"),
        ("model_dim:16", "pysimt's Transformers have no image encoder"),
        ("aux_dims:3", "unknown key 'aux_dims' (did you mean 'aux_dim'?)"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(toy, word, expected):
    if word != "n_heads:1":
        add_images(toy, "Numpy")
    word = word if word.startswith("data.") else f"model.{word}"
    words = ["train.model_type:SACNMT", *(f"model.{option}" for option in IMAGES), word]
    done = start_python(COMMAND, *training(toy, "refused", *words), PYSIMT_SAC_HOST="pysimt")
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    assert not run_folder(toy, "refused").exists()
