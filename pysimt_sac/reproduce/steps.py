"""The steps before scoring: prepare, train, translate. Each is a command that you could type."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysimt_sac import __version__
from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.hosts.engine.config.parser import Options, check_config, check_trust, parse_direction, read_config
from pysimt_sac.hosts.engine.config.values import plain
from pysimt_sac.hosts.engine.data.moved_files import content_crc, is_path
from pysimt_sac.reproduce.corpus import Corpus, Preparation, Request
from pysimt_sac.reproduce.matrix import Matrix, SystemSpec, choose_systems
from pysimt_sac.reproduce.step_records import Step, digest

# Keys of [train] that change where a run is, how it is computed or what it reports, not its outcome.
HARMLESS = (
    *("save_path", "tensorboard_dir", "disp_freq", "num_workers", "pin_memory"),
    *("eval_batch_size", "checkpoint_freq", "n_checkpoints", "save_optim_state"),
)
# Increase it with every code change that affects the outcome of training: earlier runs are then not reused.
REVISION = 4
PARTIAL_BATCHES = 30  # of an epoch: batches have sentences of equal length, so one of each length may not be full


@dataclass(frozen=True)
class Training(Step):
    """The training of one system with one seed; `config` has all options that affect its outcome."""

    system: str = ""
    seed: int = 0
    folder: Path = Path()
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    options: Options | None = None
    model_type: str = ""
    updates: int = 0  # at most


@dataclass(frozen=True)
class Translating(Step):
    """The translation of the test sets by one run; `pattern` is a path with {set}.

    tuned: the file with the length penalty that was chosen on the validation set; none in greedy search.
    """

    training: Training | None = None
    search: str = ""
    pattern: str = ""
    tuned: Path | None = None


@dataclass(frozen=True)
class Work:
    """All steps before scoring, in the order in which they are started."""

    preparations: list[Preparation]
    trainings: list[Training]
    translations: list[Translating]

    def steps(self) -> list[Step]:
        """Return all steps: actors before other systems, and those seed by seed."""
        actors = [step for step in self.trainings if not step.config["start"]]
        others = sorted((step for step in self.trainings if step.config["start"]), key=lambda step: step.seed)
        return [*self.preparations, *actors, *others, *self.translations]


def plan_work(matrix: Matrix, corpus: Corpus, request: Request) -> Work:
    """Return all steps before scoring; check every configuration."""
    import pysimt_sac.hosts.engine.nmt  # registers the plain model
    import pysimt_sac.hosts.huggingface.network
    import pysimt_sac.models  # noqa: F401 - registers the algorithms

    preparations = [step for step in (corpus.text, corpus.ambiguous) if step and step.words]
    trainings: dict[tuple[str, int], Training] = {}
    for system in choose_systems(matrix, request.pair, request.systems):
        for seed in range(1, min(request.seeds, system.seeds or request.seeds) + 1):
            actor = trainings.get((system.start, seed)) if system.start else None
            if system.start and actor is None:
                raise UserError(f"has more seeds than {system.start!r}, which it starts from", system.name)
            trainings[system.name, seed] = train_step(matrix, corpus, request, system, seed, actor)
    runs = list(trainings.values())
    translations = [translate_step(matrix, corpus, request, run, search) for run in runs
                    for search in matrix.decoding.searches()]  # fmt: skip
    return Work(preparations, runs, translations)


def train_step(
    matrix: Matrix, corpus: Corpus, request: Request, system: SystemSpec, seed: int, actor: Training | None
) -> Training:
    """Return the step that trains one system with one seed, in a folder named after its key."""
    path = matrix.config_path(system)
    overrides = [*matrix.data.overrides, *system.overrides, *(system.short if request.short else ())]
    overrides = [corpus.places.fill(word) for word in overrides]
    overrides += [f"train.seed:{seed}", f"train.save_path:{request.out / 'runs' / system.slug}"]
    if actor:
        overrides.append(f"train.pretrained_file:{actor.folder}")
    options = read_config(path, overrides)
    if not request.trusted:
        check_trust(options)
    train, _ = check_config(options)
    ignored = (*HARMLESS, "pretrained_file") if actor else HARMLESS
    relevant = {name: value for name, value in options.train.items() if name not in ignored}
    config: dict[str, Any] = {"train": without_paths(plain(relevant)), "model": without_paths(plain(options.model))}
    config["start"] = actor.key if actor else ""
    used = {name: plain(options.data.get(name)) for name in ("train_set", "val_set")} | plain(options.vocabulary)
    config["files"] = without_paths(used, corpus.places.data)
    for name in matrix.data.tests:
        if f"{name}_set" not in options.data:
            known = [split.removesuffix("_set") for split in options.data]
            raise UserError(f"{path.name} has no test set {name!r}", f"{matrix.path}: tests", did_you_mean(name, known))
    key = digest(["train", __version__, REVISION, corpus.text.key, config])
    suffix = f"s{seed}-{key}"
    words = ("train", "-C", str(path), "-s", suffix, "-d", request.device, *overrides)
    after = (actor.id,) if actor else (corpus.text.id,) * bool(corpus.text.words)
    per_epoch = matrix.data.sentences // train.batch_size + PARTIAL_BATCHES
    return Training(
        id=f"train-{system.slug}-{suffix}",
        title=f"train {system.name}, seed {seed}",
        key=key,
        words=words,
        after=after,
        system=system.name,
        seed=seed,
        folder=request.out / "runs" / system.slug / f"{path.stem}-{suffix}",
        config=config,
        options=options,
        model_type=train.model_type,
        updates=min(train.max_iterations, train.max_epochs * per_epoch),
    )


def without_paths(value: Any, corpus: Path | None = None) -> Any:
    """Replace every path in a value by a file name and a checksum.

    corpus: paths below this folder become relative to it instead; the corpus has its own key, and may not exist yet.
    """
    if isinstance(value, dict):
        return {key: without_paths(item, corpus) for key, item in value.items()}
    if isinstance(value, list):
        return [without_paths(item, corpus) for item in value]
    if not is_path(value):
        return value
    if corpus and Path(value).is_relative_to(corpus):
        return str(Path(value).relative_to(corpus))
    return f"{Path(value).name} {content_crc(value)}"


def translate_step(matrix: Matrix, corpus: Corpus, request: Request, run: Training, search: str) -> Translating:
    """Return the step that translates all test sets with a run's best checkpoint, and tunes the length penalty."""
    decoding, tests = matrix.decoding, matrix.data.tests
    assert run.options is not None
    side = parse_direction(run.options.model.get("direction"), run.options.filename)[0]
    is_beam = search != "gs"
    files = {f"{name}_set.{side}": plain(run.options.data[f"{name}_set"])[side] for name in tests}
    if is_beam:
        files |= {f"val_set.{language}": path for language, path in plain(run.options.data["val_set"]).items()}
    key = digest(["translate", __version__, run.key, search, without_paths(files, corpus.places.data)])
    stem = run.id.removeprefix("train-").removesuffix(f"-{run.key}")
    prefix = request.out / "translations" / f"{stem}-{key}" / stem
    words = ["translate", str(run.folder), "-s", ",".join(tests), "-o", str(prefix), "-b", str(decoding.batch_size)]
    words += ["-d", request.device, "-f", *(["bs", "-k", str(decoding.beam), "--tune-lp"] if is_beam else ["gs"])]
    # A folder of runs that was moved would look for the text where it was trained.
    words += ["-x", *(f"data.{name}:{path}" for name, path in files.items())]
    tuned = Path(f"{prefix}.{search}.lp_alpha") if is_beam else None
    return Translating(
        id=f"translate-{stem}-{search}-{key}",
        title=f"translate with {run.system}, seed {run.seed}, {search}",
        key=key,
        words=tuple(words),
        outputs=(*(Path(f"{prefix}.{name}.{search}") for name in tests), *([tuned] if tuned else [])),
        after=(run.id,),
        training=run,
        search=search,
        pattern=f"{prefix}.{{set}}.{search}",
        tuned=tuned,
    )
