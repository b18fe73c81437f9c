"""Options of parts that a configuration names, such as rewards: each part, ours or the user's, declares its own."""

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from pysimt_sac.core.errors import UserError


class NamesParts:
    """A section of options, some of which name parts that have their own options."""

    @classmethod
    @abstractmethod
    def options_of_named(cls, values: Mapping[str, Any], where: str) -> tuple[type, ...]:
        """Return the option classes of the parts that `values` name; runs the user's files that define them."""

    @classmethod
    @abstractmethod
    def options_of_registered(cls, values: Mapping[str, Any], where: str) -> tuple[type, ...]:
        """Return the option classes of all parts that could be named instead."""


def sections_with_parts(classes: Iterable[type]) -> list[type[NamesParts]]:
    """Return the sections that name parts."""
    return [cls for cls in classes if issubclass(cls, NamesParts)]


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
