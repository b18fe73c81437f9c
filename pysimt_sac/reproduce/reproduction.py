"""A whole reproduction: plan, prepare, train, translate, score, tables; it resumes where it stopped."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write
from pysimt_sac.reproduce.adoption import Adoption
from pysimt_sac.reproduce.corpus import Request, find_corpus
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.plan import SCORING, Estimator, describe, describe_progress
from pysimt_sac.reproduce.results import FinishedReproduction, Results, read_json, write_results
from pysimt_sac.reproduce.runner import Runner
from pysimt_sac.reproduce.scoring import Scorer, find_metrics
from pysimt_sac.reproduce.stamps import Stamps
from pysimt_sac.reproduce.steps import Step, plan_work
from pysimt_sac.reproduce.tables import tables_page

RESULTS, TABLES, ABOUT = "results.json", "tables.md", "about.json"


@dataclass
class Reproduction:
    """A reproduction from start to finish. Everything that can be checked is checked on construction."""

    matrix: Matrix
    request: Request
    tell: Callable[[str], None]
    show: Callable[[Callable[[], str]], None]  # takes a function that makes the progress line

    def __post_init__(self) -> None:
        out = self.request.out
        self.stamps = Stamps(out)
        self.check_folder()
        self.corpus = find_corpus(self.matrix, self.request)
        self.metrics = find_metrics(self.matrix, self.request.pair)
        self.work = plan_work(self.matrix, self.corpus, self.request)
        self.steps: list[Step] = self.work.steps()
        self.runner = Runner(self.stamps, self.request.jobs, self.request.threads, self.tell, self.show_progress)
        self.find_done(self.steps)

    def check_folder(self) -> None:
        """Refuse the folder of another pair."""
        path = self.request.out / ABOUT
        if path.is_file() and (other := read_json(path).get("pair")) != self.request.pair:
            raise UserError(f"contains the reproduction of {other!r}", self.request.out, "choose another --out")

    def find_done(self, steps: Sequence[Step]) -> None:
        """Read the stamps of steps."""
        found = {step.id: self.stamps.read(step.id) for step in steps if step.id not in self.runner.done}
        self.runner.done.update({name: stamp for name, stamp in found.items() if stamp})

    def estimator(self, elsewhere: Mapping[str, Path] | None = None) -> Estimator:
        """Return estimates from what is done now. elsewhere: runs that will be taken over."""
        return Estimator(self.matrix, self.steps, self.runner.done, elsewhere or {})

    def show_progress(self, runner: Runner) -> None:
        """Show overall progress."""
        self.show(lambda: describe_progress(self.estimator(), runner, self.steps))

    def plan(self, adoption: Adoption | None = None) -> list[str]:
        """Return the plan, with the runs that an adoption would take over, and what the tables will lack."""
        notes, elsewhere = [*self.corpus.missing, *self.metrics.missing], {}
        if adoption and self.is_prepared():
            found = adoption.find(self.work.trainings, self.runner.done)
            elsewhere = {name: candidate.folder for name, candidate in found.items()}
        elif adoption:
            notes.append("runs can be taken over once the corpus is prepared")
        n_tests, n_baselines = len(self.matrix.data.tests), len(self.matrix.scoring.baselines)
        scoring = SCORING * n_baselines * (n_tests + 2) + SCORING
        lines = describe(self.estimator(elsewhere), self.steps, self.request.jobs, scoring)
        return lines + [f"note: {line}" for line in notes]

    def is_prepared(self) -> bool:
        """Return whether the training text has been prepared."""
        needed = {name for training in self.work.trainings for name in training.after}
        return all(step.id in self.runner.done for step in self.work.preparations if step.id in needed)

    def take_over(self, adoption: Adoption) -> None:
        """Take over runs, if the training text has been prepared."""
        if self.is_prepared():
            adoption.take_over(self.work.trainings, self.runner.done)

    def run(self, adoption: Adoption | None, train: bool = True) -> Results:
        """Run all steps, or only score what has been translated, and write the results."""
        with atomic_write(self.request.out / ABOUT) as stream:
            json.dump({"pair": self.request.pair, "matrix": self.matrix.path.name}, stream)
        if train:
            self.runner.run(self.work.preparations)
            if adoption:
                self.take_over(adoption)
            self.runner.run(self.steps)
        return self.finish()

    def finish(self) -> Results:
        """Score, and write results and tables."""
        translated = [step for step in self.work.translations if step.id in self.runner.done]
        if not translated:
            raise UserError("nothing has been translated yet", self.request.out, "see the failures above")
        signatures = tuple(metric.signature for metric in self.metrics.metrics)
        scoring = Scorer(self.matrix, self.corpus, self.request.out, translated, signatures).steps()
        self.find_done(scoring)
        undone = [step.title for step in self.steps if step.id not in self.runner.done]
        self.steps = [*self.steps, *scoring]
        self.runner.run(scoring)
        undone += [step.title for step in scoring if step.id not in self.runner.done]
        missing = (*self.corpus.missing, *self.metrics.missing, *(f"Not done: {title}." for title in undone))
        if len({step.training.system for step in translated if step.training}) == 1:
            missing += ("Comparisons: there is only one system.",)
        done = {step.id: self.runner.done[step.id] for step in self.steps if step.id in self.runner.done}
        parts = self.matrix, self.corpus, self.request, self.work.trainings, scoring, done, missing
        results = FinishedReproduction(*parts).results()
        write_results(self.request.out / RESULTS, results)
        with atomic_write(self.request.out / TABLES) as stream:
            stream.write(tables_page(results))
        return results

    def written(self) -> list[Path]:
        """Return the files meant for readers."""
        return [self.request.out / name for name in (RESULTS, TABLES, "report.html")]
