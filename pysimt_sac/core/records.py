"""Plain values of a file as the types that its reader declares: files come from anywhere."""

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_json

T = TypeVar("T")
LARGEST = 2**63  # larger integers overflow where they are used


def restore(declared: Any, value: Any, name: str = "it") -> Any:
    """Return a value as the declared type: a dataclass from a dictionary, a tuple from a list; else raise a TypeError.

    name: of the value, in the error. Fields that the dictionary lacks have their defaults.
    """
    origin, inside = get_origin(declared), get_args(declared)
    if declared is Any:
        return value
    if origin is UnionType:
        for alternative in inside:
            with contextlib.suppress(TypeError):
                return restore(alternative, value, name)
    elif origin in (list, tuple) and isinstance(value, list | tuple):
        kinds = inside if origin is tuple and inside[-1] is not Ellipsis else (inside[0],) * len(value)
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return origin(restore(kind, item, f"{name}[{place}]") for place, (kind, item) in enumerate(pairs))
    elif origin is dict and isinstance(value, dict):
        for key in value:
            restore(inside[0], key, f"a key of {name}")
        return {key: restore(inside[1], item, f"{name}.{key}") for key, item in value.items()}
    elif dataclasses.is_dataclass(declared) and isinstance(value, dict):
        return restore_dataclass(declared, value, name)
    elif type(value) is int and declared in (int, float):
        if abs(value) < LARGEST:
            return value
    elif type(value) is declared:
        return value
    raise TypeError(f"{name} is not what it should be")


def restore_dataclass(declared: Any, value: Mapping[str, Any], name: str) -> Any:
    """Return a dictionary as a dataclass."""
    hints = get_type_hints(declared)
    for field in dataclasses.fields(declared):
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if is_required and field.name not in value:
            raise TypeError(f"{name} lacks {field.name!r}")
    if unknown := [key for key in value if key not in hints]:
        raise TypeError(f"{name} has the unknown {unknown[0]!r}")
    return declared(**{key: restore(hints[key], item, f"{name}.{key}") for key, item in value.items()})


def has_type(value: Any, declared: Any) -> bool:
    """Return whether a saved value can be restored as a declared type."""
    try:
        restore(declared, value)
    except TypeError:
        return False
    return True


def read_record(declared: type[T], path: Path, what: str, hint: str = "") -> T:
    """Return the content of a JSON file as a dataclass. what: a name for the file in errors."""
    content = read_json(path, what, hint)
    try:
        return restore(declared, content, "it")  # type: ignore[no-any-return]
    except TypeError as error:
        raise UserError(f"is not a {what}: {error}", path, hint) from error
