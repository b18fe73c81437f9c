"""Text and records are read with their surprises named; files appear whole or not at all."""

import dataclasses
import gzip
from typing import Any

import pytest

from pysimt_sac.core.curves import Point, read_points
from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import atomic_folder, atomic_write, read_json, read_lines, read_toml, stream_lines
from pysimt_sac.core.records import restore


def test_only_newlines_separate_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\x0btwo\u2028three\nfour".encode())
    assert read_lines(path) == ["one\x0btwo\u2028three", "four"]


def test_gzip_is_read_like_plain_text(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress("zwei männer\n".encode()))
    assert read_lines(path) == ["zwei männer"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\xff\n", "line 2 is not valid UTF-8"),
        (b"\xef\xbb\xbfa\n", "byte-order mark"),
        (b"a\nb\r\n", "line 2 has a carriage return"),
        (b"a\0b\n", "line 1 has a NUL byte"),
    ],
)
def test_surprising_characters_are_named_with_their_line(tmp_path, content, message):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_lines(path)


def test_broken_gzip_and_folders_are_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"hello world" * 100)[:-20])
    with pytest.raises(UserError, match="broken gzip"):
        read_lines(path)
    with pytest.raises(UserError, match="is a folder"):
        read_lines(tmp_path)
    with pytest.raises(UserError, match="no such"):
        read_lines(tmp_path / "missing")


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path):
    path = tmp_path / "a.gz"
    with gzip.open(path, "wb") as stream:
        for _ in range(20):
            stream.write(b"a b\n" * (1 << 18))
    with pytest.raises(UserError, match="unpacks to more than 30 times its size"):
        for _ in stream_lines(path):
            pass


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as stream:
        stream.write("new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_folder_is_not_created(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "out") as folder:
        (folder / "half").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_keeps_what_it_had(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("1")
    with atomic_folder(out) as folder:
        (folder / "new").write_text("2")
    assert sorted(p.name for p in out.iterdir()) == ["mine", "new"]
    assert list(tmp_path.iterdir()) == [out]


def test_the_nearest_name_is_offered():
    assert did_you_mean("optimzer", ["optimizer", "lr"]) == "did you mean 'optimizer'?"
    assert did_you_mean("zzz", ["a", "b"]) == "known: a, b"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 60 + "]" * 60, "[" * 100_000, "9" * 5000, "1e999", "NaN", '"\\ud800"', '{"\\udfff": 1}'],
    ids=lambda text: text[:12],
)
def test_json_that_would_break_its_readers_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json: is not JSON: "):
        read_json(tmp_path / "a.json", "record")


def test_toml_too(tmp_path):
    (tmp_path / "a.toml").write_text("a = inf")
    with pytest.raises(UserError, match=r"a\.toml: is not TOML: inf is not a finite number"):
        read_toml(tmp_path / "a.toml", "matrix")


@dataclasses.dataclass
class Inner:
    number: float
    words: tuple[str, ...] = ()


@dataclasses.dataclass
class Outer:
    inner: dict[str, Inner]
    pair: tuple[int, float | None]
    more: list[Any] = dataclasses.field(default_factory=list)


def test_a_dataclass_is_restored_from_plain_values():
    stored = {"inner": {"a": {"number": 1, "words": ["x"]}, "b": {"number": 0.5}}, "pair": [3, None]}
    assert restore(Outer, stored) == Outer({"a": Inner(1, ("x",)), "b": Inner(0.5)}, (3, None))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([], "it is not"),
        ({"pair": [1, 2.0]}, "it lacks 'inner'"),
        ({"inner": {}, "pair": [1, 2.0], "other": 1}, "it has the unknown 'other'"),
        ({"inner": {"a": {"number": "1"}}, "pair": [1, 2.0]}, r"it\.inner\.a\.number is not"),
        ({"inner": {"a": {"number": True}}, "pair": [1, 2.0]}, r"it\.inner\.a\.number is not"),
        ({"inner": {"a": {"number": 1, "words": "x"}}, "pair": [1, 2.0]}, r"it\.inner\.a\.words is not"),
        ({"inner": {1: {"number": 1}}, "pair": [1, 2.0]}, r"a key of it\.inner is not"),
        ({"inner": {}, "pair": [1, 2.0, 3]}, r"it\.pair is not"),
        ({"inner": {}, "pair": [10**40, None]}, r"it\.pair\[0\] is not"),
        ({"inner": {}, "pair": [1, "2"]}, r"it\.pair\[1\] is not"),
    ],
)
def test_other_types_and_missing_fields_are_named(stored, message):
    with pytest.raises(TypeError, match=message):
        restore(Outer, stored)


def test_points_of_curves_are_checked_but_for_a_last_line_that_is_still_being_written(tmp_path):
    path, point = tmp_path / "x.jsonl", Point(3, "loss", None)
    path.write_text(point.line() + '{"step": 4')
    assert list(read_points(path)) == [point]
    path.write_text('{"step": 4.5, "name": "loss", "value": 1}\n' + point.line())
    with pytest.raises(UserError, match=r"x\.jsonl, line 1: is not a point of a curve: it\.step is not"):
        list(read_points(path))
