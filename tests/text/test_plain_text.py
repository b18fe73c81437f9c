"""Plain text through the steps of a preparation and back, by hand, and the authors' own files."""

import base64

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.text.plain_text import PlainSide, tokenise_lines
from pysimt_sac.text.preparation import SidePreparation
from pysimt_sac.text.subwords import Segmentation, frequent_units, kind_of_model, make_segmenter
from tests.text.subword_models import BPE, CODES


@pytest.mark.parametrize(
    ("language", "raw", "expected"),
    [
        ("en", "A man's T-shirt.", "a man &apos;s t @-@ shirt ."),
        ("en", "Mr. Smith, 5,300 people & co", "mr. smith , 5,300 people &amp; co"),
        ("en", 'He says "no".', "he says &quot; no . &quot;"),
        ("de", "Er sagt „nein“.", "er sagt &quot; nein &quot; ."),
        ("de", 'Er sagt "nein."', "er sagt &quot; nein &quot; ."),
        ("fr", "Un garçon d'été\u00a0!", "un garçon d&apos; été !"),
        ("en", "", ""),
    ],
)
def test_lines_are_tokenised_like_moses(language, raw, expected):
    assert tokenise_lines(SidePreparation(language, split_hyphens=True), [raw]) == [expected]


def test_steps_are_applied_in_their_order_and_only_those_given():
    assert tokenise_lines(SidePreparation("de", ("tokenise", "lowercase")), ["Sagt „Nein“."]) == ["sagt „ nein “ ."]
    assert tokenise_lines(SidePreparation("en"), ["A well-known - T-shirt"]) == ["a well-known - t-shirt"]


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
def test_plain_text_is_prepared_and_restored(side, plain, prepared):
    found = PlainSide(side, "here")
    if side.segmentation is None:
        assert found.prepare([plain]) == [prepared]
    assert found.prepare(found.restore([prepared])) == found.prepare([plain])
    assert found.restore(found.prepare([plain])) == [plain]


def test_units_below_the_threshold_are_split_further():
    assert make_segmenter(BPE, "x")(["low lower"]) == ["low lo@@ w@@ e@@ r"]
    assert make_segmenter(Segmentation("bpe", CODES), "x")(["low lower"]) == ["low low@@ e@@ r"]


def test_a_sentence_begins_with_a_capital_unless_all_was_lowercased():
    assert PlainSide(SidePreparation("de", ("tokenise",)), "x").restore(["ein Hund ."]) == ["Ein Hund."]
    assert PlainSide(SidePreparation("de"), "x").restore(["ein hund ."]) == ["ein hund."]


def test_every_line_stays_one_line():
    side = PlainSide(SidePreparation("en"), "x")
    hostile = ["", " ", "\u2028", "a\u2028b", "a\tb", "a\x0bb\x85c", "\U0001f600 שלום", "a" * 9999]
    assert len(side.prepare(hostile)) == len(hostile)
    assert side.prepare(hostile)[:5] == ["", "", "", "a b", "a b"]
    assert [len(line.splitlines()) for line in side.restore(["a \u2028 b", "a\x85b"])] == [1, 1]


@pytest.mark.parametrize(
    ("codes", "line"), [("#version: 0.2\na b\na b c", 3), ("a", 1), ("a b\n no", 2), ("#version: two\na b", 1)]
)
def test_invalid_codes_and_units_are_refused_with_their_line(codes, line):
    with pytest.raises(UserError, match=f"x.ckpt: line {line} is not a pair"):
        PlainSide(SidePreparation("en", segmentation=Segmentation("bpe", codes)), "x.ckpt")
    for no_unit in ("b", "b x", "b " + "9" * 5000):
        with pytest.raises(UserError, match="line 2 is not a unit"):
            frequent_units(["a 1", no_unit], 1, "x")


def test_sentencepiece_units_are_made_and_joined(sentencepiece_model):
    assert kind_of_model(sentencepiece_model) == "sentencepiece"
    model = base64.b64encode(sentencepiece_model.read_bytes()).decode()
    side = PlainSide(SidePreparation("de", segmentation=Segmentation("sentencepiece", model)), "x")
    (pieces,) = side.prepare(["Ein Mann, ein Hund."])
    assert pieces.startswith("▁")
    assert len(pieces.split()) > 6
    assert side.restore([pieces]) == ["ein mann, ein hund."]
    assert side.prepare([""]) == [""]


@pytest.mark.parametrize(
    ("pair", "language", "split"),
    [
        ("en-de", "en", "val"),
        ("en-de", "en", "test_2016_flickr"),
        ("en-de", "de", "val"),
        ("en-de", "de", "test_2017_flickr"),
        ("en-fr", "fr", "test_2017_mscoco"),
    ],
)
def test_the_authors_tokenised_files_are_reproduced(research_data, pair, language, split):
    """Splits whose raw text is the same in the authors' older release."""
    folder = research_data / "data/multi30k"
    ours = tokenise_lines(
        SidePreparation(language, split_hyphens=True), read_lines(folder / f"raw/{split}.{language}.gz")
    )
    assert ours == read_lines(folder / f"paper/{pair}/{split}.lc.norm.tok.{language}")
