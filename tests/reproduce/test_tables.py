"""Tables and the page of results, from `results.json` alone."""

import copy
import json

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.results import read_results, update_of
from pysimt_sac.reproduce.results_page import results_page
from pysimt_sac.reproduce.tables import spread, tables_page, title_of


def score(system, runs, difference=None, p=1.0, identical=False):
    average = sum(runs) / len(runs)
    against = None
    if difference is not None:
        interval = {"low": difference - 0.5, "high": difference + 0.5}
        against = {"difference": difference, "interval": interval, "p": p, "runs_won": 1, "run_pairs": 2}
        against["identical"] = identical
    deviation = abs(runs[0] - runs[-1]) / 2**0.5 if len(runs) > 1 else None
    return {"system": system, "runs": runs, "average": average, "s_test": deviation, "against_baseline": against}


def metric(name, *systems, higher=True):
    return {"metric": name, "higher_is_better": higher, "systems": list(systems)}


def run(seed, best, updates=100, taken_over=False):
    curve = {"BLEU": [[0, 30.0], [50, best]], "LOSS": [[0, 2.0], [50, 1.9]]}
    books = {"BLEU": {"score": best, "update": 50}}
    return {"seed": seed, "commit": "0123456789ab+", "taken_over": taken_over, "updates": updates, "seconds": 7200,
            "best": books, "validation": curve}  # fmt: skip


@pytest.fixture
def results():
    bleu = metric("BLEU", score("MLE", [38.0, 39.0]), score("SAC BLEU", [40.0], 1.5, 0.01))
    ter = metric("TER", score("MLE", [42.0, 43.0]), score("SAC BLEU", [42.4], -0.1, 0.7), higher=False)
    length = metric("length", score("MLE", [101.0, 102.0]), score("SAC BLEU", [99.5], -2.0))
    part = {"search": "beam6", "baseline": "MLE", "test_set": "test_2016_flickr", "sentences": 1000, "left_out": 0,
            "resampling": {"shuffling": "paired"}, "metrics": [bleu, ter, length]}  # fmt: skip
    lta = metric("LTA", score("MLE", [65.0, 66.0]), score("SAC BLEU", [65.5], 0.0, identical=True))
    ali = metric("ALI", score("MLE", [43.0, 44.0]), score("SAC BLEU", [40.25], -3.25, 0.04))
    systems = [
        {"name": "MLE", "start": "", "config": "mle", "runs": [run(1, 37.0), run(2, 38.0, 90)]},
        {"name": "SAC BLEU", "start": "MLE", "config": "sac_bleu", "runs": [run(1, 39.25, taken_over=True)]},
    ]
    cell = {"value": 38.5, "significant": False, "spread": 0.7}
    paper = {"key": "multi30k", "title": "Multi30K", "columns": ["2016 BLEU"], "higher_is_better": [True], "notes": []}
    paper["rows"] = [
        {"group": "en-de", "system": "MLE", "runs": 0, "cells": [{**cell, "spread": None}]},
        {"group": "en-de", "system": "MLE", "runs": 2, "cells": [cell]},
        {"group": "en-de", "system": "ERAC", "runs": 0, "cells": [None]},
    ]
    return {
        "format": 1, "title": "Multi30K", "pair": "en-de", "short": False, "baselines": ["MLE"], "searches": ["beam6"],
        "seconds": 36000, "systems": systems, "paper_tables": [paper], "missing": ["METEOR is left out: no Java"],
        "comparisons": [{**part, "variant": ""}, {**part, "variant": "noUNK", "left_out": 3, "sentences": 997}],
        "lexical": [{"search": "beam6", "baseline": "MLE", "test_set": "test_2016_flickr",
                     "cases": {"all": 1004, "rare": 0}, "all": [lta, ali], "rare": []}],
    }  # fmt: skip


def test_the_update_of_a_best_score():
    curve = [(0.0, 30.0), (50.0, 31.0), (100.0, 30.5)]
    assert update_of({"update": 50, "validation": 2}, curve) == 50
    assert update_of({"update": -1, "validation": 3}, curve) == 100  # a run of an earlier version
    assert update_of({"update": -1, "validation": 4}, curve) == -1


def test_mean_and_standard_deviation():
    assert spread([1.0, 2.0, 4.0], 2) == "2.33±1.53"
    assert spread([1.0]) == "1.0"


def test_a_title_says_that_there_is_one_seed(results):
    results["systems"][0]["runs"].pop()
    assert title_of(results) == "Multi30K, EN-DE, one seed"


def test_all_tables(results):
    lines = tables_page(results).splitlines()
    assert lines[0] == "# Multi30K, EN-DE"
    commits = "01234567+", "01234567+ (taken over)"
    assert f"| MLE | mle | - | 2 | 100, 90 | 37.50±0.71 | 50, 50 | 2 h 00 min | {commits[0]} |" in lines
    assert rf"| SAC BLEU | sac\_bleu | MLE | 1 | 100 | 39.25 | 50 | 2 h 00 min | {commits[1]} |" in lines
    assert "| MLE | seed 1 | 30.0 (0), 37.0 (50) |" in lines
    assert "|  | seed 2 | 30.0 (0), 38.0 (50) |" in lines
    assert "| en-de | MLE | paper | 38.5 |" in lines
    assert "|  | MLE | own, 2 runs | 38.5±0.7 |" in lines
    assert "| 2016 (1000) | MLE | 2 | 38.5±0.7 | 42.5±0.7 | 1.015 | - | - | - | - |" in lines
    assert r"|  | SAC BLEU | 1 | 40.0\* | 42.4 | 0.995 | +1.50 | +1.00..+2.00 | 0.0100 | 1/2 |" in lines
    assert "| 2016, all (1004) | MLE | 2 | 65.50±0.71 | - | 43.50±0.71 | - | 31.00 |" in lines
    assert r"|  | SAC BLEU | 1 | 65.50 | - | 40.25\* | 0.0400 | 31.00 |" in lines
    assert "| 2016 | rare: no cases | - | - | - | - | - | - |" in lines
    assert "| 2016 (3 left out) | MLE | 38.5±0.7 | 38.5±0.7 |" in lines
    assert "- METEOR is left out: no Java" in lines
    assert "- The paper's table *IWSLT 2014 German-English*: it needs IWSLT14's training text." in lines


def test_p_by_another_rule_is_labelled(results):
    label = "- p-values of this comparison: multeval"
    assert label not in results_page({"de": results}, "", "").splitlines()
    results["comparisons"][0]["resampling"]["shuffling"] = "multeval"
    assert label in results_page({"de": results}, "", "").splitlines()


def test_validation_scores_are_of_one_metric(results):
    for system, order in zip(results["systems"], (("BLEU", "LOSS"), ("LOSS", "BLEU")), strict=True):
        for run in system["runs"]:
            scores = {"BLEU": run["best"]["BLEU"], "LOSS": {"score": 7.77, "update": 50}}
            run["best"] = {name: scores[name] for name in order}
    page = tables_page(results)
    assert "| best validation BLEU |" in page
    assert "| validation BLEU (after update) |" in page
    assert "7.77" not in page


def test_full_meteor_is_not_called_one_of_stems(results):
    for name, noted in (("METEOR (exact stem)", True), ("METEOR (exact stem paraphrase)", False)):
        results["comparisons"][0]["metrics"][1]["metric"] = name
        assert ("METEOR: our implementation, exact and stem matches only" in tables_page(results)) == noted


def test_several_results_and_their_discussion_make_a_page(results, tmp_path, capsys):
    french = copy.deepcopy(results) | {"pair": "en-fr", "short": True}
    for name, found in (("de", results), ("fr", french)):
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    (tmp_path / "talk.md").write_text("## What it means\n\nOf BLEU {fr: SAC BLEU - MLE: BLEU}.\n")
    words = [str(tmp_path / name) for name in ("de.json", "fr.json", "--discussion", "talk.md")]
    words[2] = "--discussion"
    assert main_sac(["results", *words]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# Results\n")
    order = [
        "## In short\n\nMulti30K, EN-DE:",
        "Multi30K, EN-FR, short runs:",
        "## What it means\n\nOf BLEU +1.50 (p 0.01, 1/2).\n",
        "## Multi30K, EN-DE\n",
        "## Multi30K, EN-FR, short runs\n",
    ]
    assert sorted(order, key=page.index) == order
    assert main_sac(["results", *words, "-o", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == page


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"format": 0}')
    with pytest.raises(UserError, match=r"is not the results.json of a reproduction"):
        read_results(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(UserError, match="is not valid JSON"):
        read_results(tmp_path / "x.json")
