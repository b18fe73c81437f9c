"""The pages of results are what `make docs` writes, and quotations in their texts become the figures of the results."""

import json
import math
import re
from pathlib import Path

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.reproduce.results import write_results
from tests.reproduce.sample import run, sample_results, score

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "experiments/RESULTS.md", "docs/results-tables.md"]


def test_the_pages_are_what_the_kept_results_say(generate):
    found = generate.kept()
    assert generate.results() == (ROOT / "experiments/RESULTS.md").read_text(encoding="utf-8"), "run `make docs`"
    tables = (ROOT / "docs/results-tables.md").read_text(encoding="utf-8")
    assert generate.tables_page(found) == tables, "run `make docs`"


def test_the_readme_has_their_figures(generate):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- results -->\n") == text.count("<!-- end of results -->\n") == 1
    assert generate.readme(text) == text, "run `make docs`"


def test_the_readme_quotes_and_the_pages_show_the_results(generate, tmp_path):
    write_results(tmp_path / "en-de.json", sample_results())
    once = sample_results(title="Tried once", runs=[run("MLE", 1, 37.0), run("SAC BLEU", 1, 38.0)])
    write_results(tmp_path / "once.json", once)
    (tmp_path / "discussion.md").write_text("## What it says\n\nOf BLEU {en-de: SAC BLEU - MLE: BLEU}.\n")
    (tmp_path / "summary.md").write_text("SAC: {en-de: SAC BLEU: BLEU}\n")
    readme = generate.readme("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", tmp_path)
    assert readme == "a\n<!-- results -->\n\nSAC: 40.0\n\n<!-- end of results -->\nb\n"
    page = generate.results(tmp_path)
    order = [
        "# Results\n",
        "## In short\n",
        "\n\nMulti30K, EN-DE:\n",
        "| MLE | 2 | 38.5±0.7 | - | - | - | - | 95 |\n| SAC BLEU | 2 | 40.0±0.7\\* | +1.50 | - | - | 0.0100 | 95 |\n",
        "Tried once, EN-DE, one seed:",
        "## What it says\n\nOf BLEU +1.50 (p 0.01).\n",
    ]
    assert sorted(order, key=page.index) == order
    tables = generate.tables_page(generate.kept(tmp_path))
    assert "\n## Tried once, EN-DE, one seed\n\n### Gains and costs\n" in tables


def t_quantile(freedom):
    """The 97.5% quantile of Student's t distribution, from its closed forms."""
    if freedom == 1:
        return math.tan(math.pi * 0.475)
    if freedom == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    assert freedom == 4
    root = math.sqrt(4 * 0.975 * 0.025)
    return 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)


def test_intervals_follow_from_the_kept_scores(generate):
    """Independently of the code that makes the pages."""
    n_intervals = 0
    for path in (ROOT / "experiments/results").glob("*.json"):
        content, results = json.loads(path.read_text()), generate.kept()[path.stem]
        seeds = {name: [run["seed"] for run in content["runs"] if run["system"] == name]
                 for name in {run["system"] for run in content["runs"]}}  # fmt: skip
        kept = {tuple(own[name] for name in ("search", "test_set", "part", "metric", "system")): own["runs"]
                for own in content["scores"]}  # fmt: skip
        for own in results.scores:
            for baseline in own.against:
                theirs = dict(zip(seeds[baseline], kept[*own.place, baseline], strict=True))
                paired = zip(seeds[own.system], kept[*own.place, own.system], strict=True)
                gains = [value - theirs[seed] for seed, value in paired if seed in theirs]
                found = results.over_seeds(own, baseline)
                assert (found is None) == (len(gains) < 2 or max(gains) - min(gains) < 1e-9)
                if found:
                    mean = sum(gains) / len(gains)
                    error = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1) / len(gains))
                    margin = t_quantile(len(gains) - 1) * error
                    assert (found.low, found.high) == pytest.approx((mean - margin, mean + margin), abs=1e-3)
                    n_intervals += 1
    assert n_intervals > 500


def test_p_by_an_earlier_rule_is_left_out(generate):
    earlier, today = (
        generate.results_page({"de": sample_results(resampling={"shuffling": rule})}, "{de: SAC BLEU - MLE: BLEU}")
        for rule in ("single outputs swapped", "paired")
    )
    assert "+1.50 (p 0.01)" in today
    assert "40.0±0.7\\*" in today
    assert "+1.50\n" in earlier
    assert "40.0±0.7\\*" not in earlier
    assert "| SAC BLEU | 2 | 40.0±0.7 | +1.50 | - | - | - | 95 |" in earlier


@pytest.mark.parametrize("name", PAGES)
def test_no_quotation_is_left(name):
    assert not re.search(r"\{[^{}]*:[^{}]*:", (ROOT / name).read_text(encoding="utf-8"))


def test_kept_results_are_small_and_name_no_paths_of_a_machine():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "experiments/results").glob("*.json")]
    assert sum(text.count("\n") for text in texts) < 10_000
    assert not any(re.search(r'"/(?:home|root|tmp|work|Users)/', text) for text in texts)


@pytest.fixture
def quoted():
    """Results of three test sets, pooled and apart, by two searches."""

    c1, sac = [35.0, 35.2, 35.25], [35.6, 35.7, 35.73]
    return sample_results(
        baselines=["C1"],
        searches=["beam6", "gs"],
        tests=["test_2016_flickr", "test_2017_mscoco"],
        systems=[{"name": "C1"}, {"name": "SAC BLEU"}, {"name": "C3"}],
        runs=[
            run(name, seed, 39.5 + seed / 2) | {"seconds": 600 * seed}
            for name in ("C1", "SAC BLEU")
            for seed in (1, 2, 3)
        ],
        scores=[
            score("BLEU", "C1", c1, test_set="pooled"),
            score("BLEU", "SAC BLEU", sac, {"C1": 0.00009999}, test_set="pooled"),
            score("BLEU", "C3", c1, {"C1": None}, test_set="pooled"),
            score("METEOR (exact stem)", "C1", [57.6, 57.6], test_set="pooled"),
            score("METEOR (exact stem)", "SAC BLEU", [57.9, 57.5], {"C1": 0.25}, test_set="pooled"),
            score("length", "C1", [100.6, 100.6], test_set="pooled"),
            score("length", "SAC BLEU", [99.7, 99.7], {"C1": 0.00009999}, test_set="pooled"),
            score("BLEU", "C1", [39.0]),
            score("BLEU", "SAC BLEU", [39.86], {"C1": 0.0002}),
            score("BLEU", "SAC BLEU", [99.9], {"C1": 0.0002}, part="noUNK"),
            score("BLEU", "C1", [28.0], search="gs"),
            score("BLEU", "SAC BLEU", [29.2], {"C1": 0.04}, search="gs"),
            score("ALI", "C1", [43.2, 43.4], part="cases", test_set="test_2017_mscoco"),
            score("ALI", "SAC BLEU", [43.9, 43.94], {"C1": 0.0364}, part="cases", test_set="test_2017_mscoco"),
            score("ALI", "SAC BLEU", [12.7], {"C1": 0.5}, part="rare cases", test_set="test_2017_mscoco"),
        ],
    )


@pytest.mark.parametrize(
    ("quotation", "figure"),
    [
        ("{de: SAC BLEU - C1: BLEU}", "+0.53 [0.37, 0.69] (p 0.0001)"),
        ("{de: SAC BLEU -\n  C1: BLEU 2016}", "+0.86 (p 0.0012)"),
        ("{de: SAC BLEU - C1: BLEU 2016 greedy}", "+1.20 (p 0.15)"),
        ("{de: SAC BLEU - C1: METEOR}", "+0.10 (p 0.5)"),
        ("{de: SAC BLEU - C1: length}", "-0.009 (p 0.0001)"),
        ("{de: SAC BLEU - C1: difference BLEU}", "+0.53"),
        ("{de: SAC BLEU - C1: interval BLEU}", "[0.37, 0.69]"),
        ("{de: SAC BLEU - C1: interval BLEU 2016}", "-"),
        ("{de: SAC BLEU - C1: better BLEU}", "3 of 3"),
        ("{de: SAC BLEU - C1: p BLEU 2016}", "0.0012"),
        ("{de: C3 - C1: BLEU}", "0 (identical)"),
        ("{de: C1: BLEU}", "35.1"),
        ("{de: SAC BLEU: BLEU 2016}", "39.9"),
        ("{de: C1: length}", "1.006"),
        ("{de: SAC BLEU - C1: ALI COCO}", "+0.62 (p 0.15)"),
        ("{de: SAC BLEU: ALI COCO rare}", "12.7"),
        ("{de: SAC BLEU: validation}", "40.5"),
        ("{de: SAC BLEU: time}", "20 min"),
        ("{set} and {a: b}", "{set} and {a: b}"),
    ],
)
def test_a_quotation_becomes_its_figure(generate, quoted, quotation, figure):
    assert generate.fill_in(f"It is {quotation}.", {"de": quoted}) == f"It is {figure}."


@pytest.mark.parametrize(
    ("quotation", "message"),
    [
        ("{ed: C1: BLEU}", "there is no 'ed' (known: de)"),
        ("{de: SAC BLUE - C1: BLEU}", "there is no 'SAC BLUE' (did you mean 'SAC BLEU'?)"),
        ("{de: SAC BLEU - C2: BLEU}", "there is no 'C2' (known: C1)"),
        ("{de: SAC BLEU - C1: BLUE}", "there is no 'BLUE' (did you mean 'BLEU'?)"),
        ("{de: SAC BLEU: BLEU 2015}", "there is no '2015' (did you mean '2016'?)"),
        ("{de: SAC BLEU: BLEU COCO greedy}", "there is no 'COCO' (known: 2016)"),
        ("{de: SAC BLEU: ALI}", "there is no 'pooled' (known: COCO)"),
        ("{de: SAC BLEU: BLEU 2016 rare}", "names more than a test set and greedy"),
        ("{de: SAC BLEU: time 2016}", "'time' takes one system and no test set"),
        ("{de: C1 - C1: BLEU}", "compares a baseline with itself"),
        ("{de: SAC BLEU: interval BLEU}", "'interval' is of a difference (SYSTEM - BASELINE)"),
    ],
)
def test_what_is_not_in_the_results_cannot_be_quoted(generate, quoted, quotation, message):
    with pytest.raises(UserError) as caught:
        generate.fill_in(quotation, {"de": quoted})
    assert str(caught.value) == f"{quotation}: {message}"
