"""Figures in a text about results: `{en-de: SAC BLEU - C1: BLEU 2016}` becomes `+0.86 (p 0.0002, 9/9)`.

A quotation names the results, a system and a figure, so that a text cannot contradict the tables. With a baseline,
`SYSTEM - BASELINE`, it is the difference, its p, and the pairs of runs in which the system is better; without one, the
mean over runs. The figure is one of:
- a metric (BLEU, chrF, TER, METEOR, length), then the test set (as in the tables; without one: all sets pooled), then
  `greedy` for greedy search;
- LTA or ALI, then the test set, then `rare` for the rare cases only;
- `validation`, the best validation score, or `time`, how long a run took.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.results import Results
from pysimt_sac.reproduce.tables import compared, set_name, short_name, validation_metric

QUOTATION = re.compile(r"\{([^{}:]+):([^{}:]+):([^{}:]+)\}")
MINUS = " - "
LEXICAL, OF_RUNS = ("LTA", "ALI"), ("validation", "time")
Value = TypeVar("Value")


def fill_in(text: str, found: Mapping[str, Results]) -> str:
    """Replace all quotations in a text with the figures that they name."""

    def figure(match: re.Match[str]) -> str:
        name, systems, figure = (" ".join(part.split()) for part in match.groups())
        try:
            return quote(pick(name, found), systems, figure)
        except UserError as error:
            raise UserError(error.what, " ".join(match[0].split()), error.hint) from error

    return QUOTATION.sub(figure, text)


def quote(results: Results, systems: str, figure: str) -> str:
    """Format one figure."""
    system, _, baseline = systems.partition(MINUS)
    word, *rest = figure.split()
    if word in OF_RUNS:
        if baseline or rest:
            raise UserError(f"{word!r} takes one system and no test set")
        return of_runs(word, pick(system, {own["name"]: own for own in results["systems"]}), results)
    option = "rare" if word in LEXICAL else "greedy"
    chosen = [name for name in rest if name != option]
    if len(chosen) > 1:
        raise UserError(f"names more than a test set and {option!r}")
    metrics_of = lexical_metrics if word in LEXICAL else scored_metrics
    metrics = metrics_of(results, baseline, "".join(chosen), option in rest)
    rows = pick(word, {metric["metric"].split()[0]: metric["systems"] for metric in metrics})
    own = pick(system, {row["system"]: row for row in rows})
    return difference(own, word) if baseline else average(own, word)


def pick(name: str, known: Mapping[str, Value]) -> Value:
    """Return the value of a name; suggest the nearest name if it is unknown."""
    if name not in known:
        raise UserError(f"there is no {name!r}", hint=did_you_mean(name, known))
    return known[name]


def of_runs(word: str, system: Results, results: Results) -> str:
    """Format a figure of the runs themselves, not of their translations."""
    if word == "time":
        return in_words(statistics.fmean(run["seconds"] for run in system["runs"]))
    metric = validation_metric(results)
    return f"{statistics.fmean(run['best'][metric]['score'] for run in system['runs']):.1f}"


def scored_metrics(results: Results, baseline: str, test_set: str, greedy: bool) -> Sequence[Results]:
    """Return the metrics of a comparison; without a baseline, of the first one: all have the scores of all systems."""
    baselines = {name: name for name in results["baselines"]}
    chosen = pick(baseline or results["baselines"][0], baselines)
    search = next((search for search in results["searches"] if (search == "gs") == greedy), "")
    parts = [part for part in compared(results, search, chosen) if part["variant"] != "noUNK"]
    by_set = {set_name(part): part["metrics"] for part in parts}
    return pick(test_set or next(iter(by_set), ""), by_set)  # the pooled one comes first


def lexical_metrics(results: Results, baseline: str, test_set: str, rare: bool) -> Sequence[Results]:
    """Return LTA and ALI of a test set."""
    chosen = baseline or results["baselines"][0]
    parts = [part for part in results["lexical"] if part["baseline"] == chosen]
    return pick(test_set, {short_name(part["test_set"]): part["rare" if rare else "all"] for part in parts})


def average(own: Results, metric: str) -> str:
    """Format the mean over runs, as in the tables."""
    return f"{own['average'] / 100:.3f}" if metric == "length" else f"{own['average']:.1f}"


def difference(own: Results, metric: str) -> str:
    """Format the difference from the baseline with p and, for several runs, the pairs won; not for length."""
    found = own["against_baseline"]
    if found is None:
        raise UserError("compares a baseline with itself")
    if found["identical"]:
        return "0 (identical)"
    shown = f"{found['difference'] / 100:+.3f}" if metric == "length" else f"{found['difference']:+.2f}"
    won = f", {found['runs_won']}/{found['run_pairs']}" if found["run_pairs"] > 1 and metric != "length" else ""
    return f"{shown} (p {found['p']:.2g}{won})"
