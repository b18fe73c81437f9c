"""`pysimt-sac lexical` from the command line."""

import json

import pytest

from pysimt_sac.cli import main_sac

ROWS = [
    "hat\thut\tmütze:9|hut:3\t0\t1",
    "ball\tball\tball:7|kugel:2\t1\t0",
    "dog\thunde\thunde:4|rüden:1\t2\t0",
    "stage\tbühne\tbühne:5|etappe:1\t5\t0",
]
QUICK = ["--shuffles", "200", "--bootstrap", "20"]


@pytest.fixture
def words(folder, write):
    (folder / "words.tsv").write_text(
        "\n".join(["word\tcorrect\tcandidates\tline\trare", *ROWS]) + "\n", encoding="utf-8"
    )
    write("good.out", {"frau": "dame"})
    write("bad.out", {"hut": "mütze", "ball": "ding", "hunde": "rüden"})


def test_all_and_rare_cases_and_words(words, capsys):
    assert main_sac(["lexical", "--mlt", "words.tsv", "bad.out", "good.out", *QUICK]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[2][:7] == ["all", "bad.out", "1", "4", "25.00", "-25.00", "-50.00"]
    assert lines[3][:6] == ["good.out", "1", "4", "100.00", "100.00", "100.00"]
    assert lines[5][:7] == ["rare", "bad.out", "1", "1", "0.00", "-100.00", "-100.00"]
    assert "4 of 4 words" in shown.out
    assert shown.err == ""


def test_pooled_test_sets_count_each_case_once(words, folder, write, capsys):
    (folder / "more.tsv").write_text(
        f"word\tcorrect\tcandidates\tline\trare\n{ROWS[0]}\n{ROWS[1].replace('kugel:2', 'ding:2')}\n", encoding="utf-8"
    )
    for name in ("bad", "good"):
        (folder / f"words.{name}").write_text((folder / f"{name}.out").read_text())
    write("more.bad", {"hut": "mütze", "ball": "ding"})
    write("more.good", {"frau": "dame"})
    arguments = ["--mlt", "{set}.tsv", "--baseline", "{set}.bad", "--system", "good", "{set}.good"]
    assert main_sac(["lexical", *arguments, "--sets", "words", "more", *QUICK, "--format", "json"]) == 0
    bad, good = json.loads(capsys.readouterr().out)["comparison"]["systems"]
    assert {kind: bad[kind]["cases"] for kind in ("all", "rare", "common")} == {"all": 6, "rare": 2, "common": 4}
    assert {kind: bad[kind]["correct"] for kind in ("all", "rare", "common")} == {"all": 1, "rare": 0, "common": 1}
    assert {kind: bad[kind]["wrong"] for kind in ("all", "rare", "common")} == {"all": 4, "rare": 2, "common": 2}
    assert good["all"]["lta"] == 100
    assert main_sac(["lexical", *arguments[:1], "words.tsv", *arguments[2:], "--sets", "words", *QUICK]) == 2
    assert "has no {set}" in capsys.readouterr().err


def test_systems_with_several_runs_as_json(words, write, capsys):
    arguments = ["--baseline", "bad.out", "--system", "mixed", "good.out", "bad.out"]
    assert main_sac(["lexical", "--mlt", "words.tsv", *arguments, *QUICK, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    mixed = result["comparison"]["systems"][1]
    assert (mixed["system"], mixed["runs"], mixed["all"]["lta"]) == ("mixed", 2, 62.5)
    assert mixed["words"]["hat"]["ali"] == 0
    assert result["comparison"]["all"][0]["systems"][1]["against_baseline"]["difference"] == 37.5


def test_without_rare_cases_there_is_a_dash(words, folder, capsys):
    (folder / "words.tsv").write_text(f"word\tcorrect\tcandidates\tline\trare\n{ROWS[1]}\n", encoding="utf-8")
    assert main_sac(["lexical", "--mlt", "words.tsv", "good.out", "--words", "0", *QUICK]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["cases", "system", "runs", "number", "LTA", "ALI", "ALI", "(paper)"]  # one system alone
    assert ["rare", "good.out", "1", "0", "-", "-", "-"] in [line.split() for line in shown]


def test_case_is_ignored_unless_asked_for(words, write, folder, capsys):
    write("caps.out", {"hut": "Hut", "ball": "BALL"})
    rows = [*ROWS, "child\tKind\tKind:4\t3\t0"]  # the list itself has a capital
    (folder / "words.tsv").write_text(
        "\n".join(["word\tcorrect\tcandidates\tline\trare", *rows]) + "\n", encoding="utf-8"
    )

    def lta(*options):
        arguments = ["lexical", "--mlt", "words.tsv", "caps.out", "--format", "json", *options, *QUICK]
        assert main_sac(arguments) == 0
        return json.loads(capsys.readouterr().out)["comparison"]["systems"][0]["all"]["lta"]

    assert lta() == 100
    assert lta("--case-sensitive") == 40  # hunde and bühne; not Hut, BALL and kind
    with pytest.raises(SystemExit):
        main_sac(["lexical", "--help"])
    assert "like MLT's own scorer (default: ignore case)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no hypotheses are given"),
        (["good.out", "short.out"], "short.out: has 9 lines, but good.out has 30"),
        (["good.out", "good.out"], "two systems are called 'good.out'"),
        (["--system", "x"], "--system: 'x' has no hypotheses"),
        (["tiny.out"], "goes to line 6"),
        (["good.out", "--mlt", "ref.de"], "ref.de: the first line lacks the column 'word'"),
    ],
)
def test_misuse_is_one_line_and_status_2(words, write, capsys, arguments, message):
    write("short.out", lines=9)
    write("tiny.out", lines=3)
    assert main_sac(["lexical", "--mlt", "words.tsv", *arguments, *QUICK]) == 2
    assert message in capsys.readouterr().err


def test_bpe_and_a_list_of_another_language_are_warnings(words, write, folder, capsys):
    write("bpe.out", {"hut": "hu@@ t"})
    assert main_sac(["lexical", "--mlt", "words.tsv", "bpe.out", *QUICK]) == 0
    assert "warning: bpe.out: 5 lines have BPE units" in capsys.readouterr().err
    (folder / "fr.tsv").write_text("word\tcorrect\tcandidates\tline\trare\nhat\tchapeau\tchapeau:1\t0\t0\n")
    assert main_sac(["lexical", "--mlt", "fr.tsv", "good.out", *QUICK]) == 0
    assert "does fr.tsv belong to this test set" in capsys.readouterr().err
