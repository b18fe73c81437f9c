"""The demo corpus: the same bytes every time, ambiguous words with a dominant and a rare sense."""

import csv
import hashlib
import json
from collections import Counter, defaultdict

import pytest

from pysimt_sac.corpora.demo import read_captions

BYTES = "5442ec7e5771fd1ec2d0990907920a785afd617c25a41bd655a10f8b16e1569e"  # of all files


@pytest.fixture(scope="module")
def splits():
    return read_captions()


def test_splits_do_not_overlap(splits):
    sources = [caption.english for captions in splits.values() for caption in captions]
    assert len(set(sources)) == len(sources) == 5500


def test_ambiguous_words_have_a_dominant_and_a_rare_sense(splits):
    counts = defaultdict(Counter)
    for caption in splits["train"]:
        if caption.word:
            counts[caption.word][caption.translation] += 1
    assert len(counts) == 14
    for word, ((_, dominant), (_, rare)) in ((word, own.most_common()) for word, own in counts.items()):
        assert 0.7 < dominant / (dominant + rare) < 0.95, word
    ood = [caption for caption in splits["test_ood"] if caption.word]
    n_rare = sum(caption.translation != counts[caption.word].most_common(1)[0][0] for caption in ood)
    assert 0.4 < n_rare / len(ood) < 0.6


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
