"""Vocabularies in pysimt's JSON format: token -> "index count"."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_json
from pysimt_sac.core.records import has_type

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
# Spaces, what a terminal takes for the beginning of a command, and halves of surrogate pairs.
NOT_IN_A_WORD = re.compile(r"[\s\x00-\x1f\x7f\x90\x9b\x9d\ud800-\udfff]")
ENTRY = re.compile(r"\s*(?P<index>-?\d{1,18})\s+(?P<count>-?\d{1,18})\s*")
BUILD_HINT = "build it with: pysimt build-vocab FILE -o FOLDER"


class Vocabulary:
    """A two-way mapping: `vocab['word']` is an index and `vocab[index]` a word, as in pysimt."""

    reads_plain_text = False  # whether sentences need no preparation, because it splits words into pieces itself

    def __init__(self, tokens: Sequence[str], counts: Sequence[int], name: str = "") -> None:
        self.tokens = list(tokens)
        self.counts = dict(zip(tokens, counts, strict=True))
        self.name = name
        self.index = {token: number for number, token in enumerate(tokens)}

    def difference_from(self, other: "Vocabulary") -> str:
        """Describe the first word that differs from another vocabulary; empty if none does."""
        for number, (theirs, ours) in enumerate(zip(other.tokens, self.tokens, strict=False)):
            if theirs != ours:
                return f"word {number} is {theirs!r} there and {ours!r} here"
        return "" if len(other) == len(self) else f"{len(other)} words there, {len(self)} here"

    @classmethod
    def read(cls, path: str | Path, short_list: int = 0) -> "Vocabulary":
        """Read a vocabulary file, or only its first `short_list` entries."""
        path = Path(path).expanduser()
        pairs = read_json(path, "vocabulary file", BUILD_HINT, object_pairs_hook=list)
        if not (isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs)):
            raise UserError("is not a JSON object of words", path, BUILD_HINT)
        entries = [parse_entry(token, value, path) for token, value in pairs]
        if short_list:
            if short_list <= len(SPECIAL_TOKENS):
                what = f"{short_list} leaves no word besides the {len(SPECIAL_TOKENS)} special tokens"
                raise UserError(what, "[model] short_list", "0 keeps all words")
            entries = entries[:short_list]
        check_entries(entries, path)
        entries.sort(key=lambda entry: entry[1])
        return cls([token for token, _, _ in entries], [count for _, _, count in entries], path.name)

    @classmethod
    def from_state(cls, state: Any, path: Path) -> "Vocabulary":
        """Return the vocabulary of a checkpoint; `path` is the checkpoint's."""
        parts = state if isinstance(state, dict) else {}
        tokens: Any = parts.get("tokens")
        counts: Any = parts.get("counts")
        if not (has_type(tokens, list[str]) and has_type(counts, list[int]) and len(tokens) == len(counts)):
            raise UserError("its vocabularies are damaged", path, "use an earlier checkpoint")
        check_entries([(token, index, 0) for index, token in enumerate(tokens)], path)
        return cls(tokens, counts, path.name)

    def sent_to_idxs(self, line: str, explicit_bos: bool = False, explicit_eos: bool = True) -> list[int]:
        """Return the indices of a sentence's words; unknown words become `<unk>`."""
        # A special token spelled out in the text is an unknown word, never padding or an end.
        numbers = [max(self.index.get(token, UNK), UNK) for token in line.split()]
        return [BOS] * explicit_bos + numbers + [EOS] * explicit_eos

    def idxs_to_sent(self, numbers: Iterable[int], debug: bool = False) -> str:
        """Return the words of a sentence up to its `<eos>`, or all of them with `debug`."""
        words = []
        for number in numbers:
            if number == EOS and not debug:
                break
            words.append(self.tokens[number])
        return " ".join(words)

    def state(self) -> dict[str, list[Any]]:
        """Return the whole vocabulary, so that a checkpoint can be used without vocabulary files."""
        return {"tokens": self.tokens, "counts": [self.counts[token] for token in self.tokens]}

    def __getitem__(self, key: str | int) -> int | str:
        return self.index[key] if isinstance(key, str) else self.tokens[key]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} words ({self.name!r})"


def parse_entry(token: str, value: Any, path: Path) -> tuple[str, int, int]:
    """Parse one entry of the file into (token, index, count)."""
    found = ENTRY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UserError(f'entry {token!r} is {value!r}, not "index count"', path, BUILD_HINT)
    return token, int(found["index"]), int(found["count"])


def check_entries(entries: list[tuple[str, int, int]], path: Path) -> None:
    """Check that indices count from 0, words and indices are unique, and special tokens are in place."""
    tokens: dict[str, int] = {}
    indices: dict[int, str] = {}
    for token, index, _ in entries:
        if token in tokens:
            raise UserError(f"{token!r} occurs twice", path, BUILD_HINT)
        if not token or NOT_IN_A_WORD.search(token):
            raise UserError(f"{token!r} cannot be one word of a line of text", path, BUILD_HINT)
        if index in indices:
            raise UserError(f"{token!r} and {indices[index]!r} have the same index {index}", path, BUILD_HINT)
        tokens[token], indices[index] = index, token
    for index, token in enumerate(SPECIAL_TOKENS):
        if tokens.get(token) != index:
            found = f"has it at {tokens[token]}" if token in tokens else "lacks it"
            raise UserError(f"{token} must have index {index}; this vocabulary {found}", path, BUILD_HINT)
    for index in range(len(entries)):
        if index not in indices:
            raise UserError(f"no word has index {index}, of {len(entries)}", path, BUILD_HINT)
