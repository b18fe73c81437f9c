"""The steps after translation: compare, lexical, table and report, for whatever has been translated."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pysimt_sac import __version__
from pysimt_sac.core.files import atomic_write
from pysimt_sac.evaluation.report.paper import SETS
from pysimt_sac.evaluation.report.runs_file import SECTIONS
from pysimt_sac.evaluation.scores import MetricChoice, choose_metrics
from pysimt_sac.reproduce.corpus import Corpus
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.stamps import digest
from pysimt_sac.reproduce.steps import Step, Translating, without_paths

# Increase it with every code change that affects the figures of the same translations: they are then recomputed.
REVISION = 2
METRICS = ("bleu", "chrf", "ter", "meteor", "length")
REPORT = "report.html"


@dataclass(frozen=True)
class Scoring(Step):
    """A step that writes figures as JSON, for a baseline, search and test set."""

    command: str = ""
    baseline: str = ""
    search: str = ""
    test_set: str = ""
    variant: str = ""


@dataclass(frozen=True)
class Scorer:
    """Makes the steps for the available translations."""

    matrix: Matrix
    corpus: Corpus
    out: Path
    done: Sequence[Translating]
    signatures: tuple[str, ...]  # of the metrics

    def steps(self) -> list[Step]:
        """Return all steps."""
        found: list[Step] = []
        for search in self.matrix.decoding.searches():
            for baseline in self.matrix.scoring.baselines:
                found += self.comparisons(search, baseline)
        found += [self.paper_tables()] if self.paper_section() else []
        return found + ([self.report()] if self.systems(self.first_search()) else [])

    def first_search(self) -> str:
        """Return the search that the paper's tables and the report show."""
        return self.matrix.decoding.searches()[0]

    def systems(self, search: str) -> dict[str, list[Translating]]:
        """Return the translations of every system, in the matrix's order."""
        own = [step for step in self.done if step.search == search]
        names = [system.name for system in self.matrix.systems]
        by_name = {name: [step for step in own if step.training and step.training.system == name] for name in names}
        return {name: steps for name, steps in by_name.items() if steps}

    def comparisons(self, search: str, baseline: str) -> list[Step]:
        """Return the comparisons with a baseline: each test set, all sets pooled, without `<unk>`, ambiguous words."""
        systems = self.systems(search)
        if baseline not in systems or len(systems) < 2:
            return []
        files = ["--baseline", *(step.pattern for step in systems[baseline])]
        for name, steps in systems.items():
            files += ["--system", name, *(step.pattern for step in steps)] if name != baseline else []
        common = [*files, "--ref", self.corpus.places.fill(self.matrix.data.reference), "--sets", *self.tests()]
        common += ["--metrics", ",".join(METRICS), *self.resampling()]
        found: list[Step] = [self.score("compare", search, baseline, common)]
        found.append(self.score("compare", search, baseline, [*common, "--pool"], variant="pooled"))
        if search == self.first_search():
            found.append(self.score("compare", search, baseline, [*common, "--no-unk"], variant="noUNK"))
            found += [self.lexical(search, baseline, name, files) for name in self.tests() if self.has_ambiguous()]
        return found

    def lexical(self, search: str, baseline: str, test_set: str, files: Sequence[str]) -> Step:
        """Return the step for the ambiguous words of one test set."""
        words = [word.replace("{set}", test_set) for word in files]
        cases = self.corpus.places.fill(self.matrix.data.ambiguous, test_set)
        words += ["--mlt", cases, "--words", "0", *self.resampling()]
        return self.score("lexical", search, baseline, words, test_set)

    def score(
        self, command: str, search: str, baseline: str, words: Sequence[str], test_set: str = "", variant: str = ""
    ) -> Scoring:
        """Return the step of a command that writes JSON."""
        slug = next(system.slug for system in self.matrix.systems if system.name == baseline)
        parts = [command, slug, search, test_set, variant]
        name = "-".join(part for part in parts if part)
        key = self.key(name, words)
        path = self.out / "scores" / f"{name}-{key}.json"
        return Scoring(
            id=f"{name}-{key}",
            title=" ".join(filter(None, ["score:", command, search, "against", baseline, test_set, variant])),
            key=key,
            words=(command, *words, "--format", "json", "-o", str(path)),
            outputs=(path,),
            command=command,
            baseline=baseline,
            search=search,
            test_set=test_set,
            variant=variant,
        )

    def paper_tables(self) -> Scoring:
        """Return the step for the paper's tables with our rows; write its runs file."""
        places, data = self.corpus.places, self.matrix.data
        systems = {name: [step.pattern for step in steps] for name, steps in self.systems(self.first_search()).items()}
        content = [f"[{'.'.join(self.paper_section())}]", f"reference = {json.dumps(places.fill(data.reference))}"]
        if self.has_ambiguous():
            content.append(f"ambiguous = {json.dumps(places.fill(data.ambiguous))}")
        content += ["[" + ".".join([*self.paper_section(), "systems"]) + "]"]
        content += [f"{json.dumps(name)} = {json.dumps(patterns)}" for name, patterns in systems.items()]
        path = self.out / "scores" / f"tables-{self.key('table', content)}.toml"
        with atomic_write(path) as stream:
            stream.write("\n".join([*content, ""]))
        return self.score(
            "table", self.first_search(), self.matrix.scoring.baselines[0], [str(path), *self.resampling()]
        )

    def report(self) -> Step:
        """Return the step for the report."""
        places, data, words = self.corpus.places, self.matrix.data, ["report"]
        for name, steps in self.systems(self.first_search()).items():
            words += [f"{name}={step.training.folder}" for step in steps if step.training]
        for name, steps in self.systems(self.first_search()).items():
            for test_set in self.tests():
                files = [step.pattern.replace("{set}", test_set) for step in steps]
                words += [word for file in files for word in ("--hyp", f"{name}:{test_set}={file}")]
        for test_set in self.tests():
            words += ["--ref", f"{test_set}={places.fill(data.reference, test_set)}"]
            words += ["--mlt", f"{test_set}={places.fill(data.ambiguous, test_set)}"] * self.has_ambiguous()
        title = f"{self.matrix.title}, {places.pair.upper()}" if "-" in places.pair else self.matrix.title
        words += ["--train", places.fill(data.training), "--title", title]
        words += ["--metrics", ",".join(METRICS), *self.resampling(), "--out", str(self.out / REPORT)]
        key = self.key("report", words)
        return Step(f"report-{key}", "report", key, tuple(words), (self.out / REPORT,))

    def tests(self) -> tuple[str, ...]:
        """Return the names of the test sets."""
        return self.matrix.data.tests

    def has_ambiguous(self) -> bool:
        """Return whether there are lists of ambiguous words."""
        return bool(self.matrix.data.ambiguous) and (self.corpus.ambiguous is not None or self.matrix.corpus == "demo")

    def paper_section(self) -> tuple[str, ...]:
        """Return the section of a runs file for this corpus and pair; empty if the paper has no tables for them."""
        pair, has_tests = self.corpus.places.pair, not set(SETS.values()).isdisjoint(self.tests())
        return (self.matrix.corpus, pair) if has_tests and pair in SECTIONS.get(self.matrix.corpus, ()) else ()

    def resampling(self) -> list[str]:
        """Return the options of significance tests."""
        scoring = self.matrix.scoring
        return ["--shuffles", str(scoring.shuffles), "--bootstrap", str(scoring.bootstrap)]

    def key(self, name: str, words: Sequence[str]) -> str:
        """Return a checksum of a command, the corpus and the metrics; translations have their key in their path."""
        places, data = self.corpus.places, self.matrix.data
        patterns = [data.reference, data.training, *([data.ambiguous] if self.has_ambiguous() else [])]
        files = [places.fill(pattern, test_set) for pattern in patterns for test_set in self.tests()]
        relative = [str(word).replace(str(self.out), "") for word in words]
        key = [name, __version__, REVISION, self.corpus.text.key, self.signatures, relative]
        return digest([*key, without_paths(files, places.data)])


def find_metrics(matrix: Matrix, pair: str) -> MetricChoice:
    """Return the metrics that can be computed here, and why others cannot."""
    return choose_metrics(METRICS, language=target_language(matrix, pair))


def target_language(matrix: Matrix, pair: str) -> str:
    """Return the language of the references."""
    return pair.partition("-")[2] or matrix.data.reference.rpartition(".")[2]
