"""Read a run folder: curves, translations, and the files of its configuration; translate what is missing.

Translations are found by name: `pysimt translate -o RUN/out` writes `RUN/out.SPLIT.beam6[.raw]`. The configuration is
read from a checkpoint.
"""

import dataclasses
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.core.curves import read_points
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import kind_of, read_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.evaluation.report.charts import Point
from pysimt_sac.evaluation.tables import Table
from pysimt_sac.hosts.engine.config.merging import read_one
from pysimt_sac.hosts.engine.config.parser import parse_direction

STAMP = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d):\d\d (?P<message>.*)")
WARNING = "Warning: "
USUAL_SEARCH = "beam6"
RUN_HEADER = (
    "system", "run", "model", "seed", "starts from", "checkpoint", "at update", "validation", "trained",
)  # fmt: skip
# Settings that are in the table of runs, and paths on disk, which make no difference.
LEFT_OUT = {"seed", "model_type", "pretrained_file", "save_path", "tensorboard_dir"}
SECTIONS = ("train", "model", "data", "vocabulary")
NOT_RECORDED = "not recorded"
OUTPUT_NAME = re.compile(
    r"(?P<prefix>.*)\.(?P<split>(?!wait\d)[^.]+)\.(?P<search>(wait\d+\.)?gs|beam\d+)(?P<raw>\.raw)?"
)


@dataclass(frozen=True)
class RunLog:
    """The content of a log; times are to the minute, empty if unknown."""

    started: str = ""
    ended: str = ""
    seed: str = ""
    software: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitFiles:
    """The files of a split."""

    source: Path
    target: Path


@dataclass(frozen=True)
class RunFolder:
    """A run: the files of its configuration, its hypotheses by split, its curves by name, and their provenance.

    options: its configuration; written: the keys set in its configuration file, as `section.key`; checkpoint: the best
    one, which `translate` uses; history: that checkpoint's, under pysimt's names.
    """

    path: Path
    splits: dict[str, SplitFiles]
    filters: FilterChain
    outputs: dict[str, Path]
    curves: dict[str, tuple[Point, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    checkpoint: Path = Path()
    history: dict[str, Any] = field(default_factory=dict)
    log: RunLog = field(default_factory=RunLog)

    @property
    def seed(self) -> str:
        """The seed, as in the log or else in the configuration; empty if neither has it."""
        return self.log.seed or str(self.options.get("train", {}).get("seed", ""))

    @property
    def fine_tuned(self) -> bool:
        """Whether it started from the weights of another run."""
        return bool(self.options.get("train", {}).get("pretrained_file"))

    @property
    def reinforced(self) -> bool:
        """Whether its algorithm uses rollouts, so that its loss is not a likelihood."""
        return any(name.startswith("rl_") for name in self.curves)


@dataclass(frozen=True)
class ReportSystem:
    """A system and its run folders."""

    name: str
    runs: tuple[RunFolder, ...]


def read_run(path: Path, search: str = "", data: Path | None = None) -> RunFolder:
    """Read a run folder.

    search: which of several translations of a split: gs, beam6, ...; data: the current folder of the files in its
    configuration, if they have moved.
    """
    if not path.is_dir():
        raise UserError("no such run folder", path, "training writes SAVE_PATH/CONFNAME[-SUFFIX]")
    from pysimt_sac.hosts.engine.checkpoint import load_checkpoint_of_run  # importing torch is slow

    checkpoint = load_checkpoint_of_run(path)
    options = checkpoint.options
    if data is not None:
        options["data"] = moved_data(options, data, path)
    source, target = parse_direction(options["model"].get("direction"), str(checkpoint.path))
    splits = {
        key.removesuffix("_set"): SplitFiles(Path(files[source]), Path(files[target]))
        for key, files in options["data"].items()
        if key.endswith("_set") and isinstance(files, dict) and {source, target} <= set(files)
    }
    filters = options["train"].get("eval_filters") or ()
    if isinstance(filters, str):
        filters = [name.strip() for name in filters.split(",") if name.strip()]
    exp_id = re.split(r"\.best\.|-(?:val|update|final)", checkpoint.path.name)[0]
    return RunFolder(
        path=path,
        splits=splits,
        filters=FilterChain(list(filters)),
        outputs=find_outputs(path, search),
        curves=read_curves(path, exp_id),
        options=options,
        written=written_keys(path / f"{exp_id}.conf"),
        checkpoint=checkpoint.path.resolve(),
        history=checkpoint.history,
        log=read_log(path / f"{exp_id}.log"),
    )


def written_keys(path: Path) -> frozenset[str]:
    """Return the keys set in a run's configuration file; none if there is no such file."""
    try:
        parser = read_one(path)
    except UserError:
        return frozenset()
    return frozenset(f"{section}.{key}" for section in parser.sections() for key in parser[section])


def moved_data(options: dict[str, Any], folder: Path, run: Path) -> dict[str, Any]:
    """Return the section `[data]` with the files found below a folder."""
    from pysimt_sac.hosts.engine.data.moved_files import relocated  # importing torch is slow

    found = {key: files for key, files in relocated(options, folder)["data"].items() if files}
    if not found:
        raise UserError(f"holds none of the files that {run} was trained and tested on", folder, "see --data")
    moved = {key: {**options["data"][key], **files} for key, files in found.items() if "" not in files}
    return {**options["data"], **moved}


def read_curves(folder: Path, exp_id: str) -> dict[str, tuple[Point, ...]]:
    """Read the points of all curves by name, without non-finite values."""
    path = folder / f"{exp_id}.scalars.jsonl"
    curves: dict[str, list[Point]] = defaultdict(list)
    for point in read_points(path) if path.is_file() else ():
        if point.value is not None:
            curves[point.name].append((float(point.step), float(point.value)))
    return {name: tuple(points) for name, points in curves.items()}


def find_outputs(folder: Path, search: str = "") -> dict[str, Path]:
    """Return the translations in a folder by split, preferring beam search to greedy and filtered to raw."""
    found: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.iterdir()):
        match = OUTPUT_NAME.fullmatch(path.name)
        if match and not (match["raw"] and path.with_suffix("").is_file()) and search in ("", match["search"]):
            found[match["split"]][match["search"]].append(path)
    outputs = {}
    for split, by_search in found.items():
        beams = [name for name in by_search if name != "gs"] or ["gs"]
        candidates = [path for name in beams for path in by_search[name]]
        if len(candidates) > 1:
            names = ", ".join(path.name for path in candidates)
            raise UserError(f"has several translations of {split!r}: {names}", folder, "choose with --search or --hyp")
        outputs[split] = candidates[0]
    return outputs


def read_log(path: Path) -> RunLog:
    """Read a log; all fields are empty if there is none."""
    lines = read_lines(path, "log") if path.is_file() else []
    entries = [(found["time"], found["message"]) for line in lines if (found := STAMP.fullmatch(line))]
    seed = software = ""
    warnings = []
    for time, message in entries:
        if message.startswith("Host: "):  # logged at each restart: the last one produced the final weights
            software = message.removeprefix("Host: ")
        elif begun := re.fullmatch(r"Run \S+ in .*; seed (\d+)", message):
            seed = begun[1]
        elif message.startswith(WARNING):
            warnings.append(f"{time}: {message.removeprefix(WARNING)}")
    times = [time for time, _ in entries]
    return RunLog(min(times, default=""), max(times, default=""), seed, software, tuple(warnings))


def test_splits(runs: Sequence[RunFolder], given: Iterable[str]) -> list[str]:
    """Return the splits to report on: those that have translations, else the test sets of the first run."""
    known = dict.fromkeys([*(split for run in runs for split in run.outputs), *given])
    if known or not runs:
        return list(known)
    there = [split for split, files in runs[0].splits.items() if split != "train" and kind_of(files.source)]
    return [split for split in there if split != "val"] or there


def search_of(runs: Sequence[RunFolder]) -> str:
    """Return the search of the translations that there are, or the usual one."""
    names = [OUTPUT_NAME.fullmatch(path.name) for run in runs for path in run.outputs.values()]
    return next((match["search"] for match in names if match), USUAL_SEARCH)


def with_translations(run: RunFolder, splits: Sequence[str], search: str, data: Path | None) -> RunFolder:
    """Return the run with translations of all splits that it knows, made now where there are none."""
    missing = [split for split in splits if split in run.splits and split not in run.outputs]
    missing = [split for split in missing if kind_of(run.splits[split].source)]
    if not missing or search.startswith("wait"):  # of which there is no usual one
        return run
    words = [sys.executable, "-m", "pysimt_sac", "translate", str(run.path), "-s", ",".join(missing)]
    words += ["-o", str(run.path / "out"), "-b", "64", *(["--data", str(data)] if data else [])]
    words += ["-f", "gs"] if search == "gs" else ["-f", "bs", "-k", search.removeprefix("beam")]
    if subprocess.run(words).returncode:
        hint = f"translate it yourself: pysimt translate {run.path} -s {','.join(missing)} -o {run.path}/out"
        raise UserError("could not be translated, see above", run.path, hint)
    made = {split: run.path / f"out.{split}.{search}" for split in missing}
    return dataclasses.replace(run, outputs={**run.outputs, **made})


def name_runs(words: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Parse FOLDER, whose last part is the name, or NAME=FOLDER."""
    named: list[tuple[str, Path]] = []
    for word in words:
        name, equals, folder = word.partition("=")
        if equals and not Path(word).is_dir():
            named.append((name, Path(folder)))
        else:
            path = Path(word)
            named.append((path.name or path.resolve().name, path))
            if [own for own, _ in named].count(named[-1][0]) > 1:
                raise UserError(f"two runs are called {named[-1][0]!r}", word, "name them: NAME=FOLDER")
    return tuple(named)


# Where the runs come from


@dataclass(frozen=True)
class Provenance:
    """The runs, the software that trained them, the warnings in their logs by system and run, and their settings."""

    runs: Table
    software: dict[str, tuple[str, ...]]
    warnings: dict[str, tuple[str, ...]]
    differing: Table | None


def find_provenance(systems: Sequence[ReportSystem]) -> Provenance | None:
    """Collect the provenance of all systems that have runs."""
    known = [system for system in systems if system.runs]
    if not known:
        return None
    runs = [(system.name, name, run) for system in known for name, run in named_runs(system)]
    rows = tuple(run_row(*run) for run in runs)
    firsts = {number for number, row in enumerate(rows) if number == 0 or row[0] != rows[number - 1][0]}
    words = frozenset(set(range(1, len(RUN_HEADER))) - {RUN_HEADER.index("at update"), RUN_HEADER.index("trained")})
    named = {f"{system} ({name})": run for system, name, run in runs}
    used = {name: run.log.software.removeprefix("embedded engine of ") or NOT_RECORDED for name, run in named.items()}
    software = {each: tuple(name for name, own in used.items() if own == each) for each in used.values()}
    warnings = {name: run.log.warnings for name, run in named.items() if run.log.warnings}
    differing = compare_settings(known) if len(known) > 1 else None
    table = Table(RUN_HEADER, rows, rules=frozenset(firsts), words=words)
    return Provenance(table, software, warnings, differing)


def named_runs(system: ReportSystem) -> list[tuple[str, RunFolder]]:
    """Name a system's runs by the last parts of their folders, as many as needed to distinguish them."""
    paths = [run.path.resolve() for run in system.runs]
    names: list[str] = []
    for length in range(1, max(len(path.parts) for path in paths) + 1):
        names = [str(Path(*path.parts[-length:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return list(zip(names, system.runs, strict=True))


def run_row(system: str, name: str, run: RunFolder) -> tuple[str, ...]:
    """Return a run's row; what old logs do not contain is shown as not recorded."""
    train, log = run.options.get("train", {}), run.log
    last = max((step for points in run.curves.values() for step, _ in points), default=None)
    update = run.history.get("uctr")
    is_one_day = log.started[:10] == log.ended[:10]
    when = f"{log.started} to {log.ended[11:] if is_one_day else log.ended}" if log.started else NOT_RECORDED
    scores = run.history.get("val_scores", {}) or {}
    validation = "; ".join(f"{name} {values[-1]:.4g}" for name, values in scores.items() if values)
    return (
        system,
        name,
        str(train.get("model_type", NOT_RECORDED)),
        run.seed or NOT_RECORDED,
        setting_text(train.get("pretrained_file")) if run.fine_tuned else "random weights",
        run.checkpoint.name,
        NOT_RECORDED if update is None else f"{update:,}" + (f" of {last:,.0f}" if last is not None else ""),
        validation or NOT_RECORDED,
        when,
    )


def compare_settings(systems: Sequence[ReportSystem]) -> Table | None:
    """Return the settings that differ between systems; of those that only some models have, the ones that are set."""
    found = [[settings(run.options) for run in system.runs] for system in systems]
    written = {name for system in systems for run in system.runs for name in run.written}
    names = dict.fromkeys(name for runs in found for own in runs for name in own)
    rows = []
    for name in sorted(names, key=lambda name: SECTIONS.index(name.split(".")[0])):
        cells = [", ".join(dict.fromkeys(own[name] for own in runs if name in own)) or "-" for runs in found]
        is_set = any(f"{name}.".startswith(f"{key}.") for key in written)  # the name may be nested in a key's value
        if len({*cells} - {"-"}) > 1 or (is_set and len({*cells}) > 1):
            rows.append((name, *cells))
    header = ("setting", *(system.name for system in systems))
    return Table(header, tuple(rows), words=frozenset(range(1, len(header)))) if rows else None


def settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Return all settings as text by `section.key`; dictionaries key by key."""
    found = {}
    for section in SECTIONS:
        for key, value in options.get(section, {}).items():
            if key not in LEFT_OUT:
                parts = {f".{part}": each for part, each in value.items()} if isinstance(value, dict) else {"": value}
                found.update({f"{section}.{key}{part}": setting_text(each) for part, each in parts.items()})
    return found


def setting_text(value: Any) -> str:
    """Format a value as text; an absolute path is cut to its last two parts, to keep local folders private."""
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value)) or "none"
    text = str(value)
    if value is None or not text:
        return "none"
    return "/".join(Path(text).parts[-2:]) if text.startswith("/") else text
