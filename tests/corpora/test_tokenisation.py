"""Tokenisation as Moses does it: cases by hand, and the authors' own files."""

import gzip

import pytest

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.corpora.tokenisation import Style, Tokeniser

SPLIT, WHOLE = Style(split_hyphens=True), Style(split_hyphens=False)


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
def test_lines_by_hand(language, raw, expected):
    assert Tokeniser(language, SPLIT)(raw) == expected


def test_hyphens_stay_on_request_and_can_be_joined_again():
    line = "A well-known - T-shirt"
    assert Tokeniser("en", WHOLE)(line) == "a well-known - t-shirt"
    assert FilterChain(["de-hyphen"])([Tokeniser("en", SPLIT)(line)]) == ["a well-known - t-shirt"]


def test_without_normalising_tokens_are_lowered_afterwards():
    plain = Style(("tokenise", "lowercase"))
    assert Tokeniser("de", plain)("Sagt „Nein“.") == "sagt „ nein “ ."


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
def test_the_authors_files_come_out(shared, pair, language, split):
    """Splits whose raw text is the same in the authors' older release."""
    tokenise = Tokeniser(language, SPLIT)
    with gzip.open(shared / f"multi30k/raw/{split}.{language}.gz", "rt", encoding="utf-8", newline="\n") as stream:
        ours = [tokenise(line.removesuffix("\n")) for line in stream]
    theirs = (shared / f"multi30k/paper/{pair}/{split}.lc.norm.tok.{language}").read_text(encoding="utf-8")
    assert ours == theirs.removesuffix("\n").split("\n")
