"""The matrix: a TOML file that declares which systems are trained on which corpus, and how they are compared.

`experiments/reproduce/multi30k.toml` explains all keys.
"""

import dataclasses
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import read_lines, require_file
from pysimt_sac.hosts.engine.config.ready import ready_configs, ready_folder

T = TypeVar("T")
CORPORA = ("multi30k", "demo")
READY_FOLDER = "reproduce"
RESERVED = "=:,"  # separators in arguments that name systems


@dataclass(frozen=True)
class DataSpec:
    """Files of the prepared corpus; strings may contain {data}, {mlt}, {pair}, {source}, {target} and {set}."""

    tests: tuple[str, ...]
    reference: str
    training: str
    overrides: tuple[str, ...] = ()
    ambiguous: str = ""
    sentences: int = 29000


@dataclass(frozen=True)
class DecodingSpec:
    """How test sets are translated."""

    beam: int = 6
    greedy: bool = True
    batch_size: int = 64

    def searches(self) -> list[str]:
        """Return the names of the searches; the first is the one that the paper's tables show."""
        return [f"beam{self.beam}", "gs"] if self.greedy else [f"beam{self.beam}"]


@dataclass(frozen=True)
class ScoringSpec:
    """Resampling, and the baselines of the comparisons."""

    baselines: tuple[str, ...]
    shuffles: int = 10_000
    bootstrap: int = 1_000


@dataclass(frozen=True)
class TimeSpec:
    """Assumed times on one core, until measured: seconds per MLE update and per translated sentence."""

    update: float = 1.0
    sentence: float = 0.05


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
    seeds: int = 0
    pairs: tuple[str, ...] = ()
    optional: bool = False

    @property
    def slug(self) -> str:
        """The name as used in file names."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class Matrix:
    """The content of a matrix file."""

    path: Path
    title: str
    corpus: str
    pairs: tuple[str, ...]
    data: DataSpec
    scoring: ScoringSpec
    systems: tuple[SystemSpec, ...]
    decoding: DecodingSpec = field(default_factory=DecodingSpec)
    seconds: TimeSpec = field(default_factory=TimeSpec)

    def config_path(self, system: SystemSpec) -> Path:
        """Return a system's configuration file: a ready-made one by name, or a path relative to the matrix."""
        if not system.config.endswith(".conf"):
            known = ready_configs()
            if system.config not in known:
                where = f"{self.path}: system {system.name!r}"
                raise UserError(f"no experiment is called {system.config!r}", where, did_you_mean(system.config, known))
            return known[system.config]
        return require_file((self.path.parent / system.config).resolve(), "configuration")


def ready_matrices() -> dict[str, Path]:
    """Return the matrices that come with this package, by name."""
    folder = ready_folder()
    return {path.stem: path for path in sorted(folder.glob(f"{READY_FOLDER}/*.toml"))} if folder else {}


def find_matrix(pair: str, given: Path | None) -> Matrix:
    """Return the given matrix, or the ready-made one for a pair."""
    matrices = [read_matrix(path) for path in ([given] if given else ready_matrices().values())]
    for matrix in matrices:
        if pair in matrix.pairs:
            return matrix
    known = [name for matrix in matrices for name in matrix.pairs]
    raise UserError(f"no matrix is for {pair!r}", given or "PAIR", did_you_mean(pair, known))


def read_matrix(path: Path) -> Matrix:
    """Read and check a matrix file."""
    text = "\n".join(read_lines(path, "matrix"))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"is not valid TOML: {error}", path) from error
    systems = content.pop("system", [])
    if not (isinstance(systems, list) and systems and all(isinstance(system, dict) for system in systems)):
        raise UserError("names no systems", path, "add [[system]] with name and config")
    parts: dict[str, Any] = {"path": path, "systems": tuple(section(SystemSpec, own, path) for own in systems)}
    for name, cls in (("data", DataSpec), ("scoring", ScoringSpec), ("decoding", DecodingSpec), ("seconds", TimeSpec)):
        if name in content or name in ("data", "scoring"):
            parts[name] = section(cls, content.pop(name, {}), path, name)
    matrix = section(Matrix, {**content, **parts}, path)
    check_matrix(matrix)
    return matrix


def section(cls: type[T], values: Any, path: Path, name: str = "") -> T:
    """Convert a table of the file to the dataclass that declares it."""
    named = name or (f"system {values['name']!r}" if isinstance(values, dict) and "name" in values else "")
    where = f"{path}: {named}" if named else str(path)
    if not isinstance(values, dict):
        raise UserError("must be a table", where)
    fields = {each.name: each for each in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise UserError(f"unknown key {key!r}", where, did_you_mean(key, fields))
    for key, each in fields.items():
        needed = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if needed and key not in values:
            raise UserError(f"lacks {key!r}", where)
    return cls(**{key: converted(value, fields[key].type, f"{where}: {key}") for key, value in values.items()})


def converted(value: Any, kind: Any, where: str) -> Any:
    """Convert a value to the type that its field declares; lists of strings become tuples."""
    if kind == tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise UserError("must be a list of strings", where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    is_number = kind in (int, float)
    if (is_number or kind in (str, bool)) and (type(value) is not kind or (is_number and value < 0)):
        raise UserError(f"{value!r} is not a {'number of at least 0' if is_number else kind.__name__}", where)
    return value


def check_matrix(matrix: Matrix) -> None:
    """Refuse inconsistent names and invalid numbers."""
    names = [system.name for system in matrix.systems]
    if matrix.corpus not in CORPORA:
        raise UserError(f"no corpus is called {matrix.corpus!r}", matrix.path, did_you_mean(matrix.corpus, CORPORA))
    for number, system in enumerate(matrix.systems):
        where = f"{matrix.path}: system {system.name!r}"
        if system.name.lower() == "baseline" or set(system.name) & set(RESERVED):
            raise UserError(f"its name cannot be 'baseline' or contain any of {RESERVED}", where, "rename it")
        if not system.slug or system.slug in [other.slug for other in matrix.systems[:number]]:
            raise UserError("its name is another system's, or cannot be used as a file name", where, "rename it")
        if system.start and system.start not in names[:number]:
            hint = did_you_mean(system.start, names[:number])
            raise UserError(f"starts from {system.start!r}, which is not a system above it", where, hint)
        matrix.config_path(system)
    for name in matrix.scoring.baselines:
        if name not in names:
            raise UserError(f"no system is called {name!r}", f"{matrix.path}: baselines", did_you_mean(name, names))
    decoding, scoring = matrix.decoding, matrix.scoring
    numbers = {"beam": decoding.beam, "batch_size": decoding.batch_size}
    for key, value in {**numbers, "shuffles": scoring.shuffles, "bootstrap": scoring.bootstrap}.items():
        if value < (least := 2 if key == "bootstrap" else 1):
            raise UserError(f"{value} must be at least {least}", f"{matrix.path}: {key}")
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
