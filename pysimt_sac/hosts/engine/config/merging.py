"""Configuration files on top of those that they include, with overrides from the command line.

Nothing is interpolated here, so that an including file or an override affects whatever refers to it with `${...}`.

A configuration of maximum likelihood says how to train random weights. If an algorithm's configuration includes it,
`base_fine_tuning.conf` replaces that part: rate, schedule, length and the like.
"""

import os
import re
from collections.abc import Iterable
from configparser import MAX_INTERPOLATION_DEPTH, ConfigParser, ExtendedInterpolation, RawConfigParser
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import kind_of, read_lines, require_file
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.choice import NETWORKS
from pysimt_sac.hosts.engine.config.ready import ready_configs
from pysimt_sac.hosts.engine.config.values import expand_environment, parse_literal

INCLUDE, BASE = "include", "base"
FINE_TUNING = "base_fine_tuning"
MOST_FILES, MOST_CHARACTERS = 100, 10_000_000  # of a configuration with all that it includes and refers to
REFERENCE = re.compile(r"\$\{(?:([^:}]*):)?([^}]*)\}")
SECTION_OR_KEY = re.compile(r"\[(?P<section>.+)\]|(?P<key>[^\s:=][^:=]*)")
Place = tuple[str, str]  # section and key; an empty key: the section itself; both empty: the file


class MergedConfig:
    """A configuration file on top of those that it includes, with overrides.

    values: sections and keys as written. files: the file that each key comes from. layers: all files, in reading order.
    of_pretraining: keys from an included configuration of maximum likelihood, which is the last of so many layers.
    """

    def __init__(self, path: Path, overrides: Iterable[str] = ()) -> None:
        self.path = path
        self.values = raw_parser()
        self.files: dict[Place, Path] = {}
        self.layers: list[Path] = []
        self.of_pretraining: set[Place] = set()
        self.n_pretraining = 0
        self.read(path, ())
        for word in overrides:
            self.override(word)
        if self.n_pretraining and not trains_likelihood(self.values):
            self.fine_tune()

    def read(self, path: Path, including: tuple[Path, ...]) -> None:
        """Read a file after the files that it includes. including: the chain of files that led here."""
        if len(including) + len(self.layers) >= MOST_FILES:
            raise UserError(f"includes more than {MOST_FILES} files", self.path, "see its [include]")
        own, chain = read_one(path), (*including, path)
        for base in included_files(path, own):
            if any(base.resolve() == other.resolve() for other in chain):
                files = " -> ".join(file.name for file in (*chain, base))
                raise UserError(f"a file includes itself: {files}", f"{path} [{INCLUDE}]", "remove one of them")
            self.read(base, chain)
        own.remove_section(INCLUDE)
        self.values.read_dict(own)
        places = {(section, key): path for section in own.sections() for key in own.options(section)}
        self.files |= places
        self.of_pretraining -= set(places)
        self.layers.append(path)
        if including and trains_likelihood(own):
            self.of_pretraining, self.n_pretraining = set(self.files), len(self.layers)

    def fine_tune(self) -> None:
        """Replace the recipe of maximum likelihood by that of fine-tuning, except what a later file or word sets."""
        path = ready_configs(with_bases=True)[FINE_TUNING]
        if path in self.layers[self.n_pretraining :]:  # it is included anyway
            return
        recipe = read_one(path)
        for section in recipe.sections():
            for key, text in recipe.items(section):
                if (section, key) in self.of_pretraining or (section, key) not in self.files:
                    self.values.read_dict({section: {key: text}})
                    self.files[section, key] = path
        self.layers.insert(self.n_pretraining, path)

    def override(self, word: str) -> None:
        """Apply `section.key:value` as if it were in the file; `data.val_set.src:FILE` sets a dictionary's entry."""
        section, (key, *inner), text = split_override(word, {"train", *self.values.sections()})
        where = f"override {word!r}"
        if section == "vars" and key not in self.keys("vars") and ("vars", key) not in self.references():
            raise UserError(f"no value refers to {key!r}", where, did_you_mean(key, self.keys("vars")))
        if inner:
            holder = {key: self.dictionary(section, key)}
            set_nested(holder, [key, *inner], parse_literal(text), section, where)
            text = repr(holder[key])
        if not can_be_written(key, text.strip()):
            raise UserError("a configuration cannot hold such a key or value", where)
        self.values.read_dict({section: {key: text.strip()}})
        self.files[section, key] = self.path
        self.of_pretraining.discard((section, key))

    def dictionary(self, section: str, key: str) -> Any:
        """Return the dictionary that a key holds, interpolated only if it is the result of an interpolation."""
        text = self.values.get(section, key, fallback=None)
        found = parse_literal(text)
        if text is None or isinstance(found, dict):
            return found
        try:
            return parse_literal(self.interpolating_parser().get(section, key))
        except ConfigParserError as error:
            raise syntax_error(error, self.path) from error

    def keys(self, section: str) -> list[str]:
        """Return the keys that a section is given."""
        return self.values.options(section) if self.values.has_section(section) else []

    def references(self) -> set[Place]:
        """Return the section and key of every `${...}`."""
        return set().union(*self.references_by_place().values())

    def references_by_place(self) -> dict[Place, list[Place]]:
        """Return the section and key of every `${...}`, by those of the value that it stands in."""
        return {
            (section, key): [(other or section, name.lower()) for other, name in REFERENCE.findall(text or "")]
            for section in self.values.sections()
            for key, text in self.values.items(section)
        }

    def check_size(self) -> None:
        """Refuse values that interpolation would make huge: nine levels of eight references make 134 million."""
        references = self.references_by_place()
        own = {(section, key): len(self.values.get(section, key) or "") for section, key in references}
        sizes = own
        for _ in range(MAX_INTERPOLATION_DEPTH + 1):
            sizes = {place: own[place] + sum(sizes.get(named, 0) for named in references[place]) for place in own}
        if sum(sizes.values()) > MOST_CHARACTERS:
            section, key = max(sizes, key=lambda place: sizes[place])
            what = f"values of more than {MOST_CHARACTERS:,} characters after interpolation"
            raise UserError(what, f"{self.path} [{section}] {key}", "let it refer to less")

    def drop_included(self, section: str, keys: Iterable[str]) -> list[str]:
        """Remove those keys that come from included files, unless another value refers to them; return them all."""
        included = [key for key in keys if self.files.get((section, key), self.path) != self.path]
        for key in included:
            if (section, key) not in self.references():
                self.values.remove_option(section, key)
        return included

    def text(self, with_comments: bool = False) -> str:
        """Return one plain configuration without includes, in pysimt's format."""
        comments = self.comments() if with_comments else {}
        blocks = ["\n".join(comments["", ""])] if ("", "") in comments else []
        for section in self.values.sections():
            lines = [*comments.get((section, ""), ()), f"[{section}]"]
            for key, text in self.values.items(section):
                lines += [*comments.get((section, key), ()), entry_text(key, text)]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks) + "\n"

    def comments(self) -> dict[Place, list[str]]:
        """Return the comments above keys and sections, each from the last file that has one, and the file's header."""
        found: dict[Place, list[str]] = {}
        for path in self.layers:
            found.pop(("", ""), None)
            found |= read_comments(read_lines(path))
        return found

    def interpolating_parser(self) -> ConfigParser:
        """Return a parser that interpolates, with environment variables and the defaults of `[train]`."""
        self.check_size()
        parser = ConfigParser(interpolation=ExtendedInterpolation(), allow_no_value=True)
        parser.read_dict({"train": {key: str(value) for key, value in defaults(TrainOptions).items()}})
        parser.read_string(expand_environment(self.text()))
        return parser


def trains_likelihood(values: RawConfigParser) -> bool:
    """Return whether a configuration trains a network by maximum likelihood, without an algorithm."""
    name = values.get("train", "model_type", fallback="") or ""
    return name.lower() in map(str.lower, NETWORKS)


def raw_parser(text: str = "") -> RawConfigParser:
    """Return a parser that reads values as written; `[DEFAULT]` is a section like any other."""
    parser = RawConfigParser(allow_no_value=True, default_section="\n")
    parser.read_string(text)
    return parser


def read_one(path: Path) -> RawConfigParser:
    """Read one file without its includes."""
    try:
        return raw_parser("\n".join(read_lines(path, "configuration file")))
    except ConfigParserError as error:
        raise syntax_error(error, path) from error
    except AttributeError as error:  # configparser itself crashes in this case
        hint = "give that key a value, or do not indent the line after it"
        raise UserError("a key without a value is followed by an indented line", path, hint) from error


def syntax_error(error: ConfigParserError, path: Path) -> UserError:
    """Turn an error of configparser into a `UserError`."""
    reason = str(error).replace("'<string>'", "file").replace("<string>", "file")
    return UserError(reason, path, "see experiments/ for examples")


def included_files(path: Path, own: RawConfigParser) -> list[Path]:
    """Return the files that `[include] base` names, relative to the including file; or shipped ones of that name."""
    if not own.has_section(INCLUDE):
        return []
    where = f"{path} [{INCLUDE}]"
    for key in own.options(INCLUDE):
        if key != BASE:
            raise UserError(f"unknown key {key!r}", where, f"its only key is {BASE!r}")
    text = expand_environment(own.get(INCLUDE, BASE, fallback="") or "")
    names = [name.strip() for name in text.replace("\n", ",").split(",") if name.strip()]
    if not names:
        raise UserError("names no file", f"{where} {BASE}", f"e.g. {BASE}: mle.conf")
    shipped = {file.name: file for file in ready_configs(with_bases=True).values()}
    files = []
    for name in names:
        file = path.parent / os.path.expanduser(name)
        try:
            is_shipped = name in shipped and not kind_of(file)
            files.append(shipped[name] if is_shipped else require_file(file, "configuration file"))
        except UserError as error:
            raise UserError(f"{error.where}: {error.what}", f"{where} {BASE}", error.hint) from error
    return files


def split_override(word: str, sections: Iterable[str]) -> tuple[str, list[str], str]:
    """Split an override into its section, its key with nested keys, and its value."""
    address, colon, text = word.partition(":")
    section, dot, key = address.partition(".")
    if not (colon and dot and key):
        raise UserError("not of the form section.key:value", f"override {word!r}", "e.g. train.lr:0.001")
    if section not in sections:
        raise UserError(f"no section [{section}]", f"override {word!r}", did_you_mean(section, sections))
    return section, key.lower().split("."), text


def set_nested(values: dict[str, Any], keys: list[str], value: Any, section: str, where: str) -> None:
    """Set a value inside nested dictionaries."""
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            raise UserError(f"[{section}] has no dictionary {key!r}", where)
        values = values[key]
    values[keys[-1]] = value


def entry_text(key: str, text: str | None) -> str:
    """Format a key and its value; continuation lines are indented, those of a dictionary to its bracket."""
    if text is None:
        return key
    first, *others = text.split("\n")
    indent = " " * (len(key) + 2 + first.startswith(("{", "[", "(")))
    return "\n".join([f"{key}: {first}".rstrip(), *(f"{indent}{line}".rstrip() for line in others)])


def can_be_written(key: str, text: str) -> bool:
    """Return whether a file can hold a key with this value."""
    try:
        return dict(raw_parser(f"[x]\n{entry_text(key, text)}").items("x")) == {key: text}
    except ConfigParserError:
        return False


def read_comments(lines: Iterable[str]) -> dict[Place, list[str]]:
    """Return the comment lines directly above keys and sections; for the file, what stands before its first section."""
    found: dict[Place, list[str]] = {("", ""): []}
    above: list[str] = []
    section = ""
    for line in lines:
        if line.startswith(("#", ";")):
            above.append(line.rstrip())
            continue
        if not line.strip() and not section:
            found["", ""] += [*above, ""]
        elif match := SECTION_OR_KEY.match(line):  # else empty, or the continuation of a value
            section = match["section"] or section
            found[section, (match["key"] or "").strip().lower()] = above
        above = []
    header = [*found["", ""], *found.pop((INCLUDE, ""), [])]
    found["", ""] = "\n".join(header).strip("\n").split("\n") if any(header) else []
    return {place: comment for place, comment in found.items() if comment}
