"""The demo corpus: repeatable, without overlaps, with ambiguous words that the sentence decides on."""

import csv
import json
from collections import Counter

import pytest

from pysimt_sac.corpora.demo import SPLIT_SIZES, generate
from pysimt_sac.corpora.demo_lexicon import AMBIGUOUS, TOPICS


@pytest.fixture(scope="module")
def splits():
    return generate(seed=1)


def test_a_seed_repeats_the_corpus_and_another_makes_another(splits):
    assert generate(seed=1) == splits
    assert generate(seed=2)["test"] != splits["test"]


def test_splits_have_their_sizes_and_do_not_overlap(splits):
    assert {split: len(captions) for split, captions in splits.items()} == SPLIT_SIZES
    sources = [caption.english for captions in splits.values() for caption in captions]
    assert len(set(sources)) == len(sources)


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


def test_ambiguous_words_and_their_translations_are_in_the_sentences(splits):
    for captions in splits.values():
        for caption in captions:
            if caption.word:
                assert caption.english.split().count(caption.word) == 1
                assert caption.translation in caption.german.split()


def test_sentences_are_clean(splits):
    for captions in splits.values():
        for caption in captions:
            for text in (caption.english, caption.german):
                assert text == " ".join(text.lower().split())
                assert text.endswith(" .")
                assert ", ," not in text
                assert ", ." not in text


def test_the_command_writes_all_files_and_the_same_again(tmp_path, prepare, contents):
    out = tmp_path / "demo"
    status, output, _ = prepare("demo", "--out", out)
    assert status == 0
    assert "train.en" in output
    assert "4,000" in output
    first = contents(out)
    names = [f"{split}.{language}" for split in SPLIT_SIZES for language in ("en", "de")]
    names += ["train.vocab.en", "train.vocab.de", "test.mlt.tsv", "test_ood.mlt.tsv", "ambiguous.en-de.txt"]
    assert sorted(first) == sorted([*names, "corpus.json"])
    assert prepare("demo", "--out", out)[0] == 0
    assert contents(out) == first
    record = json.loads((out / "corpus.json").read_text())
    assert record["files"] == {name: checksum for name, checksum in first.items() if name != "corpus.json"}


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
