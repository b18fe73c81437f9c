"""Take over runs made elsewhere: if configuration, text and actor are the same, so is the outcome."""

import functools
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_folder
from pysimt_sac.core.options import read_section
from pysimt_sac.core.registry import METRICS
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import STATE_FILE, find_checkpoint, load_checkpoint, load_state
from pysimt_sac.hosts.engine.config.parser import Options, result_changing_differences
from pysimt_sac.hosts.engine.config.recipe import FALLING
from pysimt_sac.hosts.engine.data.moved_files import same_value
from pysimt_sac.hosts.engine.shell import build_model
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.hosts.engine.training.schedule import plan_schedule
from pysimt_sac.reproduce.runner import finish, is_locked
from pysimt_sac.reproduce.stamps import Stamp, Stamps
from pysimt_sac.reproduce.steps import Training

NOT_COPIED = shutil.ignore_patterns("old-*", "train_state.previous.pt", "*.tmp", ".lock")
SHOWN = 4  # differences that are reported
DEPTH = 3  # levels of folders searched for runs


@dataclass
class Candidate:
    """A finished run made elsewhere; its state is read on demand."""

    folder: Path
    nearest: str = ""  # the training it is nearest to, and ...
    reasons: list[str] = field(default_factory=list)  # ... why it does not match; empty if it was taken over

    def remember(self, training: Training, reasons: list[str]) -> None:
        """Keep the training with the fewest differences."""
        if not self.nearest or len(reasons) < len(self.reasons):
            self.nearest, self.reasons = training.title, reasons

    @functools.cached_property
    def state(self) -> dict[str, Any]:
        """The run's state without its weights; empty if this version cannot read it."""
        try:
            state, _ = load_state(self.folder)
        except UserError:
            return {}
        return {name: state[name] for name in ("config", "progress", "files") if name in state} if state else {}

    def differences(self, training: Training) -> list[str]:
        """Return why the run is not the outcome of a training; empty if it is."""
        config, progress = self.state.get("config"), self.state.get("progress", {})
        if config is None or not progress.get("ended") or training.options is None:
            return ["has not finished"]
        if "files" not in self.state:  # a run of an earlier version
            return ["does not record checksums of its text"]
        model = build_model(Options.from_dict(training.options.to_dict()))
        wanted = model.opts.to_dict()  # with all defaults
        same = functools.partial(same_value, known=self.state["files"])
        if found := result_changing_differences(comparable(config), comparable(wanted), same):
            return found
        train = read_section(TrainOptions, training.options.train, training.options.filename)
        ended = Progress.from_dict(progress)
        if not ends_there(ended, train):
            return ["would have ended at a different point"]
        if (length := schedule_length(model, train)) != ended.lr_total:
            return [f"its learning rate decays over {ended.lr_total} updates, not {length}"]
        return []


def comparable(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without unused keys and `pretrained_file`, whose weights are compared instead."""
    train = {key: value for key, value in config["train"].items() if key != "pretrained_file"}
    if not train.get("lr_decay"):
        train = {key: value for key, value in train.items() if not key.startswith("lr_decay_")}
    return {**config, "train": train}


def schedule_length(model: Any, train: TrainOptions) -> int:
    """Return the updates over which the learning rate would decay, 0 if it does not; fixed when a run starts."""
    if model.recipe.lr_schedule not in FALLING:
        return 0
    n_batches = len(model.load_data("train", train.batch_size).batches(1))
    return plan_schedule(model.recipe, train, -(-n_batches // model.recipe.accumulate)).total


def ends_there(progress: Progress, train: TrainOptions) -> bool:
    """Return whether these options end a run exactly where it ended, whatever its own options were."""
    name = train.eval_metrics[0].upper()
    scores = progress.scores.get(name, [])
    sign = 1 if METRICS.get(name).higher_better else -1
    best, waited, longest = float("-inf"), 0, 0
    for score in scores[:-1]:
        waited = 0 if sign * score > best else waited + 1
        best, longest = max(best, sign * score), max(longest, waited)
    too_late = progress.update > train.max_iterations or progress.epoch > train.max_epochs + 1
    return bool(progress.stop_reason(train)) and not too_late and longest < train.patience


@dataclass
class Adoption:
    """Searches folders for runs to take over. made_by: the commit that made them; tell: prints a message."""

    folders: Sequence[Path]
    made_by: str
    stamps: Stamps
    tell: Callable[[str], None]
    candidates: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in self.folders:
            if not folder.is_dir():
                raise UserError("no such folder", folder, "--adopt takes a run's folder, or a folder of runs")
            patterns = ["/".join(["*"] * depth + [STATE_FILE]) for depth in range(DEPTH + 1)]
            paths = sorted(path.parent.resolve() for pattern in patterns for path in folder.glob(pattern))
            self.candidates += [Candidate(path) for path in paths if self.stamps.root.resolve() not in path.parents]

    def find(self, trainings: Sequence[Training], done: Mapping[str, Stamp]) -> dict[str, Candidate]:
        """Return the run to take over for each unfinished training, by its id; report why other runs do not match."""
        found: dict[str, Candidate] = {}
        by_key = {step.key: step for step in trainings}
        for training in trainings:
            if training.id in done or is_locked(training.folder):
                continue
            actor = by_key.get(training.config["start"])
            taken = found.get(actor.id) if actor else None
            start = taken.folder if taken else actor.folder if actor and actor.id in done else None
            if actor and start is None:
                continue
            for candidate in self.candidates:
                reasons = candidate.differences(training)
                reasons = reasons or ([] if self.same_actor(candidate, start) else ["started from another actor"])
                candidate.remember(training, reasons)
                if not reasons:
                    found[training.id] = candidate
                    break
        for candidate in self.candidates:
            if candidate.nearest and candidate.reasons:
                shown = "; ".join(candidate.reasons[:SHOWN]) + " ..." * (len(candidate.reasons) > SHOWN)
                self.tell(f"not taken over: {candidate.folder}, nearest to {candidate.nearest}: {shown}")
                candidate.nearest = ""  # reported
        return found

    def take_over(self, trainings: Sequence[Training], done: dict[str, Stamp]) -> None:
        """Copy matching runs into the folders of unfinished trainings, and stamp them."""
        found = self.find(trainings, done)
        for training in trainings:
            if candidate := found.get(training.id):
                done[training.id] = self.copy(candidate, training)
                self.tell(f"taken over: {training.title}, from {candidate.folder}")

    def same_actor(self, candidate: Candidate, start: Path | None) -> bool:
        """Return whether a run started from the actor in this folder, or from none if there is no folder."""
        named = candidate.state["config"]["train"].get("pretrained_file")
        if start is None or not named:
            return start is None and not named
        try:
            metric = read_section(TrainOptions, candidate.state["config"]["train"], named).eval_metrics[0]
            theirs, ours = (weights_digest(find_checkpoint(place, metric)) for place in (named, start))
        except UserError:
            return False  # its actor no longer exists
        return theirs == ours

    def copy(self, candidate: Candidate, training: Training) -> Stamp:
        """Copy a run's folder; the stamp comes last, so that an incomplete copy does not count."""
        with atomic_folder(training.folder) as folder:
            folder.rmdir()
            shutil.copytree(candidate.folder, folder, symlinks=True, ignore=NOT_COPIED)
        return finish(self.stamps, training, 0.0, self.made_by, adopted=candidate.folder.name)


def weights_digest(path: Path) -> str:
    """Return a checksum of a checkpoint's weights alone."""
    total = hashlib.sha256()
    for name, weight in sorted(load_checkpoint(path).weights.items()):
        total.update(name.encode())
        total.update(weight.contiguous().numpy().tobytes())
    return total.hexdigest()
