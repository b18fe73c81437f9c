"""Drawn mistakes: configurations, overrides, vocabularies, texts and checkpoints that nobody would think of.

Whatever comes in, `pysimt train --check` and `pysimt translate` end with 0, with 3 (a check found something) or, in one
line, with 2; never with 1, which is how the command line reports a mistake of ours. PYSIMT_SAC_FUZZ=2000 draws that
many examples, other ones each time.
"""

import io
import json
import math
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pysimt_sac.cli import main
from pysimt_sac.core.options import names
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions
from tests.conftest import make_toy

MORE = int(os.environ.get("PYSIMT_SAC_FUZZ", "0"))
FUZZ = settings(
    max_examples=MORE or 60,
    deadline=None,
    derandomize=not MORE,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def answer(*words):
    """The command's exit status and error line."""
    told = io.StringIO()
    with redirect_stderr(told), redirect_stdout(io.StringIO()):
        try:
            status = main([str(word) for word in words])
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A toy and a checkpoint that many examples share; what they write is written elsewhere."""
    toy = make_toy(tmp_path_factory.mktemp("fuzz") / "toy")
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
            status = main(["translate", str(shared[1]), "-m", "3"])
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
