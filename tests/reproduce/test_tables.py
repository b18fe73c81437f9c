"""`results.json` and the tables made from it alone."""

import dataclasses

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.results import read_results, spread, write_results
from pysimt_sac.reproduce.tables import tables_page, title_of
from tests.reproduce.sample import run, sample_results, score


def test_mean_and_standard_deviation():
    assert spread([1.0, 2.0, 4.0], 2) == "2.33±1.53"
    assert spread([1.0]) == "1.0"


def test_the_title_says_that_there_is_one_seed():
    runs = [run("MLE", 1, 37.0), run("SAC BLEU", 1, 38.0)]
    assert title_of(sample_results(runs=runs)) == "Multi30K, EN-DE, one seed"
    assert title_of(sample_results(short=True, pair="demo")) == "Multi30K, short runs"


def test_all_tables():
    lines = tables_page(sample_results()).splitlines()
    assert lines[0] == "# Multi30K, EN-DE"
    assert "| MLE | mle | - | 2 | 100, 90 | 37.50±0.71 | 50, 50 | 0.6, 0.6 | 2 h 00 min | 01234567+ |" in lines
    assert (
        r"| SAC BLEU | sac\_bleu | MLE | 2 | 100, 100 | 39.25±0.35 | 50, 50 | 0.6, 0.6 | 2 h 00 min | 01234567+ |"
        in lines
    )
    assert "| MLE | seed 1 | 30.0 (0), 37.0 (50) |" in lines
    assert "|  | seed 2 | 30.0 (0), 38.0 (50) |" in lines
    assert "| 2016 (1000) | MLE | 2 | 38.5±0.7 | 42.5±0.7 | 1.015 | - | - | - | - | - |" in lines
    assert r"|  | SAC BLEU | 2 | 40.0±0.7\* | 42.4±0.7 | 0.995 | +1.50 | -0.50..+0.50 | 0.0100 | - | - |" in lines
    assert "| SAC BLEU | 2 | +1.50 | - | - | 0.0100 | 95 |" in lines
    assert "| 2016, all (1004) | MLE | 2 | 65.50±0.71 | - | - | - | 43.50±0.71 | - | - | - |" in lines
    assert r"|  | SAC BLEU | 2 | 65.50±0.71 | +0.00 | - | - | 40.25±0.71 | -3.25 | 0.1200 | - |" in lines
    assert "| 2016 (3 left out) | MLE | 38.5±0.7 | 39.0±0.7 |" in lines
    assert "- METEOR is left out: no Java" in lines
    assert "- The paper's table *IWSLT 2014 German-English*: it needs IWSLT14's training text." in lines


def test_runs_are_paired_by_seed():
    one = [score("TER", "MLE", [42.0, 43.0]), score("TER", "SAC BLEU", [42.4], {"MLE": 0.7})]
    results = sample_results(
        runs=[run("MLE", 2, 37.0), run("MLE", 1, 38.0), run("SAC BLEU", 1, 39.25)],
        scores=[score("BLEU", "MLE", [38.0, 39.0]), *one],
    )
    ter = results.scored("beam6", "test_2016_flickr", metric="TER")["SAC BLEU"]
    assert results.difference(ter, "MLE") == pytest.approx(42.4 - 43.0)  # seed 2 of MLE has no counterpart
    assert results.over_seeds(ter, "MLE") is None  # only one seed is common
    assert results.over_sentences(ter, "MLE") is None  # it compares all runs
    assert results.p(ter, "MLE") is None
    several = [score("TER", "MLE", [42.0, 43.0]), score("TER", "SAC BLEU", [42.4, 42.6], {"MLE": 0.7})]
    results = sample_results(runs=[*results.runs, run("SAC BLEU", 2, 39.0)], scores=several)
    found = results.over_seeds(results.scores[1], "MLE")  # 42.4 - 43.0 and 42.6 - 42.0
    assert (found.mean, found.wins) == (pytest.approx(0.0), "1 of 2")


def test_all_p_values_but_the_primary_endpoints_are_corrected_by_holm():
    results = sample_results()
    p = {own.place: results.p(own, "MLE") for own in results.scores if own.system == "SAC BLEU"}
    places = [("all", "BLEU"), ("all", "TER"), ("all", "length"), ("noUNK", "BLEU"), ("cases", "LTA"), ("cases", "ALI")]
    # Three are corrected: TER's 0.7, noUNK's 0.2, and ALI's 0.04; LTA's hypotheses are identical.
    expected = [0.01, 0.7, 0.00009999, 0.4, None, 0.12]
    for place, value in zip(places, expected, strict=True):
        assert p["beam6", "test_2016_flickr", *place] == (value if value is None else pytest.approx(value))
    other = sample_results(primary={"metric": "TER"})
    assert other.p(other.scores[3], "MLE") == 0.7
    assert other.p(other.scores[1], "MLE") == pytest.approx(0.03)


def test_costs_are_in_updates_of_continued_maximum_likelihood():
    def system(name, start, model):
        return {"name": name, "start": start, "config": "x", "settings": {"train": {"model_type": model}}}

    systems = [system("MLE", "", "SimultaneousNMT"), system("C1", "MLE", "MLENMT"), system("SAC", "MLE", "SACNMT")]
    runs = [run("MLE", 1, 37.0), run("C1", 1, 38.0) | {"seconds": 300}, run("SAC", 1, 39.0) | {"seconds": 900}]
    results = sample_results(systems=systems, runs=runs)
    assert results.cost("C1") == pytest.approx(100)  # its updates
    assert results.cost("SAC") == pytest.approx(300)
    assert sample_results(systems=systems[2:], runs=runs[2:]).cost("SAC") is None


def test_runs_of_maximum_likelihood_that_took_no_measurable_time_give_no_cost():
    results = sample_results(runs=[own | {"seconds": 0.0} for own in sample_results().runs])
    assert results.cost("SAC BLEU") is None
    assert "| SAC BLEU | 2 | +1.50 | - | - | 0.0100 | - |" in tables_page(results).splitlines()


def test_validation_scores_are_of_the_first_metric_that_all_runs_have():
    runs = sample_results().runs
    for number, own in enumerate(runs):
        loss = {"LOSS": {"score": 7.77, "update": 50}}
        own["best"] = own["best"] | loss if number < 2 else loss | own["best"]
    page = tables_page(sample_results(runs=runs))
    assert "| best validation BLEU |" in page
    assert "| validation BLEU (after update) |" in page
    assert "7.77" not in page


def test_only_meteor_with_stems_has_a_note():
    scores = sample_results().scores
    scores += [score("METEOR (exact stem)", "MLE", [57.0, 58.0]), score("METEOR (exact stem)", "SAC BLEU", [57.0])]
    note = "METEOR: our implementation, exact and stem matches only"
    assert note in tables_page(sample_results(scores=scores))
    assert note not in tables_page(sample_results())


def test_results_are_written_in_a_line_per_run_and_score_and_read_again(tmp_path):
    results = sample_results(data={"key": "abc", "files": {"train.de": "123"}})
    write_results(tmp_path / "x.json", results)
    assert read_results(tmp_path / "x.json") == results
    lines = (tmp_path / "x.json").read_text().splitlines()
    assert sum('"commit"' in line for line in lines) == len(results.runs)
    assert sum('"against"' in line for line in lines) == len(results.scores)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"format": 1}')
    with pytest.raises(UserError, match=r"is not a results.json of this version"):
        read_results(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        read_results(tmp_path / "x.json")


def test_results_with_one_system_have_its_scores():
    results = sample_results()
    alone = dataclasses.replace(
        results,
        systems=results.systems[:1],
        runs=results.runs[:2],
        scores=[own for own in results.scores if own.system == "MLE"],
    )
    assert (
        "| 2016 (1000) | MLE | 2 | 38.5±0.7 | 42.5±0.7 | 1.015 | - | - | - | - | - |" in tables_page(alone).splitlines()
    )


def test_there_is_no_table_for_a_baseline_whose_comparison_failed():
    page = tables_page(sample_results(baselines=["MLE", "SAC BLEU"]))
    assert "## Against MLE, beam 6" in page
    assert "## Against SAC BLEU" not in page
