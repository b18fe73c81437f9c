"""`pysimt-sac prepare text`: from raw files to a configuration that trains, and the page that explains it."""

import gzip
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from pysimt_sac.cli import main, main_sac
from pysimt_sac.core.files import read_lines
from pysimt_sac.text.plain_text import PlainSide
from pysimt_sac.text.preparation import preparation_of_training
from tests.plain_corpus import SENTENCES

PAGE = Path(__file__).parents[2] / "docs/own-corpus.md"


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Raw files in the working directory: every sentence eight times, and three pairs that cannot be used."""
    monkeypatch.chdir(tmp_path)
    unusable = {"en": ["", "Long " * 101, "One"], "de": ["Leer.", "Lang " * 101, "Eins " * 10]}
    for language in ("en", "de"):
        lines = SENTENCES[language]
        write(f"train.{language}", [*lines * 8, *unusable[language]])
        write(f"valid.{language}", [*lines, "" if language == "en" else "Leer."])
        write(f"test.{language}", [*lines, "" if language == "en" else "Leer."])
    return tmp_path


def write(name, lines):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def words(*tests, out="data/mine"):
    files = [("--train", "train"), ("--valid", "valid"), *(("--test", name) for name in tests or ("test",))]
    sides = [word for flag, name in files for word in (flag, f"{name}.en", f"{name}.de")]
    return ["text", *sides, "--units", "60", "--jobs", "1", "--out", out]


def test_unusable_pairs_are_left_out_and_test_sets_keep_every_line(texts, prepare):
    status, output, progress = prepare(*words())
    assert status == 0, progress
    folder = texts / "data/mine/en-de"
    sizes = {split: len(read_lines(folder / f"{split}.norm.tok.bpe.de")) for split in ("train", "val", "test")}
    assert sizes == {"train": 40, "val": 5, "test": 6}
    assert "train: 3 of 43 pairs left out (an empty side, more than 100 words, or a length ratio above 9)" in progress
    assert "val: 1 of 6 pairs left out (an empty side)" in progress
    assert "next: pysimt train --check -C data/mine/en-de/mle.conf" in output
    assert read_lines(folder / "test.norm.tok.de.dehyph")[0] == "Ein Mann in einem T-Shirt schläft ."
    assert json.loads((folder / "corpus.json").read_text())["corpus"] == "text en-de"
    found = preparation_of_training(
        {side: folder / f"train.norm.tok.bpe.{side}" for side in ("en", "de")}, ("en", "de")
    )
    for side, language in ((found.source, "en"), (found.target, "de")):
        prepared = PlainSide(side, "x").prepare(SENTENCES[language])
        assert prepared == read_lines(folder / f"val.norm.tok.bpe.{language}")


def test_several_test_sets_are_splits_of_the_configuration_which_is_not_overwritten(texts, prepare):
    for language in ("en", "de"):
        (texts / f"News-2014.{language}.gz").write_bytes(gzip.compress(b"A man.\r\n" * 3))
    arguments = words("test", "News-2014")
    arguments = [f"{word}.gz" if word.startswith("News") else word for word in arguments]
    assert prepare(*arguments, "--lowercase", "--split-hyphens", "--sides", "target")[0] == 0
    config = texts / "data/mine/en-de/mle.conf"
    text = config.read_text()
    assert "eval_filters: de-bpe,de-hyphen\n" in text
    assert "src: lc.norm.tok\n" in text
    assert "trg: lc.norm.tok.bpe\n" in text
    assert set(re.findall(r"(?m)^(\w+)_set:", text)) == {"train", "val", "test", "news_2014"}
    config.write_text(f"{text}# mine\n")
    assert "mle.conf is kept as it is" in prepare(*arguments, "--lowercase", "--sides", "none")[2]
    assert config.read_text() == f"{text}# mine\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--train", "train.en", "train.en"], "--train: train.en and train.en do not end in two languages (give them"),
        (["--valid", "valid.en", "train.de"], "train.de: has 43 lines (valid.en has 6; line N of each must be"),
        (["--valid", "valid.en", "nowhere.de"], "nowhere.de: no such text file"),
        (["--max-words", "1"], "train.en: no usable sentence pair for train (of 43 lines)"),
        (["--test", "test.en", "test.de"], "--test: not the names of different test sets: test, test (rename"),
        (["--subwords", "sentencepiece"], "--subwords sentencepiece: needs the package sentencepiece"),
    ],
)
def test_mistakes_are_explained_and_leave_nothing(texts, refused, monkeypatch, change, message):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    refused(message, *words(), *change)
    assert not (texts / "data/mine").exists()


def test_sentencepiece_is_learned_on_request(texts, prepare):
    pytest.importorskip("sentencepiece", reason="the extra `sentencepiece` is not installed")
    assert prepare(*words(), "--subwords", "sentencepiece")[0] == 0
    assert read_lines(texts / "data/mine/en-de/val.norm.tok.spm.de")[0].startswith("▁")


@pytest.mark.slow
def test_the_page_works_as_it_is(texts, capsys):
    """Every command of docs/own-corpus.md, in order, with smaller numbers."""
    page = PAGE.read_text(encoding="utf-8")
    actor, out = "pretrained_file: ./runs/mle\n", "--out data/mine"
    smaller = {out: f"{out} --units 60 --jobs 1", actor: f"{actor}max_iterations: 8\neval_freq: 4\n"}
    for old, new in smaller.items():
        assert old in page
        page = page.replace(old, new)
    (config,) = re.findall(r"(?s)```ini\n(.*?)```", page)
    commands = [shlex.split(line) for line in re.findall(r"(?m)^    (pysimt.*)$", page)]
    assert len(commands) == 9
    for program, *arguments in commands:
        if "vine.conf" in " ".join(arguments):
            (texts / "data/mine/en-de/vine.conf").write_text(config)
        expected = 3 if "--check" in arguments else 0  # so few updates are less than the warm-up: that looks wrong
        assert (main if program == "pysimt" else main_sac)(arguments) == expected, arguments
    assert "BLEU" in capsys.readouterr().out
    assert len(read_lines(texts / "out/letter.letter.gs")) == 6
