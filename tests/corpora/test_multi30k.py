"""Multi30K through the real command line: what is written, that it repeats, and what is said about bad input."""

import gzip
import json
import shutil
import sys

import pytest

from pysimt_sac.core.files import read_lines
from pysimt_sac.text.plain_text import PlainSide
from pysimt_sac.text.preparation import preparation_of_training

SMALL = ("--bpe-merges", "60")


@pytest.fixture
def run(prepare, raw, tmp_path):
    """Prepare the small corpus into `out`."""

    def prepared(*arguments, out="out", units=SMALL):
        return prepare("multi30k", "--raw", raw, "--out", tmp_path / out, "--jobs", "1", *units, *arguments)

    return prepared


def test_files_and_their_names_are_the_papers(run, tmp_path):
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


def test_hyphens_can_stay_and_either_side_can_be_segmented(run, tmp_path):
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


def test_codes_are_either_learned_or_given(run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("--pair", "en-de", "--codes", "bpe.model")
    assert "argument --codes: not allowed with argument --bpe-merges" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val.en": None, "val.de": None}, "val.en[.gz] and val.de[.gz] missing here"),
        ({"test_2016_flickr.de.gz": None}, "test_2016_flickr.de[.gz] missing here"),
        ({"train.de": b"Ein Satz.\n"}, "train.de: has 1 lines (train.en has 40"),
        ({"test_2016_flickr.en.gz": gzip.compress(b"A man.\n" * 5)[:-9]}, "test_2016_flickr.en.gz: broken gzip file"),
        ({"train.de": "Ein Mädchen.\n".encode("latin-1") * 40}, "train.de: line 1 is not valid UTF-8"),
        ({"val.en": b"", "val.de": b""}, "val.en: is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(run, raw, tmp_path, changes, message):
    for name, content in changes.items():
        (raw / name).unlink(missing_ok=True)
        if content is not None:
            (raw / name).write_bytes(content)
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
def test_options_that_exclude_each_other_are_explained(run, tmp_path, arguments, message):
    status, _, progress = run(*arguments, units=())
    assert status == 2
    assert message in progress
    assert not (tmp_path / "out").exists()


# SentencePiece


def test_a_given_sentencepiece_model_segments_the_text(sentencepiece_model, run, raw, tmp_path):
    words = ("--pair", "en-de", "--codes", sentencepiece_model, "--bpe-sides", "both")
    status, _, progress = run(*words, units=())
    assert status == 0, progress
    folder = tmp_path / "out/en-de"
    assert (folder / "spm.model").read_bytes() == sentencepiece_model.read_bytes()
    assert not list(folder.glob("*bpe*"))
    files = {"src": folder / "train.lc.norm.tok.spm.en", "trg": folder / "train.lc.norm.tok.spm.de"}
    found = preparation_of_training(files, ("src", "trg"))
    assert PlainSide(found.source, "x").prepare(read_lines(raw / "train.en")) == read_lines(files["src"])
    status, _, progress = run(*words, "--codes-vocab", sentencepiece_model, units=(), out="no")
    assert status == 2
    assert "--codes-vocab: is for BPE codes; a SentencePiece model has its own" in progress


@pytest.mark.parametrize(
    ("is_installed", "message"),
    [
        (True, "x.model: is not a SentencePiece model"),
        (False, "needs the package sentencepiece, which is not installed (pip install 'pysimt_sac[sentencepiece]')"),
    ],
)
def test_an_unusable_sentencepiece_model_is_explained(monkeypatch, run, tmp_path, is_installed, message):
    if is_installed:
        pytest.importorskip("sentencepiece", reason="the extra `sentencepiece` is not installed")
    else:
        monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "x.model").write_bytes(b"\n\x05junk")
    status, _, progress = run("--pair", "en-de", "--codes", tmp_path / "x.model", units=())
    assert status == 2
    assert message in progress


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


def test_an_empty_folder_says_what_is_expected(refused, tmp_path):
    refused("no Multi30K training text here (expected train.en.gz", "multi30k", "--raw", tmp_path, "--out", tmp_path)


@pytest.mark.slow
def test_vocabularies_have_the_authors_sizes(prepare, research_data, tmp_path):
    """The paper's vocabularies, special tokens included, within 2%."""
    raw_files = research_data / "data/multi30k/raw"
    assert prepare("multi30k", "--raw", raw_files, "--out", tmp_path, "--jobs", "2")[0] == 0
    for name, size in (
        ("en-de/train.lc.norm.tok.vocab.en", 9797),
        ("en-de/train.lc.norm.tok.bpe.vocab.de", 6405),
        ("en-fr/train.lc.norm.tok.bpe.vocab.fr", 5874),
    ):
        assert len(json.loads((tmp_path / name).read_text(encoding="utf-8"))) == pytest.approx(size, rel=0.02)
