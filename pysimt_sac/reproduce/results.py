"""`results.json`: the runs and scores of a reproduction with their provenance, without corpus text and local paths.

It has a line for every run, and one for every system, metric and test set: the score of each run, and interval and p of
the difference from each baseline. Means, deviations and differences follow from these.
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
from pysimt_sac.core.files import atomic_write, read_lines
from pysimt_sac.corpora.record import versions
from pysimt_sac.evaluation.report.run_folder import read_curves
from pysimt_sac.evaluation.significance import SIGNIFICANT
from pysimt_sac.reproduce.corpus import Corpus, Preparation, Request
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.scoring import ALL, CASES, POOLED, RARE, Scoring
from pysimt_sac.reproduce.step_records import PACKAGES, Step, StepRecord, commit
from pysimt_sac.reproduce.steps import Training

FORMAT = 2
BASELINE = "baseline"  # its name in the output of `compare` and `lexical`
DIGITS, P_DIGITS = 6, 8  # decimals of scores and of p
ABSENT = "-"  # in tables
Json = dict[str, Any]


def spread(values: Sequence[float], decimals: int = 1) -> str:
    """Format mean and standard deviation: `38.1±0.2`."""
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return f"{mean}±{statistics.stdev(values):.{decimals}f}" if len(values) > 1 else mean


@dataclass(frozen=True)
class Difference:
    """The 95% interval and p of a difference from a baseline; p is None if all hypotheses are the baseline's."""

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

    def show(self, baseline: str, decimals: int = 1) -> str:
        """Format mean and standard deviation, with a star if the difference from a baseline is significant."""
        found = self.against.get(baseline)
        is_significant = found is not None and found.p is not None and found.p <= SIGNIFICANT
        return spread(self.runs, decimals) + "*" * is_significant


@dataclass(frozen=True)
class Results:
    """The content of a `results.json`; `metrics` has the signature and direction of each metric."""

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

    @functools.cached_property
    def by_place(self) -> dict[tuple[str, str, str, str], dict[str, Score]]:
        """The systems' scores by search, test set, part and metric."""
        found: dict[tuple[str, str, str, str], dict[str, Score]] = {}
        for score in self.scores:
            place = found.setdefault((score.search, score.test_set, score.part, score.metric), {})
            place[score.system] = score
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

    def differences(self, score: Score, baseline: str) -> list[float]:
        """Return the differences of all pairs of runs, a system's and a baseline's, even where lower is better."""
        other = self.scored(score.search, score.test_set, score.part, score.metric)[baseline]
        return [ours - theirs for ours in score.runs for theirs in other.runs]

    def pairs_won(self, score: Score, baseline: str) -> str:
        """Return in how many pairs of runs the system beats the baseline, of how many: `7/9`."""
        sign = 1 if self.metrics[score.metric]["higher_is_better"] else -1
        pairs = self.differences(score, baseline)
        return f"{sum(sign * pair > 0 for pair in pairs)}/{len(pairs)}"

    def runs_of(self, system: str) -> list[Json]:
        """Return a system's runs."""
        return [run for run in self.runs if run["system"] == system]

    def test_sets(self) -> list[str]:
        """Return the names of the test sets, the pooled one first if there are several."""
        return [POOLED, *self.tests] if len(self.tests) > 1 else self.tests


def collect(
    matrix: Matrix,
    corpus: Corpus,
    request: Request,
    trainings: Sequence[Training],
    scoring: Sequence[Step],
    done: Mapping[str, StepRecord],
    missing: Sequence[str],
) -> Results:
    """Return the results of all steps that are done."""
    trained = [step for step in trainings if step.id in done]
    outputs = {step: read_json(step.outputs[0]) for step in scoring if isinstance(step, Scoring) and step.id in done}
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
        runs=[describe_run(step, done[step.id]) for step in trained],
        scores=collect_scores(outputs),
        missing=list(missing),
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


def describe_run(step: Training, record: StepRecord) -> Json:
    """Return a run's metadata and validation curves."""
    curves = read_curves(step.folder, record.details["curves"].removesuffix(".scalars.jsonl"))
    return {
        "system": step.system,
        "seed": step.seed,
        "key": step.key,
        "commit": record.commit,
        "versions": record.versions,
        "updates": record.details["update"],
        "seconds": round(record.seconds),
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
            record = read_json(path)
            return {name: record[name] for name in ("corpus", "settings", "versions", "inputs", "files")}
    return {}


def parts_of(step: Scoring, output: Json) -> list[tuple[str, str, int, list[Json]]]:
    """Return the parts that a step has scored: test set, part, number of sentences or words, metrics."""
    if "comparison" in output:  # of `lexical`
        found = output["comparison"]
        sizes = {kind: found["systems"][0][kind]["cases"] for kind in ("all", "rare")}
        return [(step.test_set, part, sizes[kind], found[kind]) for part, kind in ((CASES, "all"), (RARE, "rare"))]
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
                system = step.baseline if own["system"] == BASELINE else own["system"]
                runs = tuple(round(run, DIGITS) for run in own["runs"])
                score = Score(step.search, test_set, part, size, metric, system, runs, rounded(own["interval"]), {})
                score = scores.setdefault((step.search, test_set, part, metric, system), score)
                if against := own["against_baseline"]:
                    p = None if against["identical"] else round(against["p"], P_DIGITS)
                    score.against[step.baseline] = Difference(*rounded(against["interval"]), p)
    return list(scores.values())


def rounded(interval: Json) -> tuple[float, float]:
    """Return the ends of an interval."""
    return round(interval["low"], DIGITS), round(interval["high"], DIGITS)


def read_json(path: Path) -> Any:
    """Return the content of one of our JSON files."""
    try:
        return json.loads("\n".join(read_lines(path, "file of results")))
    except json.JSONDecodeError as error:
        raise UserError(f"is not valid JSON: {error}", path) from error


def write_results(path: Path, results: Results) -> None:
    """Write a `results.json`: one line for each item of a list or table."""
    content = {"format": FORMAT, **dataclasses.asdict(results)}
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
    found = read_json(path)
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise UserError("is not the results.json of a reproduction, or is of another version", path)
    scores = []
    for score in found["scores"]:
        against = {name: Difference(**difference) for name, difference in score["against"].items()}
        parts = {"runs": tuple(score["runs"]), "interval": tuple(score["interval"]), "against": against}
        scores.append(Score(**{**score, **parts}))
    return Results(**{**found, "scores": scores})
