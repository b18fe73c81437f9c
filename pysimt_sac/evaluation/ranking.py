"""Human ranking as in the paper: which sentences to judge, and what the ranks say. `ranking_sheet` writes and reads.

Two groups of sentences: with a *rare* source word (seen once in training), and with an *other* word (seen 10 times or
more; up to 100 by default, which gives the paper's average of about 40), these only where the systems' translations
differ. Words are drawn, each at most once, and then a sentence for each word; no sentence is drawn twice.

A system's score is how often it was judged better than or equal to another one: on average per sentence, from 0 to the
number of other systems, as in the paper's table, and in percent of all comparisons.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pysimt_sac.errors import UserError

RARE, OTHER = "rare", "other"
GROUPS = (RARE, OTHER)


@dataclass(frozen=True)
class Choice:
    """What to draw: how many sentences of each group, and which source frequencies make a word rare or other."""

    per_group: int = 50
    rare_frequency: int = 1
    other_least: int = 10
    other_most: int | None = 100
    seed: int = 1


@dataclass(frozen=True)
class Item:
    """A sentence to judge. `order` says which system stands where: `order[0]` is shown first."""

    number: int
    group: str
    line: int
    word: str
    frequency: int
    order: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """The ranks that one person gave to the systems in one item, 1 the best; equal ranks are ties."""

    item: Item
    ranks: dict[str, int]


@dataclass(frozen=True)
class SystemRanking:
    """One system in one group of sentences."""

    system: str
    judgements: int
    score: float
    better_or_equal: float
    better: float
    mean_rank: float


@dataclass(frozen=True)
class PairRanking:
    """Two systems beside each other; p is that of a two-sided sign test, ties left out."""

    group: str
    first: str
    second: str
    first_better: int
    equal: int
    second_better: int
    p: float


@dataclass(frozen=True)
class RankingResult:
    """Systems by group ('rare', 'other' and 'all'), and every pair of systems over all sentences and in each group."""

    groups: dict[str, tuple[SystemRanking, ...]]
    pairs: tuple[PairRanking, ...]


def is_word(token: str) -> bool:
    """Whether it has a letter: nobody judges the translation of a comma."""
    return any(character.isalpha() for character in token)


def draw_items(
    training: Counter[str], sources: Sequence[str], outputs: Mapping[str, Sequence[str]], choice: Choice
) -> list[Item]:
    """Draw the sentences of both groups, shuffled together, with the systems shuffled in each."""
    if len(outputs) < 2:
        raise UserError("a ranking needs at least two systems")
    for name, lines in outputs.items():
        if len(lines) != len(sources):
            raise UserError(f"has {len(lines)} lines, but the source has {len(sources)}", name)
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
        for word, line in draw_words(places[group], choice.per_group, taken, random_state):
            order = list(outputs)
            random_state.shuffle(order)
            drawn.append((group, line, word, tuple(order)))
    random_state.shuffle(drawn)
    return [
        Item(number, group, line, word, training[word], order)
        for number, (group, line, word, order) in enumerate(drawn, 1)
    ]


def draw_words(
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


def score_ranking(judgements: Sequence[Judgement]) -> RankingResult:
    """How often each system is better or equal, in each group and in all."""
    if not judgements:
        raise UserError("no sentence has been judged", todo="fill in the columns 'rank A', 'rank B', ...")
    members = {"all": list(judgements)}
    for group in GROUPS:
        own = [judgement for judgement in judgements if judgement.item.group == group]
        if own:
            members[group] = own
    systems = sorted(judgements[0].ranks)
    groups = {group: tuple(rank_system(system, own) for system in systems) for group, own in members.items()}
    pairs = [
        rank_pair(group, first, second, own)
        for group, own in members.items()
        for first, second in combinations(systems, 2)
    ]
    return RankingResult(groups, tuple(pairs))


def rank_system(system: str, judgements: Sequence[Judgement]) -> SystemRanking:
    """One system against all others."""
    better_or_equal = better = comparisons = 0
    for judgement in judgements:
        for other, rank in judgement.ranks.items():
            if other != system:
                comparisons += 1
                better_or_equal += judgement.ranks[system] <= rank
                better += judgement.ranks[system] < rank
    return SystemRanking(
        system=system,
        judgements=len(judgements),
        score=better_or_equal / len(judgements),
        better_or_equal=100 * better_or_equal / comparisons,
        better=100 * better / comparisons,
        mean_rank=sum(judgement.ranks[system] for judgement in judgements) / len(judgements),
    )


def rank_pair(group: str, first: str, second: str, judgements: Sequence[Judgement]) -> PairRanking:
    """Two systems against each other."""
    wins = sum(judgement.ranks[first] < judgement.ranks[second] for judgement in judgements)
    losses = sum(judgement.ranks[first] > judgement.ranks[second] for judgement in judgements)
    equal = len(judgements) - wins - losses
    return PairRanking(group, first, second, wins, equal, losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """The probability that a fair coin falls at least so unevenly, to either side."""
    tosses = wins + losses
    tail = sum(math.comb(tosses, count) for count in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / math.pow(2, tosses))
