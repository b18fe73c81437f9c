"""`pysimt-sac rank` from the command line: sample, fill, score."""

import csv
import io
import json

import pytest

from pysimt_sac.cli import main_sac


@pytest.fixture
def sampled(write, folder, capsys):
    write("a.out", {"mann": "junge"})
    write("b.out", {"park": "wald", "ball": "stein"})
    (folder / "train").write_text("mann ball strand\n" + "park hunde gras kind eis\n" * 12, encoding="utf-8")
    arguments = ["rank", "sample", "--src", "ref.de", "--train", "train", "--per-group", "3", "--sheet", "s.csv"]
    assert main_sac([*arguments, "first=a.out", "second=b.out", "--key", "s.csv"]) == 2
    assert "the annotator must not see the key" in capsys.readouterr().err
    assert main_sac([*arguments, "first=a.out", "second=b.out", "--key", "k.json"]) == 0
    assert "only 4 sentences instead of 6" in capsys.readouterr().err


def test_sample_and_score(sampled, folder, capsys):
    rows = list(csv.DictReader(io.StringIO((folder / "s.csv").read_bytes().decode("utf-8-sig"), newline="")))
    key = {entry["item"]: entry["order"] for entry in json.loads((folder / "k.json").read_text())["items"]}
    with open(folder / "filled.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        for row in rows:  # the annotator ranks the first system always better
            best = key[row["item"]].index("first")
            writer.writerow(row | {"rank A": "1" if best == 0 else "2", "rank B": "1" if best == 1 else "2"})
    assert main_sac(["rank", "score", "--key", "k.json", "filled.csv", "filled.csv", "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["scores"][:2]
    assert (first["group"], first["system"], first["score"], first["judgements"]) == ("all", "first", 1.0, 8)
    assert (second["score"], second["p"]) == (0.0, 2 / 2**4)
    assert main_sac(["rank", "score", "--key", "k.json", "filled.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["words", "system", "judgements", "score", "p"]


def test_an_unfilled_sheet_says_what_to_do(sampled, capsys):
    assert main_sac(["rank", "score", "--key", "k.json", "s.csv"]) == 2
    assert "no sentence is ranked (fill in the columns 'rank A', 'rank B', ...)" in capsys.readouterr().err
