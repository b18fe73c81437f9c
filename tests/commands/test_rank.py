"""`pysimt-sac rank` from the command line: draw, fill, score."""

import csv
import io
import json

import pytest

from pysimt_sac.cli import main_sac


@pytest.fixture
def drawn(write, folder, capsys):
    write("a.out", {"mann": "junge"})
    write("b.out", {"park": "wald", "ball": "stein"})
    (folder / "train").write_text("mann ball strand\n" + "park hunde gras kind eis\n" * 12, encoding="utf-8")
    arguments = ["rank", "sample", "--src", "ref.de", "--train", "train", "--per-group", "3"]
    assert main_sac([*arguments, "first=a.out", "second=b.out", "--sheet", "s.csv", "--key", "k.json"]) == 0
    return capsys.readouterr()


def test_sample_and_score(drawn, folder, capsys):
    assert "rare     3 sentences, mean training frequency 1.0" in drawn.out
    assert "only 1 sentences instead of 3 in the group 'other'" in drawn.err
    rows = list(csv.DictReader(io.StringIO((folder / "s.csv").read_bytes().decode("utf-8-sig"), newline="")))
    assert len(rows) == 4
    key = {entry["item"]: entry["order"] for entry in json.loads((folder / "k.json").read_text())["items"]}
    with open(folder / "filled.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        for row in rows:  # the annotator ranks the first system always better
            best = key[int(row["item"])].index("first")
            writer.writerow(row | {"rank A": "1" if best == 0 else "2", "rank B": "1" if best == 1 else "2"})
    assert main_sac(["rank", "score", "--key", "k.json", "filled.csv", "filled.csv", "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    first, second = result["groups"]["all"]
    assert (first["system"], first["score"], first["judgements"]) == ("first", 1.0, 8)
    assert second["score"] == 0.0
    assert main_sac(["rank", "score", "--key", "k.json", "filled.csv"]) == 0
    shown = capsys.readouterr().out
    assert "better or equal" in shown
    assert "a sentence has one vote, the majority of its annotators' preferences" in shown


def test_an_unfilled_sheet_says_what_to_do(drawn, capsys):
    assert main_sac(["rank", "score", "--key", "k.json", "s.csv"]) == 2
    shown = capsys.readouterr().err
    assert "4 of 4 rows have no ranks" in shown
    assert "no sentence is ranked (fill in the columns 'rank A', 'rank B', ...)" in shown


def test_mistakes(write, folder, capsys):
    write("a.out")
    write("b.out", {"mann": "junge"})
    sample = ["rank", "sample", "--src", "ref.de", "--train", "ref.de", "a.out", "b.out"]
    assert main_sac([*sample, "--sheet", "x", "--key", "x"]) == 2
    assert "the annotator must not see the key" in capsys.readouterr().err
    assert main_sac([*sample, "--sheet", "s", "--key", "k", "--rare", "999", "--other-least", "999"]) == 2
    assert "no sentence has a word of these frequencies" in capsys.readouterr().err
    assert not (folder / "s").exists()
