"""The demo corpus: the same bytes every time, ambiguous words that the sentence decides on, correct German."""

import csv
import hashlib
import json
from collections import Counter

import pytest

from pysimt_sac.corpora.demo import SPLIT_SIZES, generate
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
from pysimt_sac.corpora.demo_lexicon import AMBIGUOUS, TOPICS, Verb, parse_nouns

BYTES = "5442ec7e5771fd1ec2d0990907920a785afd617c25a41bd655a10f8b16e1569e"  # of all files


@pytest.fixture(scope="module")
def splits():
    return generate(seed=1)


def test_another_seed_makes_another_corpus(splits):
    assert generate(seed=2)["test"] != splits["test"]


def test_splits_do_not_overlap(splits):
    sources = [caption.english for captions in splits.values() for caption in captions]
    assert len(set(sources)) == len(sources) == sum(SPLIT_SIZES.values())


def test_ambiguous_words_have_a_dominant_and_a_rare_sense(splits):
    counts = Counter((caption.word, caption.translation) for caption in splits["train"])
    assert len(AMBIGUOUS) >= 10
    for entry in AMBIGUOUS:
        dominant = counts[entry.dominant.english, entry.dominant.german_oblique]
        rare = counts[entry.rare.english, entry.rare.german_oblique]
        assert 0.7 < dominant / (dominant + rare) < 0.95, entry.dominant.english
    ood = [caption for caption in splits["test_ood"] if caption.word]
    rare_forms = {entry.rare.german_oblique for entry in AMBIGUOUS}
    assert 0.4 < sum(caption.translation in rare_forms for caption in ood) / len(ood) < 0.6


def test_the_other_words_decide_on_the_sense(splits):
    topic_of = {}
    for entry in AMBIGUOUS:
        topic_of[entry.dominant.german_oblique] = (entry.dominant_topic, entry.rare_topic)
        topic_of[entry.rare.german_oblique] = (entry.rare_topic, entry.dominant_topic)

    def cues(english, topic):
        nouns = [noun for part in ("people", "small", "large", "places") for noun in getattr(TOPICS[topic], part)]
        forms = {form for noun in nouns for form in (noun.english, noun.english_plural)}
        return sum(f" {english} ".count(f" {form} ") for form in forms)

    for split in ("train", "test", "test_ood"):
        for caption in splits[split]:
            if caption.word:
                right, wrong = topic_of[caption.translation]
                assert cues(caption.english, right) > cues(caption.english, wrong), caption


def test_sentences_are_clean_and_contain_their_ambiguous_word(splits):
    for caption in (caption for captions in splits.values() for caption in captions):
        for text in (caption.english, caption.german):
            assert text == " ".join(text.lower().split())
            assert text.endswith(" .")
            assert ", ," not in text
            assert ", ." not in text
        if caption.word:
            assert caption.english.split().count(caption.word) == 1
            assert caption.translation in caption.german.split()


def test_the_command_writes_the_same_bytes_as_ever(tmp_path, prepare, contents):
    status, output, _ = prepare("demo", "--out", tmp_path / "demo")
    assert status == 0
    assert "train.en         4,000" in output
    found = contents(tmp_path / "demo")
    record = json.loads((tmp_path / "demo/corpus.json").read_text())
    del found["corpus.json"]  # has versions
    assert record["files"] == found
    assert hashlib.sha256("".join(f"{name} {found[name]}\n" for name in sorted(found)).encode()).hexdigest() == BYTES


def test_the_lists_of_ambiguous_words_point_to_their_sentences(tmp_path, prepare):
    prepare("demo", "--out", tmp_path)
    training = (tmp_path / "train.de").read_text().split()
    published = (tmp_path / "ambiguous.en-de.txt").read_text().splitlines()
    rows = 0
    for split in ("test", "test_ood"):
        sources = (tmp_path / f"{split}.en").read_text().splitlines()
        references = (tmp_path / f"{split}.de").read_text().splitlines()
        with open(tmp_path / f"{split}.mlt.tsv", encoding="utf-8") as stream:
            table = list(csv.DictReader(stream, delimiter="\t"))
        assert {row["rare"] for row in table} == {"0", "1"}
        for row in table:
            source, reference = sources[int(row["line"])], references[int(row["line"])]
            assert row["word"] in source.split()
            assert row["correct"] in reference.split()
            candidates = dict(candidate.rsplit(":", 1) for candidate in row["candidates"].split("|"))
            assert int(candidates[row["correct"]]) <= training.count(row["correct"])
            most_frequent = max(candidates, key=lambda form: int(candidates[form]))
            assert row["rare"] == str(int(row["correct"] != most_frequent))
            line = f"{row['word']} | {row['correct']} | {source} | {reference} | {split}/{row['line']}"
            assert published[rows] == line
            rows += 1
    assert rows == len(published)


# The grammar: cases worked out by hand

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
