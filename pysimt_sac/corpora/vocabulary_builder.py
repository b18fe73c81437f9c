"""Counting words and writing vocabularies in pysimt's format. The only place where either is done.

Called by every `prepare` command and by `build-vocab`. Reads text files, writes one JSON file per vocabulary:
token -> "index count", most frequent first, words of equal frequency in the order of their first appearance.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pysimt_sac.engine.data.vocabulary import SPECIAL_TOKENS
from pysimt_sac.files import atomic_write


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs, words in order of first appearance."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def keep_frequent(counts: Counter[str], min_frequency: int = 0, max_words: int = 0) -> dict[str, int]:
    """The words worth an index, most frequent first, without the special tokens; 0 means no limit."""
    words = [
        (word, count)
        for word, count in counts.most_common()  # a stable sort: first appearance decides between equals
        if count >= min_frequency and word not in SPECIAL_TOKENS
    ]
    return dict(words[:max_words] if max_words else words)


def vocabulary_json(words: dict[str, int], with_special_tokens: bool = True) -> str:
    """The text of a vocabulary file."""
    special = SPECIAL_TOKENS if with_special_tokens else ()
    counted = [(token, 0) for token in special] + list(words.items())
    entries = {token: f"{index} {count}" for index, (token, count) in enumerate(counted)}
    return json.dumps(entries, ensure_ascii=False, indent=2)


def write_vocabulary(path: Path, words: dict[str, int], with_special_tokens: bool = True) -> None:
    """Write words and their counts, as `keep_frequent` returns them."""
    with atomic_write(path) as stream:
        stream.write(vocabulary_json(words, with_special_tokens))


def vocabulary_path(folder: Path, text_file: Path, min_frequency: int = 0, max_words: int = 0) -> Path:
    """Where the vocabulary of a text file belongs: `train.en` -> `train[-minN][-maxNtokens].vocab.en`."""
    stem = text_file.stem
    if min_frequency:
        stem += f"-min{min_frequency}"
    if max_words:
        stem += f"-max{max_words}tokens"
    return folder / f"{stem}.vocab{text_file.suffix}"
