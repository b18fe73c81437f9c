"""Post-processing of hypotheses and references before scoring: pysimt's filters by name."""

import re
from collections.abc import Callable, Iterable, Sequence

from pysimt_sac.core.errors import UserError, did_you_mean


def join_bpe(line: str) -> str:
    """Undo subword-nmt's `@@ ` and WordPiece's ` ##`."""
    return line.replace("@@ ", "").replace("@@", "").replace(" ##", "")


def join_sentencepiece(line: str) -> str:
    """Undo SentencePiece's `▁`."""
    return line.replace(" ", "").replace("▁", " ").strip()


def join_segments(line: str) -> str:
    """Turn `<tag:morpheme>` units into words."""
    return re.sub(r" *<.*?:(.*?)>", r"\1", line)


def join_compounds(line: str) -> str:
    """Undo the splitting of German compounds."""
    for filler in (" @@ ", " @@", " @", "@ "):
        line = line.replace(filler, "")
    return line


def join_hyphens(line: str) -> str:
    """Undo the hyphen splitting of the Moses tokeniser: `foo @-@ bar` becomes `foo-bar`."""
    return re.sub(r"\s*@-@\s*", "-", line)


def join_characters(line: str) -> str:
    """Join characters into words; `<s>` stands for the space."""
    return line.replace(" ", "").replace("<s>", " ").strip()


def drop_tags(line: str) -> str:
    """Remove two-letter tags such as `<de>`."""
    return re.sub(r"<[a-zA-Z][a-zA-Z]>", "", line)


FILTERS: dict[str, Callable[[str], str]] = {
    "de-bpe": join_bpe,
    "de-spm": join_sentencepiece,
    "de-segment": join_segments,
    "de-compound": join_compounds,
    "de-hyphen": join_hyphens,
    "c2w": join_characters,
    "lower": str.lower,
    "upper": str.upper,
    "de-tag": drop_tags,
}


class FilterChain:
    """Filters applied one after the other."""

    def __init__(self, names: Sequence[str], where: str = "eval_filters") -> None:
        for name in names:
            if name not in FILTERS:
                raise UserError(f"unknown filter {name!r}", where, did_you_mean(name, FILTERS))
        self.names = list(names)

    def __call__(self, lines: Iterable[str]) -> list[str]:
        """Return the filtered lines."""
        filtered = list(lines)
        for name in self.names:
            filtered = [FILTERS[name](line) for line in filtered]
        return filtered

    def __bool__(self) -> bool:
        return bool(self.names)
