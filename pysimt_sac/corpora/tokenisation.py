"""Lowercasing, punctuation normalisation and tokenisation as by the Moses scripts, with sacremoses."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pysimt_sac.corpora.processes import Workers, rewrite_file


@dataclass(frozen=True)
class Style:
    """Tokenisation settings.

    normalise: lowercase and normalise punctuation before tokenisation (Multi30K), not only lowercase after it
    (IWSLT14); split_hyphens: hyphens within words become separate tokens, `@-@`.
    """

    normalise: bool
    split_hyphens: bool


class Tokeniser:
    """Tokenises raw lines of a language."""

    def __init__(self, language: str, style: Style) -> None:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.style = style
        self.normalizer: Any = MosesPunctNormalizer(language, perl_parity=True)
        self.tokenizer: Any = MosesTokenizer(language)

    def __call__(self, line: str) -> str:
        """Tokenise a raw line."""
        if self.style.normalise:
            # Moses' rule for a full stop before a closing quote needs the newline.
            line = self.normalizer.normalize(line.lower() + "\n")
        tokens = self.tokenizer.tokenize(line, aggressive_dash_splits=self.style.split_hyphens, return_str=True)
        return str(tokens if self.style.normalise else tokens.lower())


@functools.cache
def tokeniser(language: str, style: Style) -> Tokeniser:
    """A tokeniser, cached per process."""
    return Tokeniser(language, style)


def tokenise_lines(language: str, style: Style, lines: Sequence[str]) -> list[str]:
    """Tokenise lines; runs in a worker process."""
    tokenise = tokeniser(language, style)
    return [tokenise(line) for line in lines]


def tokenise_file(source: Path, target: Path, language: str, style: Style, workers: Workers) -> None:
    """Tokenise a raw text file."""
    rewrite_file(source, target, partial(tokenise_lines, language, style), workers)
