"""`pysimt-sac compare` from the command line."""

import json

import pytest

from pysimt_sac.cli import main_sac

QUICK = ["--metrics", "bleu,ter", "--shuffles", "200", "--bootstrap", "50"]


@pytest.fixture
def outputs(write):
    write("base.1", {"mann": "junge", "der": "ein"})
    write("base.2", {"mann": "junge", "der": "ein", "gras": "feld"})
    write("new.1", {"gras": "feld"})
    write("new.2", {"eis": "brot"})


def run(*arguments):
    return main_sac(["compare", "--ref", "ref.de", "--baseline", "base.1", "base.2", *arguments, *QUICK])


def test_the_table_has_multevals_columns(outputs, capsys):
    assert run("--system", "new", "new.1", "new.2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ref.de: 30 sentences"
    assert [line.split()[0] for line in lines[4:6]] == ["BLEU", "new"]
    assert "average" in lines[2]
    assert lines[5].endswith("2 of 2")
    assert any(line.startswith("200 shuffles, 50 bootstrap samples, seed 1") for line in lines)


def test_neither_longer_nor_shorter_translations_win(outputs, write, capsys):
    write("long.1", {"der": "der der"})
    write("long.2", {"der": "der der", "gras": "feld"})
    files = ["--ref", "ref.de", "--baseline", "base.1", "base.2", "--system", "long", "long.1", "long.2"]
    assert main_sac(["compare", *files, *QUICK, "--metrics", "bleu,length"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["long"]]
    assert [row[-1] for row in rows] == ["2", "-"]


def test_json_is_reproducible_and_complete(outputs, capsys):
    results = []
    for _ in range(2):
        assert run("--system", "new", "new.1", "new.2", "--system", "one", "new.1", "--format", "json") == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]
    (comparison,) = results[0]["comparisons"]
    bleu, ter = comparison["metrics"]
    assert [system["system"] for system in bleu["systems"]] == ["baseline", "new", "one"]
    assert bleu["systems"][0]["against_baseline"] is None
    assert bleu["systems"][2]["s_test"] is None
    assert 0 < ter["systems"][1]["against_baseline"]["p"] <= 1
    assert comparison["resampling"] == {"shuffles": 200, "bootstrap": 50, "seed": 1, "shuffling": "paired"}


def test_sentences_with_unknown_words_are_left_out_for_all(outputs, write, capsys):
    write("unk.1", {"hut": "<unk>"})
    assert run("--system", "unk", "unk.1", "--no-unk") == 0
    assert "25 sentences (5 left out for <unk>)" in capsys.readouterr().out


@pytest.fixture
def two_sets(write, folder):
    for name in ("x", "y"):
        write(f"ref.{name}.de", lines=30 if name == "x" else 8)
        write(f"base.{name}", {"mann": "junge", "der": "ein"}, lines=30 if name == "x" else 8)
        write(f"new.{name}", {"eis": "brot"}, lines=30 if name == "x" else 8)


SETS = ["--ref", "ref.{set}.de", "--baseline", "base.{set}", "--system", "new", "new.{set}", "--sets", "x"]


def test_test_sets_apart_and_pooled(two_sets, capsys):
    assert main_sac(["compare", *SETS, "y", *QUICK, "--format", "json"]) == 0
    apart = json.loads(capsys.readouterr().out)["comparisons"]
    assert [part["sentences"] for part in apart] == [30, 8]
    assert main_sac(["compare", *SETS, "y", *QUICK, "--format", "json", "--pool"]) == 0
    (pooled,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (pooled["sentences"], pooled["test_set"]) == (38, "x + y")
    scores = [part["metrics"][0]["systems"][1]["average"] for part in (*apart, pooled)]
    assert min(scores[:2]) < scores[2] < max(scores[:2])


def test_a_test_set_counts_once(two_sets, capsys):
    assert main_sac(["compare", *SETS, "x", *QUICK, "--pool"]) == 2
    assert "--sets: 'x' is given twice (give each test set once)" in capsys.readouterr().err


def test_only_sentences_with_ambiguous_words_can_be_compared(two_sets, folder, capsys):
    for name, lines in (("x", (3, 9, 9)), ("y", (2,)), ("long", (30,))):
        rows = [f"hat\thut\thut:1\t{line}\t0" for line in lines]
        (folder / f"{name}.tsv").write_text("\n".join(["word\tcorrect\tcandidates\tline\trare", *rows]) + "\n")
    assert main_sac(["compare", *SETS, "y", *QUICK, "--mlt", "{set}.tsv", "--format", "json"]) == 0
    assert [part["sentences"] for part in json.loads(capsys.readouterr().out)["comparisons"]] == [2, 1]
    assert main_sac(["compare", *SETS, *QUICK, "--mlt", "long.tsv"]) == 2
    assert "long.tsv: goes beyond the 30 lines of x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "new"], "--system: 'new' has no hypotheses"),
        (["--system", "new.1", "new.2"], "--system: 'new.1' is a file, and would be taken for the system's name"),
        (["--system", "baseline", "new.1"], "two systems are called 'baseline'"),
        (["--system", "new", "short"], "short: has 4 lines, but the reference ref.de has 30"),
        (["--system", "new", "new.1", "--sets", "x"], "has no {set}, but --sets is given"),
        (["--system", "new", "new.1", "--seed", "-1"], "seed: -1 must be at least 0"),
    ],
)
def test_misuse_is_one_line_and_status_2(outputs, write, capsys, arguments, message):
    write("short", lines=4)
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("style", ["text", "markdown", "latex"])
def test_the_baselines_own_hypotheses_are_called_identical_not_tested(outputs, write, capsys, style):
    write("copy.1", {"mann": "junge", "der": "ein", "gras": "feld"})  # base.2
    write("copy.2", {"mann": "junge", "der": "ein"})  # base.1
    arguments = ["--system", "copy", "copy.1", "copy.2", "--system", "new", "new.1", "new.2"]
    assert run(*arguments, "--format", style) == 0
    lines = capsys.readouterr().out.splitlines()
    copies = [line for line in lines if "copy" in line]
    assert len(copies) == 2  # BLEU and TER
    assert all("identical to baseline" in line and "0.00 " not in line and "1.0000" not in line for line in copies)
    assert sum("identical" in line for line in lines) == 2
    assert run(*arguments, "--format", "json") == 0
    bleu = json.loads(capsys.readouterr().out)["comparisons"][0]["metrics"][0]
    assert [system["against_baseline"]["identical"] for system in bleu["systems"][1:]] == [True, False]


def test_the_baseline_can_have_a_name(outputs, capsys):
    assert run("--system", "new", "new.1", "new.2", "--baseline-name", "C1") == 0
    assert capsys.readouterr().out.splitlines()[4].split()[:3] == ["BLEU", "↑", "C1"]
    assert run("--system", "C1", "new.1", "--baseline-name", "C1") == 2
    assert "two systems are called 'C1'" in capsys.readouterr().err


def test_a_translation_of_another_test_set_is_a_warning(outputs, write, folder, capsys):
    lines = (folder / "new.1").read_text().splitlines()
    (folder / "other.1").write_text("\n".join(lines[15:] + lines[:15]) + "\n")
    assert run("--system", "new", "new.1", "--system", "other", "other.1") == 0
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if "another test set" in line]
    assert warning.startswith("warning: other.1: is no closer to the lines of ref.de than to their neighbours")


def test_the_same_run_twice_is_a_warning(outputs, capsys):
    assert run("--system", "new", "new.1", "new.1") == 0
    assert "warning: new.1: is identical to new.1, another run of 'new'" in capsys.readouterr().err


def test_a_baseline_alone_is_scored(outputs, capsys):
    assert run() == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[4:5]] == [["BLEU", "↑"]]
