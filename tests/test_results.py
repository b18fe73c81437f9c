"""RESULTS.md and the README's part on results are what `make docs` writes, with the figures of the kept results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_page_is_what_the_kept_results_say(generate):
    assert generate.results() == (ROOT / "experiments/RESULTS.md").read_text(encoding="utf-8"), "run `make docs`"


def test_the_readme_has_their_figures(generate):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- results -->\n") == text.count("<!-- end of results -->\n") == 1
    assert generate.readme(text) == text, "run `make docs`"


def test_the_readme_quotes_and_the_page_shows_the_results(generate, tmp_path):
    """With a result of one comparison."""
    system = {"system": "MLE", "runs": [38.0, 39.0], "average": 38.5, "s_test": 0.7071, "against_baseline": None}
    against = {"difference": 1.0, "interval": {"low": 0.5, "high": 1.5}, "p": 0.02, "runs_won": 2, "run_pairs": 2}
    other = {**system, "system": "SAC BLEU", "average": 39.5, "against_baseline": {**against, "identical": False}}
    part = {"search": "beam6", "baseline": "MLE", "variant": "", "test_set": "test_2016_flickr", "sentences": 1000}
    part["metrics"] = [{"metric": "BLEU", "higher_is_better": True, "systems": [system, other]}]
    part["resampling"] = {"shuffling": "paired"}
    books = {"best": {}, "validation": {}, "updates": 10, "seconds": 5, "seed": 1, "commit": "", "taken_over": False}
    found = {
        "format": 1, "title": "Multi30K", "pair": "en-de", "short": False, "baselines": ["MLE", "C1"],
        "searches": ["beam6"], "seconds": 10, "comparisons": [part], "lexical": [], "paper_tables": [], "missing": [],
        "systems": [{"name": "MLE", "config": "mle", "start": "", "runs": [books, books]}],
    }  # fmt: skip
    (tmp_path / "en-de.json").write_text(json.dumps(found))
    one_seed = {**found, "title": "Tried once", "systems": [{**found["systems"][0], "runs": [books]}]}
    (tmp_path / "once.json").write_text(json.dumps(one_seed))
    (tmp_path / "discussion.md").write_text("## What it says\n")
    (tmp_path / "summary.md").write_text("SAC: {en-de: SAC BLEU: BLEU}\n")
    readme = generate.readme("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", tmp_path)
    assert readme == "a\n<!-- results -->\n\nSAC: 39.5\n\n<!-- end of results -->\nb\n"
    page = generate.results(tmp_path).splitlines()
    assert {"| MLE | 2 | 38.5±0.7 |", r"| SAC BLEU | 2 | 39.5±0.7\* |"} <= set(page)
    assert "## Tried once, EN-DE, one seed" in page
    assert "## What it says" in page


@pytest.mark.parametrize("name", ["README.md", "experiments/RESULTS.md"])
def test_no_quotation_is_left(name):
    assert not re.search(r"\{[^{}]*:[^{}]*:", (ROOT / name).read_text(encoding="utf-8"))


def test_kept_results_name_no_machine_s_paths():
    for path in (ROOT / "experiments/results").glob("*.json"):
        assert not re.search(r'"/(?:home|root|tmp|work|Users)/', path.read_text(encoding="utf-8")), path
