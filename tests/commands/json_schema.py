"""A small JSON Schema validator: the words that our schema uses, and a failure at any other."""

import re

KINDS = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
}
NUMBERS = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}
SIZES = {"minItems": lambda value, limit: len(value) >= limit, "maxItems": lambda value, limit: len(value) <= limit}
NOTES = {"$schema", "$defs", "title", "description", "default", "then"}


def problems(value, schema, root=None, place=""):
    """Where a value does not fit, and which word of the schema says so."""
    root = schema if root is None else root
    found = []
    for word, argument in schema.items():
        found += check(value, word, argument, schema, root, place)
    return list(dict.fromkeys(found))


def same(one, other):
    """Equal, and both truth values or neither."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def check(value, word, argument, schema, root, place):
    """The problems with one word of a schema."""
    wrong = [(place, word)]
    if word in NOTES:
        return []
    if word == "type":
        return [] if KINDS[argument](value) else wrong
    if word in ("enum", "const"):
        return [] if any(same(value, other) for other in (argument if word == "enum" else [argument])) else wrong
    if word in NUMBERS:
        return [] if not KINDS["number"](value) or NUMBERS[word](value, argument) else wrong
    if word in SIZES:
        return [] if not isinstance(value, list) or SIZES[word](value, argument) else wrong
    if word == "anyOf":
        return [] if any(not problems(value, other, root, place) for other in argument) else wrong
    if word == "allOf":
        return [problem for other in argument for problem in problems(value, other, root, place)]
    if word == "if":
        return [] if problems(value, argument, root, place) else problems(value, schema["then"], root, place)
    if word == "$ref":
        return problems(value, root["$defs"][argument.removeprefix("#/$defs/")], root, place)
    if word == "items":
        return [problem for item in value for problem in problems(item, argument, root, place)]
    return check_object(value, word, argument, schema, root, place) if isinstance(value, dict) else []


def check_object(value, word, argument, schema, root, place):
    """The problems with a word that speaks of an object's keys."""
    wrong, schemas = [(place, word)], {}
    if word == "required":
        return [] if set(argument) <= set(value) else wrong
    if word == "propertyNames":
        return [] if all(not problems(key, argument, root) for key in value) else wrong
    if word == "additionalProperties" and argument is False:
        return [] if set(value) <= set(schema["properties"]) else wrong
    if word == "additionalProperties":
        schemas = {key: argument for key in value if key not in schema.get("properties", {})}
    elif word == "properties":
        schemas = {key: argument[key] for key in value if key in argument}
    elif word == "patternProperties":
        schemas = {key: other for pattern, other in argument.items() for key in value if re.search(pattern, key)}
    else:
        raise AssertionError(f"not a word of ours: {word}")
    below = f"{place}." if place else ""
    return [problem for key, other in schemas.items() for problem in problems(value[key], other, root, below + key)]
