"""METEOR 1.5, computed by its authors' Java program (optional).

`pip install 'pysimt_sac[meteor]'` installs pycocoevalcap, which has the jar, but only the English paraphrase table;
other languages match exact words and stems, as the signature and the column name state. A full METEOR distribution
(`METEOR_JAR` or `--meteor-jar`) has all tables.

The program prints sufficient statistics per sentence (`-ssOut`). The formula (Denkowski and Lavie 2014) is computed
here, so resampling needs no Java.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import write_lines
from pysimt_sac.evaluation.metrics import FloatArray, Hypotheses, ratio

STAGES = 4  # the program always prints statistics of four matching modules
STATISTICS = 4 + 4 * STAGES + 3


@dataclass(frozen=True)
class Language:
    """METEOR's parameters for a language (alpha, beta, gamma, delta), its modules and their weights."""

    parameters: tuple[float, float, float, float]
    modules: tuple[str, ...]
    weights: tuple[float, ...]

    def without_paraphrases(self) -> "Language":
        """Return the settings for use without a paraphrase table."""
        kept = [place for place, module in enumerate(self.modules) if module in ("exact", "stem")]
        return Language(
            self.parameters, tuple(self.modules[place] for place in kept), tuple(self.weights[place] for place in kept)
        )


LANGUAGES = {
    "en": Language((0.85, 0.2, 0.6, 0.75), ("exact", "stem", "synonym", "paraphrase"), (1.0, 0.6, 0.8, 0.6)),
    "de": Language((0.95, 1.0, 0.55, 0.55), ("exact", "stem", "paraphrase"), (1.0, 0.8, 0.2)),
    "fr": Language((0.9, 1.4, 0.6, 0.65), ("exact", "stem", "paraphrase"), (1.0, 0.2, 0.4)),
    "es": Language((0.65, 1.3, 0.5, 0.8), ("exact", "stem", "paraphrase"), (1.0, 0.8, 0.6)),
}
# Languages for which METEOR has a stemmer but no tuned parameters.
LANGUAGES |= {
    code: Language((0.75, 1.4, 0.7, 0.5), ("exact", "stem"), (1.0, 0.5))
    for code in ("da", "fi", "hu", "it", "nl", "no", "pt", "ro", "ru", "se", "tr")
}


class MeteorUnavailableError(Exception):
    """METEOR cannot run; the message says why and what to do, in one line."""


def guess_language(path: Path) -> str | None:
    """Return the language code in a file's name: `test.lc.norm.tok.de.dehyph` is German."""
    return next((part for part in reversed(path.name.split(".")) if part in LANGUAGES), None)


def find_jar(given: Path | None) -> Path:
    """Find the jar: the given one, METEOR_JAR's, or the one installed with pycocoevalcap."""
    named = given or (Path(os.environ["METEOR_JAR"]) if os.environ.get("METEOR_JAR") else None)
    if named:
        if not named.is_file():
            raise UserError("no such METEOR jar", named, "give the path of meteor-1.5.jar")
        return named
    package = importlib.util.find_spec("pycocoevalcap")  # not imported: that is slow
    for folder in (package.submodule_search_locations or []) if package else []:
        jar = Path(folder) / "meteor" / "meteor-1.5.jar"
        if jar.is_file():
            return jar
    raise MeteorUnavailableError(
        "meteor-1.5.jar is not installed; pip install 'pysimt_sac[meteor]', or set METEOR_JAR=.../meteor-1.5.jar"
    )


def without_whole_chunks(rows: FloatArray) -> FloatArray:
    """Set the chunks of fully matched sentences to 0, as METEOR does before it sums statistics."""
    length, reference_length = rows[:, 0], rows[:, 1]
    chunks, matched, reference_matched = (rows[:, column] for column in range(STATISTICS - 3, STATISTICS))
    whole = (chunks == 1) & (matched == length) & (reference_matched == reference_length)
    chunks[whole] = 0
    return rows


class MeteorMetric:
    """METEOR 1.5 without its own normalisation, as MultEval runs it."""

    higher_is_better = True

    def __init__(self, language: str | None, jar: Path | None = None) -> None:
        if language is None:
            raise MeteorUnavailableError("the reference's name has no language code; give e.g. --lang de")
        if language not in LANGUAGES:
            raise MeteorUnavailableError(f"it does not support the language {language!r}, only {' '.join(LANGUAGES)}")
        self.language = language
        self.jar = find_jar(jar)
        java = shutil.which("java")
        if java is None:
            raise MeteorUnavailableError("it needs Java; install a Java runtime, version 8 or later")
        self.java = java
        self.settings = LANGUAGES[language]
        if not (self.jar.parent / "data" / f"paraphrase-{language}.gz").is_file():
            self.settings = self.settings.without_paraphrases()
        modules = " ".join(self.settings.modules)
        self.name = "METEOR" if len(self.settings.modules) == len(LANGUAGES["en"].modules) else f"METEOR ({modules})"
        self.signature = f"METEOR 1.5|lang:{language}|modules:{modules}|norm:no|task:rank"

    def command(self, hypotheses: Path, references: Path) -> list[str]:
        """Return the command line, with explicit parameters, so that they cannot differ from ours."""
        settings = self.settings
        program = [self.java, "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", str(self.jar)]
        modules = ["-l", self.language, "-m", " ".join(settings.modules)]
        numbers = ["-p", " ".join(map(str, settings.parameters)), "-w", " ".join(map(str, settings.weights))]
        return [*program, str(hypotheses), str(references), *modules, *numbers, "-ssOut"]

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Collect statistics of all runs in one call: loading the tables takes longer than scoring."""
        with tempfile.TemporaryDirectory(prefix="meteor-") as folder:
            hypothesis_file, reference_file = Path(folder) / "hypotheses", Path(folder) / "references"
            write_lines(hypothesis_file, [line for run in runs for line in run])
            write_lines(reference_file, list(references) * len(runs))
            done = subprocess.run(
                self.command(hypothesis_file, reference_file), capture_output=True, text=True, encoding="utf-8"
            )
        rows = [line.split() for line in done.stdout.splitlines()]
        expected = len(runs) * len(references)
        if done.returncode != 0 or len(rows) != expected or any(len(row) != STATISTICS for row in rows):
            reason = next(iter(done.stderr.splitlines()), f"{len(rows)} lines of output instead of {expected}")
            raise UserError(f"METEOR failed: {reason}", self.jar, "leave it out with --metrics")
        return without_whole_chunks(np.array(rows, dtype=np.float64)).reshape(len(runs), len(references), STATISTICS)

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute the weighted F-mean with METEOR's fragmentation penalty."""
        alpha, beta, gamma, delta = self.settings.parameters
        length, reference_length, function, reference_function = (sums[..., column] for column in range(4))
        weights = np.zeros(STAGES)
        weights[: len(self.settings.weights)] = self.settings.weights
        stages = sums[..., 4 : 4 + 4 * STAGES].reshape(*sums.shape[:-1], STAGES, 4)
        matches = np.moveaxis((stages * weights[:, None]).sum(axis=-2), -1, 0)
        content, reference_content, function_matches, reference_function_matches = matches
        precision = ratio(
            delta * content + (1 - delta) * function_matches, delta * (length - function) + (1 - delta) * function
        )
        recall = ratio(
            delta * reference_content + (1 - delta) * reference_function_matches,
            delta * (reference_length - reference_function) + (1 - delta) * reference_function,
        )
        mean = ratio(precision * recall, alpha * precision + (1 - alpha) * recall)
        chunks, matched, reference_matched = (sums[..., column] for column in range(STATISTICS - 3, STATISTICS))
        fragmentation = ratio(chunks, (matched + reference_matched) / 2)
        return 100 * mean * (1 - gamma * fragmentation**beta)
