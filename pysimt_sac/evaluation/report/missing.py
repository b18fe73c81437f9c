"""Translate test sets that a run has no translations of, as `pysimt translate` would."""

import dataclasses
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import kind_of
from pysimt_sac.evaluation.report.run_folder import OUTPUT_NAME, RunFolder

USUAL_SEARCH = "beam6"


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
