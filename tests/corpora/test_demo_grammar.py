"""The demo corpus speaks correct German: cases worked out by hand."""

import pytest

from pysimt_sac.corpora.demo_grammar import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
    Clause,
    Phrase,
    after_preposition,
    english_clause,
    german_inverted_clause,
    german_main_clause,
    german_subordinate_clause,
    noun_phrase,
    with_companion,
    with_relative_clause,
)
from pysimt_sac.corpora.demo_lexicon import Verb, parse_ambiguous, parse_nouns

MAN, BOY, WOMAN, BOOK, CAR = parse_nouns(
    "man/men mann/männer m, boy/boys junge/jungen m jungen, woman/women frau/frauen f, book/books buch/bücher n,"
    "old_car/old_cars auto/autos n"
)
A, THE, TWO, SEVERAL = ("a", ""), ("the", ""), ("two", "zwei"), ("several", "mehrere")
RED, OLD = ("red", "rot"), ("old", "alt")


@pytest.mark.parametrize(
    ("noun", "case", "determiner", "adjective", "english", "german"),
    [
        (MAN, NOMINATIVE, A, OLD, "an old man", "ein alter mann"),
        (MAN, ACCUSATIVE, A, OLD, "an old man", "einen alten mann"),
        (MAN, DATIVE, THE, OLD, "the old man", "dem alten mann"),
        (BOY, NOMINATIVE, THE, None, "the boy", "der junge"),
        (BOY, ACCUSATIVE, A, None, "a boy", "einen jungen"),
        (WOMAN, NOMINATIVE, A, RED, "a red woman", "eine rote frau"),
        (WOMAN, DATIVE, A, RED, "a red woman", "einer roten frau"),
        (BOOK, ACCUSATIVE, A, RED, "a red book", "ein rotes buch"),
        (BOOK, ACCUSATIVE, THE, RED, "the red book", "das rote buch"),
        (BOOK, NOMINATIVE, TWO, RED, "two red books", "zwei rote bücher"),
        (BOOK, DATIVE, TWO, RED, "two red books", "zwei roten büchern"),
        (WOMAN, DATIVE, SEVERAL, None, "several women", "mehreren frauen"),
        (CAR, DATIVE, TWO, None, "two old cars", "zwei autos"),
        (CAR, NOMINATIVE, A, None, "an old car", "ein auto"),
    ],
)
def test_articles_adjectives_and_nouns_agree(noun, case, determiner, adjective, english, german):
    phrase = noun_phrase(noun, case, determiner, adjective)
    assert (phrase.english, phrase.german) == (english, german)
    assert phrase.is_plural == (determiner not in (A, THE))


@pytest.mark.parametrize(
    ("preposition", "noun", "expected"),
    [("in", BOOK, "im buch"), ("in", WOMAN, "in der frau"), ("in der nähe von", MAN, "in der nähe vom mann")],
)
def test_prepositions_contract_with_the_article(preposition, noun, expected):
    assert after_preposition("x", preposition, noun_phrase(noun, DATIVE, THE)).german == expected


MEN = noun_phrase(MAN, NOMINATIVE, TWO)
PICKING_UP = Verb("picking up", "hebt", "heben", particle="auf")
WAITING_FOR = Verb("waiting for", "wartet", "warten", preposition="auf")
PLACE = Phrase("in the house", "im haus")


def test_separable_verbs_close_the_main_clause_and_join_in_the_subordinate_one():
    clause = Clause(MEN, PICKING_UP, noun_phrase(BOOK, ACCUSATIVE, A), PLACE)
    assert english_clause(clause) == "two men are picking up a book in the house"
    assert english_clause(clause, place_first=True) == "in the house , two men are picking up a book"
    assert german_main_clause(clause) == "zwei männer heben ein buch im haus auf"
    assert german_main_clause(clause, place_first=True) == "im haus heben zwei männer ein buch auf"
    assert german_inverted_clause(clause) == "heben zwei männer ein buch im haus auf"
    assert german_subordinate_clause(clause) == "zwei männer ein buch im haus aufheben"


def test_verbs_bring_their_preposition():
    clause = Clause(noun_phrase(WOMAN, NOMINATIVE, A), WAITING_FOR, noun_phrase(BOY, ACCUSATIVE, THE))
    assert german_main_clause(clause) == "eine frau wartet auf den jungen"
    assert german_subordinate_clause(clause) == "eine frau auf den jungen wartet"


def test_phrases_attached_to_the_subject():
    wearing = Verb("wearing", "trägt", "tragen")
    woman = with_relative_clause(noun_phrase(WOMAN, NOMINATIVE, A), "f", wearing, noun_phrase(BOOK, ACCUSATIVE, A))
    assert woman.english == "a woman who is wearing a book"
    assert woman.german == "eine frau , die ein buch trägt ,"
    assert with_companion(MEN, noun_phrase(BOY, DATIVE, A)).german == "zwei männer mit einem jungen"


def test_ambiguous_words_are_read_from_their_table():
    (letter,) = parse_ambiguous("letter; brief m office; buchstabe/buchstaben m school; 0.20; small")
    assert (letter.dominant.german, letter.rare.german_oblique) == ("brief", "buchstaben")
    assert (letter.dominant_topic, letter.rare_topic, letter.rare_share, letter.is_large) == (
        "office",
        "school",
        0.2,
        False,
    )
