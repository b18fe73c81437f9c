"""The two artefacts on disk. Nothing else calls `torch.save` or `torch.load`.

The **checkpoint** is for sharing: weights, options, history, vocabularies, text preparation; pysimt reads ours, we
read pysimt's.
The **training state** is everything that resuming needs; the previous one is kept until the new one is complete.
Both are loaded without executing any code in the file.
"""

import contextlib
import os
import pathlib
import re
import struct
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, kind_of, require_file, sync_folder, why
from pysimt_sac.core.metrics import Metric
from pysimt_sac.core.options import read_section
from pysimt_sac.core.records import has_type
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.states import check_extent, first_not_finite, is_plain_tensor
from pysimt_sac.core.vocabulary import Vocabulary
from pysimt_sac.hosts.choice import network_of
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.config.values import plain
from pysimt_sac.text.preparation import TextPreparation

STATE_FILE = "train_state.pt"
PREVIOUS_STATE_FILE = "train_state.previous.pt"
EXP_ID = re.compile(r"\w[\w.-]*")  # it becomes part of file names
PREPARATION = "preparation"  # a key of a checkpoint's history, where pysimt's loop can write it and readers ignore it
OUR_TYPE = "pysimt_sac_model_type"  # beside the sections of a checkpoint's options, whose `model_type` is pysimt's


# The parts of a training state and their types; those of a part are checked where it is restored.
STATE_TYPES: dict[str, Any] = {
    "host": str,
    "config": dict[str, Any],
    "exp_id": str,
    "corpus": int,
    "files": dict[str, int],
    "progress": dict[str, Any],
    "weights": dict[str, Tensor],
    "optimizer": dict[str, Any],
    "average": dict[str, Any],
    "model": dict[str, Any],
    "random": dict[str, Any],
    "other_ranks": list[dict[str, Any]],
    "journal": dict[str, int],
}
OPTIONAL = {"host", "corpus", "files", "other_ranks"}  # pysimt's states have the first two, the engine's the others


def plain_dictionary(*_: Any) -> dict[str, Any]:
    """Stand in for `defaultdict`, which torch cannot unpickle safely."""
    return {}


# The types in pysimt's checkpoints besides tensors and plain values, under every name they are pickled by; our Metric
# replaces pysimt's. `_local` is where Python 3.13 keeps its paths.
ALLOWED_TYPES: list[Any] = [
    (pathlib.PurePosixPath, f"{module}.{name}")
    for module in ("pathlib", "pathlib._local")
    for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")
] + [
    (plain_dictionary, "collections.defaultdict"),
    (list, "__builtin__.list"),
    (list, "builtins.list"),
    (Metric, "pysimt.metrics.metric.Metric"),
]


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint."""

    path: Path
    options: dict[str, Any]
    weights: dict[str, Tensor]
    history: dict[str, Any]
    optimizer: dict[str, Any] | None
    vocabularies: dict[str, Vocabulary]
    is_ours: bool = True  # written with this package, not by pysimt alone

    @property
    def preparation(self) -> TextPreparation | None:
        """How the model's text was prepared, if known."""
        stored = self.history.get(PREPARATION)
        return None if stored is None else TextPreparation.from_state(stored, self.path)


def load_safely(path: Path, what: str) -> Any:
    """Load tensors and plain values; refuse a file that needs anything else, without executing it."""
    require_file(path, what)
    try:
        check_archive(path, what)
        with torch.serialization.safe_globals(ALLOWED_TYPES), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a foreign file gets a one-line error of ours
            content = torch.load(path, map_location="cpu", weights_only=True)
        check_extent(content, path.stat().st_size)
        return content
    except UserError:
        raise
    except Exception as error:  # torch has no common exception type for invalid files
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if "Unsupported" in str(error) or "WeightsUnpickler" in str(error) or "weights_only" in str(error).lower():
            reason = "it holds objects that are not weights or plain values"
        if isinstance(error, EOFError | struct.error):  # a truncated file in torch's legacy format
            reason = "it is truncated"
        raise UserError(f"is not a {what}, or is damaged: {reason[:200]}", path) from error


def check_archive(path: Path, what: str) -> None:
    """Check that an archive is whole, by the checksums that torch writes but does not check, and that it is no bomb.

    A full disk or an interrupted copy leaves an empty file, or one without its end. torch never compresses: what is
    larger in memory than on disk was made to be. Its legacy format is no archive, and has no checksums.
    """
    with open(path, "rb") as stream:
        start = stream.read(4)
    hint = "copy it again, or use an earlier one"
    if not start:
        raise UserError(f"is empty: the {what} was not completely written or copied", path, hint)
    if not zipfile.is_zipfile(path):
        if start == b"PK\x03\x04":
            raise UserError(f"is truncated: the end of the {what} is missing", path, hint)
        return
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        is_compressed = any(part.compress_type != zipfile.ZIP_STORED for part in parts)
        if is_compressed or sum(part.file_size for part in parts) > path.stat().st_size:
            raise UserError(f"is compressed, which no {what} is", path, "do not use it: it may fill your memory")
        if broken := archive.testzip():
            raise ValueError(f"the checksum of {broken} is wrong")


def write_safely(path: Path, content: dict[str, Any]) -> None:
    """Call `torch.save` atomically; raise the OSError that torch hides behind an error of its own."""
    with atomic_write(path, "wb") as stream:
        try:
            torch.save(content, stream)
        except RuntimeError as error:
            reason = error.__context__
            raise reason if isinstance(reason, OSError) else OSError(str(error).splitlines()[0]) from error


def for_pysimt(options: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's options with the network's type as `model_type`, so that pysimt loads it without us."""
    stored: dict[str, Any] = plain(options)
    stored[OUR_TYPE] = str(stored["train"].get("model_type", ""))
    stored["train"]["model_type"] = network_of(stored["train"], stored["model"])
    return stored


def save_checkpoint(checkpoint: Checkpoint) -> None:
    """Write a checkpoint to its path, with plain values only, so that pysimt can read it too."""
    options = for_pysimt(checkpoint.options) if checkpoint.is_ours else plain(checkpoint.options)
    content = {"opts": options, "model": checkpoint.weights, "history": plain(checkpoint.history)}
    if checkpoint.vocabularies:
        content["vocabularies"] = {name: vocab.state() for name, vocab in checkpoint.vocabularies.items()}
    if checkpoint.optimizer is not None:
        content["optimizer"] = checkpoint.optimizer
    write_safely(checkpoint.path, content)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint, ours or pysimt's."""
    path = Path(path).expanduser()
    content = load_safely(path, "checkpoint")
    content = content if isinstance(content, dict) else {}
    weights, options = content.get("model"), content.get("opts")
    if not (isinstance(weights, dict) and weights and isinstance(options, dict)):
        raise UserError("is not a checkpoint of pysimt or pysimt_sac", path, "give a .ckpt file that training wrote")
    if not all(isinstance(name, str) and is_plain_tensor(value) for name, value in weights.items()):
        raise UserError("its weights are not tensors", path)
    if not are_options(options):
        raise UserError("its options are incomplete", path, "was it written by pysimt or pysimt_sac?")
    is_ours = OUR_TYPE in options or "vocabularies" in content
    if OUR_TYPE in options:
        options["train"]["model_type"] = str(options.pop(OUR_TYPE))
    stored, history = content.get("vocabularies", {}), content.get("history", {})
    if not isinstance(stored, dict):
        raise UserError("its vocabularies are damaged", path)
    vocabularies = {str(name): Vocabulary.from_state(state, path) for name, state in stored.items()}
    history = history if isinstance(history, dict) else {}
    return Checkpoint(path, options, weights, history, content.get("optimizer"), vocabularies, is_ours)


def are_options(options: Any) -> bool:
    """Return whether this is the output of `Options.to_dict`, or pysimt's equivalent."""
    return (
        isinstance(options, dict)
        and isinstance(options.get("sections"), list)
        and all(isinstance(name, str) and isinstance(options.get(name), dict) for name in options["sections"])
        and all(isinstance(options.get(name), dict) for name in ("train", "model", "data", "vocabulary"))
    )


def find_checkpoint(named: str | Path, metric: str) -> Path:
    """Return a checkpoint by its path, or, given a folder, the best one by a metric of its newest run.

    A run that was not validated with that metric has a first one of its own.
    """
    path = Path(named)
    if (kind := kind_of(path)) != "folder":
        if kind:
            return path
        hint = "correct the path, or train an actor first, e.g. pysimt train -C experiments/mle.conf"
        raise UserError("there is no such checkpoint or folder", f"[train] pretrained_file: {path}", hint)
    links = [link for link in path.glob("*.best.*.ckpt") if link.exists()]  # its file may be deleted
    if not any(link.name.endswith(f".best.{metric.lower()}.ckpt") for link in links) and links:
        metric = first_metric(load_checkpoint(links[0]))
    found = [link for link in links if link.name.endswith(f".best.{metric.lower()}.ckpt")]
    best = sorted(found, key=lambda link: link.stat().st_mtime)
    if not best:
        hint = f"validate with eval_metrics: {metric}, or name a checkpoint"
        raise UserError(f"holds no best checkpoint by {metric}", path, hint)
    return best[-1]


def first_metric(checkpoint: Checkpoint) -> str:
    """Return the first of the `eval_metrics` that a checkpoint's run was validated with."""
    train = Options.from_dict(checkpoint.options).train
    named = read_section(TrainOptions, train, f"{checkpoint.path} [train]").eval_metrics
    return named[0] if named else "loss"


def load_checkpoint_of_run(folder: Path, last: bool = False) -> Checkpoint:
    """Load a run's best checkpoint by the first of its `eval_metrics`; the last if that is wanted, or there is none."""
    best = sorted(link for link in folder.glob("*.best.*.ckpt") if link.exists())
    if best and not last:
        checkpoint = load_checkpoint(best[0])
        path = find_checkpoint(folder, first_metric(checkpoint))
        return replace(checkpoint, path=path) if path.samefile(best[0]) else load_checkpoint(path)
    others = [*folder.glob("*-final.ckpt"), *folder.glob("*-update*.ckpt")]
    if not others:
        hint = "give a checkpoint, or the folder of a run that has saved one"
        raise UserError(f"holds no {'last ' if last else ''}checkpoint", folder, hint)
    return load_checkpoint(max(others, key=lambda file: file.stat().st_mtime))


def remark_on(checkpoint: Checkpoint) -> str:
    """Return what somebody who uses a run's checkpoint should know about it, or an empty string."""
    if checkpoint.history.get("diverged"):
        return "it is of a model that has diverged"
    if checkpoint.history.get("starting_point") or checkpoint.history.get("uctr") == 0:
        return "it is the starting point, because training brought no improvement; --last takes the last weights"
    return ""


def load_weights(model: nn.Module, weights: dict[str, Tensor], path: Path, partial: bool = False) -> list[str]:
    """Copy weights into a model and return the names that were loaded.

    partial: the file may lack some of the model's weights; otherwise all are required. Names that the model does not
    have are ignored either way.
    """
    own = model.state_dict()
    taken = {name: weight for name, weight in weights.items() if name in own}
    for name, weight in taken.items():
        if weight.shape != own[name].shape:
            sizes = f"{tuple(weight.shape)} in the file, {tuple(own[name].shape)} in the model"
            raise UserError(
                f"{name} has a different size: {sizes}", path, "use the options and vocabularies it was trained with"
            )
    if name := first_not_finite(taken.items()):
        raise UserError(f"{name} has values that are not finite numbers", path, "use an earlier checkpoint")
    missing = sorted(set(own) - set(taken))
    if not taken or (missing and not partial):
        raise UserError(f"lacks the weights {', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}", path)
    model.load_state_dict(taken, strict=False)
    return sorted(taken)


def keep_prefixes(weights: dict[str, Tensor], prefixes: Iterable[str], path: Path) -> dict[str, Tensor]:
    """Return the weights whose names begin with one of the prefixes; a prefix without a match is an error."""
    kept = {}
    for prefix in prefixes:
        fitting = {name: weight for name, weight in weights.items() if name.startswith(prefix)}
        if not fitting:
            raise UserError(f"no weight begins with {prefix!r}", path, "see pretrained_layers")
        kept.update(fitting)
    return kept


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Write the training state; the one before it remains as the previous one.

    Whenever this is killed, the newest of the two is that of this save or of the one before: the resumed run repeats
    what came after it. So what has not got its name yet, `.new`, is never read.
    """
    current, previous = folder / STATE_FILE, folder / PREVIOUS_STATE_FILE
    fresh = folder / f"{STATE_FILE}.new"
    write_safely(fresh, state)
    try:
        if current.exists():
            os.replace(current, previous)
        os.replace(fresh, current)
    except OSError as error:
        raise UserError(f"cannot be written: {why(error)}", current) from error
    sync_folder(folder)


def is_state(state: Any) -> bool:
    """Return whether this is what a training loop saves, every part of its declared type."""
    return (
        isinstance(state, dict)
        and set(STATE_TYPES) - OPTIONAL <= set(state) <= set(STATE_TYPES)
        and ("corpus" if state.get("host") == "pysimt" else "files") in state
        and all(has_type(value, STATE_TYPES[name]) for name, value in state.items())
        and all(map(is_plain_tensor, state["weights"].values()))
        and are_options(state["config"])
        and EXP_ID.fullmatch(state["exp_id"]) is not None
        and min(state["journal"].values(), default=0) >= 0
        and all(re.fullmatch(r"[^/\0]{1,200}\.ckpt", name) for name in checkpoint_names(state["progress"]))
    )


def checkpoint_names(progress: dict[str, Any]) -> list[str]:
    """Return the names of a run's checkpoints, which will be removed when better ones replace them."""
    numbered, best = progress.get("checkpoints", []), progress.get("best", {})
    files = [found.get("file") for found in best.values() if isinstance(found, dict)] if isinstance(best, dict) else []
    return [str(name) for name in (*(numbered if isinstance(numbered, list) else ()), *files) if name]


def load_state(folder: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the newest intact training state of a run, or None; and a remark if a newer one is damaged."""
    remark = ""
    for name in (STATE_FILE, PREVIOUS_STATE_FILE):
        path = folder / name
        if not path.is_file():
            continue
        try:
            state = load_safely(path, "training state")
            if not is_state(state):
                raise UserError("is not a training state", path)
            return state, remark
        except UserError as error:
            remark = f"{error.where} is damaged; resuming from the one before it"
    if remark:
        raise UserError("all saved states of this run are damaged", folder, "start over with --restart")
    return None, ""


@contextlib.contextmanager
def state_fits(folder: Path) -> Iterator[None]:
    """Turn failures to restore a state of another version into a UserError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        what = f"its saved state does not fit this version ({type(error).__name__}: {error})"
        raise UserError(what, folder, "use the version that began this run, or start over with --restart") from error
