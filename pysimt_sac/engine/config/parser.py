"""Experiment configurations: pysimt's `.conf` format in, an `Options` object out.

Reading (`read_config`) only parses. `check_config` validates against the declared options and the registered models.
"""

import dataclasses
import operator
from collections.abc import Callable, Iterable
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Any

from pysimt_sac.engine.config.merging import (
    MergedConfig,
    entry_text,
    interpolating_parser,
    read_merged,
    split_override,
    syntax_error,
)
from pysimt_sac.engine.config.options import ModelOptions, RecipeOptions, TrainOptions, defaults, names, read_section
from pysimt_sac.engine.config.parts import check_declaration, refuse_clashes, sections_with_parts
from pysimt_sac.engine.config.recipe import check_recipe, keys_without_effect
from pysimt_sac.engine.config.registry import MODELS, load_plugin_modules
from pysimt_sac.engine.config.values import parse_value, plain, write_value
from pysimt_sac.errors import UserError, did_you_mean

REQUIRED_SECTIONS = ("train", "model", "data", "vocabulary")
ONLY_IN_PYSIMT = {
    "SimultaneousWaitKNMT": "wait-k translation",
    "EncoderSelfAttentionSimultaneousNMT": "multimodal self-attention",
    "EncoderSelfAttentionSimultaneousWaitKNMT": "multimodal wait-k translation",
    "SimultaneousTFNMT": "the transformer",
    "SimultaneousTFWaitKNMT": "the wait-k transformer",
}


class Options:
    """A configuration: one attribute per section, each a plain dictionary, as pysimt's models expect it."""

    def __init__(self, filename: str, sections: dict[str, dict[str, Any]], merged: MergedConfig | None = None) -> None:
        self.filename = filename
        self.merged = merged  # how it is written, if it comes from a file
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
        """Plain strings, numbers, lists and dictionaries: what a checkpoint stores and pysimt can read."""
        stored: dict[str, Any] = {"filename": str(self.filename), "sections": list(self.sections)}
        stored.update({section: plain(self[section]) for section in self.sections})
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any], overrides: Iterable[str] = ()) -> "Options":
        """The options of a checkpoint, ours or pysimt's (whose paths become strings), with overrides on top."""
        sections = {name: plain(stored[name]) for name in stored["sections"] if name in stored}
        options = cls(str(stored.get("filename", "")), sections)
        options.override(overrides)
        return options

    def override(self, overrides: Iterable[str]) -> None:
        """Apply `section.key:value` words to final values; `data.val_set.src:FILE` reaches into a dictionary."""
        for word in overrides:
            section, (*outer, last), text = split_override(word, self.sections)
            if section == "vars":
                todo = "override the keys that were made of it, e.g. data.test_set.src:FILE"
                raise UserError("what refers to [vars] has been interpolated in training", f"override {word!r}", todo)
            place = self[section]
            for name in outer:
                if not isinstance(place.get(name), dict):
                    raise UserError(f"[{section}] has no dictionary {name!r}", f"override {word!r}")
                place = place[name]
            place[last] = parse_value(text)


def read_config(path: str | Path, overrides: Iterable[str] = ()) -> Options:
    """Parse a configuration file with all that it includes; overrides act before `${...}` is interpolated."""
    merged = read_merged(Path(path), overrides)
    parser = interpolating_parser(merged.text(), merged.path)
    try:
        sections = {name: {key: parse_value(text) for key, text in parser.items(name)} for name in parser.sections()}
    except ConfigParserError as error:
        raise syntax_error(error, merged.path) from error
    for missing in (name for name in REQUIRED_SECTIONS if name not in sections or not sections[name]):
        raise UserError(f"has no section [{missing}]", path, "see experiments/mle.conf for a whole example")
    return Options(str(path), sections, merged)


def config_text(options: Options) -> str:
    """A configuration as one plain file, with its comments, nothing interpolated; of a checkpoint, its final values."""
    return options.merged.text() if options.merged else resolved_text(options)


def resolved_text(options: Options, given_only: bool = False) -> str:
    """Final values, with nothing left to interpolate. given_only: leave out keys that no file or override names."""
    blocks = []
    for name in options.sections:
        given = options.merged.sections.get(name, {}) if given_only and options.merged else options[name]
        values = {key: value for key, value in options[name].items() if key in given}
        blocks.append("\n".join([f"[{name}]", *(entry_text(key, write_value(value)) for key, value in values.items())]))
    return "\n\n".join(blocks) + "\n"


def check_config(options: Options) -> tuple[TrainOptions, list[str]]:
    """Validate all that can be known before reading data; return the typed `[train]` and any warnings."""
    where = options.filename
    for key in options.train:
        if key not in names(TrainOptions):
            todo = did_you_mean(key, names(TrainOptions))
            raise UserError(f"unknown key {key!r}", place_of(options, "train", key), todo)
    train = read_section(TrainOptions, options.train, f"{where} [train]")
    load_plugin_modules(plugin_modules(options))
    model = find_model(train.model_type, f"{where} [train] model_type")
    classes = used_option_classes(model, options.model, f"{where} [model]")
    warned = check_model_keys(options, classes)
    for cls in classes:
        read_section(cls, options.model, f"{where} [model]")
    recipe = read_section(RecipeOptions, options.model, f"{where} [model]")
    warned += check_recipe(recipe, train, where)
    warned += keys_without_effect(train, read_section(ModelOptions, options.model, f"{where} [model]"))
    check_data(options)
    return train, warned


def plugin_modules(options: Options) -> tuple[str, ...]:
    """The user's own Python files; one alone need not stand in a list."""
    modules = options.model.get("plugin_modules") or ()
    return read_section(ModelOptions, {"plugin_modules": modules}, f"{options.filename} [model]").plugin_modules


def find_model(name: str, where: str) -> Any:
    """The model class of that name."""
    if name in ONLY_IN_PYSIMT:
        todo = "install pysimt beside this package to use it, or choose SimultaneousNMT"
        raise UserError(f"{name} ({ONLY_IN_PYSIMT[name]}) is offered only by pysimt itself", where, todo)
    if not name:
        raise UserError("no model is named", where, "e.g. model_type: SimultaneousNMT")
    return MODELS.get(name, where)


def option_classes(model: Any) -> tuple[type, ...]:
    """All that `[model]` may hold for a model: options of the network, of the training recipe, and its own."""
    return tuple(dict.fromkeys((ModelOptions, RecipeOptions, *model.option_classes)))


def used_option_classes(model: Any, values: dict[str, Any], where: str) -> tuple[type, ...]:
    """Those, and what the parts declare that `[model]` names, such as rewards of one's own; their files are run."""
    classes = list(option_classes(model))
    for cls in classes:
        check_declaration(cls, f"option_classes of {model.__name__}")
    values = {**getattr(model, "defaults", {}), **values}
    for section in sections_with_parts(classes):
        classes += section.options_of_named(values, where)
    refuse_clashes(classes, where)
    return tuple(dict.fromkeys(classes))


def keys_of(classes: Iterable[type]) -> set[str]:
    """The keys that some classes of options declare."""
    return set().union(*map(names, classes))


def model_keys(model: Any) -> set[str]:
    """The keys of `[model]` that a model uses, whatever it names there."""
    return keys_of(option_classes(model))


def check_model_keys(options: Options, classes: Iterable[type]) -> list[str]:
    """A key that no model knows is an error; one that only other models know, a warning, unless it is included."""
    own = keys_of(classes)
    every = own.union(*map(model_keys, MODELS.items.values()))
    if not every.issuperset(options.model):
        every |= keys_of_all_parts(options)
    for key in options.model:
        if key not in every:
            raise UserError(f"unknown key {key!r}", place_of(options, "model", key), did_you_mean(key, every))
    return [f"[model] {key} is not used by {options.train['model_type']}" for key in drop_unused(options, own)]


def keys_of_all_parts(options: Options) -> set[str]:
    """The keys of all parts that any model could name, such as rewards in files that this one does not use."""
    classes = dict.fromkeys(cls for model in MODELS.items.values() for cls in option_classes(model))
    where = f"{options.filename} [model]"
    found = (section.options_of_registered(options.model, where) for section in sections_with_parts(classes))
    return set().union(*map(keys_of, found))


def place_of(options: Options, section: str, key: str) -> str:
    """Where a key stands, for messages: perhaps in an included file."""
    return f"{options.merged.file_of(section, key) if options.merged else options.filename} [{section}]"


def drop_unused(options: Options, used: set[str]) -> list[str]:
    """Forget included keys of `[model]` that the model does not use; return the other keys that it does not use.

    So a control can include the experiment that it controls, and name another model.
    """
    unused, merged = [key for key in options.model if key not in used], options.merged
    included = [key for key in unused if merged and merged.is_inherited("model", key)]
    for key in included:
        del options.model[key]
    if merged:
        merged.drop("model", included)
    return [key for key in unused if key not in included]


def check_data(options: Options) -> None:
    """Splits are dictionaries of files; the direction's two sides have vocabularies."""
    for key, value in options.data.items():
        files = list(value.values()) if isinstance(value, dict) else []
        if key.endswith("_set") and not (files and all(file and isinstance(file, str | Path) for file in files)):
            example = "{'src': './data/train.en', 'trg': './data/train.de'}"
            raise UserError(
                f"{value!r} is not a dictionary of files", f"{options.filename} [data] {key}", f"e.g. {example}"
            )
    for side in parse_direction(options.model.get("direction"), options.filename):
        file = options.vocabulary.get(side)
        if not (file and isinstance(file, str | Path)):
            raise UserError(f"no vocabulary for {side!r}", f"{options.filename} [vocabulary]", f"add {side}: FILE")


def parse_direction(direction: Any, where: str) -> tuple[str, str]:
    """The names of the source and the target in `src:Text -> trg:Text`."""
    place = f"{where} [model] direction"
    if not isinstance(direction, str) or direction.count("->") != 1:
        raise UserError(f"{direction!r} is not a direction", place, "e.g. direction: src:Text -> trg:Text")
    sides = []
    for part in direction.split("->"):
        name, _, kind = (word.strip() for word in part.partition(":"))
        if "," in part or kind not in ("", "Text"):
            what = f"{part.strip()!r}: images and several inputs are offered only by pysimt itself"
            raise UserError(what, place, "the embedded engine translates one text: src:Text -> trg:Text")
        if not name:
            raise UserError(f"{direction!r} lacks a side", place, "e.g. direction: src:Text -> trg:Text")
        sides.append(name)
    if sides[0] != "src":
        raise UserError(f"the source must be named 'src', not {sides[0]!r}", place, "pysimt names its encoder after it")
    if sides[1] == sides[0]:
        raise UserError("source and target have the same name", place, "e.g. direction: src:Text -> trg:Text")
    return sides[0], sides[1]


def result_changing_differences(
    old: dict[str, Any], new: dict[str, Any], same: Callable[[Any, Any], bool] = operator.eq
) -> list[str]:
    """Keys in which two configurations differ and that change what training computes. same: compares two values."""
    free = {field.name for field in dataclasses.fields(TrainOptions) if field.metadata["resume"]}
    differing = []
    for section in ("train", "model", "data", "vocabulary"):
        declared = defaults(RecipeOptions) if section == "model" else {}  # written out or not, it is the same
        before, after = {**declared, **old.get(section, {})}, {**declared, **new.get(section, {})}
        for key in sorted(set(before) | set(after)):
            irrelevant = (section == "train" and key in free) or (
                section == "data" and key not in ("train_set", "val_set")
            )
            if not irrelevant and not same(before.get(key), after.get(key)):
                was, is_now = before.get(key), after.get(key)
                what = f"{was!r} -> {is_now!r}" if was != is_now else f"other content of {is_now!r}"
                differing.append(f"{section}.{key}: {what}")
    return differing
