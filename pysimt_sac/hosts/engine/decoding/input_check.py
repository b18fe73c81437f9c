"""Does a text resemble a model's training text? A model answers unknown words with fluent inventions.

The vocabulary shows which words the training text had, whether it had upper case, whether punctuation was split off,
whether words were split into subwords, and how many new words to expect in another text of its kind.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pysimt_sac.core.vocabulary import SPECIAL_TOKENS, Vocabulary

TOLERATED = 0.05  # share of unknown words that never causes a warning ...
TIMES = 3  # ... nor does this many times the expected share
CHANCE = 0.01  # warn if so many unknown words have a lower probability under the tolerated share
RARE = 5  # vocabularies leave out words that occur less often, and rarely others
REMARKABLE = 0.01  # share of words with upper case, or with trailing punctuation
PUNCTUATION = ".,!?;:"
PIECE = "@@"


def expected_unknown(counts: Iterable[int]) -> float:
    """Estimate the share of unknown words from how often each known word occurs in the training text.

    A new text has as many new words as the training text has words seen once (Good-Turing). If the vocabulary leaves
    out words seen less than m times, their number follows from those seen m times: by Zipf's law n_r = K / (r (r + 1))
    words are seen r times, which make up K / (r + 1) of the text's words. A vocabulary without rare words comes from a
    text that has none, or is not a vocabulary of words.
    """
    sizes = Counter(count for count in counts if count > 0)
    least = min(sizes, default=0)
    if not 0 < least <= RARE:
        return 0.0
    k = sizes[least] * least * (least + 1)
    left_out = sum(k / (seen + 1) for seen in range(1, least))
    n_words = sum(count * size for count, size in sizes.items()) + left_out
    return min(1.0, (k / 2 + left_out) / n_words)


def chance_of(n_unknown: int, n_words: int, share: float) -> float:
    """Return the probability of at least `n_unknown` unknown words, if each is unknown with probability `share`."""
    if share >= 1 or n_unknown <= share * n_words:  # no more than the mean
        return 1.0
    total = 0.0
    for found in range(n_unknown, n_words + 1):
        log_choose = math.lgamma(n_words + 1) - math.lgamma(found + 1) - math.lgamma(n_words - found + 1)
        term = math.exp(log_choose + found * math.log(share) + (n_words - found) * math.log1p(-share))
        total += term
        if term < 1e-6 * total:  # beyond the mean, terms only fall
            break
    return total


class InputCheck:
    """Counts source words as they arrive, and warns once if they are unlike the training text."""

    def __init__(self, vocab: Any) -> None:
        """vocab: of the source, the engine's or pysimt's, which has no word counts."""
        known = [str(vocab[number]) for number in range(len(SPECIAL_TOKENS), len(vocab))]
        self.known = set(known)
        self.has_upper = any(token != token.lower() for token in known)
        self.has_pieces = any(token.endswith(PIECE) for token in known)
        counts = vocab.counts if isinstance(vocab, Vocabulary) else {}
        self.expected = expected_unknown(counts.get(token, 0) for token in known)
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.warned = isinstance(vocab, Vocabulary) and vocab.reads_plain_text  # it knows every word

    def __call__(self, lines: Iterable[str]) -> str:
        """Return a warning, or an empty string, also if there has already been one."""
        if self.warned:
            return ""
        for line in lines:
            for word in line.split():
                self.count(word)
        findings = self.findings()
        if not findings:
            return ""
        self.warned = True
        hint = "Unknown words are guessed; prepare the text like the training text"
        return f"Warning: the source is unlike the model's training text: {'; '.join(findings)}. {hint}."

    def count(self, word: str) -> None:
        """Record what is unusual about a word."""
        bare = word.rstrip(PUNCTUATION)
        marks = {
            "words": True,
            "unknown": word not in self.known,
            "upper": not self.has_upper and word != word.lower(),
            "punctuated": word not in self.known and bare != word and bool({bare, bare.lower()} & self.known),
            "pieces": word.endswith(PIECE),
        }
        for mark in (mark for mark, found in marks.items() if found):
            self.counts[mark] += 1
            self.examples.setdefault(mark, word)

    def findings(self) -> list[str]:
        """Return everything unusual about the words so far, with figures."""
        counts, n_words, found = self.counts, self.counts["words"], []
        tolerated = max(TOLERATED, TIMES * self.expected)
        if chance_of(counts["unknown"], n_words, tolerated) < CHANCE:
            share, of_all = counts["unknown"] / max(1, n_words), f"{counts['unknown']} of {n_words} words"
            expected = f", about {self.expected:.1%} expected" if self.expected else ""
            found.append(f"{of_all} are unknown ({share:.0%}{expected}), e.g. {self.examples['unknown']!r}")
            if self.has_pieces and not counts["pieces"]:
                found.append(f"the vocabulary has subwords (such as 'un{PIECE}'), the source has none")
        if counts["upper"] > REMARKABLE * n_words:
            example = self.examples["upper"]
            found.append(f"{counts['upper']} words have upper case, the vocabulary has none, e.g. {example!r}")
        if counts["punctuated"] > REMARKABLE * n_words:
            example = self.examples["punctuated"]
            apart = f"{example.rstrip(PUNCTUATION)} {example[len(example.rstrip(PUNCTUATION)) :]}"
            found.append(f"{counts['punctuated']} words end in punctuation, e.g. {example!r}, not {apart!r}")
        return found
