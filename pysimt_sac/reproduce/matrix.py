"""The matrix: a TOML file that declares which systems are trained on which corpus, and how they are compared.

`experiments/reproduce/multi30k.toml` explains all keys.
"""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import read_toml, require_file
from pysimt_sac.core.options import check_range, convert, option
from pysimt_sac.hosts.engine.config.ready import ready_configs, ready_folder

T = TypeVar("T")
CORPORA = ("multi30k", "demo")
PRIMARY_METRICS = ("BLEU", "chrF", "TER")
POOLED = "pooled"  # all test sets as one
RESERVED = "=:,"  # separators in arguments that name systems


@dataclass(frozen=True)
class DataSpec:
    """Files of the prepared corpus; strings may contain {data}, {mlt}, {pair}, {source}, {target} and {set}."""

    tests: tuple[str, ...]
    reference: str
    training: str
    overrides: tuple[str, ...] = ()
    ambiguous: str = ""
    sentences: int = option(29000, "training sentences, to estimate times", minimum=1)


@dataclass(frozen=True)
class DecodingSpec:
    """How test sets are translated."""

    beam: int = option(6, "beam size", minimum=1)
    greedy: bool = True
    batch_size: int = option(64, "sentences per batch", minimum=1)

    def searches(self) -> list[str]:
        """Return the names of the searches; the first is the one that the paper's tables show."""
        return [f"beam{self.beam}", "gs"] if self.greedy else [f"beam{self.beam}"]


@dataclass(frozen=True)
class ScoringSpec:
    """Resampling, and the baselines of the comparisons."""

    baselines: tuple[str, ...]
    shuffles: int = option(10_000, "permutations of the significance tests", minimum=1)
    bootstrap: int = option(1_000, "samples of the intervals", minimum=2)


@dataclass(frozen=True)
class PrimarySpec:
    """The primary endpoint, which has to be declared before anything runs; every other p is corrected by Holm."""

    metric: str = "BLEU"
    test_set: str = ""  # none: the pooled test sets, or the only one
    search: str = ""  # none: beam search


@dataclass(frozen=True)
class TimeSpec:
    """Assumed times on one core, until measured: seconds per MLE update and per translated sentence."""

    update: float = option(1.0, "seconds per update", minimum=0)
    sentence: float = option(0.05, "seconds per sentence", minimum=0)


@dataclass(frozen=True)
class SystemSpec:
    """A system: its configuration and overrides; `start` is the system whose run of the same seed it starts from.

    seeds: maximum number of runs, 0 for no maximum; pairs: only for these pairs, if any; optional: only if `--systems`
    names it; short: additional overrides for `--short`.
    """

    name: str
    config: str
    start: str = ""
    overrides: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    seeds: int = option(0, "maximum number of runs", minimum=0)
    pairs: tuple[str, ...] = ()
    optional: bool = False

    @property
    def slug(self) -> str:
        """The name as used in file names."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class MatrixHeader:
    """The keys of a matrix file that are in no table."""

    title: str
    corpus: str
    pairs: tuple[str, ...]


@dataclass(frozen=True)
class Matrix(MatrixHeader):
    """The content of a matrix file."""

    path: Path
    data: DataSpec
    scoring: ScoringSpec
    primary: PrimarySpec
    decoding: DecodingSpec
    seconds: TimeSpec
    systems: tuple[SystemSpec, ...]

    def config_path(self, system: SystemSpec) -> Path:
        """Return a system's configuration file: a ready-made one by name, or a path relative to the matrix."""
        if not system.config.endswith(".conf"):
            known = ready_configs()
            if system.config not in known:
                where = f"{self.path}: system {system.name!r}"
                raise UserError(f"no experiment is called {system.config!r}", where, did_you_mean(system.config, known))
            return known[system.config]
        return require_file((self.path.parent / system.config).resolve(), "configuration")


TABLES: dict[str, type] = {
    "data": DataSpec, "scoring": ScoringSpec, "primary": PrimarySpec, "decoding": DecodingSpec, "seconds": TimeSpec,
}  # fmt: skip


def find_matrix(pair: str, given: Path | None) -> Matrix:
    """Return the given matrix, or the one that comes with this package for a pair. given: a file, or a shipped name."""
    folder = ready_folder()
    shipped = sorted(folder.glob("reproduce/*.toml")) if folder else []
    if given and folder and not given.exists() and (folder / f"{given}.toml").is_file():
        given = folder / f"{given}.toml"
    matrices = [read_matrix(path) for path in ([given] if given else shipped)]
    for matrix in matrices:
        if pair in matrix.pairs:
            return matrix
    known = [name for matrix in matrices for name in matrix.pairs]
    raise UserError(f"no matrix is for {pair!r}", given or "PAIR", did_you_mean(pair, known))


def read_matrix(path: Path) -> Matrix:
    """Read and check a matrix file."""
    content = read_toml(path, "matrix")
    systems = content.pop("system", [])
    if not (isinstance(systems, list) and systems and all(isinstance(system, dict) for system in systems)):
        raise UserError("names no systems", path, "add [[system]] with name and config")
    tables: dict[str, Any] = {
        name: read_table(cls, content.pop(name, {}), f"{path}: {name}") for name, cls in TABLES.items()
    }
    names = [f"system {system.get('name', number)!r}" for number, system in enumerate(systems, 1)]
    specs = [read_table(SystemSpec, own, f"{path}: {name}") for name, own in zip(names, systems, strict=True)]
    header = read_table(MatrixHeader, content, str(path))
    matrix = Matrix(path=path, systems=tuple(specs), **vars(header), **tables)
    check_matrix(matrix)
    return matrix


def read_table(cls: type[T], values: Any, where: str) -> T:
    """Convert a table of the file to the dataclass that declares it."""
    if not isinstance(values, dict):
        raise UserError("must be a table", where)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise UserError(f"unknown key {key!r}", where, did_you_mean(key, fields))
    read = {}
    for key, field in fields.items():
        if key in values:
            read[key] = convert(values[key], field.type, None, f"{where}: {key}")
            if field.metadata:
                check_range(read[key], field.metadata, f"{where}: {key}")
        elif field.default is dataclasses.MISSING:
            raise UserError(f"lacks {key!r}", where)
    return cls(**read)


def check_matrix(matrix: Matrix) -> None:
    """Refuse inconsistent names and invalid numbers."""
    names = [system.name for system in matrix.systems]
    if matrix.corpus not in CORPORA:
        raise UserError(f"no corpus is called {matrix.corpus!r}", matrix.path, did_you_mean(matrix.corpus, CORPORA))
    for number, system in enumerate(matrix.systems):
        where = f"{matrix.path}: system {system.name!r}"
        if set(system.name) & set(RESERVED):
            raise UserError(f"its name cannot contain any of {RESERVED}", where, "rename it")
        if not system.slug or system.slug in [other.slug for other in matrix.systems[:number]]:
            raise UserError("its name is another system's, or cannot be used as a file name", where, "rename it")
        if system.start and system.start not in names[:number]:
            hint = did_you_mean(system.start, names[:number])
            raise UserError(f"starts from {system.start!r}, which is not a system above it", where, hint)
        matrix.config_path(system)
    for name in matrix.scoring.baselines:
        if name not in names:
            raise UserError(f"no system is called {name!r}", f"{matrix.path}: baselines", did_you_mean(name, names))
    tests = [POOLED, *matrix.data.tests] if len(matrix.data.tests) > 1 else matrix.data.tests
    known: dict[str, Sequence[str]] = {"test_set": tests, "search": matrix.decoding.searches()}
    for key, choices in {"metric": PRIMARY_METRICS, **known}.items():
        if (value := getattr(matrix.primary, key)) and value not in choices:
            raise UserError(f"there is no {value!r}", f"{matrix.path}: primary: {key}", did_you_mean(value, choices))
    if not (matrix.scoring.baselines and matrix.data.tests and matrix.pairs):
        raise UserError("needs at least one pair, one test set and one baseline", matrix.path)


def choose_systems(matrix: Matrix, pair: str, wanted: Sequence[str]) -> list[SystemSpec]:
    """Return the systems of a pair, or the named ones, with all that they start from."""
    own = {system.name: system for system in matrix.systems if not system.pairs or pair in system.pairs}
    folded = {name.lower(): name for name in own}
    for name in wanted:
        if name.lower() not in folded:
            raise UserError(f"no system of {pair} is called {name!r}", "--systems", did_you_mean(name, own))
    chosen = {folded[name.lower()] for name in wanted} or {name for name in own if not own[name].optional}
    for system in reversed(matrix.systems):  # what a system starts from is above it
        if system.name in chosen and system.start:
            if system.start not in own:
                raise UserError(f"starts from {system.start!r}, which {pair} does not have", system.name)
            chosen.add(system.start)
    return [system for system in own.values() if system.name in chosen]
