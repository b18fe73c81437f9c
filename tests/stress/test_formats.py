"""Drawn mistakes: files and options that nobody would think of, by the grammar of each format.

Whatever comes in, a command ends with 0, with 3 (a check found something) or, in one line, with 2; never with 1, which
is how the command line reports a mistake of ours.
"""

import io
import json
import math
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pysimt_sac.cli import main_sac
from pysimt_sac.core.options import names
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions
from tests.conftest import make_toy
from tests.stress import SCALE, times

FUZZ = settings(
    max_examples=times(40),
    deadline=None,
    derandomize=not SCALE,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
FEW = settings(FUZZ, max_examples=times(15))  # of what takes longer


def answer(*words):
    """The command's exit status and error line."""
    told = io.StringIO()
    with redirect_stderr(told), redirect_stdout(io.StringIO()):
        try:
            status = main_sac([str(word) for word in words])
        except SystemExit as stop:
            status = stop.code
    return status, told.getvalue()


def assert_answered(*words):
    """A command ended well or with one line; return its exit status."""
    status, told = answer(*words)
    errors = [line for line in told.splitlines() if ": error: " in line]
    assert status in (0, 2, 3), (words, told)  # 3: a check found something that looks wrong
    assert len(errors) == (status == 2), told
    assert "Traceback" not in told
    return status


SHORT = ["train.eval_freq:2", "train.eval_metrics:loss", "train.disp_freq:1", "train.lr_decay:plateau"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A toy and a checkpoint that many examples share; what they write is written elsewhere."""
    toy = make_toy(tmp_path_factory.mktemp("fuzz") / "toy")
    short = [f"train.save_path:{toy.folder}/short", "train.max_iterations:3"]
    assert answer("train", "-C", toy.config, *SHORT, *short)[0] == 0
    assert answer("train", "-C", toy.config, "train.max_epochs:1", "train.eval_freq:-1")[0] == 0
    (path,) = toy.run_folder.glob("*-final.ckpt")
    kept = toy.folder / "kept.ckpt"
    path.rename(kept)
    for item in toy.run_folder.iterdir():
        item.unlink()
    return toy, kept


numbers = st.one_of(
    st.integers(-3, 10),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.sampled_from([2**31, 2**63, -(2**63), 1e308, 1e-308, math.pi]),
)
plain_values = st.one_of(numbers, st.booleans(), st.none(), st.text(max_size=8), st.binary(max_size=4))
values = st.recursive(
    plain_values,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=5,
)
# Sizes between "small" and "absurd" are not mistakes: they are honest work, for hours, and no subject of this test.
LONG_WORK = {"n_encoders", "enc_dim", "dec_dim", "emb_dim", "enc_proj_dim", "att_bottleneck", "num_workers"}
keys = st.sampled_from(
    sorted(
        [f"train.{name}" for name in names(TrainOptions) - LONG_WORK]
        + [f"model.{name}" for name in (names(ModelOptions) | names(RecipeOptions)) - LONG_WORK - {"plugin_modules"}]
        + ["data.train_set", "data.val_set.src", "data.x", "vocabulary.src", "vocabulary", "vars.x", "x.y"]
    )
)


@FUZZ
@given(keys, values, st.booleans())
def test_overrides(shared, key, value, as_literal):
    toy, _ = shared
    before = sorted(toy.folder.rglob("*"))
    text = repr(value) if as_literal else str(value)
    assert_answered("train", "-C", toy.config, "--check", f"{key}:{text}".replace("\0", ""))
    assert sorted(toy.folder.rglob("*")) == before


@FUZZ
@given(st.lists(st.text(max_size=20).filter(lambda word: not word.startswith("-")), max_size=2))
def test_override_words(shared, words):
    assert_answered("train", "-C", shared[0].config, "--check", *words)


@FUZZ
@given(st.data())
def test_configurations(shared, tmp_path, data):
    """The toy's configuration with lines lost, doubled, torn or replaced."""
    lines = shared[0].config.read_text().splitlines()
    junk = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(["[x]", "[", "${a:b}", ":", "=", " x"])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "tear", "replace", "append"]))
        line = lines[place]
        lines[place : place + 1] = {
            "drop": [],
            "double": [line, line],
            "tear": [line[: data.draw(st.integers(0, len(line)))]],
            "replace": [data.draw(junk)],
            "append": [line + data.draw(junk)],
        }[change] or [""]
    path = tmp_path / "fuzzed.conf"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert_answered("train", "-C", path, "--check")


@FUZZ
@given(st.binary(max_size=60))
def test_configurations_of_any_bytes(shared, tmp_path, content):
    path = tmp_path / "fuzzed.conf"
    path.write_bytes(content)
    assert assert_answered("train", "-C", path, "--check") == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@FUZZ
@given(st.data())
def test_vocabularies(shared, tmp_path, data):
    """The toy's vocabulary with entries lost, doubled or replaced, or any JSON at all."""
    toy, _ = shared
    pairs = list(json.loads(toy.src_vocab.read_text()).items())
    path = tmp_path / "vocabulary"
    if data.draw(st.booleans()):
        path.write_text(json.dumps(data.draw(json_values)))
    else:
        entry = st.tuples(st.text(max_size=4), st.text(max_size=6) | st.just("4 1") | st.just("16 1"))
        place = data.draw(st.integers(0, len(pairs) - 1))
        pairs[place : place + data.draw(st.integers(0, 2))] = data.draw(st.lists(entry, max_size=2))
        path.write_text("{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}")
    assert_answered("train", "-C", toy.config, "--check", f"vocabulary.src:{path}")


@FUZZ
@given(st.data())
def test_texts(shared, tmp_path, data):
    toy, checkpoint = shared
    path = tmp_path / "text"
    text = st.text(max_size=30).map(lambda drawn: drawn.encode("utf-8", "surrogatepass"))
    path.write_bytes(data.draw(st.binary(max_size=30) | text | st.just(toy.val_src.read_bytes())))
    assert_answered("train", "-C", toy.config, "--check", f"data.val_set.src:{path}")
    assert_answered("translate", checkpoint, "-s", "x", "-S", f"src:{path}", "-o", tmp_path / "out", "-m", "3")


@FUZZ
@given(st.binary(max_size=40))
def test_standard_input(shared, content):
    before = sys.stdin
    sys.stdin = type("Stdin", (), {"buffer": io.BytesIO(content)})
    try:
        told = io.StringIO()
        with redirect_stderr(told), redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            status = main_sac(["translate", str(shared[1]), "-m", "3"])
        assert status in (0, 2), told.getvalue()
    finally:
        sys.stdin = before


@FUZZ
@given(st.data())
def test_checkpoints_with_damaged_bytes(shared, tmp_path, data):
    """Bytes flipped, cut off or added anywhere."""
    toy, checkpoint = shared
    content = bytearray(checkpoint.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1) | st.integers(max(0, len(content) - 300), len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.just(len(content)) | st.integers(0, len(content)))
    path = tmp_path / "x.ckpt"
    path.write_bytes(bytes(content[:cut]) + data.draw(st.binary(max_size=5)))
    assert_answered("translate", path, "-s", "test", "-o", tmp_path / "out", "-m", "3")
    assert_answered("train", "-C", toy.config, "--check", f"train.pretrained_file:{path}")


checkpoint_values = st.one_of(
    values.filter(lambda value: not isinstance(value, bytes)),
    st.sampled_from([torch.zeros(2), torch.tensor(math.nan), torch.zeros(16, 8), {}, [], ["train"]]),
)


@FUZZ
@given(st.data())
def test_checkpoints_with_other_values(shared, tmp_path, data):
    """A whole file in which one value, somewhere, is another or missing."""
    toy, checkpoint = shared
    content = torch.load(checkpoint, weights_only=True)
    place = content
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            break
        place = place[key]
    if key in LONG_WORK or data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(checkpoint_values)
    path = tmp_path / "x.ckpt"
    torch.save(content, path)
    assert_answered("translate", path, "-s", "test", "-o", tmp_path / "out", "-m", "3")
    assert_answered("train", "-C", toy.config, "--check", f"train.pretrained_file:{path}")


# Records: JSON, TOML and tables that commands read


PIECES = st.sampled_from(["9" * 5000, "1e999", "NaN", "[" * 200, '"\\ud800"', "\x00", "..", "/etc/passwd", "{x}", ""])


def damage(data, value):
    """The same nested value with another one somewhere, or without one."""
    if isinstance(value, dict | list) and value and data.draw(st.integers(0, 5)):
        place = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        copy = value.copy()
        if data.draw(st.integers(0, 3)):
            copy[place] = damage(data, value[place])
        else:
            del copy[place]
        return copy
    return data.draw(json_values | st.text(max_size=3) | st.just([value]) | st.integers(-3, 3))


def damaged_text(data, text):
    """The same text with a line, or a piece of one, lost, doubled or replaced."""
    lines = text.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    line = lines[place]
    start, end = sorted((data.draw(st.integers(0, len(line))), data.draw(st.integers(0, len(line)))))
    piece = data.draw(PIECES | st.text(st.characters(codec="utf-8"), max_size=5) | st.just(line[start:end] * 2))
    lines[place : place + 1] = data.draw(st.sampled_from([[line[:start] + piece + line[end:]], [], [line, line]]))
    return "\n".join(lines) + "\n"


def write_damaged(data, path, text):
    """Write a JSON text with one value damaged, or any text damaged as such."""
    if path.suffix == ".json" and data.draw(st.booleans()):
        path.write_text(json.dumps(damage(data, json.loads(text))))
    else:
        path.write_text(damaged_text(data, text), encoding="utf-8", errors="surrogatepass")


SIDE = {"language": "en", "steps": ["lowercase", "tokenise"], "split_hyphens": False, "segmentation": None}
BPE = {"kind": "bpe", "model": "codes", "units": "", "threshold": 0}
RECORD = {
    "corpus": "x",
    "preparation": {"train.src": SIDE, "train.trg": {**SIDE, "segmentation": BPE}},
    **{name: {} for name in ("settings", "versions", "inputs", "files")},
}
KEY = {
    "systems": ["one", "two"],
    "items": [
        {"item": f"s{n}", "group": "rare", "line": n, "word": "w", "order": ["two", "one"][:: 1 - 2 * (n % 2)]}
        for n in range(3)
    ],
}
SHEET = "item,word,source,translation A,translation B,rank A,rank B\n" + "".join(
    f's{n},w,"a, b",x,y,{1 + n % 2},2\n' for n in range(3)
)
AMBIGUOUS = "word\tcorrect\tcandidates\tline\trare\none\tONE\tONE:9|EIN:3\t0\t1\ntwo\tTWO\tTWO:7\t1\t0\n"
MATRIX = """\
title = "My own"
corpus = "demo"
pairs = ["demo"]
[data]
tests = ["test"]
reference = "{data}/{pair}/{set}.{target}"
training = "{data}/train.{target}"
sentences = 100
[scoring]
baselines = ["MLE"]
shuffles = 10
[decoding]
beam = 2
greedy = false
[[system]]
name = "MLE"
config = "demo_mle"
seeds = 1
[[system]]
name = "C1"
config = "demo_control"
start = "MLE"
overrides = ["train.lr:0.1"]
"""


@FUZZ
@given(st.data())
def test_records_of_corpora(shared, tmp_path, data):
    (tmp_path / "codes").write_text("#version: 0.2\no n\n")
    write_damaged(data, tmp_path / "corpus.json", json.dumps(RECORD))
    assert_answered("attach", shared[1], tmp_path, "-o", tmp_path / "new.ckpt")


@FUZZ
@given(st.data())
def test_rankings(shared, tmp_path, data):
    key, sheet = tmp_path / "key.json", tmp_path / "sheet.csv"
    key.write_text(json.dumps(KEY))
    sheet.write_text(SHEET)
    assert assert_answered("rank", "score", "--key", key, sheet) == 0
    path = data.draw(st.sampled_from([key, sheet]))
    write_damaged(data, path, path.read_text())
    assert_answered("rank", "score", "--key", key, sheet)


@FEW
@given(st.data())
def test_ambiguous_words(shared, tmp_path, data):
    write_damaged(data, tmp_path / "words.tsv", AMBIGUOUS)
    quick = ["--shuffles", "9", "--bootstrap", "3"]
    assert_answered("lexical", "--mlt", tmp_path / "words.tsv", shared[0].test_trg, shared[0].test_src, *quick)


@FEW
@given(st.data())
def test_matrices(shared, tmp_path, data):
    write_damaged(data, tmp_path / "matrix.toml", MATRIX)
    assert_answered("reproduce", "demo", "--matrix", tmp_path / "matrix.toml", "--plan", "--out", tmp_path / "out")


@FEW
@given(st.data())
def test_curves(shared, tmp_path, data):
    """In a report, and when a resumed run draws them again."""
    toy = shared[0]
    run = tmp_path / "toy"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(toy.folder / "short" / "toy", run, symlinks=True)
    (path,) = run.glob("*.scalars.jsonl")
    write_damaged(data, path, path.read_text())
    quick = ["--shuffles", "9", "--bootstrap", "3", "--out", tmp_path / "page.html"]
    assert_answered("report", run, "--hyp", f"test={toy.test_trg}", *quick)
    more = [f"train.save_path:{tmp_path}", "train.max_iterations:4", f"train.tensorboard_dir:{tmp_path}/tb"]
    assert_answered("train", "-C", toy.config, *SHORT, *more)


@FEW
@given(st.data())
def test_states_with_other_values(shared, tmp_path, data):
    """A run that was stopped by somebody else: whatever its state holds, it goes on or is refused."""
    toy = shared[0]
    run = tmp_path / "toy"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(toy.folder / "short" / "toy", run, symlinks=True)
    state = torch.load(run / "train_state.pt", weights_only=True)
    place = state
    while True:
        key = data.draw(st.sampled_from(sorted(place, key=str)))
        if not isinstance(place[key], dict) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            break
        place = place[key]
    if data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(checkpoint_values)
    torch.save(state, run / "train_state.pt")
    (run / "train_state.previous.pt").unlink(missing_ok=True)
    assert_answered("train", "-C", toy.config, *SHORT, f"train.save_path:{tmp_path}", "train.max_iterations:4")
