"""Figures in a text about results: `{en-de: SAC BLEU - C1: BLEU 2016}` becomes `+0.86 [0.31, 1.41] (p 0.01)`.

A quotation names the results, a system and a figure, so that a text cannot contradict the tables. With a baseline,
`SYSTEM - BASELINE`, it is the difference, its 95% interval over seeds, and its p over sentences as in the tables, if
there are any; without one, the mean over runs. The figure is one of:
- a metric (BLEU, chrF, TER, METEOR, length), then the test set (as in the tables; without one: all sets pooled), then
  `greedy` for greedy search;
- LTA or ALI, then the test set (without one: all sets pooled), then `rare` or `common` for these cases only;
- one of these after `difference`, `interval`, `better` or `p`: this part of it alone;
- `validation`, the best validation score, `time`, how long a run took, or `cost`, in updates of maximum likelihood.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.hosts.engine.training.pace import in_words
from pysimt_sac.reproduce.results import ABSENT, Results, Score
from pysimt_sac.reproduce.scoring import ALL, CASES_OF
from pysimt_sac.reproduce.tables import short_name, validation_metric

QUOTATION = re.compile(r"\{([^{}:]+):([^{}:]+):([^{}:]+)\}")
MINUS = " - "
LEXICAL, OF_RUNS = ("LTA", "ALI"), ("validation", "time", "cost")
PARTS = ("difference", "interval", "better", "p")
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
    wanted = ""
    if word in PARTS and rest:
        wanted, (word, *rest) = word, rest
    if word in OF_RUNS:
        if baseline or rest:
            raise UserError(f"{word!r} takes one system and no test set")
        return of_runs(word, pick(system, {own["name"]: own["name"] for own in results.systems}), results)
    options = ("rare", "common") if word in LEXICAL else ("greedy",)
    option = next((name for name in rest if name in options), "")
    chosen = [name for name in rest if name != option]
    if len(chosen) > 1:
        raise UserError(f"names more than a test set and {' or '.join(options)}")
    if baseline:
        pick(baseline, dict.fromkeys(results.baselines))
    score = pick(system, find_scores(results, word, chosen, option))
    if wanted and not baseline:
        raise UserError(f"{wanted!r} is of a difference", hint="SYSTEM - BASELINE")
    return difference(results, score, baseline, wanted) if baseline else mean(score)


def pick(name: str, known: Mapping[str, Value]) -> Value:
    """Return the value of a name; suggest the nearest name if it is unknown."""
    if name not in known:
        raise UserError(f"there is no {name!r}", hint=did_you_mean(name, known))
    return known[name]


def of_runs(word: str, system: str, results: Results) -> str:
    """Format a figure of the runs themselves, not of their translations."""
    if word == "time":
        return in_words(statistics.fmean(run["seconds"] for run in results.runs_of(system)))
    if word == "cost":
        return f"{results.cost(system) or 0:,.0f}"
    metric = validation_metric(results)
    return f"{statistics.fmean(run['best'][metric]['score'] for run in results.runs_of(system)):.1f}"


def find_scores(results: Results, word: str, test_set: Sequence[str], option: str) -> Mapping[str, Score]:
    """Return the scores of all systems by a metric on a test set. option: `rare`, `common` or `greedy`, or none."""
    part = CASES_OF[option or "all"] if word in LEXICAL else ALL
    searches = [search for search in results.searches if (search == "gs") == (option == "greedy")]
    there = [score for score in results.scores if score.part == part and score.search in searches]
    by_set = {short_name(score.test_set): score.test_set for score in there}
    chosen = pick(test_set[0] if test_set else short_name(results.test_sets()[0]), by_set)
    by_metric = {score.metric.split()[0]: score.metric for score in there}
    return results.scored(searches[0], chosen, part, pick(word, by_metric))


def mean(score: Score) -> str:
    """Format the mean over runs, as in the tables."""
    return f"{score.mean / 100:.3f}" if score.metric == "length" else f"{score.mean:.1f}"


def difference(results: Results, score: Score, baseline: str, wanted: str = "") -> str:
    """Format the difference from the baseline with its interval over seeds and its p, or one of these parts."""
    if score.system == baseline:
        raise UserError("compares a baseline with itself")
    if score.against[baseline].p is None:
        return "0 (identical)"
    seeds, p, unit = results.over_seeds(score, baseline), results.p(score, baseline), 1.0
    decimals = 2
    if score.metric == "length":
        unit, decimals = 100.0, 3
    parts = {
        "difference": f"{results.difference(score, baseline) / unit:+.{decimals}f}",
        "interval": f"[{seeds.low / unit:.{decimals}f}, {seeds.high / unit:.{decimals}f}]" if seeds else "",
        "better": seeds.wins if seeds else "",
        "p": "" if p is None else f"{p:.2g}",
    }
    if wanted:
        return parts[wanted] or ABSENT
    together = [parts["difference"], parts["interval"], f"(p {parts['p']})" if parts["p"] else ""]
    return " ".join(filter(None, together))
