"""Records of how text was prepared: what is stored comes back, and what cannot be used is refused."""

import json

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.text.preparation import (
    SidePreparation,
    TextPreparation,
    preparation_of_folder,
    preparation_of_training,
)
from tests.text.subword_models import BPE, CODES

SIDES = ("src", "trg")
ENTRY = {"language": "en", "steps": ["lowercase", "tokenise"], "split_hyphens": True}


def test_what_a_checkpoint_stores_comes_back():
    both = TextPreparation(SidePreparation("en", ("tokenise", "lowercase")), SidePreparation("de", segmentation=BPE))
    assert TextPreparation.from_state(json.loads(json.dumps(both.state())), "x") == both


def bpe(model, **more):
    return {"segmentation": {"kind": "bpe", "model": model, **more}}


OUTSIDE = r"is not a file below the record's folder \(copy it there"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": 5}, "names no language"),
        ({"steps": ["lower"]}, r"\['lower'\] is not a list of steps"),
        ({"steps": ["tokenise", "tokenise"]}, "is not a list of steps"),
        ({"segmentation": "bpe"}, "None is not a segmentation"),
        ({"segmentation": {"kind": "bpe"}}, "the segmentation is incomplete"),
        (bpe("x", threshold="2"), "the segmentation is incomplete"),
        (bpe("nowhere"), "nowhere: no such file of BPE codes"),
        ({"segmentation": {"kind": "sentencepiece", "model": "no"}}, "no: no such SentencePiece model"),
        (bpe("/etc/passwd"), OUTSIDE),
        (bpe("../secret"), OUTSIDE),
        (bpe("link"), OUTSIDE),
        (bpe("a\0b"), OUTSIDE),
        (bpe("codes", units="../secret", threshold=1), OUTSIDE),
        (bpe("corpus.json"), "corpus.json: line 1 is not a pair of units"),
    ],
)
def test_records_that_cannot_be_used_are_refused(tmp_path, change, message):
    """Above all those that name a file elsewhere: its text would be stored in every checkpoint."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (tmp_path / "secret").write_text("a b\n")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "codes").write_text(CODES)
    record = {"preparation": {"src": ENTRY, "trg": {**ENTRY, **change}, "a.de": {**ENTRY, **change}, "a.en": ENTRY}}
    (folder / "corpus.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=message):
        preparation_of_folder(folder, {}, SIDES, "x.ckpt")
    with pytest.raises(UserError, match=message):
        preparation_of_training({"src": str(folder / "a.en"), "trg": str(folder / "a.de")}, SIDES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "corpus.json: is not JSON"),
        ("[" * 100_000, "corpus.json: is not JSON"),
        ("[]", "is not the record of a prepared corpus"),
        ("{}", "does not say how its text was prepared"),
        (json.dumps({"preparation": {"b.en": ENTRY}}), r"says nothing about a.en, the text of x.ckpt, only about b.en"),
    ],
)
def test_folders_without_a_usable_record_are_refused(tmp_path, text, message):
    (tmp_path / "corpus.json").write_text(text)
    with pytest.raises(UserError, match=message):
        preparation_of_folder(tmp_path, {"src": "a.en", "trg": "a.de"}, SIDES, "x.ckpt")


def test_training_takes_a_record_of_both_texts_or_none(tmp_path):
    files = {"src": str(tmp_path / "a.en"), "trg": str(tmp_path / "a.de")}
    assert preparation_of_training(files, SIDES) is None
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": {"a.en": ENTRY}}))
    assert preparation_of_training(files, SIDES) is None
    (tmp_path / "corpus.json").write_text(json.dumps({"preparation": {"a.en": ENTRY, "a.de": ENTRY}}))
    found = preparation_of_training(files, SIDES)
    assert found is not None
    assert found.source.steps == ("lowercase", "tokenise")
    assert preparation_of_training({"src": 5}, SIDES) is None
