"""Search and metrics on pysimt's host: ours under pysimt's names, and what is wrong with its own beam search."""

import json
import math
import shutil

import pytest

from pysimt_sac.core.registry import METRICS
from tests.hosts.pysimt.hosts import (
    COMMAND,
    NEEDS_PYSIMT,
    pysimt_command,
    pysimt_commands,
    run_python,
    start_python,
    train,
    translating,
    translation,
)

pytestmark = NEEDS_PYSIMT

# A decoder that only looks at the word before: <bos> -> A .7 | B .3, A -> <eos> .9 | A .1, B -> A .9 | <eos> .1; after
# <eos>, where nobody should ask any more, it goes on talking.
PAST_THE_END = """
import json
from types import SimpleNamespace
import torch
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt_sac.hosts.pysimt import host as pysimt_host
from pysimt.translators import BeamSearch

NAMES = ["<pad>", "<bos>", "<eos>", "<unk>", "A", "B"]
P = torch.full((6, 6), 1e-9)
P[1, 4], P[1, 5], P[4, 2], P[4, 4], P[5, 4], P[5, 2] = 0.7, 0.3, 0.9, 0.1, 0.9, 0.1
P[2, 2:] = torch.tensor([0.1, 0.2, 0.4, 0.3])

class Vocabulary:
    def __len__(self): return 6
    def __getitem__(self, name): return NAMES.index(name)
    def idxs_to_sent(self, ids): return " ".join(NAMES[i] for i in (ids[: ids.index(2)] if 2 in ids else ids))
    def list_of_idxs_to_sents(self, lists): return [self.idxs_to_sent(ids) for ids in lists]

class Batch(dict):
    size = 1
    def device(self, device): pass

decoder = SimpleNamespace(
    f_init=lambda states: None,
    get_emb=lambda ids: ids,
    f_next=lambda states, ids, h, hypothesis=None: (P[ids].log(), torch.zeros(len(ids), 1)),
)
model = SimpleNamespace(
    dec=decoder, trg_vocab=Vocabulary(), cache_enc_states=lambda batch: None, parameters=lambda: iter([P]),
    get_enc_state_dict=lambda: {"src": (torch.zeros(1, 1, 1), None)}, get_bos=lambda n: torch.ones(n).long(),
    opts=SimpleNamespace(train={}, filename=""), sl="src", src_vocab=Vocabulary(), load_data=None,
)

class Loader(list):
    batch_sampler, dataset = SimpleNamespace(batch_size=1), [None]

found = {}
for name, search in (("theirs", BeamSearch), ("ours", pysimt_host.EngineSearch)):
    searching = search(model, Loader([Batch()]), "", 1, max_len=3)
    searching.beam_size = 2
    found[name] = searching.run()[0][0]
original = BeamSearch(model, Loader([Batch()]), "", 1, max_len=3, beam_size=2, n_best=True)
found["their scores"] = dict(zip(*original.run()[0][0]))
print(json.dumps(found))
"""


def test_pysimts_beam_search_extends_a_hypothesis_past_its_end_and_ours_does_not():
    found = json.loads(run_python(PAST_THE_END, PYSIMT_SAC_HOST="pysimt").splitlines()[-1])
    right = {"A": math.log(0.7 * 0.9) / 1, "B A": math.log(0.3 * 0.9 * 0.9) / 2}
    assert max(right, key=right.get) == found["ours"] == "A"
    # While `B A` is being finished, the better `A <eos>` is made to say one more word, which costs a factor of 0.4.
    assert found["their scores"]["B A"] == pytest.approx(right["B A"], abs=1e-5)
    assert found["their scores"]["A"] == pytest.approx(math.log(0.7 * 0.9 * 0.4) / 1, abs=1e-5)
    assert found["theirs"] == "B A"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A toy, and a model that pysimt trained with one of our metrics and our beam search."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("search") / "toy")
    changes = ["train.model_type:MLENMT", "train.eval_metrics:ter,chrf", "model.translator_type:bs"]
    run = train("pysimt", toy, "mle", "train.eval_filters:lower", "train.eval_beam:3", "train.max_epochs:4", *changes)
    return toy, run


def test_our_metrics_validate_and_choose_checkpoints_there(trained):
    _, run = trained
    (curves,) = run.glob("*.scalars.jsonl")
    points = [json.loads(line) for line in curves.read_text().splitlines()]
    for name, best in (("ter", min), ("chrf", max)):
        scores = [point["value"] for point in points if point["name"] == f"val_{name.upper()}"]
        assert len(scores) == 4
        (link,) = run.glob(f"*.best.{name}.ckpt")
        assert f"{best(scores):.3f}" in link.readlink().name


def test_validation_searches_as_translate_does_and_the_original_has_a_name_of_its_own(trained):
    toy, run = trained
    (checkpoint,) = run.glob("*.best.chrf.ckpt")
    out = toy.folder / "out"
    pysimt_commands(
        "pysimt",
        translating(checkpoint, out / "theirs", "-f", "bs-pysimt", "-k", "3", "-m", "10"),
        translating(checkpoint, out / "ours", "-f", "bs", "-k", "3", "-m", "10", "-N"),
    )
    ours, theirs = (translation(out / name, suffix="beam3") for name in ("ours", "theirs"))
    assert len(ours) == len(theirs) == 12
    assert ours == [line.lower() for line in translation(out / "ours", suffix="beam3.raw")]
    assert translation(out / "ours", suffix="beam3.nbest")[0].startswith("0 ||| ")
    references = toy.val_trg.read_text().lower().splitlines()
    score = METRICS.get("chrf").compute(ours, [references])
    assert f"{score:.3f}" in checkpoint.readlink().name


def test_standard_input_is_translated_there_too(trained):
    toy, run = trained
    (checkpoint,) = run.glob("*.best.chrf.ckpt")
    lines = [*toy.val_src.read_text().splitlines()[:3], "", "four four"]
    arguments = ["translate", "-d", "cpu", "-f", "bs", checkpoint]
    found = [
        run_python(COMMAND, *arguments, stdin="\n".join(lines) + "\n", PYSIMT_SAC_HOST=host).splitlines()
        for host in ("pysimt", "embedded")
    ]
    assert found[0] == found[1]
    assert [bool(line) for line in found[0]] == [True, True, True, False, True]


@pytest.mark.parametrize(
    ("host", "arguments", "expected"),
    [
        ("embedded", ["-s", "val", "-o", "x", "-f", "bs-pysimt"], "this search is pysimt's own"),
        ("pysimt", ["-f", "bs-pysimt"], "translates whole splits only"),
        ("pysimt", ["-s", "vall", "-o", "x"], "unknown split 'vall'"),
        ("pysimt", ["-s", "val", "-o", "x", "-d", "tpu"], "pysimt supports cpu and gpu"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(trained, host, arguments, expected):
    (checkpoint,) = trained[1].glob("*.best.chrf.ckpt")
    done = start_python(COMMAND, "translate", *arguments, checkpoint, PYSIMT_SAC_HOST=host)
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_files_that_have_moved_are_found(trained, tmp_path):
    """The corpus and the vocabularies are elsewhere; an override still wins."""
    toy, run = trained
    (checkpoint,) = run.glob("*.best.chrf.ckpt")
    pysimt_command("pysimt", *translating(checkpoint, tmp_path / "old", split="test"))
    moved, other = tmp_path / "moved", f"data.val_set.src:{tmp_path}/moved/toy/test.src"
    shutil.copytree(toy.folder, moved / "toy", ignore=lambda folder, names: {"runs", "out"} & set(names))
    away = toy.folder.rename(tmp_path / "away")
    try:
        checkpoint = away / checkpoint.relative_to(toy.folder)
        lost = start_python(COMMAND, *translating(checkpoint, tmp_path / "x", split="test"), PYSIMT_SAC_HOST="pysimt")
        pysimt_commands(
            "pysimt",
            translating(checkpoint, tmp_path / "new", "--data", moved, split="test"),
            translating(checkpoint, tmp_path / "new", "--data", moved, "-x", other),
        )
    finally:
        away.rename(toy.folder)
    assert lost.returncode == 2
    assert "no such vocabulary" in lost.stderr
    expected = translation(tmp_path / "old", "test")
    assert translation(tmp_path / "new", "test") == translation(tmp_path / "new", "val") == expected
