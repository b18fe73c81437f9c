"""Joining the results of one comparison: kept results, taken apart by systems, and put together again."""

import copy
import json
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.joining import join, metric_lists
from pysimt_sac.reproduce.results import read_results
from pysimt_sac.reproduce.tables import tables_page

KEPT = Path(__file__).parents[2] / "experiments/results"
A, B = Path("a.json"), Path("b.json")
OF_THE_FILE = ("made", "seconds")  # of the work on a file, not of the comparison


def only(results, *wanted):
    """The results of some systems alone."""
    part = copy.deepcopy(results)
    part["systems"] = [system for system in part["systems"] if system["name"] in wanted]
    for metrics in metric_lists(part):
        for metric in metrics:
            metric["systems"] = [system for system in metric["systems"] if system["system"] in wanted]
    for table in part["paper_tables"]:
        table["rows"] = [row for row in table["rows"] if not row["runs"] or row["system"] in wanted]
    return part


def figures(results):
    return {key: value for key, value in results.items() if key not in OF_THE_FILE}


@pytest.fixture(scope="module")
def whole():
    return read_results(KEPT / "en-de.json")


@pytest.fixture
def parts(whole):
    return {A: only(whole, "MLE", "C1", "SAC BLEU"), B: only(whole, "MLE", "C1", "SAC unsuper", "Vine")}


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_parts_make_the_whole(path):
    whole = read_results(path)
    new = [system["name"] for system in whole["systems"] if system["name"] not in whole["baselines"]]
    parts = {A: only(whole, *whole["baselines"], *new[:1])}
    parts |= {Path(f"{name}.json"): only(whole, *whole["baselines"], name) for name in new[1:]}
    joined = join(parts)
    assert figures(joined) == figures(whole)


def test_what_one_part_lacks_and_another_has_is_not_missing(parts):
    parts[A]["missing"] = [
        "Not done: train Vine, seed 1.",
        "Not done: translate with SAC BLEU, seed 2, gs.",
        "No Java.",
    ]
    parts[B]["missing"] = ["Not done: train SAC BLEU, seed 1.", "Not done: train AC, seed 1."]
    joined = join(parts)
    assert joined["missing"] == [*parts[A]["missing"][1:], parts[B]["missing"][1]]
    assert "of work" not in tables_page(joined)


def test_a_row_of_ours_follows_the_paper_s(whole):
    joined = join({A: only(whole, "MLE", "C1", "Vine"), B: only(whole, "MLE", "C1", "SAC BLEU")})
    rows = [(row["system"], row["runs"]) for row in joined["paper_tables"][0]["rows"]]
    assert rows[:5] == [("MLE", 0), ("MLE", 3), ("ERAC", 0), ("SAC BLEU", 0), ("SAC BLEU", 3)]
    assert [name for name, runs in rows if runs] == ["MLE", "SAC BLEU", "C1", "Vine"]


def test_of_two_runs_of_a_system_the_later_file_s_count_but_of_a_baseline_the_first_s(parts, tmp_path, capsys):
    for number, (path, part) in enumerate(parts.items()):
        for system in part["systems"]:
            system["overrides"] = [f"train.seed:{number}"]
        (tmp_path / path).write_text(json.dumps(part))
    newer = only(parts[A], "MLE", "C1", "SAC BLEU")
    for metrics in metric_lists(newer):
        for metric in metrics:
            metric["systems"][-1]["average"] = 77.7
    for system in newer["systems"]:
        system["overrides"] = ["train.seed:2"]
    (tmp_path / "newer.json").write_text(json.dumps(newer))
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "newer.json")]
    assert main_sac(["results", "--join", *files, "-o", str(tmp_path / "all.json")]) == 0
    told = capsys.readouterr()
    assert told.err == f"SAC BLEU: taken from {files[2]}, not from {files[0]}\n"
    assert told.out == f"written: {tmp_path / 'all.json'}\n"
    joined = read_results(tmp_path / "all.json")
    overrides = {system["name"]: system["overrides"][0][-1] for system in joined["systems"]}
    assert overrides == {"MLE": "0", "C1": "0", "SAC BLEU": "2", "SAC unsuper": "1", "Vine": "1"}
    assert r"| 77.7" in tables_page(joined)


def test_figures_of_earlier_runs_do_not_stay_where_later_ones_have_none(parts):
    newer = only(parts[A], "MLE", "C1", "SAC BLEU")
    for part in newer["comparisons"]:
        if part["search"] == "gs":  # its greedy search has failed
            for metric in part["metrics"]:
                metric["systems"] = [system for system in metric["systems"] if system["system"] != "SAC BLEU"]
    joined = join({**parts, Path("newer.json"): newer})
    for part in joined["comparisons"]:
        assert ("SAC BLEU" in str(part["metrics"])) == (part["search"] != "gs")


def test_results_that_do_not_say_of_which_text_are_refused(parts):
    for part in parts.values():
        part["data"] = {"key": "x"}
    with pytest.raises(UserError, match="or does not record which"):
        join(parts)


def change(path, value):
    """A function that changes a value deep inside."""

    def act(results):
        *way, last = path
        for step in way:
            results = results[step]
        results[last] = value

    return act


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (change(["pair"], "en-fr"), "b.json: pair is 'en-fr', not 'en-de' as in a.json"),
        (change(["data", "files", "train.lc.norm.tok.en"], "0"), "b.json: was made from other text than a.json"),
        (
            change(["comparisons", 0, "resampling", "seed"], 2),
            "its comparisons differ from those of a.json in sets, sentences, metrics",
        ),
        (change(["comparisons", 0, "metrics", 0, "signature"], "x"), "its comparisons differ from those of a.json"),
        (change(["lexical", 0, "cases", "rare"], 1), "its lexical differ from those of a.json in sets"),
        (
            change(["paper_tables", 0, "columns"], []),
            "its paper_tables differ from those of a.json in sets, sentences, metrics",
        ),
        (
            change(["comparisons", 3, "metrics", 2, "systems", 0, "runs", 1], 1.0),
            "has different runs of MLE than a.json",
        ),
        (change(["lexical", 5, "rare", 0, "systems", 0, "runs", 0], 1.0), "has different runs of C1 than a.json"),
    ],
)
def test_what_is_no_part_of_the_same_comparison_is_refused(parts, act, message):
    act(parts[B])
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        join(parts)


def test_a_missing_baseline_is_refused(whole, parts):
    parts[B] = {**parts[B], "systems": [system for system in parts[B]["systems"] if system["name"] != "C1"]}
    with pytest.raises(UserError, match="has different runs of C1"):
        join(parts)


def test_joining_needs_two_files_and_a_place(tmp_path, capsys):
    kept = str(KEPT / "en-de.json")
    for words in ([kept, "-o", "x.json"], [kept, str(KEPT / "en-fr.json")], [kept, kept, "-o", "x.json"]):
        assert main_sac(["results", "--join", *words]) == 2
        assert "--join: takes at least two files, and -o FILE" in capsys.readouterr().err
