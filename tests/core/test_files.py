"""Text is read with its surprises named; files appear whole or not at all."""

import gzip

import pytest

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import atomic_folder, atomic_write, read_lines


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
