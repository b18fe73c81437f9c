"""Configuration values, from text to Python and back."""

import ast
import os
import warnings
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError

ENVIRONMENT = ("HOME", "USER", "LOCAL", "SCRATCH", "PWD")
CONSTANTS = {"true": True, "false": False, "none": None}


def parse_value(text: str | None) -> Any:
    """Parse a Python literal, or true, false and none in any case; anything else is a string or a path."""
    return resolve_paths(parse_literal(text))


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
    value = without_paths(value)
    text = value if isinstance(value, str) else repr(value)
    # pysimt mistakes every word that begins with a constant for that constant.
    is_plain = parse_literal(text) == value and not ("\n" in text or text.lower().startswith(tuple(CONSTANTS)))
    return (text if is_plain or not isinstance(value, str) else repr(value)).replace("$", "$$")


def without_paths(value: Any) -> Any:
    """Return `value` with every path as a string."""
    if isinstance(value, dict):
        return {without_paths(key): without_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_paths(item) for item in value)
    return str(value) if isinstance(value, Path) else value


def plain(value: Any) -> Any:
    """Return `value` with every path as a string and every tuple as a list."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def resolve_paths(value: Any) -> Any:
    """Turn strings that begin like a path into absolute paths, also inside lists and dictionaries."""
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
    """Return whether a string can be written anywhere; `'\\0'` and lone surrogates cannot."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def expand_environment(text: str) -> str:
    """Replace $HOME and the like, as pysimt does, before `${...}` is interpolated."""
    for name in ENVIRONMENT:
        if name in os.environ:
            text = text.replace(f"${name}", os.environ[name])
    return text
