"""How a model's text was prepared, as corpora and checkpoints record it; `plain_text` applies it.

`pysimt-sac prepare` writes it to `corpus.json` in its folder, under `preparation`, for each training text; training
copies it into the checkpoints.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_json
from pysimt_sac.text.subwords import KINDS, Segmentation, read_segmentation

RECORD_NAME = "corpus.json"
KEY = "preparation"
STEPS = ("lowercase", "normalise", "tokenise")
HINT = "prepare the corpus again, or write the record by hand (docs/corpora.md)"


@dataclass(frozen=True)
class SidePreparation:
    """How the text of one side was prepared: Moses' steps in order, then the segmentation.

    split_hyphens: whether hyphens within words are tokens, `@-@`.
    """

    language: str
    steps: tuple[str, ...] = STEPS
    split_hyphens: bool = False
    segmentation: Segmentation | None = None


@dataclass(frozen=True)
class TextPreparation:
    """How the text of both sides was prepared."""

    source: SidePreparation
    target: SidePreparation

    def state(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return {side: plain_side(getattr(self, side)) for side in ("source", "target")}

    @classmethod
    def from_state(cls, state: Any, where: object) -> "TextPreparation":
        """Check and restore the output of `state`: checkpoints come from anywhere."""
        if not isinstance(state, dict):
            raise UserError("its record of the preparation is damaged", where, "give it a new one: pysimt-sac attach")
        return cls(*(read_side(state.get(side), where, side) for side in ("source", "target")))


def plain_side(side: SidePreparation) -> dict[str, Any]:
    """Return a side as JSON and checkpoints store it."""
    return {**asdict(side), "steps": list(side.steps)}


def read_side(entry: Any, where: object, name: str, folder: Path | None = None) -> SidePreparation:
    """Check and read a side's entry. folder: where the files that it names are, if not in a checkpoint."""
    place = f"{where} {KEY} of {name}"
    if not isinstance(entry, dict) or not isinstance(entry.get("language"), str):
        raise UserError("names no language", place, HINT)
    steps = entry.get("steps")
    if not isinstance(steps, list) or not all(step in STEPS for step in steps) or len(set(steps)) < len(steps):
        raise UserError(f"{steps!r} is not a list of steps", place, f"of {', '.join(STEPS)}, in their order")
    segmentation = entry.get("segmentation")
    if segmentation is not None:
        segmentation = check_segmentation(segmentation, place)
        segmentation = read_segmentation(segmentation, folder, place) if folder else segmentation
    return SidePreparation(entry["language"], tuple(steps), entry.get("split_hyphens") is True, segmentation)


def check_segmentation(entry: Any, place: str) -> Segmentation:
    """Check and read a segmentation's entry."""
    entry = entry if isinstance(entry, dict) else {}
    kind, threshold = entry.get("kind"), entry.get("threshold", 0)
    model, units = entry.get("model"), entry.get("units") or ""
    if kind not in KINDS:
        raise UserError(f"{kind!r} is not a segmentation", place, f"one of {', '.join(KINDS)}")
    if not (isinstance(model, str) and model and isinstance(units, str) and type(threshold) is int and threshold >= 0):
        raise UserError("the segmentation is incomplete", place, HINT)
    return Segmentation(kind, model, units, threshold)


def read_record(folder: Path) -> dict[str, Any]:
    """Return a folder's record of its training texts, by name."""
    path = folder / RECORD_NAME
    record = read_json(path, "record of a prepared corpus", HINT)
    entries = record.get(KEY, {}) if isinstance(record, dict) else None
    if not isinstance(entries, dict):
        raise UserError("is not the record of a prepared corpus", path, HINT)
    return entries


def preparation_of_folder(folder: Path, train_set: Any, sides: Sequence[str], where: object) -> TextPreparation:
    """Return a folder's record for a model that was trained on texts of these names.

    A record written by hand may name the sides (`src`, `trg`) instead of the texts.
    """
    if not folder.is_dir():
        raise UserError("no such folder", folder, "give the folder of a language pair that `pysimt-sac prepare` wrote")
    entries, place, found = read_record(folder), folder / RECORD_NAME, []
    if not entries:
        raise UserError("does not say how its text was prepared", place, HINT)
    for side, name in zip(sides, text_names(train_set, sides), strict=True):
        key = next((key for key in (name, side) if key in entries), None)
        if key is None:
            what = f"says nothing about {name or side}, the text of {where}, only about {', '.join(entries)}"
            raise UserError(what, place, HINT)
        found.append(read_side(entries[key], place, key, folder))
    return TextPreparation(*found)


def preparation_of_training(train_set: Any, sides: Sequence[str]) -> TextPreparation | None:
    """Return the record beside the training texts, if it covers both sides."""
    found = []
    for side, name in zip(sides, text_names(train_set, sides), strict=True):
        folder = Path(train_set[side]).parent if name else Path()
        entries = read_record(folder) if name and (folder / RECORD_NAME).is_file() else {}
        if name not in entries:
            return None
        found.append(read_side(entries[name], folder / RECORD_NAME, name, folder))
    return TextPreparation(*found)


def text_names(train_set: Any, sides: Sequence[str]) -> list[str]:
    """Return the names of the training texts in a configuration; empty where there is none."""
    files = [train_set.get(side) if isinstance(train_set, dict) else None for side in sides]
    return [Path(str(file)).name if isinstance(file, str | PurePath) else "" for file in files]
