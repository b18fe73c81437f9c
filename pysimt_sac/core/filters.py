"""Post-processing of hypotheses and references before scoring: pysimt's filters by name."""

import re
from collections.abc import Callable, Iterable, Sequence

from pysimt_sac.core.errors import UserError, did_you_mean

FILTERS: dict[str, Callable[[str], str]] = {
    # What marks a piece that the next one continues (subword-nmt) or that continues the last one (WordPiece).
    "de-bpe": lambda line: line.replace("@@ ", "").replace("@@", "").replace(" ##", ""),
    # SentencePiece's `▁`, which begins a word.
    "de-spm": lambda line: line.replace(" ", "").replace("▁", " ").strip(),
    # `<tag:morpheme>` units.
    "de-segment": lambda line: re.sub(r" *<.*?:(.*?)>", r"\1", line),
    # Split German compounds.
    "de-compound": lambda line: line.replace(" @@ ", "").replace(" @@", "").replace(" @", "").replace("@ ", ""),
    # The Moses tokeniser's split hyphens: `foo @-@ bar`.
    "de-hyphen": lambda line: re.sub(r"\s*@-@\s*", "-", line),
    # Characters; `<s>` stands for the space.
    "c2w": lambda line: line.replace(" ", "").replace("<s>", " ").strip(),
    "lower": str.lower,
    "upper": str.upper,
    # Two-letter tags such as `<de>`.
    "de-tag": lambda line: re.sub(r"<[a-zA-Z][a-zA-Z]>", "", line),
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
