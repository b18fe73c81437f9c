"""Plain text through the steps of a preparation and back, by hand; records that cannot be used."""

import base64
import json

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.corpora.plain_text import PlainSide
from pysimt_sac.corpora.segmentation import kind_of_model
from pysimt_sac.hosts.engine.data.text_preparation import (
    Segmentation,
    SidePreparation,
    TextPreparation,
    preparation_of_folder,
    preparation_of_training,
)

CODES = "#version: 0.2\nl o\nlo w</w>\nlo w"
BPE = Segmentation("bpe", CODES, "low 5\nlow@@ 1\nlo@@ 2\nw@@ 2\ne@@ 2\nr 2", 2)
ENTRY = {"language": "en", "steps": ["lowercase", "tokenise"], "split_hyphens": True}


@pytest.mark.parametrize(
    ("side", "plain", "prepared"),
    [
        (SidePreparation("en", split_hyphens=True), "a man's t-shirt.", "a man &apos;s t @-@ shirt ."),
        (SidePreparation("fr"), "l'été est beau.", "l&apos; été est beau ."),
        (SidePreparation("de", segmentation=BPE), "low, lower", "l@@ o@@ w@@ , lo@@ w@@ e@@ r"),
        (SidePreparation("en", ("tokenise",)), "Mr. Smith (55) says: no!", "Mr. Smith ( 55 ) says : no !"),
        (SidePreparation("en", ()), "Left alone, all.", "Left alone, all."),
        (SidePreparation("en"), "", ""),
    ],
)
def test_there_and_back_by_hand(side, plain, prepared):
    found = PlainSide(side, "here")
    if side.segmentation is None:
        assert found.prepare([plain]) == [prepared]
    assert found.prepare(found.restore([prepared])) == found.prepare([plain])
    assert found.restore(found.prepare([plain])) == [plain]


def test_units_below_the_threshold_are_cut_further():
    side = SidePreparation("en", segmentation=BPE)
    assert PlainSide(side, "here").prepare(["Low lower"]) == ["low lo@@ w@@ e@@ r"]
    assert PlainSide(SidePreparation("en", segmentation=Segmentation("bpe", CODES)), "x").prepare(["lower"]) == [
        "low@@ e@@ r"
    ]


def test_a_sentence_begins_with_a_capital_unless_all_was_lowercased():
    assert PlainSide(SidePreparation("de", ("tokenise",)), "x").restore(["ein Hund ."]) == ["Ein Hund."]
    assert PlainSide(SidePreparation("de"), "x").restore(["ein hund ."]) == ["ein hund."]


def test_lines_stay_lines():
    side = PlainSide(SidePreparation("en"), "x")
    hostile = ["", " ", "\u2028", "a\u2028b", "a\tb", "a\x0bb\x85c", "\U0001f600 שלום", "a" * 9999]
    assert len(side.prepare(hostile)) == len(hostile)
    assert side.prepare(hostile)[:5] == ["", "", "", "a b", "a b"]
    assert [len(line.splitlines()) for line in side.restore(["a \u2028 b", "a\x85b"])] == [1, 1]


def test_what_a_checkpoint_holds_comes_back():
    both = TextPreparation(SidePreparation("en", ("tokenise", "lowercase")), SidePreparation("de", segmentation=BPE))
    assert TextPreparation.from_state(json.loads(json.dumps(both.state())), "x") == both


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": 5}, "names no language"),
        ({"steps": ["lower"]}, r"\['lower'\] is not a list of steps"),
        ({"steps": ["tokenise", "tokenise"]}, "is not a list of steps"),
        ({"segmentation": "bpe"}, "None is not a segmentation"),
        ({"segmentation": {"kind": "bpe"}}, "the segmentation is incomplete"),
        ({"segmentation": {"kind": "bpe", "model": "x", "threshold": "2"}}, "the segmentation is incomplete"),
        ({"segmentation": {"kind": "bpe", "model": "nowhere"}}, "nowhere: no such file of BPE codes"),
        ({"segmentation": {"kind": "sentencepiece", "model": "no"}}, "no: no such SentencePiece model"),
    ],
)
def test_records_that_cannot_be_used(tmp_path, change, message):
    record = {"preparation": {"src": ENTRY, "trg": {**ENTRY, **change}}}
    (tmp_path / "corpus.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=message):
        preparation_of_folder(tmp_path, {"src": "a.en", "trg": "a.de"}, ("src", "trg"), "x.ckpt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "corpus.json: is not JSON"),
        ("[]", "is not the record of a prepared corpus"),
        ("{}", "does not say how its text was prepared"),
        (json.dumps({"preparation": {"b.en": ENTRY}}), r"says nothing about a.en, the text of x.ckpt, only about b.en"),
    ],
)
def test_folders_without_a_usable_record(tmp_path, text, message):
    (tmp_path / "corpus.json").write_text(text)
    with pytest.raises(UserError, match=message):
        preparation_of_folder(tmp_path, {"src": "a.en", "trg": "a.de"}, ("src", "trg"), "x.ckpt")


def test_training_takes_a_record_of_both_texts_or_none(tmp_path):
    files = {"src": str(tmp_path / "a.en"), "trg": str(tmp_path / "a.de")}
    assert preparation_of_training(files, ("src", "trg")) is None
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": {"a.en": ENTRY}}))
    assert preparation_of_training(files, ("src", "trg")) is None
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": {"a.en": ENTRY, "a.de": ENTRY}}))
    found = preparation_of_training(files, ("src", "trg"))
    assert found is not None
    assert found.source.steps == ("lowercase", "tokenise")
    assert preparation_of_training({"src": 5}, ("src", "trg")) is None


def test_damaged_codes_are_named():
    with pytest.raises(UserError, match=r"x.ckpt: line 2 is not a pair"):
        PlainSide(SidePreparation("en", segmentation=Segmentation("bpe", "#version: 0.2\na b c")), "x.ckpt")


# SentencePiece


@pytest.fixture(scope="session")
def sentencepiece_model(tmp_path_factory):
    """A small model of the corpus's German and English."""
    package = pytest.importorskip("sentencepiece", reason="the extra `sentencepiece` is not installed")
    from tests.corpora.conftest import SENTENCES

    folder = tmp_path_factory.mktemp("sentencepiece")
    (folder / "text").write_text("\n".join(line.lower() for line in SENTENCES["en"] + SENTENCES["de"]))
    package.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=60, model_type="bpe", minloglevel=2
    )
    return folder / "m.model"


def test_sentencepiece_there_and_back(sentencepiece_model):
    assert kind_of_model(sentencepiece_model) == "sentencepiece"
    model = base64.b64encode(sentencepiece_model.read_bytes()).decode()
    side = PlainSide(SidePreparation("de", segmentation=Segmentation("sentencepiece", model)), "x")
    (pieces,) = side.prepare(["Ein Mann, ein Hund."])
    assert pieces.startswith("▁")
    assert len(pieces.split()) > 6
    assert side.restore([pieces]) == ["ein mann, ein hund."]
    assert side.prepare([""]) == [""]


def test_prepare_takes_a_sentencepiece_model(sentencepiece_model, prepare, raw, tmp_path):
    words = ("--pair", "en-de", "--jobs", "1", "--codes", sentencepiece_model, "--bpe-sides", "both")
    status, _, progress = prepare("multi30k", "--raw", raw, "--out", tmp_path / "out", *words)
    assert status == 0, progress
    folder = tmp_path / "out/en-de"
    assert (folder / "spm.model").read_bytes() == sentencepiece_model.read_bytes()
    assert not list(folder.glob("*bpe*"))
    files = {"src": folder / "train.lc.norm.tok.spm.en", "trg": folder / "train.lc.norm.tok.spm.de"}
    found = preparation_of_training(files, ("src", "trg"))
    raw_lines = (raw / "train.en").read_text(encoding="utf-8").splitlines()
    assert PlainSide(found.source, "x").prepare(raw_lines) == files["src"].read_text(encoding="utf-8").splitlines()
    status, _, progress = prepare(
        "multi30k", "--raw", raw, "--out", tmp_path / "no", *words, "--codes-vocab", sentencepiece_model
    )
    assert status == 2
    assert "--codes-vocab: is for BPE codes; a SentencePiece model has its own" in progress


def test_what_only_looks_like_a_sentencepiece_model(prepare, raw, tmp_path):
    pytest.importorskip("sentencepiece", reason="the extra `sentencepiece` is not installed")
    (tmp_path / "x.model").write_bytes(b"\n\x05junk")
    words = ("--pair", "en-de", "--codes", tmp_path / "x.model")
    status, _, progress = prepare("multi30k", "--raw", raw, "--out", tmp_path / "out", *words)
    assert status == 2
    assert "x.model: is not a SentencePiece model" in progress


def test_without_the_package_one_line_says_what_to_install(monkeypatch, prepare, raw, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "x.model").write_bytes(b"\nanything")
    words = ("--pair", "en-de", "--codes", tmp_path / "x.model")
    status, _, progress = prepare("multi30k", "--raw", raw, "--out", tmp_path / "out", *words)
    assert status == 2
    assert (
        "needs the package sentencepiece, which is not installed (pip install 'pysimt_sac[sentencepiece]')" in progress
    )
