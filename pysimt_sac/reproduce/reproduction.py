"""A whole reproduction: plan, prepare, train, translate, score, tables; it resumes where it stopped."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write
from pysimt_sac.core.records import read_record
from pysimt_sac.reproduce.corpus import Request, find_corpus
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.plan import SCORING, Estimator, describe, describe_progress
from pysimt_sac.reproduce.results import collect, write_results
from pysimt_sac.reproduce.runner import Runner
from pysimt_sac.reproduce.scoring import REPORT, ScoringSteps, find_metrics
from pysimt_sac.reproduce.step_records import Step, StepRecords
from pysimt_sac.reproduce.steps import plan_work
from pysimt_sac.reproduce.tables import tables_page

RESULTS, TABLES, ABOUT = "results.json", "tables.md", "about.json"


@dataclass
class Reproduction:
    """A reproduction from start to finish. Everything that can be checked is checked on construction."""

    matrix: Matrix
    request: Request
    log: Callable[[str], None]
    show: Callable[[Callable[[], str]], None]  # takes a function that makes the progress line

    def __post_init__(self) -> None:
        self.check_folder()
        self.corpus = find_corpus(self.matrix, self.request)
        self.metrics = find_metrics(self.matrix, self.request.pair)
        self.work = plan_work(self.matrix, self.corpus, self.request)
        self.steps: list[Step] = self.work.steps()
        records = StepRecords(self.request.out)
        self.runner = Runner(records, self.request.jobs, self.request.threads, self.log, self.show_progress)
        self.find_done(self.steps)

    def check_folder(self) -> None:
        """Refuse the folder of another pair."""
        path = self.request.out / ABOUT
        if path.is_file():
            about = read_record(dict[str, Any], path, "record of a reproduction")
            if (other := about.get("pair")) != self.request.pair:
                raise UserError(f"contains the reproduction of {other!r}", self.request.out, "choose another --out")

    def find_done(self, steps: Sequence[Step]) -> None:
        """Read the records of steps."""
        found = {step.id: self.runner.records.read(step.id) for step in steps if step.id not in self.runner.done}
        self.runner.done.update({name: record for name, record in found.items() if record})

    def estimator(self) -> Estimator:
        """Return estimates from what is done and what is running now."""
        return Estimator(self.matrix, self.steps, self.runner.done, self.runner.running)

    def show_progress(self) -> None:
        """Show overall progress."""
        self.show(lambda: describe_progress(self.estimator(), self.request.jobs))

    def plan(self) -> list[str]:
        """Return the plan, and what the tables will lack."""
        n_tests, n_baselines = len(self.matrix.data.tests), len(self.matrix.scoring.baselines)
        scoring = SCORING * n_baselines * (n_tests + 2) + SCORING
        lines = describe(self.estimator(), self.request.jobs, scoring)
        return lines + [f"note: {line}" for line in (*self.corpus.missing, *self.metrics.missing)]

    def run(self, train: bool = True) -> None:
        """Run all steps, or only score what has been translated, and write the results."""
        with atomic_write(self.request.out / ABOUT) as stream:
            json.dump({"pair": self.request.pair, "matrix": self.matrix.path.name}, stream)
        if train:
            self.runner.run(self.steps)
        translated = [step for step in self.work.translations if step.id in self.runner.done]
        if not translated:
            raise UserError("nothing has been translated yet", self.request.out, "see the failures above")
        signatures = tuple(metric.signature for metric in self.metrics.metrics)
        scoring = ScoringSteps(self.matrix, self.corpus, self.request.out, translated, signatures).steps()
        self.find_done(scoring)
        undone = [step.title for step in self.steps if step.id not in self.runner.done]
        self.steps = [*self.steps, *scoring]
        self.runner.run(scoring)
        undone += [step.title for step in scoring if step.id not in self.runner.done]
        missing = (*self.corpus.missing, *self.metrics.missing, *(f"Not done: {title}." for title in undone))
        done = {step.id: self.runner.done[step.id] for step in self.steps if step.id in self.runner.done}
        results = collect(self.matrix, self.corpus, self.request, self.work, scoring, done, missing)
        write_results(self.request.out / RESULTS, results)
        with atomic_write(self.request.out / TABLES) as stream:
            stream.write(tables_page(results))

    def written(self) -> list[Path]:
        """Return the files meant for readers."""
        return [self.request.out / name for name in (RESULTS, TABLES, REPORT)]
