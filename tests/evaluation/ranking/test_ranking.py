"""Human ranking: what is drawn, what the sheet tells and hides, and the scores of a sheet filled at random."""

import csv
import io
import json
import random
from collections import Counter, defaultdict

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.ranking.sample import RankingItem, RankingOptions, draw_items
from pysimt_sac.evaluation.ranking.score import Judgement, score_ranking, sign_test
from pysimt_sac.evaluation.ranking.sheet import read_judgements, read_key, write_key, write_sheet

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
    items = draw_items(training, sources, outputs, RankingOptions())
    groups = defaultdict(list)
    for item in items:
        groups[item.group].append(item)
        assert item.word in sources[item.line].split()
        assert item.frequency == training[item.word]
        assert sorted(item.order) == sorted(SYSTEMS)
    assert {group: len(members) for group, members in groups.items()} == {"rare": 50, "other": 50}
    assert {item.frequency for item in groups["rare"]} == {1}
    assert all(10 <= item.frequency <= 100 for item in groups["other"])
    assert all(len({outputs[name][item.line] for name in SYSTEMS}) > 1 for item in groups["other"])
    assert len({item.line for item in items}) == len(items)
    assert len({item.word for item in items}) == len(items)
    assert [item.number for item in items] == list(range(1, 101))
    assert len({item.group for item in items[:20]}) == 2  # the groups are mixed


def test_words_without_letters_and_beyond_the_limits_are_not_drawn(texts):
    training, sources, outputs = texts
    few = draw_items(training, sources, outputs, RankingOptions(per_group=1000, other_most=12))
    assert {item.word for item in few if item.group == "other"} <= {"word0", "word1", "word2"}
    every = draw_items(training, sources, outputs, RankingOptions(per_group=1000, other_most=None))
    words = {item.word for item in every}
    assert "," not in words
    assert max(item.frequency for item in every) > 100


def test_the_seed_decides(texts):
    first = draw_items(*texts, RankingOptions(seed=1))
    assert draw_items(*texts, RankingOptions(seed=1)) == first
    assert draw_items(*texts, RankingOptions(seed=2)) != first


def test_every_system_stands_everywhere(texts):
    items = draw_items(*texts, RankingOptions(per_group=80))
    places = Counter((name, place) for item in items for place, name in enumerate(item.order))
    expected = len(items) / 3
    assert all(abs(places[name, place] - expected) < 0.4 * expected for name in SYSTEMS for place in range(3))


def test_what_cannot_be_ranked_is_refused(texts):
    training, sources, outputs = texts
    with pytest.raises(UserError, match="at least two"):
        draw_items(training, sources, {"alpha": outputs["alpha"]}, RankingOptions())
    with pytest.raises(UserError, match="beta: has 1 lines, but the source has 300"):
        draw_items(training, sources, {"alpha": outputs["alpha"], "beta": ["x"]}, RankingOptions())


@pytest.fixture
def files(texts, tmp_path):
    training, sources, outputs = texts
    items = draw_items(training, sources, outputs, RankingOptions())
    write_sheet(tmp_path / "sheet.csv", items, sources, outputs)
    write_key(tmp_path / "key.json", items, sources, RankingOptions())
    return tmp_path


def read_csv(path, delimiter=","):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), delimiter=delimiter))


def fill(path, ranks_of):
    """Fill the sheet as a person would: by what is in it."""
    rows = read_csv(path)
    for row in rows:
        for letter, rank in zip("ABC", ranks_of(row), strict=True):
            row[f"rank {letter}"] = rank
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def test_the_sheet_opens_in_a_spreadsheet_and_betrays_nothing(files, texts):
    raw = (files / "sheet.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfitem,word,source,translation A,translation B,translation C,rank A,")
    assert raw.count(b"\r\n") == 101
    text = raw.decode()
    assert not any(name in text for name in (*SYSTEMS, "seed", "other", "frequency"))
    _, sources, outputs = texts
    for row in read_csv(files / "sheet.csv"):
        line = sources.index(row["source"])
        shown = [row[f"translation {letter}"] for letter in "ABC"]
        # A cell that begins with = would be computed by the spreadsheet; the mark in front of it prevents that.
        assert sorted(shown) == sorted("'" + outputs[name][line] for name in SYSTEMS)
        assert [row[f"rank {letter}"] for letter in "ABC"] == ["", "", ""]
    # The same order in every row would tell the systems apart by their style.
    assert len({tuple(entry["order"]) for entry in json.loads((files / "key.json").read_text())["items"]}) == 6


@pytest.mark.parametrize("style", ["as written", "semicolons", "tabs in UTF-16", "Windows letters", "no mark"])
def test_random_ranks_are_scored_as_a_second_computation_says(files, texts, style):
    rng = random.Random(11)
    filled = fill(files / "sheet.csv", lambda row: [rng.choice(["1", "2", "3", "2.0", "3,0"]) for _ in "ABC"])
    encoded = {
        "as written": lambda: filled.encode("utf-8-sig"),
        "semicolons": lambda: respell(filled, ";").encode("utf-8-sig"),
        "tabs in UTF-16": lambda: respell(filled, "\t").encode("utf-16"),
        "Windows letters": lambda: filled.encode("cp1252"),
        "no mark": lambda: filled.replace("\r\n", "\n").encode(),
    }[style]()
    (files / "filled.csv").write_bytes(encoded)
    judgements, empty = read_judgements(files / "filled.csv", read_key(files / "key.json"))
    assert (len(judgements), empty) == (100, 0)
    result = score_ranking(judgements)

    # The second computation knows only the text files: which system said what, and what rank that text was given.
    _, sources, outputs = texts
    key = {entry["item"]: entry for entry in json.loads((files / "key.json").read_text())["items"]}
    wins = defaultdict(lambda: [0, 0])
    for row in csv.DictReader(io.StringIO(filled, newline="")):
        entry = key[int(row["item"])]
        assert sources[entry["line"]] == row["source"]
        given = {}
        for letter, name in zip("ABC", entry["order"], strict=True):
            assert row[f"translation {letter}"] == "'" + outputs[name][entry["line"]]
            given[name] = int(float(row[f"rank {letter}"].replace(",", ".")))
        for name in SYSTEMS:
            for other in set(SYSTEMS) - {name}:
                for group in (entry["group"], "all"):
                    wins[group, name][0] += given[name] <= given[other]
                    wins[group, name][1] += 1
    for group in ("all", "rare", "other"):
        for system in result.groups[group]:
            won, compared = wins[group, system.system]
            assert system.better_or_equal == pytest.approx(100 * won / compared)
            assert system.score == pytest.approx(2 * won / compared)


def respell(text, delimiter):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows(csv.reader(io.StringIO(text, newline="")))
    return stream.getvalue()


def test_scores_by_hand():
    def judged(group, **ranks):
        return Judgement(RankingItem(1, group, 0, "w", 1, tuple(ranks)), ranks)

    result = score_ranking(
        [judged("rare", a=1, b=2, c=2), judged("rare", a=1, b=1, c=1), judged("other", a=3, b=1, c=2)]
    )
    rare = {system.system: system for system in result.groups["rare"]}
    # a: better than both, equal to both; b: worse than a, equal to c, equal to both.
    assert {name: system.score for name, system in rare.items()} == {"a": 2.0, "b": 1.5, "c": 1.5}
    assert rare["a"].better == 50
    assert rare["b"].better == 0
    assert rare["b"].mean_rank == 1.5
    assert {system.system: system.score for system in result.groups["other"]} == {"a": 0, "b": 2, "c": 1}
    (pair,) = (p for p in result.pairs if (p.group, p.first, p.second) == ("all", "a", "b"))
    assert (pair.first_better, pair.equal, pair.second_better) == (1, 1, 1)


def test_every_sentence_has_the_same_weight_however_many_annotators_ranked_it():
    def judged(number, **ranks):
        return Judgement(RankingItem(number, "other", 0, "w", 1, tuple(ranks)), ranks)

    # Three annotators ranked sentence 1, two of them alike; only one ranked sentence 2.
    first = [judged(1, a=1, b=2, c=3), judged(1, a=1, b=2, c=3), judged(1, a=2, b=1, c=2)]
    a, b, c = score_ranking([*first, judged(2, a=3, b=1, c=1)]).groups["all"]
    # Others that a is better than or equal to: (2 + 2 + 1) / 3 in sentence 1, none in sentence 2.
    assert a.score == pytest.approx((5 / 3 + 0) / 2)
    assert a.better_or_equal == pytest.approx(50 * 5 / 6)
    assert a.better == pytest.approx(50 * (4 / 3 + 0) / 2)
    assert a.mean_rank == pytest.approx((4 / 3 + 3) / 2)
    assert a.judgements == 4
    assert (b.score, c.score) == (pytest.approx((4 / 3 + 2) / 2), pytest.approx((1 / 3 + 2) / 2))


def test_several_annotators_of_a_sentence_have_one_vote_in_p():
    def judged(number, **ranks):
        return Judgement(RankingItem(number, "other", 0, "w", 1, tuple(ranks)), ranks)

    once = [judged(number, a=1, b=2) for number in range(3)] + [judged(3, a=2, b=1)]
    alone, tenfold = (score_ranking(own).pairs[0] for own in (once, once * 10))  # of the group `all`
    assert (alone.first_better, alone.second_better, alone.p) == (3, 1, sign_test(3, 1))
    assert (tenfold.first_better, tenfold.second_better, tenfold.p) == (30, 10, alone.p)
    split = [*once, judged(0, a=2, b=1)]  # the annotators of sentence 0 do not agree: no vote
    assert score_ranking(split).pairs[0].p == sign_test(2, 1)


def test_the_sign_test_of_many_judgements():
    assert sign_test(600, 600) == 1
    assert 0 < sign_test(1100, 900) < 1e-4


@pytest.mark.parametrize(("wins", "losses", "p"), [(0, 0, 1), (5, 5, 1), (5, 0, 2 / 32), (1, 9, 2 * 11 / 1024)])
def test_sign_test(wins, losses, p):
    assert sign_test(wins, losses) == pytest.approx(p)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (["1", "2", ""], "row 2: '' is not a rank .*from 1 .best. to 3"),
        (["1", "2", "4"], "'4' is not a rank"),
        (["0", "2", "3"], "'0' is not a rank"),
        (["1", "1.5", "3"], "'1.5' is not a rank"),
        (["a", "b", "c"], "'a' is not a rank"),
    ],
)
def test_wrong_ranks_are_refused(files, ranks, message):
    (files / "filled.csv").write_text(fill(files / "sheet.csv", lambda row: ranks), encoding="utf-8", newline="")
    with pytest.raises(UserError, match=message):
        read_judgements(files / "filled.csv", read_key(files / "key.json"))


@pytest.mark.parametrize("form", ["{}", "{}.0", "{},0"])
def test_numbers_may_be_written_as_spreadsheets_write_them(files, form):
    rows = fill(files / "sheet.csv", lambda row: [form.format(rank) for rank in (1, 2, 3)])
    header, *rows = csv.reader(io.StringIO(rows))
    written = io.StringIO(newline="")
    csv.writer(written).writerows([header, *([form.format(row[0]), *row[1:]] for row in rows)])
    (files / "filled.csv").write_text(written.getvalue(), encoding="utf-8", newline="")
    judgements, _ = read_judgements(files / "filled.csv", read_key(files / "key.json"))
    assert len(judgements) == 100


def test_rows_without_ranks_are_counted(files):
    filled = fill(files / "sheet.csv", lambda row: ["1", "2", "3"] if int(row["item"]) <= 40 else ["", "", ""])
    (files / "filled.csv").write_text(filled, encoding="utf-8", newline="")
    judgements, empty = read_judgements(files / "filled.csv", read_key(files / "key.json"))
    assert (len(judgements), empty) == (40, 60)
    with pytest.raises(UserError, match="no sentence is ranked"):
        score_ranking([])


def test_sheet_and_key_must_belong_together(files, texts):
    training, sources, outputs = texts
    other = draw_items(training, sources, outputs, RankingOptions(seed=9))
    write_key(files / "other.json", other, sources, RankingOptions(seed=9))
    with pytest.raises(UserError, match=r"another source in the key.*belong to this key"):
        read_judgements(files / "sheet.csv", read_key(files / "other.json"))
    twice = (files / "sheet.csv").read_bytes()
    (files / "twice.csv").write_bytes(twice + twice.split(b"\r\n")[1] + b"\r\n")
    with pytest.raises(UserError, match="occurs twice"):
        read_judgements(files / "twice.csv", read_key(files / "key.json"))
    (files / "nokey.json").write_text('{"items": [{"item": 1}]}')
    with pytest.raises(UserError, match="not the key of a ranking"):
        read_key(files / "nokey.json")
    (files / "book.csv").write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="workbook"):
        read_judgements(files / "book.csv", read_key(files / "key.json"))
    (files / "columns.csv").write_text("item,source\n1,x\n")
    with pytest.raises(UserError, match="no column 'rank a'"):
        read_judgements(files / "columns.csv", read_key(files / "key.json"))
