"""Read a run folder: curves, translations, and the files of its configuration.

Translations are found by name: `pysimt translate -o RUN/out` writes `RUN/out.SPLIT.beam6[.raw]`. The configuration is
read from a checkpoint.
"""

import configparser
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.core.curves import read_points
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.evaluation.report.figures import Point
from pysimt_sac.hosts.engine.config.parser import parse_direction

STAMP = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d):\d\d (?P<message>.*)")
WARNING = "Warning: "
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


def read_run(path: Path, search: str = "", data: Path | None = None) -> RunFolder:
    """Read a run folder.

    search: which of several translations of a split: gs, beam6, ...; data: the current folder of the files in its
    configuration, if they have moved.
    """
    if not path.is_dir():
        raise UserError("no such run folder", path, "training writes SAVE_PATH/CONFNAME[-SUFFIX]")
    from pysimt_sac.hosts.engine.checkpoint import load_checkpoint  # importing torch is slow
    from pysimt_sac.hosts.engine.decoding.translation import checkpoint_to_use

    newest = newest_checkpoint(path)
    options = load_checkpoint(newest).options
    try:
        best = checkpoint_to_use(path)
    except UserError:  # a run that was never validated
        best = newest
    if data is not None:
        options["data"] = moved_data(options, data, path)
    source, target = parse_direction(options["model"].get("direction"), str(newest))
    splits = {
        key.removesuffix("_set"): SplitFiles(Path(files[source]), Path(files[target]))
        for key, files in options["data"].items()
        if key.endswith("_set") and isinstance(files, dict) and {source, target} <= set(files)
    }
    filters = options["train"].get("eval_filters") or ()
    if isinstance(filters, str):
        filters = [name.strip() for name in filters.split(",") if name.strip()]
    exp_id = re.split(r"\.best\.|-(?:val|update|final)", newest.name)[0]
    return RunFolder(
        path=path,
        splits=splits,
        filters=FilterChain(list(filters)),
        outputs=find_outputs(path, search),
        curves=read_curves(path, exp_id),
        options=options,
        written=written_keys(path / f"{exp_id}.conf"),
        checkpoint=best.resolve(),
        history=load_checkpoint(best).history,
        log=read_log(path / f"{exp_id}.log"),
    )


def newest_checkpoint(folder: Path) -> Path:
    """Return the newest checkpoint of a folder."""
    found = sorted(folder.glob("*.ckpt"), key=lambda path: path.stat().st_mtime if path.exists() else 0.0)
    if not found or not found[-1].is_file():
        raise UserError("has no checkpoint", folder, "is it the folder of a trained run?")
    return found[-1]


def written_keys(path: Path) -> frozenset[str]:
    """Return the keys set in a run's configuration file; none if there is no such file."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string("\n".join(read_lines(path, "configuration")) if path.is_file() else "")
    except configparser.Error:
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
