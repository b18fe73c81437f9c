"""Experiment configurations: pysimt's `.conf` format in, an `Options` object out.

Reading (`read_config`) only parses. `check_config` validates against the declared options and the registered models.
"""

import ast
import dataclasses
import os
import warnings
from collections.abc import Iterable
from configparser import ConfigParser, ExtendedInterpolation
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Any

from pysimt_sac.engine.config.options import (
    ModelOptions,
    RecipeOptions,
    TrainOptions,
    defaults,
    names,
    read_section,
)
from pysimt_sac.engine.config.recipe import check_recipe
from pysimt_sac.engine.config.registry import MODELS, load_plugin_modules
from pysimt_sac.errors import UserError, did_you_mean
from pysimt_sac.files import read_lines

ENVIRONMENT = ("HOME", "USER", "LOCAL", "SCRATCH", "PWD")
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

    def __init__(self, filename: str, sections: dict[str, dict[str, Any]]) -> None:
        self.filename = filename
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
        """Apply `section.key:value` words; a key may itself have a dot: `data.val_set.src:FILE`."""
        for word in overrides:
            address, colon, text = word.partition(":")
            section, dot, key = address.partition(".")
            if not (colon and dot and key):
                raise UserError("not of the form section.key:value", f"override {word!r}", "e.g. train.lr:0.001")
            if section not in self.sections:
                hint = did_you_mean(section, self.sections)
                raise UserError(f"no section [{section}]", f"override {word!r}", hint)
            place, (*outer, last) = self[section], key.lower().split(".")
            for name in outer:
                if not isinstance(place.get(name), dict):
                    raise UserError(f"[{section}] has no dictionary {name!r}", f"override {word!r}")
                place = place[name]
            place[last] = parse_value(text)


def plain(value: Any) -> Any:
    """`value` with every path as a string and every tuple as a list."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def parse_value(text: str | None) -> Any:
    """A Python literal where it is one; true, false and none in any case; else a string or a path."""
    if text is None:
        return None
    text = text.strip()
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # e.g. an escape in a string that only looks like a literal
            value = ast.literal_eval(text)
            repr(value)  # a number of thousands of digits cannot even be shown: leave it a string
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = text
    return resolve_paths(value)


def resolve_paths(value: Any) -> Any:
    """Strings that begin like a path become absolute paths, inside lists and dictionaries too."""
    if isinstance(value, list | tuple):
        return type(value)(resolve_paths(item) for item in value)
    if isinstance(value, dict):
        return {resolve_paths(key): resolve_paths(item) for key, item in value.items()}
    if isinstance(value, str) and not is_text(value):
        raise UserError(f"{value!r} has a character that no text or file name can have", "configuration")
    if isinstance(value, str) and value.startswith(("~", "/", "./", "../")):
        try:
            return Path(value).expanduser().resolve()
        except (RuntimeError, ValueError, OSError) as error:
            raise UserError(f"not a usable path: {error}", repr(value)) from error
    return value


def is_text(value: str) -> bool:
    """Whether a string can be written anywhere: `'\\0'` or half of a surrogate pair cannot."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def expand_environment(text: str) -> str:
    """Replace $HOME and its like, as pysimt does, before `${...}` is interpolated."""
    for name in ENVIRONMENT:
        if name in os.environ:
            text = text.replace(f"${name}", os.environ[name])
    return text


def read_config(path: str | Path, overrides: Iterable[str] = ()) -> Options:
    """Parse a configuration file."""
    path = Path(path)
    text = expand_environment("\n".join(read_lines(path, "configuration file")))
    parser = ConfigParser(interpolation=ExtendedInterpolation(), allow_no_value=True)
    parser.read_dict({"train": {key: str(value) for key, value in defaults(TrainOptions).items()}})
    try:
        parse(parser, text, path)
        sections = {name: {key: parse_value(text) for key, text in parser.items(name)} for name in parser.sections()}
    except ConfigParserError as error:
        reason = str(error).replace("'<string>'", "file").replace("<string>", "file")
        raise UserError(reason, path, "see experiments/ for examples") from error
    for missing in (name for name in REQUIRED_SECTIONS if name not in sections or not sections[name]):
        raise UserError(f"has no section [{missing}]", path, "see experiments/mle.conf for a whole example")
    options = Options(str(path), sections)
    options.override(overrides)
    return options


def parse(parser: ConfigParser, text: str, path: Path) -> None:
    """Let the standard library read the text, which stumbles over a case of its own."""
    try:
        parser.read_string(text)
    except AttributeError as error:
        todo = "give that key a value, or do not indent the line after it"
        raise UserError("a key without a value is followed by an indented line", path, todo) from error


def check_config(options: Options) -> tuple[TrainOptions, list[str]]:
    """Validate all that can be known before reading data; return the typed `[train]` and any warnings."""
    where = options.filename
    for key in options.train:
        if key not in names(TrainOptions):
            raise UserError(f"unknown key {key!r}", f"{where} [train]", did_you_mean(key, names(TrainOptions)))
    train = read_section(TrainOptions, options.train, f"{where} [train]")
    load_plugin_modules(plugin_modules(options))
    model = find_model(train.model_type, f"{where} [train] model_type")
    warned = check_model_keys(options, model)
    for cls in option_classes(model):
        read_section(cls, options.model, f"{where} [model]")
    recipe = read_section(RecipeOptions, options.model, f"{where} [model]")
    warned += check_recipe(recipe, train, where)
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


def check_model_keys(options: Options, model: Any) -> list[str]:
    """A key that no model knows is an error; one that only other models know, a warning."""
    own = set().union(*(names(cls) for cls in option_classes(model)))
    every = own.union(*(names(cls) for other in MODELS.items.values() for cls in option_classes(other)))
    warned = []
    for key in options.model:
        if key not in every:
            raise UserError(f"unknown key {key!r}", f"{options.filename} [model]", did_you_mean(key, every))
        if key not in own:
            warned.append(f"[model] {key} is not used by {options.train['model_type']}")
    return warned


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


def result_changing_differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Keys in which two configurations differ and that change what training computes."""
    free = {field.name for field in dataclasses.fields(TrainOptions) if field.metadata["resume"]}
    differing = []
    for section in ("train", "model", "data", "vocabulary"):
        declared = defaults(RecipeOptions) if section == "model" else {}  # written out or not, it is the same
        before, after = {**declared, **old.get(section, {})}, {**declared, **new.get(section, {})}
        for key in sorted(set(before) | set(after)):
            irrelevant = (section == "train" and key in free) or (
                section == "data" and key not in ("train_set", "val_set")
            )
            if not irrelevant and before.get(key) != after.get(key):
                differing.append(f"{section}.{key}: {before.get(key)!r} -> {after.get(key)!r}")
    return differing
