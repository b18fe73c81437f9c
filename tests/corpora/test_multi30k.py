"""Multi30K through the real command line: what is written, that it repeats, and what is said about bad input."""

import gzip
import json
import shutil
import subprocess
import sys

import pytest

from pysimt_sac.core.files import read_lines

SMALL = ("--bpe-merges", "60")


@pytest.fixture
def run(prepare, raw, tmp_path):
    """Prepare the small corpus into `out`."""

    def prepared(*arguments, out="out", units=SMALL):
        return prepare("multi30k", "--raw", raw, "--out", tmp_path / out, "--jobs", "1", *units, *arguments)

    return prepared


def test_files_and_names_are_the_papers(run, tmp_path):
    status, output, progress = run("--pair", "en-de")
    assert status == 0
    folder = tmp_path / "out/en-de"
    splits = ("train", "val", "test_2016_flickr", "test_2017_mscoco")
    expected = {f"{split}.lc.norm.tok.{language}" for split in splits for language in ("en", "de")}
    expected |= {f"{split}.lc.norm.tok.bpe.de" for split in splits}
    expected |= {f"{split}.lc.norm.tok.de.dehyph" for split in splits[1:]}
    expected |= {"train.lc.norm.tok.vocab.en", "train.lc.norm.tok.vocab.de", "train.lc.norm.tok.bpe.vocab.de"}
    expected |= {"bpe.model", "bpe.vocab.de", "corpus.json"}
    assert {path.name for path in folder.iterdir()} == expected
    assert read_lines(folder / "val.lc.norm.tok.en")[0] == "a man in a t @-@ shirt is sleeping ."
    assert read_lines(folder / "val.lc.norm.tok.de.dehyph")[0] == "ein mann in einem t-shirt schläft ."
    joined = [line.replace("@@ ", "") for line in read_lines(folder / "train.lc.norm.tok.bpe.de")]
    assert joined == read_lines(folder / "train.lc.norm.tok.de")
    assert "tokenising train.en (40 lines)" in progress
    assert "test_2017_mscoco.lc.norm.tok.bpe.de          3" in output


def test_both_pairs_of_the_paper_are_the_default_and_share_the_source(run, tmp_path):
    assert run()[0] == 0
    de, fr = (tmp_path / "out" / pair for pair in ("en-de", "en-fr"))
    assert (de / "train.lc.norm.tok.en").read_bytes() == (fr / "train.lc.norm.tok.en").read_bytes()
    assert "d&apos; une" in (fr / "val.lc.norm.tok.fr").read_text()
    record = json.loads((fr / "corpus.json").read_text())
    assert record["corpus"] == "multi30k en-fr"
    assert record["settings"]["bpe_sides"] == "target"
    assert set(record["inputs"]) == {
        f"{split}.{language}"
        for split in ("train", "val", "test_2016_flickr", "test_2017_mscoco")
        for language in ("en", "fr")
    }
    assert [row["unknown"] for row in record["statistics"] if row["file"].startswith("train")] == [0, 0]


def test_a_second_run_writes_identical_bytes_whatever_the_jobs(run, tmp_path, contents):
    assert run()[0] == 0
    first = contents(tmp_path / "out")
    assert run()[0] == 0
    assert contents(tmp_path / "out") == first
    assert run("--jobs", "2", out="parallel")[0] == 0
    assert contents(tmp_path / "parallel") == first


def test_compressed_and_plain_input_are_the_same(run, raw, tmp_path, contents):
    run("--pair", "en-de")
    for path in list(raw.iterdir()):
        if path.suffix != ".gz":
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    run("--pair", "en-de", out="from_gz")
    assert contents(tmp_path / "out") == contents(tmp_path / "from_gz")


def test_a_clone_of_the_dataset_is_recognised(prepare, raw, tmp_path):
    place = tmp_path / "dataset/data/task1/raw"
    shutil.copytree(raw, place)
    assert prepare("multi30k", "--raw", tmp_path / "dataset", "--out", tmp_path / "out", *SMALL)[0] == 0


def test_hyphens_and_sides_are_options(run, tmp_path):
    run("--pair", "de-en", "--no-split-hyphens", "--bpe-sides", "none", out="words")
    words = tmp_path / "words/de-en"
    assert read_lines(words / "val.lc.norm.tok.en")[0] == "a man in a t-shirt is sleeping ."
    assert not list(words.glob("*bpe*"))
    assert (words / "val.lc.norm.tok.en.dehyph").exists()
    run("--pair", "en-de", "--bpe-sides", "both", out="both")
    assert (tmp_path / "both/en-de/train.lc.norm.tok.bpe.vocab.en").exists()
    assert (tmp_path / "both/en-de/bpe.vocab.en").exists()


def test_given_codes_are_used(run, tmp_path):
    run("--pair", "en-de")
    learned = tmp_path / "out/en-de"
    given = ("--codes", learned / "bpe.model", "--codes-vocab", learned / "bpe.vocab.de")
    assert run("--pair", "en-de", units=given, out="given")[0] == 0
    name = "test_2016_flickr.lc.norm.tok.bpe.de"
    assert (tmp_path / "given/en-de" / name).read_bytes() == (learned / name).read_bytes()
    record = json.loads((tmp_path / "given/en-de/corpus.json").read_text())
    assert record["settings"]["codes"] == record["files"]["bpe.model"]


def test_codes_are_either_learnt_or_given(run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("--pair", "en-de", "--codes", "bpe.model")
    assert "argument --codes: not allowed with argument --bpe-merges" in capsys.readouterr().err


def remove_val(raw):
    (raw / "val.en").unlink()
    (raw / "val.de").unlink()


def remove_one_side(raw):
    (raw / "test_2016_flickr.de.gz").unlink()


def shorten(raw):
    (raw / "train.de").write_text("Ein Satz.\n")


def break_gzip(raw):
    path = raw / "test_2016_flickr.en.gz"
    path.write_bytes(path.read_bytes()[:-9])


def write_latin1(raw):
    (raw / "train.de").write_bytes("Ein Mädchen.\n".encode("latin-1") * 40)


def empty(raw):
    (raw / "val.en").write_text("")
    (raw / "val.de").write_text("")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_val, "val.en[.gz] and val.de[.gz] missing here"),
        (remove_one_side, "test_2016_flickr.de[.gz] missing here"),
        (shorten, "train.de: has 1 lines (train.en has 40"),
        (break_gzip, "test_2016_flickr.en.gz: broken gzip file"),
        (write_latin1, "train.de: line 1 is not valid UTF-8"),
        (empty, "val.en: is empty"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, raw, tmp_path, damage, message):
    damage(raw)
    status, output, progress = run("--pair", "en-de")
    assert status == 2
    assert output == ""
    errors = [line for line in progress.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert message in errors[0]
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--codes", "x"), "requires a single language pair"),
        (("--pair", "en-de", "--codes", "x"), "no such file of BPE codes"),
        (("--pair", "en-de", "--codes-vocab", "x"), "requires --codes"),
        (("--pair", "en-cs"), "train.cs[.gz] missing here"),
    ],
)
def test_options_that_do_not_fit_are_explained(run, tmp_path, arguments, message):
    status, _, progress = run(*arguments, units=())
    assert status == 2
    assert message in progress
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(prepare, raw, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file/out"):
        status, _, progress = prepare("multi30k", "--raw", raw, "--out", out, *SMALL)
        assert status == 2
        assert f"error: {tmp_path / 'file'}: " in progress
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "raw"]


def test_the_folder_of_another_corpus_is_not_overwritten(prepare, run, tmp_path):
    assert prepare("demo", "--out", tmp_path / "out/en-de")[0] == 0
    status, _, progress = run("--pair", "en-de")
    assert status == 2
    assert "contains another corpus (demo)" in progress


def test_an_empty_folder_says_what_is_expected(prepare, tmp_path):
    status, _, progress = prepare("multi30k", "--raw", tmp_path, "--out", tmp_path / "out")
    assert status == 2
    assert "no Multi30K training text here (expected train.en.gz with" in progress


def test_the_program_itself_says_one_line(raw, tmp_path):
    command = [sys.executable, "-m", "pysimt_sac", "prepare", "multi30k", "--raw", tmp_path / "no", "--out", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == f"pysimt-sac prepare: error: {tmp_path / 'no'}: no such folder (check the path)\n"


@pytest.mark.slow
def test_sizes_are_the_authors(prepare, shared, tmp_path):
    """The paper's vocabularies, special tokens included, within 2%."""
    raw_files = shared / "multi30k/raw"
    assert prepare("multi30k", "--raw", raw_files, "--out", tmp_path, "--jobs", "2")[0] == 0
    for name, size in (
        ("en-de/train.lc.norm.tok.vocab.en", 9797),
        ("en-de/train.lc.norm.tok.bpe.vocab.de", 6405),
        ("en-fr/train.lc.norm.tok.bpe.vocab.fr", 5874),
    ):
        assert len(json.loads((tmp_path / name).read_text(encoding="utf-8"))) == pytest.approx(size, rel=0.02)
