"""`results.json`: the runs and scores of a reproduction with their provenance, without corpus text and local paths.

It has a line for every run, and one for every system, metric and test set: the score of each run, and the interval and
p over sentences of the difference from each baseline. All else follows from these: means, intervals over seeds, costs.
One endpoint is primary, declared in the matrix; every other p is corrected for the number of them (`Results.p`).
"""

import dataclasses
import functools
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, read_json
from pysimt_sac.core.records import read_record
from pysimt_sac.corpora.record import versions
from pysimt_sac.evaluation.report.runs import read_curves
from pysimt_sac.evaluation.significance import PAIRED, SIGNIFICANT, OverSeeds, holm, over_seeds
from pysimt_sac.reproduce.corpus import Corpus, Preparation, Request
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.scoring import ALL, CASES_OF, Scoring, pooled_first
from pysimt_sac.reproduce.step_records import PACKAGES, Step, StepRecord, commit
from pysimt_sac.reproduce.steps import Training, Work

FORMAT = 2
DIGITS, P_DIGITS = 6, 8  # decimals of scores and of p
ABSENT = "-"  # in tables
LIKELIHOOD = ("SimultaneousNMT", "MLENMT")  # models whose updates are the unit of cost
RESULTS_FILE = "results.json of this version"
Json = dict[str, Any]


def spread(values: Sequence[float], decimals: int = 1) -> str:
    """Format mean and standard deviation: `38.1±0.2`."""
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return f"{mean}±{statistics.stdev(values):.{decimals}f}" if len(values) > 1 else mean


@dataclass(frozen=True)
class Difference:
    """The 95% interval and p, over sentences, of a difference from a baseline; p is None if all hypotheses are its."""

    low: float
    high: float
    p: float | None


@dataclass(frozen=True)
class Score:
    """The scores of a system's runs by one metric, on a part of a test set: `size` sentences or ambiguous words."""

    search: str
    test_set: str
    part: str
    size: int
    metric: str
    system: str
    runs: tuple[float, ...]
    interval: tuple[float, float]
    against: dict[str, Difference]  # by baseline

    @property
    def mean(self) -> float:
        """The mean over runs."""
        return statistics.fmean(self.runs)

    @property
    def place(self) -> tuple[str, ...]:
        """What the score is of, whatever the system."""
        return self.search, self.test_set, self.part, self.metric


@dataclass(frozen=True)
class Results:
    """The content of a `results.json`; `metrics` has the signature and direction of each metric.

    primary: the metric, test set and search of the endpoint that was declared before anything ran.
    """

    title: str
    pair: str
    short: bool
    matrix: str
    baselines: list[str]
    searches: list[str]
    tests: list[str]
    made: Json
    seconds: int | None
    data: Json
    ambiguous_words: Json
    resampling: Json
    metrics: dict[str, Json]
    systems: list[Json]
    runs: list[Json]
    scores: list[Score]
    missing: list[str]
    primary: Json = dataclasses.field(default_factory=dict)
    format: int = FORMAT

    @functools.cached_property
    def by_place(self) -> dict[tuple[str, ...], dict[str, Score]]:
        """The systems' scores by search, test set, part and metric."""
        found: dict[tuple[str, ...], dict[str, Score]] = {}
        for score in self.scores:
            found.setdefault(score.place, {})[score.system] = score
        return found

    def scored(self, search: str, test_set: str, part: str = ALL, metric: str = "BLEU") -> dict[str, Score]:
        """Return the scores of all systems; empty if there are none."""
        return self.by_place.get((search, test_set, part, metric), {})

    def metric_name(self, word: str) -> str:
        """Return the whole name of a metric, such as `METEOR (exact stem)`, given its first word."""
        return next((name for name in self.metrics if name.split()[0] == word), word)

    def compared(self, search: str, test_set: str, baseline: str, part: str = ALL, metric: str = "BLEU") -> list[Score]:
        """Return the scores of all systems, the baseline first; empty if they were not compared with the baseline."""
        found = self.scored(search, test_set, part, metric)
        own = [score for name, score in found.items() if name != baseline]
        return [found[baseline], *own] if baseline in found and all(baseline in score.against for score in own) else []

    def baseline_of(self, score: Score, baseline: str) -> Score:
        """Return the baseline's score of the same kind."""
        return self.scored(score.search, score.test_set, score.part, score.metric)[baseline]

    def paired(self, score: Score, baseline: str) -> tuple[list[float], list[float]]:
        """Return a system's and the baseline's scores of the seeds that both have; none if not all were translated."""
        both = (score, self.baseline_of(score, baseline))
        if any(len(self.runs_of(each.system)) != len(each.runs) for each in both):
            return [], []
        own, theirs = (
            {run["seed"]: value for run, value in zip(self.runs_of(each.system), each.runs, strict=True)}
            for each in both
        )
        seeds = [seed for seed in own if seed in theirs]
        return [own[seed] for seed in seeds], [theirs[seed] for seed in seeds]

    def difference(self, score: Score, baseline: str) -> float:
        """Return a system's mean minus the baseline's, of the same seeds, even where lower is better."""
        own, theirs = self.paired(score, baseline)
        if own:
            return statistics.fmean(own) - statistics.fmean(theirs)
        return score.mean - self.baseline_of(score, baseline).mean

    def over_seeds(self, score: Score, baseline: str) -> OverSeeds | None:
        """Compare the runs of the seeds that both have; None if that is only one."""
        return over_seeds(*self.paired(score, baseline), self.metrics[score.metric]["higher_is_better"])

    def over_sentences(self, score: Score, baseline: str) -> Difference | None:
        """Return the comparison over sentences; None if it has other seeds of the baseline, or none was made."""
        same = len(score.runs) == len(self.baseline_of(score, baseline).runs)
        return score.against.get(baseline) if same else None

    def primary_score(self, system: str) -> Score | None:
        """Return a system's score on the primary endpoint."""
        first = {"metric": "BLEU", "test_set": self.test_sets()[0], "search": self.searches[0]} | self.primary
        return self.scored(first["search"], first["test_set"], metric=first["metric"]).get(system)

    def p(self, score: Score, baseline: str) -> float | None:
        """Return the p over sentences of a difference, corrected by Holm unless it is the primary endpoint's.

        The correction is for all p-values of a system against a baseline but that of the primary endpoint and those of
        the length. None: identical hypotheses, another number of runs, or a p that was computed by an earlier rule.
        """
        found = self.over_sentences(score, baseline)
        if self.resampling.get("shuffling") != PAIRED or found is None:
            return None
        p = found.p
        if p is None or score.metric == "length" or score == self.primary_score(score.system):
            return p
        return self.corrected[score.system, baseline, *score.place]

    @functools.cached_property
    def corrected(self) -> dict[tuple[str, ...], float]:
        """Every corrected p, by system, baseline and place."""
        families: dict[tuple[str, str], dict[tuple[str, ...], float]] = {}
        for score in self.scores:
            for baseline, found in score.against.items():
                if found.p is not None and score.metric != "length" and score != self.primary_score(score.system):
                    families.setdefault((score.system, baseline), {})[score.place] = found.p
        return {
            (*family, *place): p
            for family, own in families.items()
            for place, p in zip(own, holm(list(own.values())), strict=True)
        }

    def show(self, score: Score, baseline: str, decimals: int = 1) -> str:
        """Format mean and standard deviation, with a star if the difference from a baseline is significant."""
        p = self.p(score, baseline)
        return spread(score.runs, decimals) + "*" * (p is not None and p <= SIGNIFICANT)

    def cost(self, system: str) -> float | None:
        """Return the mean time of a system's runs, in updates of maximum likelihood; None if that was not timed."""
        plain = [
            own for own in self.systems if own.get("settings", {}).get("train", {}).get("model_type") in LIKELIHOOD
        ]
        names = [own["name"] for own in plain if own["start"]] or [own["name"] for own in plain]
        runs = [run for name in names for run in self.runs_of(name)]
        seconds, updates = (sum(run[name] for run in runs) for name in ("seconds", "updates"))
        if not seconds:
            return None
        return float(statistics.fmean(run["seconds"] for run in self.runs_of(system)) * updates / seconds)

    def runs_of(self, system: str) -> list[Json]:
        """Return a system's runs."""
        return [run for run in self.runs if run["system"] == system]

    def test_sets(self) -> list[str]:
        """Return the names of the test sets, the pooled one first if there are several."""
        return pooled_first(self.tests)


def collect(
    matrix: Matrix,
    corpus: Corpus,
    request: Request,
    work: Work,
    scoring: Sequence[Step],
    done: Mapping[str, StepRecord],
    missing: Sequence[str],
) -> Results:
    """Return the results of all steps that are done."""
    trained = [step for step in work.trainings if step.id in done]
    tuned = {step.training.id: read_json(step.tuned, "length penalty")["lp_alpha"] for step in work.translations
             if step.training and step.tuned and step.id in done}  # fmt: skip
    scored = [step for step in scoring if isinstance(step, Scoring) and step.id in done]
    outputs = {step: read_json(step.outputs[0], "file of scores") for step in scored}
    compared = [part for found in outputs.values() for part in found.get("comparisons", [])]
    return Results(
        title=matrix.title,
        pair=request.pair,
        short=request.short,
        matrix=matrix.path.name,
        baselines=list(matrix.scoring.baselines),
        searches=matrix.decoding.searches(),
        tests=list(matrix.data.tests),
        made={"commit": commit(), "versions": versions(PACKAGES)},
        seconds=round(sum(record.seconds for record in done.values())),
        data={"key": corpus.text.key, **corpus_record(corpus.text, request.pair)},
        ambiguous_words=corpus_record(corpus.ambiguous, request.pair) if corpus.ambiguous else {},
        resampling=compared[0]["resampling"] if compared else {},
        metrics={metric["metric"]: {name: metric[name] for name in ("signature", "higher_is_better")}
                 for step, found in outputs.items() for _, _, _, metrics in parts_of(step, found)
                 for metric in metrics},
        systems=[describe_system(matrix, request, step) for step in trained
                 if step.seed == min(other.seed for other in trained if other.system == step.system)],
        runs=[describe_run(step, done[step.id], tuned.get(step.id)) for step in trained],
        scores=collect_scores(outputs),
        missing=list(missing),
        primary={name: value for name, value in dataclasses.asdict(matrix.primary).items() if value},
    )  # fmt: skip


def describe_system(matrix: Matrix, request: Request, step: Training) -> Json:
    """Return a system's settings."""
    spec = next(system for system in matrix.systems if system.name == step.system)
    train = {key: value for key, value in step.config["train"].items() if key != "seed"}
    return {
        "name": spec.name,
        "start": spec.start,
        "config": spec.config,
        "overrides": [*spec.overrides, *(spec.short if request.short else ())],
        "settings": {"train": train, "model": step.config["model"]},
    }


def describe_run(step: Training, record: StepRecord, lp_alpha: float | None) -> Json:
    """Return a run's metadata and validation curves. lp_alpha: the length penalty chosen on the validation set."""
    curves = read_curves(step.folder, record.details["curves"].removesuffix(".scalars.jsonl"))
    return {
        "system": step.system,
        "seed": step.seed,
        "key": step.key,
        "commit": record.commit,
        "versions": record.versions,
        "updates": record.details["update"],
        "seconds": round(record.seconds, 1),
        "lp_alpha": ABSENT if lp_alpha is None else lp_alpha,
        "best": {metric: {"score": round(best["score"], DIGITS), "update": best["update"]}
                 for metric, best in record.details["best"].items()},
        "validation": {name.removeprefix("val_"): [[round(update), round(value, DIGITS)] for update, value in points]
                       for name, points in curves.items() if name.startswith("val_")},
    }  # fmt: skip


def corpus_record(prepared: Preparation, pair: str) -> Json:
    """Return what `prepare` recorded: settings, versions, checksums; only checksums if prepared elsewhere."""
    if prepared.content:
        return {"files": prepared.content}
    for path in (prepared.folder / pair / "corpus.json", prepared.folder / "corpus.json"):
        if path.is_file():
            record = read_record(dict[str, Any], path, "record of a corpus")
            return {name: record.get(name, {}) for name in ("corpus", "settings", "versions", "inputs", "files")}
    return {}


def parts_of(step: Scoring, output: Json) -> list[tuple[str, str, int, list[Json]]]:
    """Return the parts that a step has scored: test set, part, number of sentences or words, metrics."""
    if "comparison" in output:  # of `lexical`
        found = output["comparison"]
        sizes = {kind: found["systems"][0][kind]["cases"] for kind in CASES_OF}
        return [(step.test_set, part, sizes[kind], found[kind]) for kind, part in CASES_OF.items()]
    return [
        (step.test_set or part["test_set"], step.part, part["sentences"], part["metrics"])
        for part in output["comparisons"]
    ]


def collect_scores(outputs: Mapping[Scoring, Json]) -> list[Score]:
    """Return all scores; those of one system, compared with several baselines, are one."""
    scores: dict[tuple[str, ...], Score] = {}
    for step, output in outputs.items():
        for test_set, part, size, metrics in parts_of(step, output):
            for metric, own in [(each["metric"], own) for each in metrics for own in each["systems"]]:
                runs = tuple(round(run, DIGITS) for run in own["runs"])
                score = Score(
                    step.search, test_set, part, size, metric, own["system"], runs, rounded(own["interval"]), {}
                )
                score = scores.setdefault((step.search, test_set, part, metric, own["system"]), score)
                if against := own["against_baseline"]:
                    p = None if against["identical"] else round(against["p"], P_DIGITS)
                    score.against[step.baseline] = Difference(*rounded(against["interval"]), p)
    return list(scores.values())


def rounded(interval: Json) -> tuple[float, float]:
    """Return the ends of an interval."""
    return round(interval["low"], DIGITS), round(interval["high"], DIGITS)


def write_results(path: Path, results: Results) -> None:
    """Write a `results.json`: one line for each item of a list or table."""
    content = {"format": FORMAT} | dataclasses.asdict(results)
    with atomic_write(path) as stream:
        stream.write("{\n" + ",\n".join(f"{json.dumps(name)}: {in_lines(value)}" for name, value in content.items()))
        stream.write("\n}\n")


def in_lines(value: Any) -> str:
    """Return JSON with one line for each item of a nested value."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]"
    if isinstance(value, dict) and any(isinstance(item, dict) for item in value.values()):
        items = (f"{json.dumps(name)}: {json.dumps(item, ensure_ascii=False)}" for name, item in value.items())
        return "{\n" + ",\n".join(items) + "\n}"
    return json.dumps(value, ensure_ascii=False)


def read_results(path: Path) -> Results:
    """Read a `results.json` that a reproduction wrote."""
    results = read_record(Results, path, RESULTS_FILE)
    if results.format != FORMAT:
        raise UserError(f"is not a {RESULTS_FILE}: format {results.format}, not {FORMAT}", path)
    return results
