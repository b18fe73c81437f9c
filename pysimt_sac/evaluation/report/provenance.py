"""Provenance of a report's systems: runs, checkpoints, warnings, and differences between configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac.evaluation.report.input import ReportSystem
from pysimt_sac.evaluation.report.run_folder import RunFolder
from pysimt_sac.evaluation.tables import Table

RUN_HEADER = (
    "system", "run", "model", "seed", "starts from", "checkpoint", "at update", "validation", "trained",
)  # fmt: skip
UNKNOWN = "not recorded"
# Settings that are in the table of runs, and paths on disk, which make no difference.
LEFT_OUT = {"seed", "model_type", "pretrained_file", "save_path", "tensorboard_dir"}
SECTIONS = ("train", "model", "data", "vocabulary")


@dataclass(frozen=True)
class Provenance:
    """The runs, the software that trained them, the warnings in their logs by system and run, and their settings.

    differing: settings that differ between systems; defaults: settings that only some models have and no configuration
    sets.
    """

    runs: Table
    software: dict[str, tuple[str, ...]]
    warnings: dict[str, tuple[str, ...]]
    differing: Table | None
    defaults: Table | None


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
    used = {name: run.log.software.removeprefix("embedded engine of ") or UNKNOWN for name, run in named.items()}
    software = {each: tuple(name for name, own in used.items() if own == each) for each in used.values()}
    warnings = {name: run.log.warnings for name, run in named.items() if run.log.warnings}
    differing, defaults = compare_settings(known) if len(known) > 1 else (None, None)
    table = Table(RUN_HEADER, rows, rules=frozenset(firsts), words=words)
    return Provenance(table, software, warnings, differing, defaults)


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
    when = f"{log.started} to {log.ended[11:] if is_one_day else log.ended}" if log.started else UNKNOWN
    scores = run.history.get("val_scores", {}) or {}
    validation = "; ".join(f"{name} {values[-1]:.4g}" for name, values in scores.items() if values)
    return (
        system,
        name,
        str(train.get("model_type", UNKNOWN)),
        run.seed or UNKNOWN,
        setting_text(train.get("pretrained_file")) if run.fine_tuned else "random weights",
        run.checkpoint.name,
        UNKNOWN if update is None else f"{update:,}" + (f" of {last:,.0f}" if last is not None else ""),
        validation or UNKNOWN,
        when,
    )


def compare_settings(systems: Sequence[ReportSystem]) -> tuple[Table | None, Table | None]:
    """Return the settings that differ between systems, and those that only some models have, at their defaults."""
    found = [[settings(run.options) for run in system.runs] for system in systems]
    written = {name for system in systems for run in system.runs for name in run.written}
    names = dict.fromkeys(name for runs in found for own in runs for name in own)
    ordered = sorted(names, key=lambda name: SECTIONS.index(name.split(".")[0]))
    differing, defaults = [], []
    for name in ordered:
        cells = [", ".join(dict.fromkeys(own[name] for own in runs if name in own)) or "-" for runs in found]
        values = set(cells)
        if len(values - {"-"}) > 1 or (len(values) > 1 and any(is_part(name, key) for key in written)):
            differing.append((name, *cells))
        elif len(values) > 1:
            defaults.append((name, *cells))
    header = ("setting", *(system.name for system in systems))
    words = frozenset(range(1, len(header)))
    one, other = (Table(header, tuple(rows), words=words) if rows else None for rows in (differing, defaults))
    return one, other


def is_part(name: str, key: str) -> bool:
    """Return whether a setting is a key of a configuration or nested in its value."""
    return name == key or name.startswith(f"{key}.")


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
