"""Options are declared once, here and in each algorithm's file: a frozen dataclass whose fields are made by `option`.

Defaults, types, validation, docs/options.md and the error messages all derive from these declarations.
"""

import dataclasses
import operator
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Union

from pysimt_sac.core.errors import UserError

T = TypeVar("T")
LARGEST = 2**62  # larger integers overflow where they are used
RANGES = {
    "minimum": (operator.ge, "at least"),
    "above": (operator.gt, "more than"),
    "maximum": (operator.le, "at most"),
    "below": (operator.lt, "less than"),
}


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[Any, ...] | None = None,
    minimum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    maximum: float | None = None,
    advice: str = "correct the value",
    resume: bool = False,
    pysimt_only: bool = False,
) -> Any:
    """Declare one option: its default, meaning and valid values.

    choices: the allowed words; other types that the annotation allows are unrestricted.
    advice: what to do about a number outside its range.
    resume: the value may differ when a run is resumed, because it does not change the result.
    pysimt_only: accepted because pysimt's checkpoints contain it; the embedded engine does not use it.
    """
    metadata = {
        "help": help,
        "choices": choices,
        "minimum": minimum,
        "above": above,
        "below": below,
        "maximum": maximum,
        "advice": advice,
        "resume": resume,
        "pysimt_only": pysimt_only,
    }
    return dataclasses.field(default=default, metadata=metadata)


def defaults(cls: type) -> dict[str, Any]:
    """Return the default of every option of a section."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def names(cls: type) -> set[str]:
    """Return the names of a section's options."""
    return {field.name for field in dataclasses.fields(cls)}


def read_section(cls: type[T], values: Mapping[str, Any], where: str | Mapping[str, str]) -> T:
    """Check `values` against the declarations of `cls`; keys that `cls` does not declare are ignored.

    where: the name of the section in errors, or the names of single options where they are not the keys.
    """
    hints = typing.get_type_hints(cls)
    read = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in values:
            place = f"{where} {field.name}" if isinstance(where, str) else where.get(field.name, field.name)
            value = convert(values[field.name], hints[field.name], field.metadata["choices"], place)
            check_range(value, field.metadata, place)
            read[field.name] = value
    return cls(**read)


def convert(value: Any, annotation: Any, choices: tuple[Any, ...] | None, where: str) -> Any:
    """Return `value` as the annotated type, or raise an error that says what was expected."""
    alternatives = typing.get_args(annotation) if is_union(annotation) else (annotation,)
    for alternative in alternatives:
        converted = as_type(value, alternative)
        # Choices restrict words only; numbers, where the annotation allows them, are unrestricted.
        if converted is NOT or (choices and converted not in choices and isinstance(converted, str | bool)):
            continue
        return converted
    expected = " or ".join(describe(alternative) for alternative in alternatives)
    if choices:
        expected = f"one of {', '.join(str(choice) for choice in choices)}"
        numbers = [describe(alternative) for alternative in alternatives if alternative in (int, float)]
        expected = " or ".join([expected, *numbers])
    raise UserError(f"{value!r} is not {expected}", where, "correct the value")


NOT = object()  # marks a value of the wrong type; None is a valid value


def as_type(value: Any, annotation: Any) -> Any:
    """Return `value` as the type, or NOT. Integers pass as floats; bools never pass as numbers."""
    if annotation is type(None):
        return None if value is None else NOT
    if annotation is bool or annotation is int:
        return value if type(value) is annotation else NOT
    if annotation is float:
        return float(value) if type(value) in (int, float) and abs(value) <= sys.float_info.max else NOT
    if annotation is str:
        return str(value) if isinstance(value, str) or hasattr(value, "__fspath__") else NOT
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return as_tuple(value, arguments)
    return value if origin is dict and isinstance(value, dict) else NOT


def as_tuple(value: Any, arguments: tuple[Any, ...]) -> Any:
    """Convert a list, a tuple, or words separated by commas to a tuple of the annotated types."""
    if arguments[-1] is Ellipsis:
        if hasattr(value, "__fspath__"):
            value = [value]
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if not isinstance(value, list | tuple):
            return NOT
        arguments = (arguments[0],) * len(value)
    if not isinstance(value, list | tuple) or len(value) != len(arguments):
        return NOT
    items = tuple(as_type(item, argument) for item, argument in zip(value, arguments, strict=True))
    return NOT if NOT in items else items


def check_range(value: Any, limits: Mapping[str, Any], where: str) -> None:
    """Refuse a number outside its declared range."""
    if type(value) not in (int, float):
        return
    if type(value) is int and abs(value) > LARGEST:
        raise UserError(f"{value} is absurdly large", where, "correct the value")
    for name, (holds, words) in RANGES.items():
        if limits[name] is not None and not holds(value, limits[name]):
            raise UserError(f"{value} must be {words} {limits[name]:g}", where, limits["advice"])


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is `A | B`."""
    return typing.get_origin(annotation) in (Union, types.UnionType)


def describe(annotation: Any) -> str:
    """Describe an annotation in words."""
    simple = {bool: "True or False", int: "a whole number", float: "a finite number", str: "a word", type(None): "None"}
    if annotation in simple:
        return simple[annotation]
    if typing.get_origin(annotation) is tuple:
        arguments = typing.get_args(annotation)
        if arguments[-1] is Ellipsis:
            return "a list of words"
        return f"{len(arguments)} numbers in brackets"
    return "a dictionary"


def check_declaration(cls: Any, where: str) -> None:
    """Refuse an invalid class of options."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        hint = "decorate it with @dataclass(frozen=True)"
        raise UserError(f"{cls!r} is not a frozen dataclass of options", where, hint)
    for field in dataclasses.fields(cls):
        if "help" not in field.metadata:
            hint = f'write `{field.name}: TYPE = option(DEFAULT, "what it means")`'
            raise UserError(f"{cls.__name__}.{field.name} is not declared by `option`", where, hint)
        if field.name != field.name.lower():
            raise UserError(f"{cls.__name__}.{field.name} has capitals", where, "configuration keys are lower case")


def check_clashes(classes: Iterable[type], where: str) -> None:
    """Refuse a key that two classes declare differently; inheriting or repeating a declaration is fine."""
    declared: dict[str, tuple[type, Any]] = {}
    for cls in classes:
        for field in dataclasses.fields(cls):
            first, known = declared.setdefault(field.name, (cls, field))
            if (known.type, known.default, known.metadata) != (field.type, field.default, field.metadata):
                what = f"{first.__name__} and {cls.__name__} both declare the key {field.name!r}"
                raise UserError(what, where, "give it another name in your own class")
