"""Kinds of arguments that several commands take. Each turns a word of the command line into a value or says why not."""

import argparse
import re


def natural(text: str) -> int:
    """A whole number from 0."""
    return whole_number(text, 0)


def positive(text: str) -> int:
    """A whole number from 1."""
    return whole_number(text, 1)


def whole_number(text: str, smallest: int) -> int:
    """A whole number that is not too small."""
    if not text.isdecimal() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {smallest}")
    return int(text)


def language_pair(text: str) -> str:
    """Two different language codes, such as en-de."""
    match = re.fullmatch(r"([a-z]{2})-([a-z]{2})", text)
    if not match or match[1] == match[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a language pair such as en-de")
    return text
