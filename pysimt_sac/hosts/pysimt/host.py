"""The adapter to the original pysimt: extends it from outside, without changing its files.

`register` puts our metrics, beam search and safe loader where pysimt looks for its own, `find_model` wraps a network;
commands call `train` and `load_translator`. Import this module after `device.reserve_device`: pysimt binds its
device at import.
"""

import argparse
import dataclasses
import functools
import logging
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from pysimt import logger, mainloop, metrics, models, monitor, stranslator, translators
from pysimt.config import TRAIN_DEFAULTS, Options
from pysimt.models import EncoderSelfAttentionSimultaneousNMT, SimultaneousTFNMT
from pysimt.samplers.approx import ApproximateBucketBatchSampler
from pysimt.stranslator import STranslator
from pysimt.utils.data import make_dataloader, sort_predictions
from pysimt.utils.io import progress_bar, read_reference_files
from pysimt.utils.misc import fix_seed
from pysimt.utils.topology import DataSource

import pysimt_sac.models  # noqa: F401 - registers our algorithms
from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import make_folder, require_file
from pysimt_sac.core.metrics import RegisteredMetric
from pysimt_sac.core.options import defaults, names, read_section
from pysimt_sac.core.registry import METRICS, MODELS, load_plugin_modules
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, SearchOptions, TrainOptions
from pysimt_sac.hosts import choice
from pysimt_sac.hosts.engine.checkpoint import find_checkpoint, for_pysimt, load_checkpoint
from pysimt_sac.hosts.engine.config.parser import Options as EngineOptions
from pysimt_sac.hosts.engine.config.parser import (
    check_config,
    keys_of,
    plugin_modules,
    read_config,
    used_option_classes,
)
from pysimt_sac.hosts.engine.config.recipe import check_recipe, check_supported_by_pysimt
from pysimt_sac.hosts.engine.data.moved_files import as_overrides, relocated
from pysimt_sac.hosts.engine.decoding.translation import Translator
from pysimt_sac.hosts.engine.training.interrupts import Interrupted
from pysimt_sac.hosts.engine.training.randomness import draw_seed
from pysimt_sac.hosts.engine.training.runs import open_run
from pysimt_sac.hosts.pysimt import resume
from pysimt_sac.hosts.pysimt.actor import PysimtActor
from pysimt_sac.hosts.pysimt.loop import AveragingMonitor, HostJournal, Loop, as_pysimt_loads, stopped_by_signals
from pysimt_sac.hosts.pysimt.stepper import IMAGE, SearchablePysimtModel
from pysimt_sac.hosts.pysimt.transformer import TransformerActor
from pysimt_sac.rl.algorithm import Algorithm
from pysimt_sac.rl.session import Log, Session, TrainedByAlgorithm

log = logging.getLogger("pysimt")


KINDS = ("Simultaneous", "EncoderSelfAttentionSimultaneous", "SimultaneousTF")  # of networks that algorithms train
TRAINED = tuple(f"{kind}{waiting}NMT" for kind in KINDS for waiting in ("", "WaitK"))
SOURCES = re.compile(r"\s*src(:Text)?\s*(?P<image>,\s*image:(Numpy|ObjectDetections)\s*)?->")  # of a direction


class PysimtShell(TrainedByAlgorithm):
    """Makes a model of pysimt one that an algorithm trains; validation and translation stay the model's own."""

    algorithm: ClassVar[type[Algorithm]]
    opts: Any
    training: bool
    defaults: dict[str, Any]

    @property
    def wait(self) -> int | None:
        """The k of a wait-k model; None for others."""
        k = (self.opts.model["translator_args"] or {}).get("k")
        return None if k is None else int(k)

    def set_defaults(self) -> None:
        """Add the algorithm's options."""
        super().set_defaults()  # type: ignore[misc]
        ours = (defaults(cls) for cls in (ModelOptions, *self.algorithm.option_classes))
        for name, value in (item for section in ours for item in section.items()):
            self.defaults.setdefault(name, value)
        self.defaults.update(self.algorithm.defaults)

    def load_data(self, split: str, batch_size: int, mode: str = "train") -> Any:
        """Read a split; refuse images that are not there, or not of the size that the encoder expects."""
        place, expected = f"{self.opts.filename} [data] {split}_set", self.opts.model.get("aux_dim")
        try:
            dataset = super().load_data(split, batch_size, mode)  # type: ignore[misc]
        except RuntimeError as error:
            raise UserError(f"refused by pysimt: {error}", place) from error
        if IMAGE in self.topology.srcs:  # type: ignore[attr-defined]
            first = dataset.collate_fn([dataset[0]])
            if IMAGE not in first:
                raise UserError("has no image", place, "add `'image': FILE`, as the direction has one")
            if (size := first[IMAGE].size(-1)) != expected:
                raise UserError(f"its images have {size} features, aux_dim says {expected}", place)
        return dataset

    def load_batches(self, split: str, batch_size: int) -> list[Any]:
        """Return the batches of a split, with both sides."""
        return list(make_dataloader(self.load_data(split, batch_size, mode="eval")))

    def register_tensorboard(self, handle: Log) -> None:
        """Build the algorithm; last call of the loop's constructor, and never made for translation."""
        super().register_tensorboard(handle)  # type: ignore[misc]
        self.session = Session(self.algorithm, actor_of(self), self.opts, handle)

    def forward(self, batch: Any, uctr: int = 0, ectr: int = 0) -> Any:
        """Return the algorithm's loss in training, else the negative log-likelihood."""
        if not self.training or self.session is None:
            return super().forward(batch)  # type: ignore[misc]
        sides = {str(side): ids for side, ids in batch.items()}
        return self.session.training_loss(Batch(sides), uctr)


class ImageInEncoderActor(PysimtActor):
    """The actor of the model whose encoder attends to the image; its decoder sees only the outcome."""

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source and the image, as the model does with its own networks."""
        networks, model_type = SimpleNamespace(**self.networks), EncoderSelfAttentionSimultaneousNMT
        model_type.cache_enc_states(networks, batch)
        return model_type.get_enc_state_dict(networks)  # type: ignore[no-any-return]


def actor_of(model: Any) -> PysimtActor:
    """Return a model in a shell as an actor."""
    kinds = {SimultaneousTFNMT: TransformerActor, EncoderSelfAttentionSimultaneousNMT: ImageInEncoderActor}
    return next((kind for model_type, kind in kinds.items() if isinstance(model, model_type)), PysimtActor).of(model)


# Registration


def register() -> None:
    """Add our metrics, search and loader to pysimt; names that it already has are kept."""
    for registry in (MODELS, METRICS):
        registry.read_entry_points()
    for name, scored_by in METRICS.items.items():
        if name not in metrics.metric_info:
            setattr(metrics, f"{name}Scorer", make_scorer(name, scored_by))
            metrics.metric_info[name] = "max" if scored_by.higher_better else "min"
            metrics.beam_metrics.append(name)
    repair()
    monitor.load_pt_file = lambda path, device="cpu": as_pysimt_loads(load_checkpoint(path))
    mainloop.Monitor = AveragingMonitor
    mainloop.get_translator = lambda kind: our_search if kind == "bs" else translators.get_translator(kind)


def shell(name: str, algorithm: type[Algorithm], network: str) -> Any:
    """Return pysimt's network of that name as a model that an algorithm trains."""
    return type(name, (PysimtShell, getattr(models, network)), {"algorithm": algorithm})


def repair() -> None:
    """Fix bugs of pysimt 1.0.0 that break configurations which both hosts should run."""
    if not hasattr(ApproximateBucketBatchSampler, "_rng"):  # `sampler_type: approximate` fails without it
        ApproximateBucketBatchSampler._rng = np.random.RandomState(12345)
    # `num_workers: 1` hangs on batches whose keys cannot be pickled.
    DataSource.__reduce__ = lambda self: (DataSource, (self.data, self._type, self.src, self.trg))


def find_model(options: EngineOptions, where: object) -> Any:
    """Return the model class that a configuration names: pysimt's, or its network in a shell of ours."""
    name = str(options.train.get("model_type"))
    if choice.HUGGING_FACE in (name, choice.network_of(options.train, options.model)):
        hint = f"set {choice.VARIABLE}=embedded"
        raise UserError("models of transformers train in the engine, not inside pysimt", f"{where} [model]", hint)
    algorithm = MODELS.items.get(name)
    if algorithm and issubclass(algorithm, Algorithm):
        check_inputs(options, name, where)
        return shell(name, algorithm, choice.network_of(options.train, options.model))
    if not isinstance(getattr(models, name, None), type):
        place = f"{where} [train] model_type"
        raise UserError(f"unknown model {name!r}", place, did_you_mean(name, [*MODELS.items, *vars(models)]))
    return getattr(models, name)


def check_inputs(options: EngineOptions, name: str, where: object) -> None:
    """Refuse to train what no actor of ours can be."""
    place, found = f"{where} [model] direction", SOURCES.match(str(options.model.get("direction")))
    if not found:
        hint = "train this one by maximum likelihood, with the model_type that pysimt has for it"
        raise UserError(f"{name} trains models of src:Text, alone or with image:Numpy or ObjectDetections", place, hint)
    if found["image"] and "model_dim" in options.model:
        raise UserError("pysimt's Transformers have no image encoder", place, "use a recurrent model, or words alone")
    if "n_heads" in options.model and not found["image"]:
        raise UserError("n_heads is for an encoder that attends to an image", place, "add `image:Numpy`")


def make_scorer(name: str, scored_by: RegisteredMetric) -> Callable[[], Any]:
    """Return one of our metrics as pysimt's evaluator wants it: a class whose objects can `compute`."""

    def compute(refs: Any, hyps: list[str], language: str | None = None) -> Any:
        score = scored_by.compute(hyps, read_reference_files(*refs))
        return metrics.Metric(name, score, higher_better=scored_by.higher_better)

    return lambda: SimpleNamespace(compute=compute)


# Search


class EngineSearch:
    """The engine's search with pysimt's interface; its beam search does not extend hypotheses past `<eos>`."""

    def __init__(
        self, model: Any, data_loader: Any, out_prefix: str, batch_size: int, filter_chain: Any = None, **more: Any
    ) -> None:
        self.model, self.data_loader, self.out_prefix = model, data_loader, out_prefix
        self.filtered = bool(filter_chain)
        self.search = more.get("search") or SearchOptions("bs", max_len=more["max_len"])
        self.beam_size = self.search.beam_size  # set by pysimt's loop

    def run(self, **_: Any) -> tuple[list[str]]:
        """Translate the loader's batches, write them if there is an output prefix, and return them in corpus order."""
        search = dataclasses.replace(self.search, beam_size=self.beam_size)
        device = next(self.model.parameters()).device
        translator = Translator(SearchablePysimtModel(self.model), search, device, self.filtered)
        in_order = [found for _, batch_found in translator.hypotheses(self.batches()) for found in batch_found]
        found = sort_predictions(self.data_loader, in_order)
        if self.out_prefix:
            prefix, _dot, split = self.out_prefix.rpartition(".")
            for path in translator.write(found, split, prefix):
                log.info(f"Wrote {path}")
        return ([translator.text(hypotheses[0]) for hypotheses in found],)

    run_all = run

    def batches(self) -> Iterator[Any]:
        """Yield the loader's batches, with the sentences' positions in the corpus."""
        n_seen = 0
        for batch in progress_bar(self.data_loader, unit="batch"):
            order = getattr(self.data_loader.batch_sampler, "orig_idxs", range(len(self.data_loader.dataset)))
            batch.indices = [int(index) for index in order[n_seen : n_seen + batch.size]]
            n_seen += batch.size
            yield batch


def our_search(model: Any, *arguments: Any, **options: Any) -> Any:
    """Return our beam search, or pysimt's for transformers: their decoder reads whole hypotheses at every step."""
    search = translators.BeamSearch if isinstance(model, SimultaneousTFNMT) else EngineSearch
    return search(model, *arguments, **options)


# Training


class HostOptions(Options):  # type: ignore[misc]
    """pysimt's options, which write themselves into checkpoints so that pysimt loads them without this package."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the network's type as `model_type`."""
        return for_pysimt(super().to_dict())


def pysimt_options(ours: EngineOptions) -> Any:
    """Convert merged, overridden and interpolated engine options to pysimt's."""
    sections = {name: dict(ours[name]) for name in ours.sections}
    options = HostOptions.from_dict({"filename": ours.filename, "sections": list(sections), **sections})
    given = {key: value for key, value in options.train.items() if value != ()}  # pysimt's empty lists are strings
    options.train = {**TRAIN_DEFAULTS, **given}
    return options


def check_options(ours: EngineOptions, model_type: type) -> tuple[RecipeOptions, list[str]]:
    """Refuse wrong or unsupported options; return the recipe and its warnings (pysimt gives all others)."""
    where = ours.filename
    for key in ours.train:
        if key not in TRAIN_DEFAULTS:
            raise UserError(f"unknown key {key!r}", f"{where} [train]", did_you_mean(key, TRAIN_DEFAULTS))
    if issubclass(model_type, PysimtShell):
        SimultaneousTFNMT.set_defaults(transformer := SimpleNamespace())
        theirs = {"n_heads", "att_dropout", *transformer.defaults} - names(ModelOptions)
        given = {key: ours.model.pop(key) for key in sorted(theirs) if key in ours.model}
        given["direction"] = ours.model["direction"]
        ours.model["direction"] = SOURCES.sub("src:Text ->", given["direction"])
        check_config(ours, TRAINED)
        ours.model.update(given)
    recipe, warnings = read_section(RecipeOptions, ours.model, f"{where} [model]"), list[str]()
    if recipe != RecipeOptions():  # else pysimt itself checks `[train]` of its own models
        warnings = check_recipe(recipe, read_section(TrainOptions, ours.train, f"{where} [train]"), where)
    check_supported_by_pysimt(recipe, where)
    for metric in str(ours.train["eval_metrics"]).upper().split(","):
        if metric.strip() not in metrics.metric_info:
            hint = did_you_mean(metric.strip(), metrics.metric_info)
            raise UserError(f"unknown metric {metric.strip()!r}", f"{where} [train] eval_metrics", hint)
    return recipe, warnings


def build_model(model_type: Any, options: Any) -> Any:
    """Build the model without the keys of recipes and user rewards, unknown to pysimt; checkpoints keep them."""
    unknown = names(RecipeOptions)
    if issubclass(model_type, PysimtShell):
        algorithm = model_type.algorithm
        used = keys_of(used_option_classes(algorithm, options.model, f"{options.filename} [model]"))
        unknown |= used - keys_of((ModelOptions, *algorithm.option_classes))
    given = {name: options.model.pop(name) for name in sorted(unknown) if name in options.model}
    model = model_type(opts=options)
    model.opts.model.update(given)
    return model


def refusal(error: AssertionError, where: object) -> Exception:
    """Return an assertion of pysimt's, which it makes about what users write, as a `UserError`; others as they are."""
    return UserError(f"refused by pysimt: {error}", where) if str(error) else error


def train(args: argparse.Namespace, manager: Any) -> int:
    """Train in pysimt's loop. The engine reads the configuration as well, to check it and to find runs to resume."""
    if args.check:
        raise UserError("only the embedded engine supports this", "--check", "set PYSIMT_SAC_HOST=embedded")
    ours = read_config(args.config, args.overrides)
    load_plugin_modules(plugin_modules(ours))
    register()
    model_type = find_model(ours, args.config)
    recipe, warnings = check_options(ours, model_type)
    if ours.train["pretrained_file"]:  # pysimt itself accepts only files
        metric = str(ours.train["eval_metrics"]).split(",")[0].strip()
        pretrained = find_checkpoint(ours.train["pretrained_file"], metric)
    logger.setup()
    with open_run(ours, args.suffix, args.restart, host="pysimt") as run, stopped_by_signals():
        if reason := resume.finished(run.state, ours.train):
            more = "raise max_epochs, max_iterations or patience to continue; --restart starts over"
            log.info(f"{run.exp_id} in {run.folder} is finished: {reason} ({more})")
            return 0
        options = pysimt_options(ours)
        seed = run.state["progress"]["seed"] if run.state else options.train["seed"] or draw_seed()
        options.train.update(subfolder=run.subfolder, exp_id=run.exp_id, seed=fix_seed(seed))
        if ours.train["pretrained_file"]:
            options.train["pretrained_file"] = pretrained
        log.addHandler(journal := HostJournal(run, options.train["tensorboard_dir"]))
        versions = f"torch {torch.__version__}, Python {platform.python_version()}"
        log.info(f"Host: {choice.describe()}, {versions}, {manager}")
        if run.remark:
            log.info(run.remark)
        epochs = len(run.state["progress"]["train_loss"]) if run.state else 0
        log.info(f"Resuming {run.exp_id} after {epochs} complete epochs" if run.state else options)
        for warning in warnings:
            log.info(f"Warning: {warning}")
        try:
            Loop(build_model(model_type, options), options.train, manager, recipe, ours.to_dict(), journal)()
        except Interrupted as interruption:
            log.info(f"Stopped by {interruption}; the same command resumes from the end of the last complete epoch")
            return interruption.status
        except AssertionError as error:
            raise refusal(error, ours.filename) from error
        finally:
            journal.close()
    return 0


# Translating


def load_translator(args: argparse.Namespace, search: SearchOptions) -> Any:
    """Return pysimt's translator with a checkpoint's model, ready to be called if there are splits to translate."""
    logger.setup()
    log.info(f"Host: {choice.describe()}")
    fix_seed(search.seed)
    checkpoint = load_checkpoint(args.model)
    if args.data:  # vocabularies, too: pysimt always reads their files
        moved = as_overrides(relocated(checkpoint.options, args.data))
        options = EngineOptions.from_dict(checkpoint.options, moved).to_dict()
        checkpoint = dataclasses.replace(checkpoint, options=options)
    ours = EngineOptions.from_dict(checkpoint.options, args.override)
    if any(word.startswith("model.plugin_modules:") for word in args.override):
        load_plugin_modules(plugin_modules(ours))
    register()
    name = str(ours.train.get("model_type"))
    setattr(models, name, find_model(ours, args.model))
    for path in ours.vocabulary.values():
        require_file(Path(path), "vocabulary")
    splits = args.splits.split(",") if args.splits else []
    for split in splits if not args.source else ():
        if f"{split}_set" not in ours.data:
            known = [name.removesuffix("_set") for name in ours.data if name.endswith("_set")]
            raise UserError(f"unknown split {split!r}", f"{args.model} [data]", did_you_mean(split, known))
    if splits:
        make_folder(Path(args.output).parent)  # pysimt would fail without it
    stranslator.load_pt_file = lambda path, device="cpu": as_pysimt_loads(checkpoint)
    stranslator.get_translator = translators.get_translator
    if args.func == "sample" or (args.func == "bs" and checkpoint.is_ours):
        stranslator.get_translator = lambda kind: functools.partial(our_search, search=search)
    func = {"sample": "bs", "bs-pysimt": "bs"}.get(args.func, args.func)  # pysimt's names
    same = ["model", "source", "output", "beam_size", "lp_alpha", "suppress_unk", "n_best", "max_len", "batch_size"]
    same += ["disable_filters", "override", "delta", "n_init_tokens", "criteria"]
    return Translation(func=func, splits=",".join(splits), **{name: getattr(args, name) for name in same})


class Translation(STranslator):  # type: ignore[misc]
    """pysimt's translator, which says in one line what its search refuses."""

    def __call__(self) -> None:
        """Translate the splits."""
        try:
            super().__call__()
        except AssertionError as error:
            raise refusal(error, f"-f {self.func}") from error
