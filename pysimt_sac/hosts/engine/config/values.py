"""Configuration values, from text to Python and back."""

import ast
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError

ENVIRONMENT = ("HOME", "USER", "LOCAL", "SCRATCH", "PWD")
CONSTANTS = {"true": True, "false": False, "none": None}
PATH = ("~", "/", "./", "../")  # how a path begins


def parse_value(text: str | None) -> Any:
    """Parse a Python literal, or true, false and none in any case; anything else is a string, a path or paths."""
    value = parse_literal(text)
    if isinstance(value, str) and len(words := [word.strip() for word in value.split(",")]) > 1:
        value = words if all(word.startswith(PATH) for word in words) else value
    return convert_leaves(value, as_path)


def parse_literal(text: str | None) -> Any:
    """Parse a value like `parse_value`, but leave paths as written."""
    if text is None:
        return None
    text = text.strip()
    if text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # e.g. an escape in a string that only looks like a literal
            value = ast.literal_eval(text)
            repr(value)  # fails for a number with thousands of digits, which stays a string
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def write_value(value: Any) -> str:
    """Return the text that `parse_value`, or pysimt, reads as this value; `$` is escaped."""
    value = convert_leaves(value, lambda leaf: str(leaf) if isinstance(leaf, Path) else leaf)
    text = value if isinstance(value, str) else repr(value)
    # pysimt mistakes every word that begins with a constant for that constant.
    is_plain = parse_literal(text) == value and not ("\n" in text or text.lower().startswith(tuple(CONSTANTS)))
    return (text if is_plain or not isinstance(value, str) else repr(value)).replace("$", "$$")


def plain(value: Any) -> Any:
    """Return `value` with every path as a string and every tuple as a list."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def convert_leaves(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return `value` with a function applied to everything that is not a list, a tuple or a dictionary."""
    if isinstance(value, list | tuple):
        return type(value)(convert_leaves(item, convert) for item in value)
    if isinstance(value, dict):
        return {convert_leaves(key, convert): convert_leaves(item, convert) for key, item in value.items()}
    return convert(value)


def as_path(value: Any) -> Any:
    """Return a string that begins like a path as an absolute path, anything else as it is."""
    if not isinstance(value, str):
        return value
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):  # lone surrogates
        raise UserError(f"{value!r} has a character that no text or file name can have", "configuration")
    try:
        return Path(value).expanduser().resolve() if value.startswith(PATH) else value
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(f"not a usable path: {error}", repr(value)) from error


def expand_environment(text: str) -> str:
    """Replace $HOME and the like, as pysimt does, before `${...}` is interpolated."""
    for name in ENVIRONMENT:
        if name in os.environ:
            text = text.replace(f"${name}", os.environ[name])
    return text
