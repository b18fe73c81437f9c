"""Quotations in a text about results become the figures of these results."""

import json
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.quoting import fill_in


def score(system, average, difference=None, p=1.0, pairs=(9, 9), identical=False):
    """A system's row; with a difference, one that is compared with the baseline."""
    against = {"difference": difference, "p": p, "runs_won": pairs[0], "run_pairs": pairs[1], "identical": identical}
    return {"system": system, "average": average, "against_baseline": None if difference is None else against}


def compared(search, test_set, variant, bleu):
    """A comparison with C1, and its BLEU."""
    meteor = [score("C1", 57.6), score("SAC BLEU", 57.9, 0.3, 0.25, (6, 9))]
    length = [score("C1", 100.6), score("SAC BLEU", 99.7, -0.9, 0.00009999)]
    metrics = {"BLEU": [score("C1", 35.14), *bleu], "METEOR (exact stem)": meteor, "length": length}
    found = [{"metric": name, "systems": systems} for name, systems in metrics.items()]
    return {"search": search, "baseline": "C1", "test_set": test_set, "variant": variant, "metrics": found}


@pytest.fixture
def results():
    pooled = [score("SAC BLEU", 35.67, 0.53, 0.00009999), score("C3", 35.1, 0, pairs=(0, 1), identical=True)]
    times = [{"best": {"BLEU": {"score": best}}, "seconds": seconds} for best, seconds in ((40.0, 600), (40.5, 1800))]
    ali = {"metric": "ALI", "systems": [score("C1", 43.2), score("SAC BLEU", 43.9, 0.625, 0.0364)]}
    return {
        "baselines": ["C1"],
        "searches": ["beam6", "gs"],
        "systems": [{"name": "SAC BLEU", "runs": times}],
        "comparisons": [
            compared("beam6", "test_2016_flickr", "", [score("SAC BLEU", 40.6, 0.86, 0.0002)]),
            compared("beam6", "test_2017_mscoco", "", [score("SAC BLEU", 28.1, -0.08, 0.74, (4, 9))]),
            compared("beam6", "test_2016_flickr", "noUNK", [score("SAC BLEU", 99.9, 9.99)]),
            compared("beam6", "", "pooled", pooled),
            compared("gs", "test_2016_flickr", "", [score("SAC BLEU", 40.1, 1.2, 0.04, (1, 1))]),
        ],
        "lexical": [{"baseline": "C1", "test_set": "test_2017_mscoco", "all": [ali],
                     "rare": [{**ali, "systems": [score("C1", 12.0), score("SAC BLEU", 12.7, 0.7, 0.5)]}]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("quotation", "figure"),
    [
        ("{de: SAC BLEU - C1: BLEU}", "+0.53 (p 0.0001, 9/9)"),
        ("{de: SAC BLEU -\n  C1: BLEU 2016}", "+0.86 (p 0.0002, 9/9)"),
        ("{de: SAC BLEU - C1: BLEU COCO}", "-0.08 (p 0.74, 4/9)"),
        ("{de: SAC BLEU - C1: BLEU 2016 greedy}", "+1.20 (p 0.04)"),
        ("{de: SAC BLEU - C1: METEOR}", "+0.30 (p 0.25, 6/9)"),
        ("{de: SAC BLEU - C1: length}", "-0.009 (p 0.0001)"),
        ("{de: C3 - C1: BLEU}", "0 (identical)"),
        ("{de: C1: BLEU}", "35.1"),
        ("{de: SAC BLEU: BLEU COCO}", "28.1"),
        ("{de: C1: length}", "1.006"),
        ("{de: SAC BLEU - C1: ALI COCO}", "+0.62 (p 0.036, 9/9)"),
        ("{de: SAC BLEU: ALI COCO rare}", "12.7"),
        ("{de: SAC BLEU: validation}", "40.2"),
        ("{de: SAC BLEU: time}", "20 min"),
        ("{set} and {a: b}", "{set} and {a: b}"),
    ],
)
def test_a_quotation_becomes_its_figure(results, quotation, figure):
    assert fill_in(f"It is {quotation}.", {"de": results}) == f"It is {figure}."


@pytest.mark.parametrize(
    ("quotation", "message"),
    [
        ("{ed: C1: BLEU}", "there is no 'ed' (known: de)"),
        ("{de: SAC BLUE - C1: BLEU}", "there is no 'SAC BLUE' (did you mean 'SAC BLEU'?)"),
        ("{de: SAC BLEU - C2: BLEU}", "there is no 'C2' (known: C1)"),
        ("{de: SAC BLEU - C1: BLUE}", "there is no 'BLUE' (did you mean 'BLEU'?)"),
        ("{de: SAC BLEU: BLEU 2015}", "there is no '2015' (did you mean '2016'?)"),
        ("{de: SAC BLEU: BLEU COCO greedy}", "there is no 'COCO' (known: 2016)"),
        ("{de: SAC BLEU: ALI}", "there is no '' (known: COCO)"),
        ("{de: SAC BLEU: BLEU 2016 rare}", "names more than a test set and 'greedy'"),
        ("{de: SAC BLEU: time 2016}", "'time' takes one system and no test set"),
        ("{de: C1 - C1: BLEU}", "compares a baseline with itself"),
    ],
)
def test_what_is_not_there_cannot_be_quoted(results, quotation, message):
    with pytest.raises(UserError) as caught:
        fill_in(quotation, {"de": results})
    assert str(caught.value) == f"{quotation}: {message}"


def test_results_have_the_name_of_their_file_or_folder(tmp_path, capsys):
    kept = Path(__file__).parents[2] / "experiments/results"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/results.json").write_bytes((kept / "demo.json").read_bytes())
    (tmp_path / "talk.md").write_text("{mine: C1: BLEU} and {demo: C1: BLEU}\n")
    words = ["results", "--discussion", str(tmp_path / "talk.md"), str(tmp_path / "mine/results.json")]
    assert main_sac([*words, str(kept / "demo.json")]) == 0
    parts = json.loads((kept / "demo.json").read_text())["comparisons"]
    pooled = next(part for part in parts if part["variant"] == "pooled" and part["search"] == "beam6")
    (own,) = [row["average"] for row in pooled["metrics"][0]["systems"] if row["system"] == "C1"]
    assert f"\n{own:.1f} and {own:.1f}\n" in capsys.readouterr().out
    assert main_sac([*words, str(tmp_path / "mine/results.json").replace("mine", "mine/../mine")]) == 2
    assert "two files are called 'mine'" in capsys.readouterr().err
