"""Argument types and defaults shared by several commands. A type converts a word of the command line or refuses it."""

import argparse
import os
import re
from collections.abc import Callable


def natural(text: str) -> int:
    """Parse a whole number of at least 0."""
    return whole_number(text, 0)


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    return whole_number(text, 1)


def minutes(text: str) -> float:
    """Parse a number of minutes."""
    if not re.fullmatch(r"\d{1,5}(\.\d+)?", text) or float(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes, at most 99999")
    return float(text)


def whole_number(text: str, smallest: int) -> int:
    """Parse a whole number of at least `smallest`."""
    if not text.isdecimal() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {smallest}")
    return int(text)


def add_number(
    parser: argparse._ActionsContainer, name: str, default: int, help: str, kind: Callable[[str], int] = positive
) -> None:
    """Add an option whose value is a whole number, positive unless `kind` says otherwise."""
    parser.add_argument(name, type=kind, default=default, metavar="N", help=f"{help} (default: %(default)s)")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def language_pair(text: str) -> str:
    """Parse two different language codes, such as en-de."""
    match = re.fullmatch(r"([a-z]{2})-([a-z]{2})", text)
    if not match or match[1] == match[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a language pair such as en-de")
    return text
