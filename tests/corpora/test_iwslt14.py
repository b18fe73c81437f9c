"""IWSLT14 from a small archive in the official format, and from plain files."""

import json
import tarfile

import pytest

from pysimt_sac.core.files import read_lines
from pysimt_sac.corpora.iwslt14 import Iwslt14Settings, is_kept

LONG = " ".join(["wort"] * 60)


def tagged(language):
    """A training text: two talks, 48 short sentences, one too long, one lopsided."""
    lines = ["<url>http://talks/1</url>", "<keywords>talks, science</keywords>", "<speaker>A B</speaker>"]
    lines += ["<talkid>1</talkid>", f"<title>Titel {language}</title>", f"<description>Text {language}</description>"]
    lines += [f" Das ist Satz {number}, {language}. " for number in range(46)]
    lines += ['<reviewer href="x">R</reviewer>', '<translator href="x">T</translator>', LONG]
    return [*lines, "Kurz." if language == "de" else "This is by far too much to be the same."]


def reference_set(name, language, sentences):
    segments = [f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(sentences, start=1)]
    return ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", f'<refset setid="{name}">', *segments, "</mteval>"]


@pytest.fixture
def archive(tmp_path):
    """The folder that the official archive unpacks to."""
    folder = tmp_path / "de-en"
    folder.mkdir()
    for language in ("de", "en"):
        files = {f"train.tags.de-en.{language}": tagged(language)}
        for name in ("TED.tst2010", "TED.dev2010", "TEDX.dev2012"):
            sentences = [f"Satz von {name[-7:]}.", f"R&amp;D, it’s {language}"]
            files[f"IWSLT14.{name}.de-en.{language}.xml"] = reference_set(name, language, sentences)
        for name, lines in files.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_the_archive_becomes_three_splits(archive, prepare, tmp_path):
    status, output, progress = prepare("iwslt14", "--raw", archive, "--out", tmp_path / "out", "--jobs", "1")
    assert status == 0
    folder = tmp_path / "out/de-en"
    train, val = (read_lines(folder / f"{split}.tok.lc.de") for split in ("train", "val"))
    # Title, description and 46 sentences are kept; pairs 23 and 46 of these are validation.
    assert (len(train), len(val)) == (46, 2)
    assert train[:3] == ["titel de", "text de", "das ist satz 0 , de ."]
    assert val == ["das ist satz 20 , de .", "das ist satz 43 , de ."]
    assert read_lines(folder / "val.tok.lc.en")[0] == "das ist satz 20 , en ."
    test = read_lines(folder / "test.tok.lc.en")
    assert test[::2] == ["satz von dev2010 .", "satz von dev2012 .", "satz von tst2010 ."]
    assert set(test[1::2]) == {"r &amp; d , it &apos;s en"}
    vocabulary = json.loads((folder / "train.tok.lc-min3.vocab.de").read_text())
    assert list(vocabulary)[4:] == ["de", "das", "ist", "satz", ",", "."]
    assert "train: 48 of 50 pairs kept" in progress
    assert "train.tok.lc.de         46" in output


def test_a_packed_archive_is_the_same_as_an_unpacked_one(archive, prepare, tmp_path, contents):
    packed = tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "de-en.tgz", "w:gz") as tar:
        tar.add(archive, "2014-01/texts/de/en/de-en")
    for out, raw in (("a", archive), ("b", packed), ("c", packed / "de-en.tgz"), ("d", archive.parent)):
        assert prepare("iwslt14", "--raw", raw, "--out", tmp_path / out, "--jobs", "1")[0] == 0
    first = contents(tmp_path / "a")
    assert len(first) == 9
    assert all(contents(tmp_path / out) == first for out in "bcd")


def test_long_and_lopsided_pairs_are_dropped():
    settings = Iwslt14Settings(max_words=4)
    assert is_kept(("a b", "a b c"), settings)
    assert not is_kept(("a", "a b"), settings)
    assert not is_kept(("a b c d", "a b c d e"), settings)
    assert not is_kept(("", "a"), settings)
    assert Iwslt14Settings().max_words == 50


def test_plain_files_with_a_validation_set_are_not_split(prepare, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for language in ("de", "en"):
        for split, size in (("train", 30), ("valid", 4), ("test", 2)):
            (raw / f"{split}.{language}").write_text("Ein Satz.\n" * size)
        for split in ("valid", "test"):  # what is too long is dropped, but not from the test set
            with open(raw / f"{split}.{language}", "a", encoding="utf-8") as stream:
                stream.write(f"{LONG}\n")
    assert prepare("iwslt14", "--raw", raw, "--out", tmp_path / "out", "--jobs", "1", "--min-freq", "31")[0] == 0
    sizes = {split: len(read_lines(tmp_path / f"out/de-en/{split}.tok.lc.de")) for split in ("train", "val", "test")}
    assert sizes == {"train": 30, "val": 4, "test": 3}
    assert len(json.loads((tmp_path / "out/de-en/train.tok.lc-min31.vocab.en").read_text())) == 4


def shorten(archive, name, lines):
    """Remove the last lines of a file."""
    path = archive / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-lines]))


def remove(archive, pattern):
    for path in archive.glob(pattern):
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ((remove, "*.xml"), "no *.de-en.de.xml here"),
        (
            (shorten, "IWSLT14.TED.dev2010.de-en.en.xml", 2),
            "de.xml has 2 sentences but IWSLT14.TED.dev2010.de-en.en.xml has 1 sentences",
        ),
        (
            (shorten, "train.tags.de-en.en", 1),
            "train.tags.de-en.de has 50 sentences but train.tags.de-en.en has 49 sentences",
        ),
        ((remove, "train.tags.de-en.en"), "train.tags.de-en.en: no such text file"),
    ],
)
def test_a_damaged_archive_is_one_line_and_leaves_nothing(archive, prepare, tmp_path, damage, message):
    change, *words = damage
    change(archive, *words)
    status, _, progress = prepare("iwslt14", "--raw", archive, "--out", tmp_path / "out")
    assert status == 2
    assert message in progress.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["de-en"]


@pytest.mark.parametrize(("name", "message"), [("de-en.tgz", "broken archive"), ("notes.txt", "no IWSLT14 data here")])
def test_files_that_are_no_archive_are_refused(refused, tmp_path, name, message):
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / name).write_bytes(b"this is not a tar file")
    refused(message, "iwslt14", "--raw", raw, "--out", tmp_path / "out")


def test_the_published_validation_and_test_sets_are_prepared(research_data, prepare, tmp_path):
    status, _, progress = prepare("iwslt14", "--raw", research_data / "data/iwslt14", "--out", tmp_path / "out")
    assert status == 0
    assert "no training text, no vocabularies" in progress
    assert len(read_lines(tmp_path / "out/de-en/test.tok.lc.en")) == 6750
    assert len(read_lines(tmp_path / "out/de-en/val.tok.lc.en")) == 6977
    assert not list((tmp_path / "out/de-en").glob("*vocab*"))
    assert read_lines(tmp_path / "out/de-en/val.tok.lc.en")[0] == "it &apos;s that pyramid ."
