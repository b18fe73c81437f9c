"""The options as a JSON Schema (draft 2020-12), generated from their declarations, for editors and other programs.

It describes a configuration as `pysimt-sac config FILE --json` prints it: sections are objects, lists of words arrays.
"""

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from pysimt_sac.core.options import is_union
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.config.values import plain

Schema = dict[str, Any]
LIMITS = {"minimum": "minimum", "maximum": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
SIMPLE: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
FILES: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def schema_of(models: Mapping[str, tuple[type, ...]], defaults: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Return the schema of configurations.

    models: the option classes of `[model]` by `model_type`. defaults: by model, values that replace declared defaults.
    """
    train = section_schema([TrainOptions])
    train["properties"]["model_type"]["enum"] = sorted(models)
    train["required"] = ["model_type"]
    shapes = {name: section_schema(classes, defaults.get(name, {})) for name, classes in models.items()}
    known = sorted({key for shape in shapes.values() for key in shape["properties"]})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A configuration of pysimt_sac",
        "type": "object",
        "required": ["train", "model", "data", "vocabulary"],
        "properties": {
            "vars": {"type": "object", "description": "values that others refer to as ${vars:NAME}"},
            "train": {**train, "additionalProperties": False},
            "model": {"type": "object", "propertyNames": {"enum": known}, "required": ["direction"]},
            "data": {"type": "object", "patternProperties": {"_set$": {**FILES, "description": "a split's files"}}},
            "vocabulary": {**FILES, "description": "the vocabulary file of each side"},
        },
        "allOf": [
            {"if": of_model(name), "then": {"properties": {"model": {"$ref": f"#/$defs/{name}"}}}} for name in shapes
        ],
        "$defs": shapes,
    }


def of_model(name: str) -> Schema:
    """Return the schema of configurations that train one model."""
    return {"properties": {"train": {"properties": {"model_type": {"const": name}}}}}


def section_schema(classes: Iterable[type], defaults: Mapping[str, Any] | None = None) -> Schema:
    """Return the schema of the keys that some option classes declare; pysimt-only keys are accepted unchecked."""
    properties = {}
    for cls in classes:
        hints = typing.get_type_hints(cls)
        for field in dataclasses.fields(cls):
            default = (defaults or {}).get(field.name, field.default)
            properties[field.name] = {} if field.metadata["pysimt_only"] else option_schema(field, hints, default)
    return {"type": "object", "properties": properties}


def option_schema(field: "dataclasses.Field[Any]", hints: Mapping[str, Any], default: Any) -> Schema:
    """Return the schema of one option: its meaning, default and allowed values."""
    annotation = hints[field.name]
    alternatives = typing.get_args(annotation) if is_union(annotation) else (annotation,)
    allowed = [value_schema(alternative, field.metadata) for alternative in alternatives]
    if field.metadata["choices"]:
        words = [choice for choice in field.metadata["choices"] if choice is not None]
        allowed = [schema for schema in allowed if schema["type"] not in ("string", "boolean")]
        allowed.insert(0, {"enum": words})
    described = {"description": field.metadata["help"], "default": plain(default)}
    return {**described, **(allowed[0] if len(allowed) == 1 else {"anyOf": allowed})}


def value_schema(annotation: Any, limits: Mapping[str, Any]) -> Schema:
    """Return the schema of the values of one type."""
    if annotation in SIMPLE:
        schema: Schema = {"type": SIMPLE[annotation]}
        if annotation in (int, float):
            schema |= {ours: limits[name] for name, ours in LIMITS.items() if limits[name] is not None}
        return schema
    if typing.get_origin(annotation) is tuple:
        arguments = typing.get_args(annotation)
        items = value_schema(arguments[0], limits)
        count = {} if arguments[-1] is Ellipsis else {"minItems": len(arguments), "maxItems": len(arguments)}
        return {"type": "array", "items": items, **count}
    return {"type": "object"}
