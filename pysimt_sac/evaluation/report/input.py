"""The input of a report: systems, runs and test sets, from run folders and from the user's options."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import kind_of, stream_lines
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.evaluation.lexical import Case, read_cases
from pysimt_sac.evaluation.report.runs import (
    ReportSystem,
    RunFolder,
    read_run,
    search_of,
    test_splits,
    with_translations,
)
from pysimt_sac.evaluation.texts import NamedText, check_lengths, check_runs, check_texts, read_text

PIECE_JOINERS = ("de-spm", "de-segment", "c2w")  # would join the words of a text without subword units


@dataclass(frozen=True)
class ReportRequest:
    """What to report on.

    runs: (system, run folder); several runs of one system have the same name; outputs: hypothesis files by
    (system, split), instead of those in run folders; sources, references, ambiguous: files by split, instead of those
    of the first run's configuration; training: the training text, target side; search: gs, beam6, ...; data: the
    current folder of the files in the runs' configurations, if they have moved; baseline: a system's name; none: the
    control, if there is one, else the first.
    """

    runs: tuple[tuple[str, Path], ...] = ()
    outputs: dict[tuple[str, str], tuple[Path, ...]] = field(default_factory=dict)
    sources: dict[str, Path] = field(default_factory=dict)
    references: dict[str, Path] = field(default_factory=dict)
    ambiguous: dict[str, Path] = field(default_factory=dict)
    training: Path | None = None
    search: str = ""
    data: Path | None = None
    baseline: str = ""


@dataclass(frozen=True)
class ReportSet:
    """A test set with the hypotheses of each system, the baseline first."""

    name: str
    source: tuple[str, ...]
    reference: NamedText
    cases: tuple[Case, ...]
    outputs: dict[str, tuple[NamedText, ...]]


@dataclass(frozen=True)
class ReportInput:
    """The input of a report; `training` has the word counts of the training text's target side, if known."""

    systems: tuple[ReportSystem, ...]
    sets: tuple[ReportSet, ...]
    training: Counter[str] | None
    warnings: tuple[str, ...]


def gather(request: ReportRequest) -> ReportInput:
    """Read everything that a request names."""
    systems = read_systems(request)
    if not systems:
        raise UserError("no runs or hypotheses are given", hint="pysimt-sac report RUN... --out report.html")
    systems = baseline_first(with_missing(systems, request), request.baseline)
    paths = {system.name: output_paths(system, request) for system in systems}
    baseline = systems[0].name
    warnings = unpaired(systems)
    if not paths[baseline]:
        hint = f"give them with --hyp {baseline}:SPLIT=FILE, or translate into its folder"
        raise UserError("there are no translations of the baseline", baseline, hint)
    first_run = next((run for system in systems for run in system.runs), None)
    sets: list[ReportSet] = []
    for split in dict.fromkeys(split for own in paths.values() for split in own):
        if split not in paths[baseline]:
            warnings.append(f"{split}: left out, because the baseline, {baseline!r}, has no translation of it")
            continue
        missing = [system.name for system in systems if split not in paths[system.name]]
        warnings += [f"{split}: {name!r} has no translation of it" for name in missing]
        texts = {name: tuple(map(read_text, own[split])) for name, own in paths.items() if split in own}
        found = read_set(split, texts, request, first_run, warnings)
        sets += [found] if found else []
    if not sets:
        raise UserError("no test set is left to report on", hint="; ".join(warnings))
    return ReportInput(tuple(systems), tuple(sets), training_words(request, first_run, warnings), tuple(warnings))


def read_systems(request: ReportRequest) -> list[ReportSystem]:
    """Read the systems in the order of the request, those with run folders first; their runs by seed."""
    names = dict.fromkeys([*(name for name, _ in request.runs), *(name for name, _ in request.outputs)])
    systems = []
    for name in names:
        runs = [read_run(path, request.search, request.data) for own, path in request.runs if own == name]
        if all(run.seed.isdigit() for run in runs):
            runs.sort(key=lambda run: int(run.seed))
        systems.append(ReportSystem(name, tuple(runs)))
    return systems


def unpaired(systems: Sequence[ReportSystem]) -> list[str]:
    """Return a warning for each system that has as many runs as the baseline, but of other seeds."""
    first, *others = systems
    seeds = [run.seed for run in first.runs]
    return [
        f"{own.name!r} and {first.name!r} have runs of other seeds: the first is paired with the first, and so on"
        for own in others
        if len(own.runs) == len(seeds) > 1 and [run.seed for run in own.runs] != seeds
    ]


def with_missing(systems: Sequence[ReportSystem], request: ReportRequest) -> list[ReportSystem]:
    """Translate what runs have no translations of."""
    runs = [run for system in systems for run in system.runs]
    splits, search = test_splits(runs, (split for _, split in request.outputs)), request.search or search_of(runs)
    wanted = {
        system.name: [split for split in splits if (system.name, split) not in request.outputs] for system in systems
    }
    return [
        ReportSystem(
            system.name,
            tuple(with_translations(run, wanted[system.name], search, request.data) for run in system.runs),
        )
        for system in systems
    ]


def baseline_first(systems: Sequence[ReportSystem], wanted: str) -> list[ReportSystem]:
    """Put the baseline first: the wanted one; else the control of reinforcement, continued maximum likelihood."""
    names = [system.name for system in systems]
    if wanted and wanted not in names:
        raise UserError(f"no system is called {wanted!r}", "--baseline", did_you_mean(wanted, names))
    reinforced = any(run.reinforced for system in systems for run in system.runs)
    controls = [
        system.name
        for system in systems
        if reinforced and system.runs and all(run.fine_tuned and not run.reinforced for run in system.runs)
    ]
    baseline = wanted or next(iter(controls), names[0])
    return sorted(systems, key=lambda system: system.name != baseline)


def output_paths(system: ReportSystem, request: ReportRequest) -> dict[str, list[Path]]:
    """Return a system's hypothesis files by split: the user's, or else those of its run folders."""
    found: dict[str, list[Path]] = {}
    for run in system.runs:
        for split, path in run.outputs.items():
            found.setdefault(split, []).append(path)
    for (name, split), paths in request.outputs.items():
        if name == system.name:
            found[split] = list(paths)
    return found


def read_set(
    split: str,
    outputs: dict[str, tuple[NamedText, ...]],
    request: ReportRequest,
    first_run: RunFolder | None,
    warnings: list[str],
) -> ReportSet | None:
    """Read a test set, by default with the source and reference of the first run's configuration."""
    files = first_run.splits.get(split) if first_run else None
    source_path = request.sources.get(split) or (files.source if files else None)
    reference_path = request.references.get(split)
    filters = FilterChain([])
    if reference_path is None and files and first_run:
        reference_path, filters = files.target, first_run.filters
    if source_path is None or reference_path is None:
        hint = f"give --src {split}=FILE and --ref {split}=FILE"
        warnings.append(f"{split}: left out, because its source and reference are unknown ({hint})")
        return None
    for path, given, option in (
        (reference_path, request.references, "--ref"),
        (source_path, request.sources, "--src"),
    ):
        if split not in given and not kind_of(path):
            hint = f"if the data has moved, give its new location: --data FOLDER, or {option} {split}=FILE"
            raise UserError("no such file", path, hint)
    reference = read_text(reference_path, "reference")
    reference = NamedText(reference.name, tuple(filters(reference.lines)), reference.path)
    source = read_text(source_path, "source")
    check_lengths(source.name, source.lines, f"the reference {reference.name}", reference.lines)
    warnings += check_texts(reference, [text for runs in outputs.values() for text in runs])
    for name, runs in outputs.items():
        warnings += check_runs(name, runs)
    return ReportSet(split, source.lines, reference, read_ambiguous(split, request, source_path, source), outputs)


def read_ambiguous(split: str, request: ReportRequest, source_path: Path, source: NamedText) -> tuple[Case, ...]:
    """Read the ambiguous words: the user's list, or `SPLIT.mlt.tsv` in the source's folder, or none."""
    path = request.ambiguous.get(split)
    if path is None:
        path = source_path.parent / f"{split}.mlt.tsv"
        if not path.is_file():
            return ()
    cases = read_cases(path)
    if max(case.line for case in cases) >= len(source.lines):
        raise UserError(
            f"goes beyond the {len(source.lines)} lines of {source.name}", path, "is it the list of another test set?"
        )
    return tuple(cases)


def training_words(request: ReportRequest, first_run: RunFolder | None, warnings: list[str]) -> Counter[str] | None:
    """Count the words of the training text's target side, after the run's filters; a text from the user is in words."""
    filters = first_run.filters if first_run else FilterChain([])
    path = request.training
    if path is not None:
        filters = FilterChain([name for name in filters.names if name not in PIECE_JOINERS])
    if path is None and first_run and "train" in first_run.splits:
        path = first_run.splits["train"].target
        if not path.is_file():
            warnings.append(f"{path}: no such training text; no frequency analysis (see --data and --train)")
            return None
    if path is None:
        return None
    return Counter(word for line in filters(stream_lines(path, "training text")) for word in line.split())
