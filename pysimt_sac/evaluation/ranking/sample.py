"""Human ranking as in the paper: which sentences to judge.

Two groups of sentences: with a *rare* source word (seen once in training), and with an *other* word (seen 10 times or
more; up to 100 by default, which gives the paper's average of about 40), these only where the systems' translations
differ. Words are drawn, each at most once, and then a sentence for each word; no sentence is drawn twice.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.scoring.texts import check_lengths

RARE, OTHER = "rare", "other"
GROUPS = (RARE, OTHER)


@dataclass(frozen=True)
class RankingOptions:
    """What to draw: how many sentences of each group, and which source frequencies make a word rare or other."""

    per_group: int = 50
    rare_frequency: int = 1
    other_least: int = 10
    other_most: int | None = 100
    seed: int = 1


@dataclass(frozen=True)
class RankingItem:
    """A sentence to judge. `order` says which system stands where: `order[0]` is shown first."""

    number: int
    group: str
    line: int
    word: str
    frequency: int
    order: tuple[str, ...]


def is_word(token: str) -> bool:
    """Whether it has a letter: nobody judges the translation of a comma."""
    return any(character.isalpha() for character in token)


def draw_items(
    training: Counter[str], sources: Sequence[str], outputs: Mapping[str, Sequence[str]], choice: RankingOptions
) -> list[RankingItem]:
    """Draw the sentences of both groups, shuffled together, with the systems shuffled in each."""
    if len(outputs) < 2:
        raise UserError("a ranking needs at least two systems")
    for name, lines in outputs.items():
        check_lengths(name, lines, "the source", sources)
    random_state = random.Random(choice.seed)
    differing = {line for line, texts in enumerate(zip(*outputs.values(), strict=True)) if len(set(texts)) > 1}
    most = choice.other_most or math.inf
    places: dict[str, dict[str, list[int]]] = {group: defaultdict(list) for group in GROUPS}
    for line, source in enumerate(sources):
        for word in sorted(set(source.split())):
            if not is_word(word):
                continue
            if training[word] == choice.rare_frequency:
                places[RARE][word].append(line)
            elif choice.other_least <= training[word] <= most and line in differing:
                places[OTHER][word].append(line)
    taken: set[int] = set()
    drawn = []
    for group in GROUPS:  # the rare ones first: there are fewer sentences that have one
        for word, line in draw_sentences(places[group], choice.per_group, taken, random_state):
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
    """Words with a sentence each, as many as wanted or as there are; their sentences are added to `taken`."""
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
