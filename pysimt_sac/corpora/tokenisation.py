"""Lower-casing, normalising and tokenising text as the Moses scripts do it, by sacremoses.

`tokenise_file` is called by the preparing modules; `Tokeniser` is the one place that knows the settings.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pysimt_sac.corpora.processes import Workers, rewrite_file


@dataclass(frozen=True)
class Style:
    """How a corpus is tokenised.

    normalise: lower-case and normalise punctuation first (Multi30K), instead of lower-casing the tokens (IWSLT14);
    split_hyphens: a hyphen within a word becomes a token of its own, `@-@`.
    """

    normalise: bool
    split_hyphens: bool


class Tokeniser:
    """Turns raw lines of one language into tokens separated by blanks."""

    def __init__(self, language: str, style: Style) -> None:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.style = style
        self.normalizer: Any = MosesPunctNormalizer(language, perl_parity=True)
        self.tokenizer: Any = MosesTokenizer(language)

    def __call__(self, line: str) -> str:
        """Tokenise a raw line."""
        if self.style.normalise:
            # The line end matters: Moses' rule for a full stop before a closing quote looks at what follows it.
            line = self.normalizer.normalize(line.lower() + "\n")
        tokens = self.tokenizer.tokenize(line, aggressive_dash_splits=self.style.split_hyphens, return_str=True)
        return str(tokens if self.style.normalise else tokens.lower())


@functools.cache
def tokeniser(language: str, style: Style) -> Tokeniser:
    """The tokeniser of a language, made once per process."""
    return Tokeniser(language, style)


def tokenise_lines(language: str, style: Style, lines: Sequence[str]) -> list[str]:
    """Tokenise a chunk of lines; what a worker process runs."""
    tokenise = tokeniser(language, style)
    return [tokenise(line) for line in lines]


def tokenise_file(source: Path, target: Path, language: str, style: Style, workers: Workers) -> None:
    """Tokenise a raw text file."""
    rewrite_file(source, target, partial(tokenise_lines, language, style), workers)
