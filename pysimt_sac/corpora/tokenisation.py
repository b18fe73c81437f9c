"""Lowercasing, punctuation normalisation and tokenisation as in the Moses scripts, with sacremoses."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pysimt_sac.corpora.processes import Workers, rewrite_file
from pysimt_sac.hosts.engine.data.text_preparation import STEPS


@dataclass(frozen=True)
class Style:
    """The Moses steps to apply, in order, and whether hyphens within words become tokens, `@-@`."""

    steps: tuple[str, ...] = STEPS
    split_hyphens: bool = False


class Tokeniser:
    """Tokenises raw lines of a language."""

    def __init__(self, language: str, style: Style) -> None:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.style = style
        self.normalizer: Any = MosesPunctNormalizer(language, perl_parity=True)
        self.tokenizer: Any = MosesTokenizer(language)
        self.steps = [getattr(self, step) for step in style.steps]

    def __call__(self, line: str) -> str:
        """Tokenise a raw line."""
        for step in self.steps:
            line = step(line)
        return line

    def lowercase(self, line: str) -> str:
        """Lowercase a line."""
        return line.lower()

    def normalise(self, line: str) -> str:
        """Normalise punctuation; Moses' rule for a full stop before a closing quote needs the newline."""
        return str(self.normalizer.normalize(line + "\n"))

    def tokenise(self, line: str) -> str:
        """Separate words and punctuation by spaces."""
        return str(self.tokenizer.tokenize(line, aggressive_dash_splits=self.style.split_hyphens, return_str=True))


@functools.cache
def tokeniser(language: str, style: Style) -> Tokeniser:
    """Return a tokeniser, cached per process."""
    return Tokeniser(language, style)


def tokenise_lines(language: str, style: Style, lines: Sequence[str]) -> list[str]:
    """Tokenise lines; runs in a worker process."""
    tokenise = tokeniser(language, style)
    return [tokenise(line) for line in lines]


def tokenise_file(source: Path, target: Path, language: str, style: Style, workers: Workers) -> None:
    """Tokenise a raw text file."""
    rewrite_file(source, target, partial(tokenise_lines, language, style), workers)
