"""The steps after translation: compare, lexical and report, for whatever has been translated."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac import __version__
from pysimt_sac.evaluation.scores import MetricChoice, choose_metrics
from pysimt_sac.reproduce.corpus import Corpus
from pysimt_sac.reproduce.matrix import POOLED, Matrix
from pysimt_sac.reproduce.step_records import Step, digest
from pysimt_sac.reproduce.steps import Translating, without_paths

# Increase it with every code change that affects the figures of the same translations: they are then recomputed.
REVISION = 3
METRICS = ("bleu", "chrf", "ter", "meteor", "length")
REPORT = "report.html"
# Parts of a test set: its sentences, those without `<unk>`, those with ambiguous words; and ambiguous words.
ALL, NO_UNKNOWN, AMBIGUOUS, CASES, RARE, COMMON = "all", "noUNK", "ambiguous", "cases", "rare cases", "common cases"
CASES_OF = {"all": CASES, "rare": RARE, "common": COMMON}


@dataclass(frozen=True)
class Scoring(Step):
    """A step that compares all systems with a baseline and writes JSON; without a test set, on each of them."""

    baseline: str = ""
    search: str = ""
    test_set: str = ""
    part: str = ALL


@dataclass(frozen=True)
class ScoringSteps:
    """Makes the steps for the available translations."""

    matrix: Matrix
    corpus: Corpus
    out: Path
    done: Sequence[Translating]
    signatures: tuple[str, ...]  # of the metrics

    def steps(self) -> list[Step]:
        """Return all steps; parts of test sets are compared by the first search, with the first baseline."""
        first, found = self.matrix.decoding.searches()[0], list[Step]()
        for search in self.matrix.decoding.searches():
            baselines = [name for name in self.matrix.scoring.baselines if name in self.systems(search)]
            for baseline in baselines:
                words = self.compare_words(search, baseline)
                found.append(self.score("compare", words, baseline, search))
                if len(self.matrix.data.tests) > 1:
                    found.append(self.score("compare", [*words, "--pool"], baseline, search, POOLED))
                if search == first and self.has_ambiguous():
                    found += [self.lexical(search, baseline, name) for name in pooled_first(self.matrix.data.tests)]
            if search == first and baselines:
                words = self.compare_words(search, baselines[0])
                found.append(self.score("compare", [*words, "--no-unk"], baselines[0], search, part=NO_UNKNOWN))
                if self.has_ambiguous():
                    words += ["--mlt", self.corpus.places.fill(self.matrix.data.ambiguous)]
                    found.append(self.score("compare", words, baselines[0], search, part=AMBIGUOUS))
        return [*found, self.report(first)] if self.systems(first) else found

    def systems(self, search: str) -> dict[str, list[Translating]]:
        """Return the translations of every system, in the matrix's order."""
        own = [step for step in self.done if step.search == search]
        names = [system.name for system in self.matrix.systems]
        by_name = {name: [step for step in own if step.training and step.training.system == name] for name in names}
        return {name: steps for name, steps in by_name.items() if steps}

    def compare_words(self, search: str, baseline: str) -> list[str]:
        """Return the arguments of `compare`."""
        reference = self.corpus.places.fill(self.matrix.data.reference)
        words = [*self.hypotheses(search, baseline), "--ref", reference, "--sets", *self.matrix.data.tests]
        return [*words, "--metrics", ",".join(METRICS), *self.resampling()]

    def hypotheses(self, search: str, baseline: str) -> list[str]:
        """Return the arguments that name all systems and their hypotheses."""
        systems = self.systems(search)
        words = ["--baseline-name", baseline, "--baseline", *(step.pattern for step in systems[baseline])]
        for name, steps in systems.items():
            words += ["--system", name, *(step.pattern for step in steps)] if name != baseline else []
        return words

    def lexical(self, search: str, baseline: str, test_set: str) -> Step:
        """Return the step for the ambiguous words of one test set."""
        words = [*self.hypotheses(search, baseline), "--mlt", self.corpus.places.fill(self.matrix.data.ambiguous)]
        if test_set == POOLED:
            words += ["--sets", *self.matrix.data.tests]
        else:
            words = [word.replace("{set}", test_set) for word in words]
        words += ["--words", "0", *self.resampling()]
        return self.score("lexical", words, baseline, search, test_set)

    def score(
        self, command: str, words: Sequence[str], baseline: str, search: str, test_set: str = "", part: str = ALL
    ) -> Scoring:
        """Return the step of a command that writes JSON."""
        slug = next(system.slug for system in self.matrix.systems if system.name == baseline)
        variant = part.removeprefix(ALL)
        name = "-".join(filter(None, [command, slug, search, test_set, variant]))
        title = " ".join(filter(None, ["score:", command, search, "against", baseline, test_set, variant]))
        key = self.key(name, words)
        path = self.out / "scores" / f"{name}-{key}.json"
        words = (command, *words, "--format", "json", "-o", str(path))
        return Scoring(f"{name}-{key}", title, key, words, (path,), (), baseline, search, test_set, part)

    def report(self, search: str) -> Step:
        """Return the step for the report."""
        places, data, words = self.corpus.places, self.matrix.data, ["report"]
        for name, steps in self.systems(search).items():
            words += [f"{name}={step.training.folder}" for step in steps if step.training]
        for name, steps in self.systems(search).items():
            for test_set in self.matrix.data.tests:
                files = [step.pattern.replace("{set}", test_set) for step in steps]
                words += [word for file in files for word in ("--hyp", f"{name}:{test_set}={file}")]
        for test_set in self.matrix.data.tests:
            words += ["--ref", f"{test_set}={places.fill(data.reference, test_set)}"]
            words += ["--mlt", f"{test_set}={places.fill(data.ambiguous, test_set)}"] * self.has_ambiguous()
        title = f"{self.matrix.title}, {places.pair.upper()}" if "-" in places.pair else self.matrix.title
        words += ["--train", places.fill(data.training), "--title", title]
        words += ["--metrics", ",".join(METRICS), *self.resampling(), "--out", str(self.out / REPORT)]
        key = self.key("report", words)
        return Step(f"report-{key}", "report", key, tuple(words), (self.out / REPORT,))

    def has_ambiguous(self) -> bool:
        """Return whether there are lists of ambiguous words."""
        return bool(self.matrix.data.ambiguous) and (self.corpus.ambiguous is not None or self.matrix.corpus == "demo")

    def resampling(self) -> list[str]:
        """Return the options of significance tests."""
        scoring = self.matrix.scoring
        return ["--shuffles", str(scoring.shuffles), "--bootstrap", str(scoring.bootstrap)]

    def key(self, name: str, words: Sequence[str]) -> str:
        """Return a checksum of a command, the corpus and the metrics; translations have their key in their path."""
        places, data = self.corpus.places, self.matrix.data
        patterns = [data.reference, data.training, *([data.ambiguous] if self.has_ambiguous() else [])]
        files = [places.fill(pattern, test_set) for pattern in patterns for test_set in self.matrix.data.tests]
        relative = [str(word).replace(str(self.out), "") for word in words]
        key = [name, __version__, REVISION, self.corpus.text.key, self.signatures, relative]
        return digest([*key, without_paths(files, places.data)])


def pooled_first(tests: Sequence[str]) -> list[str]:
    """Return the names of the test sets, after the pooled one if there are several."""
    return [POOLED, *tests] if len(tests) > 1 else [*tests]


def find_metrics(matrix: Matrix, pair: str) -> MetricChoice:
    """Return the metrics that can be computed here, and why others cannot."""
    language = pair.partition("-")[2] or matrix.data.reference.rpartition(".")[2]
    return choose_metrics(METRICS, language=language)
