"""`results.json`: every figure of a reproduction with its provenance, without corpus text and local paths."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, read_lines
from pysimt_sac.corpora.record import versions
from pysimt_sac.evaluation.report.figures import Point
from pysimt_sac.evaluation.report.run_folder import read_curves
from pysimt_sac.reproduce.corpus import Corpus, Preparation, Request
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.scoring import Scoring
from pysimt_sac.reproduce.stamps import PACKAGES, Stamp, commit
from pysimt_sac.reproduce.steps import Step, Training

FORMAT = 1
BASELINE = "baseline"  # its name in the output of `compare` and `lexical`
FIGURES = ("comparisons", "lexical", "paper_tables")  # must not depend on how often a reproduction was stopped
Results = dict[str, Any]


@dataclass(frozen=True)
class FinishedReproduction:
    """A reproduction whose steps are done, as far as possible."""

    matrix: Matrix
    corpus: Corpus
    request: Request
    trainings: Sequence[Training]
    scoring: Sequence[Step]
    done: Mapping[str, Stamp]
    missing: tuple[str, ...]

    def results(self) -> Results:
        """Return all figures."""
        scored = [step for step in self.scoring if isinstance(step, Scoring) and step.id in self.done]
        return {
            "format": FORMAT,
            "title": self.matrix.title,
            "pair": self.request.pair,
            "short": self.request.short,
            "matrix": self.matrix.path.name,
            "baselines": list(self.matrix.scoring.baselines),
            "searches": self.matrix.decoding.searches(),
            "tests": list(self.matrix.data.tests),
            "made": {"commit": commit(), "versions": versions(PACKAGES)},
            "seconds": round(sum(stamp.seconds for stamp in self.done.values())),
            "data": {"key": self.corpus.text.key, **record_of(self.corpus.text, self.request.pair)},
            "ambiguous_words": record_of(self.corpus.ambiguous, self.request.pair) if self.corpus.ambiguous else {},
            "systems": [system for name in self.system_names() if (system := self.system(name))["runs"]],
            "comparisons": [part for step in scored if step.command == "compare" for part in comparisons(step)],
            "lexical": [lexical(step) for step in scored if step.command == "lexical"],
            "paper_tables": [part for step in scored if step.command == "table"
                             for part in paper_tables(step, self.request.pair)],
            "missing": list(self.missing),
        }  # fmt: skip

    def system_names(self) -> list[str]:
        """Return the names of the systems to train."""
        return list(dict.fromkeys(step.system for step in self.trainings))

    def system(self, name: str) -> Results:
        """Return a system's settings and runs."""
        spec = next(system for system in self.matrix.systems if system.name == name)
        own = [step for step in self.trainings if step.system == name]
        train = {key: value for key, value in own[0].config["train"].items() if key != "seed"}
        return {
            "name": name,
            "start": spec.start,
            "config": spec.config,
            "overrides": [*spec.overrides, *(spec.short if self.request.short else ())],
            "resolved": {"train": train, "model": own[0].config["model"]},
            "runs": [self.run(step) for step in own if step.id in self.done],
        }

    def run(self, step: Training) -> Results:
        """Return a run's metadata and validation curves."""
        stamp = self.done[step.id]
        curves = read_curves(step.folder, stamp.details["curves"].removesuffix(".scalars.jsonl"))
        return {
            "seed": step.seed,
            "key": step.key,
            "commit": stamp.commit,
            "versions": stamp.versions,
            "taken_over": "adopted" in stamp.details,
            "updates": stamp.details["update"],
            "seconds": round(stamp.seconds),
            "best": {metric: {"score": best["score"], "update": update_of(best, curves.get(f"val_{metric}", ()))}
                     for metric, best in stamp.details["best"].items()},
            "validation": {name.removeprefix("val_"): [list(point) for point in points]
                           for name, points in curves.items() if name.startswith("val_")},
        }  # fmt: skip


def update_of(best: Results, curve: Sequence[Point]) -> int:
    """Return the update of the best score; runs of earlier versions record only the validation."""
    update, number = int(best["update"]), int(best["validation"])
    return int(curve[number - 1][0]) if update < 0 and 0 < number <= len(curve) else update


def record_of(prepared: Preparation, pair: str) -> Results:
    """Return what `prepare` recorded: settings, versions, checksums; only checksums if prepared elsewhere."""
    if prepared.content:
        return {"files": prepared.content}
    for path in (prepared.folder / pair / "corpus.json", prepared.folder / "corpus.json"):
        if path.is_file():
            record = read_json(path)
            return {name: record[name] for name in ("corpus", "settings", "versions", "inputs", "files")}
    return {}


def read_json(path: Path) -> Any:
    """Return the content of one of our JSON files."""
    try:
        return json.loads("\n".join(read_lines(path, "file of results")))
    except json.JSONDecodeError as error:
        raise UserError(f"is not valid JSON: {error}", path) from error


def renamed(metrics: Sequence[Results], baseline: str) -> list[Results]:
    """Return metrics in which the baseline has its own name."""
    return [
        {**metric, "systems": [{**own, "system": baseline if own["system"] == BASELINE else own["system"]}
                               for own in metric["systems"]]}
        for metric in metrics
    ]  # fmt: skip


def comparisons(step: Scoring) -> list[Results]:
    """Return the figures of a `compare` step."""
    what = {"search": step.search, "baseline": step.baseline, "variant": step.variant}
    return [
        {**what, **part, "metrics": renamed(part["metrics"], step.baseline)}
        for part in read_json(step.outputs[0])["comparisons"]
    ]


def lexical(step: Scoring) -> Results:
    """Return the figures of a `lexical` step, without the words."""
    found = read_json(step.outputs[0])["comparison"]
    return {
        "search": step.search,
        "baseline": step.baseline,
        "test_set": step.test_set,
        "cases": {kind: found["systems"][0][kind]["cases"] for kind in ("all", "rare")},
        **{kind: renamed(found[kind], step.baseline) for kind in ("all", "rare")},
    }


def paper_tables(step: Scoring, pair: str) -> list[Results]:
    """Return the paper's tables of a pair, with its rows and ours."""
    tables = read_json(step.outputs[0])["tables"]
    return [{**table, "rows": [row for row in table["rows"] if row["group"] == pair]} for table in tables]


def write_results(path: Path, results: Results) -> None:
    """Write a `results.json`."""
    with atomic_write(path) as stream:
        json.dump(results, stream, ensure_ascii=False, indent=1)
        stream.write("\n")


def read_results(path: Path) -> Results:
    """Read a `results.json` that a reproduction wrote."""
    found = read_json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT or not set(FIGURES) <= set(found):
        raise UserError("is not the results.json of a reproduction, or is of another version", path)
    return found
