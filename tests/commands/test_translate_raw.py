"""`pysimt translate --raw` and `pysimt-sac attach`: plain text in, plain text out, through the real command line."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pysimt_sac.cli import main_sac
from pysimt_sac.core.files import read_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.registry import METRICS
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from pysimt_sac.text.plain_text import tokenise_lines
from pysimt_sac.text.preparation import SidePreparation
from tests.plain_corpus import SENTENCES


@pytest.fixture
def without_record(plain_corpus, tmp_path):
    """The trained checkpoint as an earlier version would have written it."""
    content = torch.load(plain_corpus.checkpoint, weights_only=True)
    del content["history"]["preparation"]
    path = tmp_path / "old.ckpt"
    torch.save(content, path)
    return path


def test_training_stores_how_text_was_prepared(plain_corpus):
    found = load_checkpoint(plain_corpus.checkpoint).preparation
    assert (found.source.language, found.target.language) == ("en", "de")
    assert found.source.steps == ("lowercase", "normalise", "tokenise")
    assert found.source.split_hyphens
    assert found.source.segmentation is None
    codes = found.target.segmentation
    assert (codes.kind, codes.threshold) == ("bpe", 2)
    assert codes.model == "\n".join(read_lines(plain_corpus.data / "bpe.model"))
    assert codes.units == "\n".join(read_lines(plain_corpus.data / "bpe.vocab.de"))


def test_plain_text_is_translated_like_prepared_text(plain_corpus, pysimt, tmp_path):
    source = plain_corpus.raw / "test_2016_flickr.en"
    prepared, plain = tmp_path / "prepared", tmp_path / "plain"
    for search in (["-f", "gs"], ["-f", "bs", "-k", "3", "-N"]):
        assert pysimt("translate", plain_corpus.run, "-s", "test", "-o", prepared, *search).status == 0
        words = ["-s", "test", "-S", f"src:{source}", "-o", plain, *search]
        assert pysimt("translate", "--raw", plain_corpus.run, *words).status == 0
    for kind in ("gs", "beam3"):
        assert read_lines(Path(f"{plain}.test.{kind}.raw")) == read_lines(Path(f"{prepared}.test.{kind}.raw"))
    said = read_lines(Path(f"{plain}.test.beam3"))
    assert said == [line.lower() for line in SENTENCES["de"]]  # a corpus of five sentences is learned by heart
    n_best = read_lines(Path(f"{plain}.test.beam3.nbest"))
    assert len(n_best) == 15
    assert n_best[0].startswith("0 ||| ein mann in einem t-shirt schläft. ||| -")


def test_standard_input_and_a_compressed_file_give_the_same(plain_corpus, pysimt, translate_stdin, tmp_path):
    text = ("\n".join(SENTENCES["en"]) + "\n").encode()
    outcome = translate_stdin(text, "--raw", plain_corpus.checkpoint)
    assert outcome.status == 0
    assert outcome.out.splitlines() == [line.lower() for line in SENTENCES["de"]]
    (tmp_path / "x.en.gz").write_bytes(gzip.compress(text))
    words = ["-s", "x", "-S", f"src:{tmp_path}/x.en.gz", "-o", tmp_path / "out"]
    assert pysimt("translate", "--raw", plain_corpus.checkpoint, *words).status == 0
    assert (tmp_path / "out.x.gs").read_text() == outcome.out


def hostile_lines():
    """A thousand lines of what people have in their files; every tenth is a sentence that the model knows."""
    kinds = [
        "",
        "   ",
        "\U0001f600 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
        "שלום עולם \u202e right to left مرحبا",
        "NUL \0 byte",
        "Windows line end\r",
        "old\rMac\rline\rends",
        "line\u2028separator\u2029paragraph\x85next\x0bvertical\x0cform",
        "tabs\tand\u00a0spaces\u3000everywhere",
        "<unk> <eos> @@ @-@ ▁ &apos; ||| [x] 中文 한국어 e\u0301\u200b\ufeff\x1b[31m \x7f",
    ]
    lines = [SENTENCES["en"][number // 10 % 5] if number % 10 == 3 else kinds[number % 10] for number in range(1000)]
    lines[7], lines[500] = "word " * 5000, "x" * 20000
    return lines


def test_hostile_text_keeps_all_lines_in_order(plain_corpus, pysimt, translate_stdin, tmp_path):
    lines = hostile_lines()
    content = "\n".join(lines).encode()  # without a last newline
    outcome = translate_stdin(content, "--raw", plain_corpus.checkpoint, "-m", "40", "-b", "64")
    assert outcome.status == 0, outcome.err
    translated = outcome.out.removesuffix("\n").split("\n")
    assert len(translated) == len(outcome.out.splitlines()) == 1000
    known = {en: de.lower() for en, de in zip(SENTENCES["en"], SENTENCES["de"], strict=True)}
    assert [translated[number] for number in range(3, 1000, 10)] == [known[lines[n]] for n in range(3, 1000, 10)]
    assert all(bool(text) == bool(line.strip()) for text, line in zip(translated, lines, strict=True))
    source = tmp_path / "hostile"
    source.write_bytes(b"\xef\xbb\xbf" + content)  # a byte-order mark is no word, either
    words = ["-s", "x", "-S", f"src:{source}", "-o", tmp_path / "out", "-m", "40", "-b", "64"]
    assert pysimt("translate", "--raw", plain_corpus.checkpoint, *words).status == 0
    assert (tmp_path / "out.x.gs").read_text() == outcome.out


def test_input_that_is_not_text_is_refused_in_one_line(plain_corpus, pysimt, translate_stdin, tmp_path):
    outcome = translate_stdin(b"A man\ncaf\xe9\n", "--raw", plain_corpus.checkpoint)
    assert outcome.status == 2
    assert "standard input: line 2 is not valid UTF-8 (convert it" in outcome.error
    assert outcome.out.count("\n") == 1
    (tmp_path / "x.en").write_bytes(b"A man\ncaf\xe9\n")
    words = ["-s", "x", "-S", f"src:{tmp_path}/x.en", "-o", tmp_path / "out"]
    assert "line 2 is not valid UTF-8" in pysimt("translate", "--raw", plain_corpus.checkpoint, *words).error
    assert not list(tmp_path.glob("out*"))
    outcome = translate_stdin(b"word " * 5001, "--raw", plain_corpus.checkpoint)
    assert "standard input: line 1 has 5001 words (write one sentence per line)" in outcome.error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--prepare FOLDER", "--prepare: is only for plain text (add --raw)"),
        ("--raw -s test -o x", "--raw: the splits of a configuration are prepared text (give plain text on standard"),
        ("--raw -n", "--raw: cannot be combined with -n"),
        ("--raw --prepare nowhere", "nowhere: no such folder"),
        ("--raw -s a -S trg:x -o x", "-S: 'trg:x' is not of the form src:FILE"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(plain_corpus, pysimt, words, message):
    assert message in pysimt("translate", plain_corpus.checkpoint, *words.split()).error


def test_the_folder_of_a_record_can_be_given(plain_corpus, without_record, translate_stdin):
    text = SENTENCES["en"][0].encode()
    error = translate_stdin(text, "--raw", without_record).error
    assert "old.ckpt: does not record how its text was prepared (give the folder of its prepared corpus with" in error
    assert "--prepare FOLDER" in error
    outcome = translate_stdin(text, "--raw", without_record, "--prepare", plain_corpus.data)
    assert outcome.out == translate_stdin(text, "--raw", plain_corpus.checkpoint).out != ""


def test_attach_adds_the_record_and_nothing_else(plain_corpus, without_record, translate_stdin, tmp_path, capfd):
    new = tmp_path / "new.ckpt"
    assert main_sac(["attach", str(without_record), str(plain_corpus.data), "-o", str(new)]) == 0
    assert "new.ckpt: can translate plain text, en -> de" in capfd.readouterr().out
    trained, attached = (torch.load(path, weights_only=True) for path in (plain_corpus.checkpoint, new))
    assert attached["history"] == trained["history"]
    assert attached["opts"] == trained["opts"]
    assert attached["vocabularies"] == trained["vocabularies"]
    assert all(torch.equal(weight, trained["model"][name]) for name, weight in attached["model"].items())
    assert translate_stdin(b"A boy, a girl and a dog.", "--raw", new).out == "ein junge, ein mädchen und ein hund.\n"


def test_attach_keeps_a_runs_link_to_its_best_checkpoint(plain_corpus, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(plain_corpus.run, run, symlinks=True)
    (link,) = run.glob("*.best.bleu.ckpt")
    content = torch.load(link, weights_only=True)
    del content["history"]["preparation"]
    torch.save(content, link.resolve())
    before = {path.name for path in run.iterdir()}
    assert main_sac(["attach", str(run), str(plain_corpus.data)]) == 0
    assert {path.name for path in run.iterdir()} == before
    assert link.is_symlink()
    assert load_checkpoint(link).preparation is not None


def test_attach_refuses_the_folder_of_another_corpus(plain_corpus, without_record, tmp_path, capsys):
    before = without_record.read_bytes()
    assert main_sac(["prepare", "demo", "--out", str(tmp_path / "demo")]) == 0
    for folder, message in (
        (tmp_path / "demo", "says nothing about train.lc.norm.tok.en, the text of"),
        (tmp_path, "corpus.json: no such record of a prepared corpus"),
    ):
        assert main_sac(["attach", str(without_record), str(folder)]) == 2
        assert message in capsys.readouterr().err
    assert without_record.read_bytes() == before


def test_a_record_may_be_written_by_hand(plain_corpus, without_record, translate_stdin, tmp_path):
    """By the names of the sides; the codes are files beside it."""
    sides = {name: {"language": name, "steps": ["lowercase", "normalise", "tokenise"]} for name in ("en", "de")}
    sides["en"]["split_hyphens"] = sides["de"]["split_hyphens"] = True
    sides["de"]["segmentation"] = {"kind": "bpe", "model": "codes"}
    shutil.copy(plain_corpus.data / "bpe.model", tmp_path / "codes")
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": {"src": sides["en"], "trg": sides["de"]}}))
    outcome = translate_stdin(b"A boy, a girl and a dog.", "--raw", without_record, "--prepare", tmp_path)
    assert outcome.out == "ein junge, ein mädchen und ein hund.\n"


def test_training_warns_of_a_damaged_record_and_goes_on(plain_corpus, pysimt, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(plain_corpus.data, data)
    (data / "corpus.json").write_text("{")
    config = tmp_path / "x.conf"
    config.write_text(plain_corpus.config.read_text().replace(str(plain_corpus.data), str(data)))
    outcome = pysimt("train", "-C", config, f"train.save_path:{tmp_path}", "train.max_epochs:1")
    assert outcome.status == 0
    assert "Warning: checkpoints will not know how to prepare plain text" in outcome.err
    (path,) = (tmp_path / "x").glob("*.best.bleu.ckpt")
    assert load_checkpoint(path).preparation is None


def test_a_damaged_record_in_a_checkpoint_is_refused(plain_corpus, translate_stdin, tmp_path):
    content = torch.load(plain_corpus.checkpoint, weights_only=True)
    content["history"]["preparation"] = ["junk"]
    torch.save(content, tmp_path / "x.ckpt")
    error = translate_stdin(b"A man", "--raw", tmp_path / "x.ckpt").error
    assert "its record of the preparation is damaged (give it a new one: pysimt-sac attach)" in error
    assert translate_stdin(b"a man", tmp_path / "x.ckpt").status == 0


def test_an_averaged_checkpoint_keeps_the_record(plain_corpus, tmp_path):
    path, copy = plain_corpus.checkpoint, tmp_path / "copy.ckpt"
    shutil.copy(path, copy)
    assert main_sac(["average", str(path), str(copy), "-o", str(tmp_path / "mean.ckpt")]) == 0
    assert load_checkpoint(tmp_path / "mean.ckpt").preparation == load_checkpoint(path).preparation


def test_translating_imports_nothing_of_training_or_reports(plain_corpus):
    """Start-up is torch's own import and little else: nothing of training, of curves or of reports."""
    script = "import sys; from pysimt_sac.cli import main\n"
    script += "assert main(['translate', '--raw', sys.argv[1]]) == 0\n"
    script += "heavy = {'tensorboard', 'matplotlib', 'pandas', 'scipy', 'torch.utils.tensorboard', 'torch._dynamo'}\n"
    script += "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    words = [sys.executable, "-c", script, str(plain_corpus.checkpoint)]
    done = subprocess.run(words, input="A man.\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_raw_multi30k_has_the_bleu_of_prepared_multi30k(research_data, tmp_path, pysimt):
    """The first 200 sentences of test_2016_flickr; the plain translation is prepared again to be scored."""

    paper, split = research_data / "data/multi30k/paper/en-de", "test_2016_flickr"
    for name in ("bpe.model", "bpe.vocab.de"):
        shutil.copy(paper / name, tmp_path / name)
    side = {"steps": ["lowercase", "normalise", "tokenise"], "split_hyphens": True}
    cut = {"kind": "bpe", "model": "bpe.model", "units": "bpe.vocab.de", "threshold": 2}
    record = {"src": {"language": "en", **side}, "trg": {"language": "de", **side, "segmentation": cut}}
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": record}))
    sources = {
        "plain": read_lines(research_data / f"data/multi30k/raw/{split}.en.gz"),
        "prepared": read_lines(paper / f"{split}.lc.norm.tok.en"),
    }
    vocabularies = [
        f"vocabulary.{s}:{paper}/train.lc.norm.tok.{v}" for s, v in (("src", "vocab.en"), ("trg", "bpe.vocab.de"))
    ]
    for kind, lines in sources.items():
        (tmp_path / f"{kind}.en").write_text("".join(f"{line}\n" for line in lines[:200]), encoding="utf-8")
        words = ["-s", "x", "-S", f"src:{tmp_path}/{kind}.en", "-o", tmp_path / kind, "-b", "50", "-x", *vocabularies]
        raw = ["--raw", "--prepare", tmp_path] if kind == "plain" else []
        assert pysimt("translate", research_data / "checkpoints/pysimt-mle-en-de.ckpt", *raw, *words).status == 0
    again = tokenise_lines(SidePreparation("de", split_hyphens=True), read_lines(tmp_path / "plain.x.gs"))
    plain = FilterChain(["de-hyphen"])(again)
    references = [read_lines(paper / f"{split}.lc.norm.tok.de.dehyph")[:200]]
    bleu = METRICS.get("bleu").compute
    assert bleu(plain, references) == bleu(read_lines(tmp_path / "prepared.x.gs"), references) > 30
