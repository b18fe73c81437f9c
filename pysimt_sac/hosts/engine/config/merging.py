"""Configuration files as text: includes, command-line overrides, and the comments above the keys.

Nothing is interpolated here, so that an including file or an override affects whatever refers to it with `${...}`.
`MergedConfig.text` returns a plain configuration in pysimt's format, which `parser.read_config` reads.
"""

import os
import re
from collections.abc import Iterable
from configparser import ConfigParser, ExtendedInterpolation, RawConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import read_lines, require_file
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.config.values import expand_environment, parse_literal

INCLUDE, BASE = "include", "base"
COMMENT = ("#", ";")
Place = tuple[str, str]  # section and key; an empty key: the section itself; both empty: the file


@dataclass(frozen=True)
class Entry:
    """A key's value as written, the comment lines directly above it, and their file."""

    text: str | None
    comment: tuple[str, ...]
    file: Path


@dataclass
class MergedConfig:
    """A configuration file with its includes and the command-line overrides."""

    path: Path
    sections: dict[str, dict[str, Entry]] = field(default_factory=dict)
    comments: dict[str, tuple[str, ...]] = field(default_factory=dict)  # above each section; "": of the file

    def add(self, other: "MergedConfig") -> None:
        """Replace values by those of another file; a value without a comment keeps the one it has here."""
        for section, entries in other.sections.items():
            mine = self.sections.setdefault(section, {})
            for key, entry in entries.items():
                comment = entry.comment or (mine[key].comment if key in mine else ())
                mine[key] = replace(entry, comment=comment)
        self.comments.update({name: comment for name, comment in other.comments.items() if comment})

    def text(self) -> str:
        """Return a plain configuration without includes."""
        blocks = ["\n".join(self.comments[""])] if self.comments.get("") else []
        for section, entries in self.sections.items():
            lines = [*self.comments.get(section, ()), f"[{section}]"]
            for key, entry in entries.items():
                lines += [*entry.comment, entry_text(key, entry.text)]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks) + "\n"

    def is_inherited(self, section: str, key: str) -> bool:
        """Return whether a key comes from an included file, not from the file itself or the command line."""
        entry = self.sections.get(section, {}).get(key)
        return entry is not None and entry.file != self.path

    def file_of(self, section: str, key: str) -> Path:
        """Return the file that a key comes from."""
        entry = self.sections.get(section, {}).get(key)
        return entry.file if entry else self.path

    def is_referred_to(self, section: str, key: str) -> bool:
        """Return whether another value interpolates this key."""
        elsewhere = re.compile(rf"\$\{{{re.escape(section)}:{re.escape(key)}\}}", re.IGNORECASE)
        within = re.compile(rf"\$\{{{re.escape(key)}\}}", re.IGNORECASE)
        return any(
            elsewhere.search(entry.text or "") or (name == section and within.search(entry.text or ""))
            for name, entries in self.sections.items()
            for entry in entries.values()
        )

    def drop(self, section: str, keys: Iterable[str]) -> None:
        """Remove some keys, except those that another value refers to."""
        for key in keys:
            if not self.is_referred_to(section, key):
                del self.sections[section][key]

    def override(self, word: str) -> None:
        """Apply `section.key:value` as if it were in the file; `data.val_set.src:FILE` sets a dictionary's entry."""
        section, (key, *inner), text = split_override(word, {"train", *self.sections})
        where = f"override {word!r}"
        if section == "vars" and key not in self.sections["vars"] and not self.is_referred_to("vars", key):
            raise UserError(f"no value refers to {key!r}", where, did_you_mean(key, self.sections["vars"]))
        if inner:
            text = self.with_inner(section, key, inner, text, where)
        entries = self.sections.setdefault(section, {})
        text = text.strip()
        if raw_values(f"[x]\n{entry_text(key, text)}") != {"x": {key: text}}:
            raise UserError("a configuration cannot hold such a key or value", where)
        entries[key] = Entry(text, entries[key].comment if key in entries else (), self.path)

    def with_inner(self, section: str, key: str, inner: list[str], text: str, where: str) -> str:
        """Return the text of a dictionary with one of its values changed."""
        written = self.sections.get(section, {}).get(key)
        whole = parse_literal(written.text) if written else None
        if written and not isinstance(whole, dict):  # it may be interpolated as a whole
            whole = parse_literal(interpolating_parser(self.text(), self.path).get(section, key))
        place: Any = {key: whole}
        for name in (outer := [key, *inner])[:-1]:
            if not isinstance(place.get(name), dict):
                raise UserError(f"[{section}] has no dictionary {name!r}", where)
            place = place[name]
        place[outer[-1]] = parse_literal(text)
        return repr(whole)


def split_override(word: str, sections: Iterable[str]) -> tuple[str, list[str], str]:
    """Split an override into its section, its key with nested keys, and its value."""
    address, colon, text = word.partition(":")
    section, dot, key = address.partition(".")
    if not (colon and dot and key):
        raise UserError("not of the form section.key:value", f"override {word!r}", "e.g. train.lr:0.001")
    if section not in sections:
        raise UserError(f"no section [{section}]", f"override {word!r}", did_you_mean(section, sections))
    return section, key.lower().split("."), text


def entry_text(key: str, text: str | None) -> str:
    """Format a key and its value; continuation lines are indented, those of a dictionary to its bracket."""
    if text is None:
        return key
    first, *others = text.split("\n")
    indent = " " * (len(key) + 2 + first.startswith(("{", "[", "(")))
    return "\n".join([f"{key}: {first}".rstrip(), *(f"{indent}{line}".rstrip() for line in others)])


def read_merged(path: Path, overrides: Iterable[str] = ()) -> MergedConfig:
    """Read a configuration file with its includes, and apply overrides."""
    merged = read_with_bases(path, ())
    merged.path = path
    try:
        for word in overrides:
            merged.override(word)
    except ConfigParserError as error:
        raise syntax_error(error, path) from error
    return merged


def merged_config_text(path: str | Path, overrides: Iterable[str] = ()) -> str:
    """Return a configuration file with its includes and overrides as one plain configuration."""
    return read_merged(Path(path), overrides).text()


def read_with_bases(path: Path, including: tuple[Path, ...]) -> MergedConfig:
    """Read a file after the files it includes. including: the chain of files that led here."""
    own, chain = read_one(path), (*including, path)
    bases = included_files(path, own.sections.pop(INCLUDE)) if INCLUDE in own.sections else []
    own.comments[""] += own.comments.pop(INCLUDE, ())
    merged = MergedConfig(path)
    for base in bases:
        if any(base.resolve() == other.resolve() for other in chain):
            files = " -> ".join(file.name for file in (*chain, base))
            raise UserError(f"a file includes itself: {files}", f"{path} [{INCLUDE}]", "remove one of them")
        merged.add(read_with_bases(base, chain))
    merged.comments[""] = ()
    merged.add(own)
    return merged


def included_files(path: Path, include: dict[str, Entry]) -> list[Path]:
    """Return the files that `[include] base` names, relative to the including file."""
    where = f"{path} [{INCLUDE}]"
    for key in include:
        if key != BASE:
            raise UserError(f"unknown key {key!r}", where, f"its only key is {BASE!r}")
    text = expand_environment((include[BASE].text if BASE in include else None) or "")
    names = [name.strip() for name in text.replace("\n", ",").split(",") if name.strip()]
    if not names:
        raise UserError("names no file", f"{where} {BASE}", f"e.g. {BASE}: mle.conf")
    files = [path.parent / os.path.expanduser(name) for name in names]
    for file in files:
        try:
            require_file(file, "configuration file")
        except UserError as error:
            raise UserError(f"{error.where}: {error.what}", f"{where} {BASE}", error.hint) from error
    return files


def read_one(path: Path) -> MergedConfig:
    """Read one file without its includes."""
    lines = read_lines(path, "configuration file")
    try:
        values = raw_values("\n".join(lines))
    except ConfigParserError as error:
        raise syntax_error(error, path) from error
    except AttributeError as error:  # configparser itself crashes in this case
        hint = "give that key a value, or do not indent the line after it"
        raise UserError("a key without a value is followed by an indented line", path, hint) from error
    comments = read_comments(lines)
    sections = {
        section: {key: Entry(text, comments.get((section, key), ()), path) for key, text in entries.items()}
        for section, entries in values.items()
    }
    return MergedConfig(path, sections, {name: comment for (name, key), comment in comments.items() if not key})


def syntax_error(error: ConfigParserError, path: Path) -> UserError:
    """Turn an error of configparser into a `UserError`."""
    reason = str(error).replace("'<string>'", "file").replace("<string>", "file")
    return UserError(reason, path, "see experiments/ for examples")


def raw_values(text: str) -> dict[str, dict[str, str | None]]:
    """Return sections, keys and values as written; `[DEFAULT]` is a section like any other."""
    parser = RawConfigParser(allow_no_value=True, default_section="\n")
    parser.read_string(text)
    return {section: dict(parser.items(section)) for section in parser.sections()}


def read_comments(lines: Iterable[str]) -> dict[Place, tuple[str, ...]]:
    """Return the comment lines directly above every key and section; for the file, its header."""
    found: dict[Place, tuple[str, ...]] = {}
    above: list[str] = []
    header: list[str] = []
    section, in_value, indent = "", False, 0
    for line in lines:
        words, depth = line.strip(), len(line) - len(line.lstrip())
        if words.startswith(COMMENT):
            above.append(words)
            continue
        if not words and not section:
            header += [*above, ""]
        elif words and not (in_value and depth > indent):  # neither empty nor a continuation line
            indent = depth
            if match := RawConfigParser.SECTCRE.match(words):
                section, in_value = match["header"], False
                found[section, ""] = tuple(above)
            elif match := RawConfigParser.OPTCRE_NV.match(words):
                in_value = True
                found[section, match["option"].strip().lower()] = tuple(above)
        above = []
    found["", ""] = tuple("\n".join(header).strip("\n").split("\n")) if any(header) else ()
    return found


def interpolating_parser(text: str, path: Path) -> ConfigParser:
    """Return an interpolating parser of a plain configuration, with the defaults of `[train]`."""
    parser = ConfigParser(interpolation=ExtendedInterpolation(), allow_no_value=True)
    parser.read_dict({"train": {key: str(value) for key, value in defaults(TrainOptions).items()}})
    try:
        parser.read_string(expand_environment(text))
    except ConfigParserError as error:
        raise syntax_error(error, path) from error
    return parser
