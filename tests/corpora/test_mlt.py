"""MLT: rows find their sentences, rows that do not are listed, and only training counts."""

import csv

import pytest

LATER = [
    "hat | hut | a man with a well-known hat &quot; x &quot; | ein hut | 1.jpg",
    "bank | ufer | twice the bank | zweimal das ufer | 2.jpg",
    "bank | bank | twice the bank | zweimal die bank | 2.jpg",
    "lost | weg | nowhere to be found | nirgends | 3.jpg",
]
FULL = [
    *["hat hut 1000", "hat mütze 1001", "hat hut 1002", "hat mütze 30000", "hat mütze 30001", "hat mütze 30002"],
    *["bank ufer 29999", "bank bank 1000", "hat mütze 0", "hat hut 31014", "river fluss 32013", "odd seltsam 32014"],
]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def mlt(tmp_path):
    folder = tmp_path / "mlt"
    write(folder / "ENDE_MLTD_full.txt", FULL)
    for name in ("test2016", "test2017flickr", "test2017mscoco"):
        write(folder / f"test_sets/ende_{name}.txt", LATER if name == "test2016" else [])
    return folder


@pytest.fixture
def corpus(tmp_path):
    """A prepared test_2016_flickr and test_2017_flickr of 1,000 lines."""
    sources = ["a man with a well @-@ known hat &quot; x &quot;", "twice the bank", "twice the bank"]
    references = ["ein hut", "zweimal die bank", "zweimal das ufer"]
    folder = tmp_path / "multi30k/en-de"
    for split in ("test_2016_flickr", "test_2017_flickr"):
        rest = [f"line {number}" for number in range(3, 1000)]
        write(folder / f"{split}.lc.norm.tok.en", [*sources, *rest])
        write(folder / f"{split}.lc.norm.tok.de", [*references, *rest])
    return folder.parent


def rows(path):
    with open(path, encoding="utf-8") as stream:
        return [tuple(row.values()) for row in csv.DictReader(stream, delimiter="\t")]


def test_later_rows_are_aligned_by_their_sentences(mlt, corpus, prepare, tmp_path):
    status, output, progress = prepare("mlt", "--raw", mlt, "--corpus", corpus, "--out", tmp_path / "out")
    assert status == 0
    assert rows(tmp_path / "out/en-de/test_2016_flickr.mlt.tsv") == [
        ("hat", "hut", "hut:2|mütze:1", "0", "0"),
        ("bank", "ufer", "bank:1|ufer:1", "2", "0"),
        ("bank", "bank", "bank:1|ufer:1", "1", "0"),
    ]
    assert "en-de  test_2016_flickr      4        3      0 (0.0%)" in output
    assert "1 rows not aligned" in output
    assert "ende_test2016.txt, row 4: source sentence not in test_2016_flickr: lost | weg" in progress
    assert "the corpus has no test_2017_mscoco" in progress
    (lost,) = rows(tmp_path / "out/en-de/not_aligned.tsv")
    assert lost == ("ende_test2016.txt", "4", "source sentence not in test_2016_flickr", LATER[3])


def test_full_rows_are_aligned_by_line_and_only_training_counts(mlt, corpus, prepare, tmp_path):
    arguments = ("--raw", mlt, "--corpus", corpus / "en-de", "--out", tmp_path / "out", "--list", "full")
    status, output, progress = prepare("mlt", *arguments)
    assert status == 0
    assert rows(tmp_path / "out/en-de/test_2016_flickr.mlt.tsv") == [
        ("hat", "hut", "hut:2|mütze:1", "0", "0"),
        ("river", "fluss", "", "999", "1"),
    ]
    assert rows(tmp_path / "out/en-de/test_2017_flickr.mlt.tsv") == [("hat", "mütze", "hut:2|mütze:1", "0", "1")]
    assert "row 12: line in no split: odd seltsam 32014" in progress
    assert "en-de  test_2017_flickr      1        1      1 (100.0%)" in output


def test_a_second_run_is_identical_and_the_other_list_refused(mlt, corpus, prepare, refused, tmp_path, contents):
    arguments = ("mlt", "--raw", mlt, "--corpus", corpus, "--out", tmp_path / "out")
    assert prepare(*arguments)[0] == 0
    first = contents(tmp_path / "out")
    assert prepare(*arguments)[0] == 0
    assert contents(tmp_path / "out") == first
    refused("contains another corpus (mlt en-de later)", *arguments, "--list", "full")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("ENDE_MLTD_full.txt", "hat hut", "line 13 is not `word translation line`"),
        ("test_sets/ende_test2016.txt", "a | b", "line 5 has 2 fields instead of 5"),
    ],
)
def test_malformed_lists_are_refused(mlt, corpus, refused, tmp_path, name, line, message):
    with open(mlt / name, "a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")
    refused(message, "mlt", "--raw", mlt, "--corpus", corpus, "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_a_corpus_of_another_length_is_refused_by_line_numbers(mlt, corpus, refused, tmp_path):
    for language in ("en", "de"):
        write(corpus / f"en-de/test_2016_flickr.lc.norm.tok.{language}", ["one line"])
    words = ("--raw", mlt, "--corpus", corpus, "--out", tmp_path / "o", "--list", "full")
    refused("test_2016_flickr has 1 lines instead of 1,000", "mlt", *words)


def test_a_folder_without_a_prepared_corpus_is_refused(mlt, refused, tmp_path):
    refused("no prepared Multi30K corpus here", "mlt", "--raw", mlt, "--corpus", tmp_path, "--out", tmp_path / "o")


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("later", {"en-de": [1004, 880, 381], "en-fr": [864, 929, 441]}),
        ("full", {"en-de": [1708, 759], "en-fr": [1298, 863]}),
    ],
)
def test_all_published_rows_are_aligned(research_data, prepare, tmp_path, which, expected):
    corpus = research_data / "data/multi30k/paper"
    arguments = ("--raw", research_data / "data/mlt", "--corpus", corpus, "--out", tmp_path / "out", "--list", which)
    status, output, _ = prepare("mlt", *arguments)
    assert status == 0
    assert "0 rows not aligned" in output
    splits = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    found = {
        pair: [len(rows(tmp_path / f"out/{pair}/{split}.mlt.tsv")) for split in splits[: len(sizes)]]
        for pair, sizes in expected.items()
    }
    assert found == expected
