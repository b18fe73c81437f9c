"""Plain text in and out of a model: apply the preparation of its training text, and undo it."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from pysimt_sac.core.filters import FILTERS
from pysimt_sac.text.preparation import SidePreparation, TextPreparation
from pysimt_sac.text.subwords import JOINED_BY, make_segmenter


class Tokeniser:
    """Applies the Moses steps of a side to raw lines, with sacremoses."""

    def __init__(self, side: SidePreparation) -> None:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.split_hyphens = side.split_hyphens
        self.normalizer: Any = MosesPunctNormalizer(side.language, perl_parity=True)
        self.tokenizer: Any = MosesTokenizer(side.language)
        self.steps = [getattr(self, step) for step in side.steps]

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
        return str(self.tokenizer.tokenize(line, aggressive_dash_splits=self.split_hyphens, return_str=True))


@functools.cache
def tokeniser(side: SidePreparation) -> Tokeniser:
    """Return a side's tokeniser, cached per process."""
    return Tokeniser(side)


def tokenise_lines(side: SidePreparation, lines: Sequence[str]) -> list[str]:
    """Tokenise raw lines; can run in a worker process."""
    tokenise = tokeniser(side)
    return [tokenise(line) for line in lines]


class PlainSide:
    """Prepares lines of one language and restores plain text from prepared lines. where: the record's file."""

    def __init__(self, side: SidePreparation, where: object) -> None:
        self.side = side
        self.tokenise = Tokeniser(side)
        self.segment = make_segmenter(side.segmentation, where) if side.segmentation else list
        self.detokenizer: Any = None
        if "tokenise" in side.steps:
            from sacremoses import MosesDetokenizer

            self.detokenizer = MosesDetokenizer(side.language)

    def prepare(self, lines: Iterable[str]) -> list[str]:
        """Prepare lines like the training text, one for one."""
        return [" ".join(line.split()) for line in self.segment(self.tokenise(line) for line in lines)]

    def restore(self, lines: Iterable[str]) -> list[str]:
        """Restore plain text from prepared lines, one for one."""
        return [self.restore_line(line) for line in lines]

    def restore_line(self, line: str) -> str:
        """Undo the steps in reverse order. Lowercased text stays lowercase; otherwise capitalise the first letter."""
        if self.side.segmentation:
            line = JOINED_BY[self.side.segmentation.kind](line)
        if self.side.split_hyphens:
            line = FILTERS["de-hyphen"](line)
        if self.detokenizer:
            line = self.detokenizer.detokenize(line.split())
        line = " ".join(line.splitlines())
        return line if "lowercase" in self.side.steps else line[:1].upper() + line[1:]


class Unchanged:
    """Text that needs no preparation."""

    def prepare(self, lines: Iterable[str]) -> list[str]:
        """Return the lines."""
        return list(lines)

    restore = prepare


class PlainText:
    """Both sides of a model's text."""

    def __init__(self, preparation: TextPreparation, where: object) -> None:
        self.source: PlainSide | Unchanged = PlainSide(preparation.source, where)
        self.target: PlainSide | Unchanged = PlainSide(preparation.target, where)

    @classmethod
    def as_it_is(cls) -> "PlainText":
        """Return the conversion for a model that reads and writes plain text."""
        plain = cls.__new__(cls)
        plain.source = plain.target = Unchanged()
        return plain
