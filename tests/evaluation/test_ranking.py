"""Human ranking: which sentences are drawn, what the sheet shows and hides, and how filled sheets are scored."""

import csv
import io
import json
import random
from collections import Counter, defaultdict

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.ranking import SheetRow, draw_rows, read_judgements, score_ranking, write_sheet

SYSTEMS = ("alpha", "beta", "gamma")


@pytest.fixture
def texts():
    """Training counts, sources and outputs of a made-up test set of 300 sentences."""
    rng = random.Random(5)
    training = Counter({f"rare{n}": 1 for n in range(80)} | {f"word{n}": 10 + n for n in range(120)} | {",": 50})
    training["the"] = 9999
    sources, outputs = [], {name: [] for name in SYSTEMS}
    for line in range(300):
        words = ["the", f"word{rng.randrange(120)}", ",", f"word{rng.randrange(120)}"]
        words += [f"rare{line}"] if line < 80 else []
        sources.append(" ".join(words))
        for name in SYSTEMS:  # a third of the sentences is translated alike by all
            outputs[name].append(f"= übersetzung {line}" + ("" if line % 3 == 0 else f" {rng.random():.3f}"))
    return training, sources, outputs


def test_the_drawn_sentences_are_as_the_paper_says(texts):
    training, sources, outputs = texts
    rows = draw_rows(training, sources, outputs, 50, 1)
    groups = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
        assert row.word in sources[row.line].split()
        assert sorted(row.order) == sorted(SYSTEMS)
    assert {group: len(members) for group, members in groups.items()} == {"rare": 50, "other": 50}
    assert {training[row.word] for row in groups["rare"]} == {1}
    assert all(10 <= training[row.word] <= 100 for row in groups["other"])
    assert all(len({outputs[name][row.line] for name in SYSTEMS}) > 1 for row in groups["other"])
    assert "," not in {row.word for row in rows}
    assert len({row.line for row in rows}) == len({row.word for row in rows}) == len({row.item for row in rows}) == 100
    assert len({row.group for row in rows[:20]}) == 2  # the groups are mixed
    assert len({tuple(row.order) for row in rows}) == 6  # the same order would tell the systems apart by their style
    assert draw_rows(*texts, 50, 1) == rows
    assert draw_rows(*texts, 50, 2) != rows


@pytest.fixture
def files(texts, tmp_path):
    training, sources, outputs = texts
    rows = draw_rows(training, sources, outputs, 50, 1)
    write_sheet(tmp_path / "sheet.csv", tmp_path / "key.json", rows, sources, outputs)
    return tmp_path


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def fill(path, ranks_of, delimiter=","):
    """Fill the sheet as a person would: by what is in it."""
    rows = read_csv(path)
    for row in rows:
        row.update({f"rank {letter}": rank for letter, rank in zip("ABC", ranks_of(row), strict=True)})
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def test_the_sheet_opens_in_a_spreadsheet_and_does_not_name_the_systems(files, texts):
    raw = (files / "sheet.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfitem,word,source,translation A,translation B,translation C,rank A,")
    assert raw.count(b"\r\n") == 101
    assert not any(name in raw.decode() for name in (*SYSTEMS, "other"))
    _, sources, outputs = texts
    for row in read_csv(files / "sheet.csv"):
        line = sources.index(row["source"])
        shown = [row[f"translation {letter}"] for letter in "ABC"]
        # A cell that begins with = would be computed by the spreadsheet; the apostrophe prevents that.
        assert sorted(shown) == sorted("'" + outputs[name][line] for name in SYSTEMS)
        assert [row[f"rank {letter}"] for letter in "ABC"] == ["", "", ""]


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8-sig"), (";", "cp1252"), ("\t", "utf-8")])
def test_random_ranks_are_scored_as_a_second_computation_says(files, texts, delimiter, encoding):
    rng = random.Random(11)
    filled = fill(
        files / "sheet.csv", lambda row: [rng.choice(["1", "2", "3", "2.0", "3,0"]) for _ in "ABC"], delimiter
    )
    (files / "filled.csv").write_bytes(filled.encode(encoding))
    judgements, systems = read_judgements([files / "filled.csv"], files / "key.json")
    assert (len(judgements), systems) == (100, list(SYSTEMS))

    # The second computation knows only the text files: which system said what, and what rank that text was given.
    _, sources, outputs = texts
    key = {entry["item"]: entry for entry in json.loads((files / "key.json").read_text())["items"]}
    wins = defaultdict(list)
    for row in csv.DictReader(io.StringIO(filled, newline=""), delimiter=delimiter):
        entry = key[row["item"]]
        assert sources[entry["line"]] == row["source"]
        given = {}
        for letter, name in zip("ABC", entry["order"], strict=True):
            assert row[f"translation {letter}"] == "'" + outputs[name][entry["line"]]
            given[name] = float(row[f"rank {letter}"].replace(",", "."))
        for name in SYSTEMS:
            for group in (entry["group"], "all"):
                wins[group, name].append(sum(given[name] <= given[other] for other in set(SYSTEMS) - {name}))
    for score in score_ranking(judgements, systems):
        own = wins[score.group, score.system]
        assert (score.judgements, score.score) == (len(own), pytest.approx(sum(own) / len(own)))


def judged(item, group="other", **ranks):
    return SheetRow(str(item), group, 0, "w", list(ranks)), ranks


def test_every_sentence_has_the_same_weight_however_many_annotators_ranked_it():
    # Three annotators ranked sentence 1, two of them alike; only one ranked sentence 2.
    first = [judged(1, a=1, b=2, c=3), judged(1, a=1, b=2, c=3), judged(1, a=2, b=1, c=2)]
    a, b, c = (score.score for score in score_ranking([*first, judged(2, a=3, b=1, c=1)], "abc")[:3])
    # Others that a is better than or equal to: (2 + 2 + 1) / 3 in sentence 1, none in sentence 2.
    assert a == pytest.approx((5 / 3 + 0) / 2)
    assert (b, c) == (pytest.approx((4 / 3 + 2) / 2), pytest.approx((1 / 3 + 2) / 2))


@pytest.mark.parametrize(("wins", "losses", "p"), [(0, 0, 1), (5, 5, 1), (5, 0, 2 / 32), (1, 9, 2 * 11 / 1024)])
@pytest.mark.parametrize("annotators", [1, 10])
def test_a_sentence_has_one_vote_in_the_sign_test(wins, losses, p, annotators):
    judgements = [judged(item, a=2, b=1) for item in range(wins)]
    judgements += [judged(item, a=1, b=2) for item in range(wins, wins + losses)]
    judgements += [judged("tie", a=1, b=1), judged("split", a=1, b=2), judged("split", a=2, b=1)]
    found = {score.system: score.p for score in score_ranking(judgements * annotators, "ab")}
    assert found == {"a": 1, "b": pytest.approx(p)}


@pytest.mark.parametrize("ranks", [["1", "2", ""], ["1", "two", "3"]])
def test_wrong_ranks_are_rejected(files, ranks):
    (files / "filled.csv").write_text(fill(files / "sheet.csv", lambda row: ranks), encoding="utf-8", newline="")
    with pytest.raises(UserError, match=r"row 2: '1', '\w+', '\d?' are not ranks .*1 is best"):
        read_judgements([files / "filled.csv"], files / "key.json")


def test_sheet_and_key_must_belong_together(files, texts):
    training, sources, outputs = texts
    other = draw_rows(training, sources, outputs, 50, seed=9)
    write_sheet(files / "other.csv", files / "other.json", other, sources, outputs)
    with pytest.raises(UserError, match=r"row 2: this item is not in the key .*belong to this key"):
        read_judgements([files / "sheet.csv"], files / "other.json")
    (files / "nokey.json").write_text('{"items": [{"item": 1}]}')
    with pytest.raises(UserError, match="not a key of a ranking: it lacks 'systems'"):
        read_judgements([files / "sheet.csv"], files / "nokey.json")
