"""Experiment configurations: pysimt's `.conf` format in, an `Options` object out.

Reading (`read_config`) only parses. `check_config` validates against the declared options and the registered models.
"""

import dataclasses
import operator
import re
from collections.abc import Callable, Container, Iterable
from configparser import Error as ConfigParserError
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.options import check_clashes, check_declaration, defaults, names, read_section
from pysimt_sac.core.registry import MODELS, load_plugin_modules
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions
from pysimt_sac.hosts.choice import HUGGING_FACE, NETWORKS, network_of
from pysimt_sac.hosts.engine.config.merging import MergedConfig, entry_text, set_nested, split_override, syntax_error
from pysimt_sac.hosts.engine.config.recipe import check_recipe, keys_without_effect
from pysimt_sac.hosts.engine.config.values import parse_value, plain, write_value

REQUIRED_SECTIONS = ("train", "model", "data", "vocabulary")
ONLY_IN_PYSIMT = re.compile(r"(EncoderSelfAttentionSimultaneous|SimultaneousTF)(WaitK)?NMT")
DIRECTION = re.compile(r"\s*src\s*(:\s*Text\s*)?->\s*(?P<target>[^\s:,]+)\s*(:\s*Text\s*)?")


class Options:
    """A configuration: one attribute per section, each a plain dictionary, as pysimt's models expect."""

    def __init__(self, filename: str, sections: dict[str, dict[str, Any]], merged: MergedConfig | None = None) -> None:
        self.filename = filename
        self.merged = merged  # its text, if it was read from a file
        self.sections = list(sections)
        self.train: dict[str, Any] = {}
        self.model: dict[str, Any] = {}
        self.data: dict[str, Any] = {}
        self.vocabulary: dict[str, Any] = {}
        for name, values in sections.items():
            if not name.isidentifier() or (hasattr(self, name) and name not in REQUIRED_SECTIONS):
                raise UserError(f"a section cannot be called [{name}]", filename, "choose another name")
            setattr(self, name, values)

    def __getitem__(self, section: str) -> dict[str, Any]:
        return getattr(self, section)  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings, numbers, lists and dictionaries, for checkpoints and pysimt."""
        stored: dict[str, Any] = {"filename": str(self.filename), "sections": list(self.sections)}
        stored.update({section: plain(self[section]) for section in self.sections})
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any], overrides: Iterable[str] = ()) -> "Options":
        """Return the options of a checkpoint, ours or pysimt's (whose paths become strings), with overrides."""
        sections = {name: plain(stored[name]) for name in stored["sections"] if name in stored}
        options = cls(str(stored.get("filename", "")), sections)
        options.override(overrides)
        return options

    def override(self, overrides: Iterable[str]) -> None:
        """Apply `section.key:value` words to final values; `data.val_set.src:FILE` sets a dictionary's entry."""
        for word in overrides:
            section, keys, text = split_override(word, self.sections)
            if section == "vars":
                hint = "override the keys that refer to it, e.g. data.test_set.src:FILE"
                raise UserError("references to [vars] were already resolved in training", f"override {word!r}", hint)
            set_nested(self[section], keys, parse_value(text), section, f"override {word!r}")


def read_config(path: str | Path, overrides: Iterable[str] = ()) -> Options:
    """Parse a configuration file with its includes; overrides apply before `${...}` is interpolated."""
    merged = MergedConfig(Path(path), overrides)
    try:
        parser = merged.interpolating_parser()
        sections = {name: {key: parse_value(text) for key, text in parser.items(name)} for name in parser.sections()}
    except ConfigParserError as error:
        raise syntax_error(error, merged.path) from error
    if sections.get("model", {}).get("hf_model"):  # it brings its tokenizer along
        sections = {"vocabulary": {}, **sections}
        sections["model"].setdefault("direction", "src:Text -> trg:Text")
    for missing in (name for name in REQUIRED_SECTIONS if not merged.keys(name) and sections.get(name) != {}):
        similar = get_close_matches(missing, set(sections) - set(REQUIRED_SECTIONS), n=1)
        hint = f"is [{similar[0]}] meant?" if similar else "see experiments/mle.conf for a whole example"
        raise UserError(f"has no section [{missing}]", path, hint)
    for name in sorted(set(sections) - {*REQUIRED_SECTIONS, "vars"}):
        if similar := get_close_matches(name, REQUIRED_SECTIONS, n=1, cutoff=0.75):
            raise UserError(f"has a section [{name}]", path, f"is [{similar[0]}] meant?")
    return Options(str(path), sections, merged)


def config_text(options: Options) -> str:
    """Return a configuration as one plain file with comments, not interpolated; for a checkpoint, final values."""
    return options.merged.text(with_comments=True) if options.merged else resolved_text(options)


def resolved_text(options: Options, given_only: bool = False) -> str:
    """Return the final values, fully interpolated. given_only: omit keys that no file or override sets."""
    blocks = []
    for name in options.sections:
        given = options.merged.keys(name) if given_only and options.merged else options[name]
        values = {key: value for key, value in options[name].items() if key in given}
        blocks.append("\n".join([f"[{name}]", *(entry_text(key, write_value(value)) for key, value in values.items())]))
    return "\n\n".join(blocks) + "\n"


def check_config(options: Options, networks: Container[str] = NETWORKS) -> tuple[TrainOptions, list[str]]:
    """Validate what can be checked before reading data; return the typed `[train]` and any warnings.

    networks: what the host's models can be, by pysimt's names.
    """
    where = options.filename
    for key in options.train:
        if key not in names(TrainOptions):
            hint = did_you_mean(key, names(TrainOptions))
            raise UserError(f"unknown key {key!r}", place_of(options, "train", key), hint)
    train = read_section(TrainOptions, options.train, f"{where} [train]")
    if not train.eval_metrics:
        raise UserError("no metric is named", f"{where} [train] eval_metrics", "e.g. eval_metrics: bleu,loss")
    load_plugin_modules(plugin_modules(options))
    model = find_model(train.model_type, f"{where} [train] model_type")
    network = network_of(options.train, options.model)
    if network == HUGGING_FACE and network not in networks:
        hint = "set PYSIMT_SAC_HOST=embedded"
        raise UserError("is trained by the embedded engine only, not in pysimt", f"{where} [model] hf_model", hint)
    if network not in networks:
        find_model(network, f"{where} [model]")
    classes = used_option_classes(model, options.model, f"{where} [model]")
    if network == HUGGING_FACE:
        classes = tuple(dict.fromkeys((*classes, *option_classes(find_model(network, where)))))
    warned = check_model_keys(options, classes)
    read: dict[type, Any] = {cls: read_section(cls, options.model, f"{where} [model]") for cls in classes}
    warned += check_recipe(read[RecipeOptions], train, where) + keys_without_effect(train, read[ModelOptions])
    check_data(options)
    return train, warned


def plugin_modules(options: Options) -> tuple[str, ...]:
    """Return the user's own Python files; a single one need not be in a list."""
    modules = options.model.get("plugin_modules") or ()
    return read_section(ModelOptions, {"plugin_modules": modules}, f"{options.filename} [model]").plugin_modules


def check_trust(options: Options) -> None:
    """Refuse to run the Python files that a configuration names, for commands that only show something."""
    for key in ("plugin_modules", "reward_modules"):
        if files := options.model.get(key):
            named = files if isinstance(files, list | tuple) else [files]
            what = f"would run {', '.join(map(str, named))}"
            raise UserError(what, f"{options.filename} [model] {key}", "read that code first; --trust runs it")
    worker = str(options.model.get("remote_worker") or "")
    if worker and not worker.startswith(("http://", "https://")):
        place = f"{options.filename} [model] remote_worker"
        raise UserError(f"would run {worker}", place, "read that code first; --trust runs it")


def find_model(name: str, where: str) -> Any:
    """Return the model class of that name."""
    if ONLY_IN_PYSIMT.fullmatch(name):
        hint = "install pysimt alongside this package to use it, or choose SimultaneousNMT"
        raise UserError(f"{name} is offered only by pysimt itself", where, hint)
    if not name:
        raise UserError("no model is named", where, "e.g. model_type: SimultaneousNMT")
    return MODELS.get(name, where)


def option_classes(model: Any) -> tuple[type, ...]:
    """Return the option classes of `[model]` for a model: network, training recipe, and its own."""
    return tuple(dict.fromkeys((ModelOptions, RecipeOptions, *model.option_classes)))


def used_option_classes(model: Any, values: dict[str, Any], where: str) -> tuple[type, ...]:
    """Return `option_classes` and those of the rewards that `[model]` names; runs the user's files that define them."""
    from pysimt_sac.rewards.base import RewardOptions, chosen_reward_options

    classes = list(option_classes(model))
    for cls in classes:
        check_declaration(cls, f"option_classes of {model.__name__}")
    if RewardOptions in classes:
        classes += chosen_reward_options({**getattr(model, "defaults", {}), **values}, where)
    check_clashes(classes, where)
    return tuple(dict.fromkeys(classes))


def keys_of(classes: Iterable[type]) -> set[str]:
    """Return the keys that some option classes declare."""
    return set().union(*map(names, classes))


def model_keys(model: Any) -> set[str]:
    """Return the keys of `[model]` that a model uses, whatever parts it names."""
    return keys_of(option_classes(model))


def check_model_keys(options: Options, classes: Iterable[type]) -> list[str]:
    """Refuse keys that no model knows; return warnings about keys of other models.

    Included keys of other models are dropped instead: so a control can include the experiment that it controls.
    """
    own = keys_of(classes)
    every = own.union(*map(model_keys, MODELS.items.values()))
    if not every.issuperset(options.model):
        from pysimt_sac.rewards.base import all_reward_options

        every |= keys_of(all_reward_options(options.model, f"{options.filename} [model]"))
    for key in options.model:
        if key not in every:
            raise UserError(f"unknown key {key!r}", place_of(options, "model", key), did_you_mean(key, every))
    unused = [key for key in options.model if key not in own]
    included = options.merged.drop_included("model", unused) if options.merged else []
    for key in included:
        del options.model[key]
    return [f"[model] {key} is not used by {options.train['model_type']}" for key in unused if key not in included]


def place_of(options: Options, section: str, key: str) -> str:
    """Return the location of a key for messages; it may be an included file."""
    file = options.merged.files.get((section, key)) if options.merged else None
    return f"{file or options.filename} [{section}]"


def check_data(options: Options) -> None:
    """Check that splits are dictionaries of files and that both sides of the direction have vocabularies."""
    for key, value in options.data.items():
        files = list(value.values()) if isinstance(value, dict) else []
        if key.endswith("_set") and not (files and all(file and isinstance(file, str | Path) for file in files)):
            example = "{'src': './data/train.en', 'trg': './data/train.de'}"
            raise UserError(
                f"{value!r} is not a dictionary of files", f"{options.filename} [data] {key}", f"e.g. {example}"
            )
    sides = parse_direction(options.model.get("direction"), options.filename)
    for side in () if options.model.get("hf_model") else sides:
        file = options.vocabulary.get(side)
        if not (file and isinstance(file, str | Path)):
            raise UserError(f"no vocabulary for {side!r}", f"{options.filename} [vocabulary]", f"add {side}: FILE")


def parse_direction(direction: Any, where: str) -> tuple[str, str]:
    """Return the names of the source, always `src`, and the target in `src:Text -> trg:Text`."""
    match = DIRECTION.fullmatch(direction) if isinstance(direction, str) else None
    if match is None or match["target"] == "src":
        what = f"{direction!r} is not a direction from one text to another"
        hint = "write `src:Text -> NAME:Text`; images and several inputs are offered only by pysimt itself"
        raise UserError(what, f"{where} [model] direction", hint)
    return "src", match["target"]


def result_changing_differences(
    old: dict[str, Any], new: dict[str, Any], same: Callable[[Any, Any], bool] = operator.eq
) -> list[str]:
    """Return the differing keys that change what training computes. same: compares two values."""
    free = {
        (section, field.name)
        for section, cls in (("train", TrainOptions), ("model", RecipeOptions))
        for field in dataclasses.fields(cls)
        if field.metadata["resume"]
    }
    differing = []
    for section in ("train", "model", "data", "vocabulary"):
        declared = defaults(RecipeOptions) if section == "model" else {}  # an explicit default is no difference
        before, after = {**declared, **old.get(section, {})}, {**declared, **new.get(section, {})}
        for key in sorted(set(before) | set(after)):
            irrelevant = section == "data" and key not in ("train_set", "val_set")
            if not irrelevant and (section, key) not in free and not same(before.get(key), after.get(key)):
                was, is_now = before.get(key), after.get(key)
                what = f"{was!r} -> {is_now!r}" if was != is_now else f"changed content of {is_now!r}"
                differing.append(f"{section}.{key}: {what}")
    return differing
