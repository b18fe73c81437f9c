"""Count words and write vocabularies in pysimt's format.

A vocabulary is a JSON file, token -> "index count", most frequent words first, ties in order of first appearance.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pysimt_sac.core.files import atomic_write
from pysimt_sac.core.vocabulary import SPECIAL_TOKENS


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count words, in order of first appearance."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def keep_frequent(counts: Counter[str], min_frequency: int = 0, max_words: int = 0) -> dict[str, int]:
    """Return the words of the vocabulary, most frequent first, without special tokens; 0 means no limit."""
    words = [
        (word, count)
        for word, count in counts.most_common()  # stable: ties in order of first appearance
        if count >= min_frequency and word not in SPECIAL_TOKENS
    ]
    return dict(words[:max_words] if max_words else words)


def vocabulary_json(words: dict[str, int], with_special_tokens: bool = True) -> str:
    """Return the text of a vocabulary file."""
    special = SPECIAL_TOKENS if with_special_tokens else ()
    counted = [(token, 0) for token in special] + list(words.items())
    entries = {token: f"{index} {count}" for index, (token, count) in enumerate(counted)}
    return json.dumps(entries, ensure_ascii=False, indent=2)


def write_vocabulary(path: Path, words: dict[str, int], with_special_tokens: bool = True) -> None:
    """Write the words and counts that `keep_frequent` returns."""
    with atomic_write(path) as stream:
        stream.write(vocabulary_json(words, with_special_tokens))


def vocabulary_path(folder: Path, text_file: Path, min_frequency: int = 0, max_words: int = 0) -> Path:
    """Return a text's vocabulary path: `train.en` or `train.en.gz` -> `train[-minN][-maxNtokens].vocab.en`."""
    text_file = text_file.with_suffix("") if text_file.suffix == ".gz" else text_file
    stem = text_file.stem
    if min_frequency:
        stem += f"-min{min_frequency}"
    if max_words:
        stem += f"-max{max_words}tokens"
    return folder / f"{stem}.vocab{text_file.suffix}"
