"""The runs file of `pysimt-sac table`: a TOML file with the paths of references and hypotheses.

`EXAMPLE` shows all keys. Paths are relative to the working directory, as in configs.
"""

import glob
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import read_lines
from pysimt_sac.evaluation.report.paper import SETS

SECTIONS = {"multi30k": ("en-fr", "en-de"), "iwslt-multi30k": ("de-en",), "iwslt14": ("de-en",)}
ONE_TEST_SET = "iwslt14"
KEYS = ("reference", "ambiguous", "systems")
EXAMPLE = """\
# The paths of your runs. {set} is replaced by test_2016_flickr, test_2017_flickr and test_2017_mscoco.
# A system is one path, or a list of paths, one for each run (seed); * and ? are wildcards.
# Systems with the paper's names (MLE, ERAC, SAC BLEU, SAC unsuper) are next to its rows, others below.
# Stars in your own rows: p <= 0.05 against your MLE, or else against the first system.

[multi30k.en-de]                # tables multi30k, lexical-all, lexical-rare and ambiguous; likewise [multi30k.en-fr]
reference = "data/multi30k/en-de/{set}.lc.norm.tok.de.dehyph"
ambiguous = "data/mlt/en-de/{set}.mlt.tsv"      # from prepare mlt; without it, no tables on ambiguous words

[multi30k.en-de.systems]
"MLE" = "out/mle-seed*.{set}.beam6"
"SAC BLEU" = ["out/sac-seed1.{set}.beam6", "out/sac-seed2.{set}.beam6", "out/sac-seed3.{set}.beam6"]

[iwslt-multi30k.de-en]          # table iwslt-multi30k: trained on IWSLT 2014, tested on Multi30K
reference = "data/multi30k/de-en/{set}.lc.norm.tok.en.dehyph"
systems = { "MLE" = "out/iwslt-mle.{set}.beam6", "SAC BLEU" = "out/iwslt-sac.{set}.beam6" }

[iwslt14.de-en]                 # table iwslt14: one test set, no {set}
reference = "data/iwslt14/test.en"
systems = { "MLE" = "out/iwslt-mle.test.beam6", "SAC BLEU" = "out/iwslt-sac.test.beam6" }
"""


@dataclass(frozen=True)
class RunsSection:
    """One section: paths of the reference, the ambiguous words and the systems' runs, with {set}."""

    reference: str
    ambiguous: str
    systems: dict[str, list[str]]


@dataclass(frozen=True)
class RunsFile:
    """All sections by corpus and language pair."""

    path: Path | None = None
    sections: dict[tuple[str, str], RunsSection] = field(default_factory=dict)


def read_runs(path: Path) -> RunsFile:
    """Read and check a runs file."""
    text = "\n".join(read_lines(path, "runs file"))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"is not valid TOML: {error}", path, "see pysimt-sac table --example") from error
    sections = {}
    for corpus, pairs in content.items():
        if corpus not in SECTIONS or not isinstance(pairs, dict):
            raise UserError(f"no table of the paper is about {corpus!r}", path, did_you_mean(corpus, SECTIONS))
        for pair, section in pairs.items():
            where = f"{path}: [{corpus}.{pair}]"
            if pair not in SECTIONS[corpus]:
                raise UserError(f"the paper has no {pair!r}", where, did_you_mean(pair, SECTIONS[corpus]))
            sections[corpus, pair] = parse_section(section, where)
            if corpus != ONE_TEST_SET:
                check_paths(sections[corpus, pair], where)
    if not sections:
        raise UserError("names no runs", path, "see pysimt-sac table --example")
    return RunsFile(path, sections)


def parse_section(section: Any, where: str) -> RunsSection:
    """Parse and check a section."""
    if not isinstance(section, dict):
        raise UserError("must be a section with reference and systems", where)
    for key in section:
        if key not in KEYS:
            raise UserError(f"unknown key {key!r}", where, did_you_mean(key, KEYS))
    reference, ambiguous, systems = section.get("reference"), section.get("ambiguous", ""), section.get("systems")
    if not isinstance(reference, str) or not isinstance(ambiguous, str) or not isinstance(systems, dict):
        raise UserError("needs reference = PATH and systems with a path or a list of paths each", where)
    parsed = {}
    for name, paths in systems.items():
        parsed[name] = [paths] if isinstance(paths, str) else paths
        if not (
            isinstance(parsed[name], list) and parsed[name] and all(isinstance(each, str) for each in parsed[name])
        ):
            raise UserError(f"the system {name!r} must be a path or a list of paths", where)
    return RunsSection(reference, ambiguous, parsed)


def check_paths(section: RunsSection, where: str) -> None:
    """Reject paths without {set}, which would be the same file for all test sets."""
    paths = [("reference", section.reference), ("ambiguous", section.ambiguous)]
    paths += [(name, path) for name, own in section.systems.items() for path in own]
    for name, path in paths:
        if path and "{set}" not in path:
            hint = f"write {{set}} in place of the test set's name, which is one of {', '.join(SETS.values())}"
            for test_set in SETS.values():
                if test_set in path:
                    hint = f'write "{path.replace(test_set, "{set}")}"'
            raise UserError(f'{name} = "{path}" has no {{set}}, but there are {len(SETS)} test sets', where, hint)


def for_set(pattern: str, test_set: str) -> str:
    """Return the path for one test set."""
    return pattern.replace("{set}", SETS.get(test_set, test_set))


def find_runs(patterns: list[str], test_set: str) -> tuple[list[Path], list[str]]:
    """Return the files of a system's runs on one test set, and the paths that match no file."""
    found: list[Path] = []
    missing = []
    for pattern in patterns:
        path = for_set(pattern, test_set)
        files = sorted(glob.glob(path)) if glob.has_magic(path) else [path] * Path(path).is_file()
        found.extend(map(Path, files))
        if not files:
            missing.append(path)
    return found, missing
