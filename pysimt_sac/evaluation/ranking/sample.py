"""Sample sentences for human ranking, as in the paper.

There are two groups of sentences. Those of the *rare* group contain a source word seen once in training. Those of the
*other* group contain a word seen 10 times or more (up to 100 by default, which gives the paper's average of about 40),
and the systems' hypotheses differ. Words are drawn without replacement, then a sentence for each, no sentence twice.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.scoring.texts import check_lengths

RARE, OTHER = "rare", "other"
GROUPS = (RARE, OTHER)


@dataclass(frozen=True)
class RankingOptions:
    """Sentences per group, and the training frequencies of rare and other words."""

    per_group: int = 50
    rare_frequency: int = 1
    other_least: int = 10
    other_most: int | None = 100
    seed: int = 1


@dataclass(frozen=True)
class RankingItem:
    """A sentence to rank. `order`: the systems in the order of the sheet."""

    number: int
    group: str
    line: int
    word: str
    frequency: int
    order: tuple[str, ...]


def is_word(token: str) -> bool:
    """Return whether a token contains a letter."""
    return any(character.isalpha() for character in token)


def draw_items(
    training: Counter[str], sources: Sequence[str], outputs: Mapping[str, Sequence[str]], options: RankingOptions
) -> list[RankingItem]:
    """Draw the sentences of both groups; shuffle them, and the systems within each."""
    if len(outputs) < 2:
        raise UserError("a ranking needs at least two systems")
    for name, lines in outputs.items():
        check_lengths(name, lines, "the source", sources)
    random_state = random.Random(options.seed)
    differing = {line for line, texts in enumerate(zip(*outputs.values(), strict=True)) if len(set(texts)) > 1}
    most = options.other_most or math.inf
    places: dict[str, dict[str, list[int]]] = {group: defaultdict(list) for group in GROUPS}
    for line, source in enumerate(sources):
        for word in sorted(set(source.split())):
            if not is_word(word):
                continue
            if training[word] == options.rare_frequency:
                places[RARE][word].append(line)
            elif options.other_least <= training[word] <= most and line in differing:
                places[OTHER][word].append(line)
    taken: set[int] = set()
    drawn = []
    for group in GROUPS:  # rare words first: fewer sentences contain one
        for word, line in draw_sentences(places[group], options.per_group, taken, random_state):
            order = list(outputs)
            random_state.shuffle(order)
            drawn.append((group, line, word, tuple(order)))
    random_state.shuffle(drawn)
    return [
        RankingItem(number, group, line, word, training[word], order)
        for number, (group, line, word, order) in enumerate(drawn, 1)
    ]


def draw_sentences(
    places: dict[str, list[int]], wanted: int, taken: set[int], random_state: random.Random
) -> list[tuple[str, int]]:
    """Draw up to `wanted` words, each with a sentence that is not in `taken`, and add the sentences to `taken`."""
    words = sorted(places)
    random_state.shuffle(words)
    found: list[tuple[str, int]] = []
    for word in words:
        free = [line for line in places[word] if line not in taken]
        if free and len(found) < wanted:
            line = random_state.choice(free)
            taken.add(line)
            found.append((word, line))
    return found
