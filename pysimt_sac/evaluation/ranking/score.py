"""Scores of human rankings, as in the paper.

A system's score is the number of other systems that it is ranked better than or equal to, averaged over sentences;
`better_or_equal` is the same in percent of the other systems. Judgements of the same sentence are averaged first, so
every sentence has the same weight, however many annotators ranked it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from statistics import fmean

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.ranking.sample import GROUPS, RankingItem


@dataclass(frozen=True)
class Judgement:
    """One annotator's ranks of the systems in one item; 1 is best, equal ranks are ties."""

    item: RankingItem
    ranks: dict[str, int]


@dataclass(frozen=True)
class SystemRanking:
    """One system's results on one group of sentences."""

    system: str
    judgements: int
    score: float
    better_or_equal: float
    better: float
    mean_rank: float


@dataclass(frozen=True)
class PairRanking:
    """A pair of systems; p is from a two-sided sign test without ties, one vote per sentence."""

    group: str
    first: str
    second: str
    first_better: int
    equal: int
    second_better: int
    p: float


@dataclass(frozen=True)
class RankingResult:
    """All systems and all pairs of systems, by group: `all`, `rare` and `other`."""

    groups: dict[str, tuple[SystemRanking, ...]]
    pairs: tuple[PairRanking, ...]


def score_ranking(judgements: Sequence[Judgement]) -> RankingResult:
    """Score all systems, on each group and on all sentences."""
    if not judgements:
        raise UserError("no sentence is ranked", hint="fill in the columns 'rank A', 'rank B', ...")
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
    """Score one system."""
    better_or_equal, better = [], []
    for judgement in judgements:
        own = judgement.ranks[system]
        others = [rank for other, rank in judgement.ranks.items() if other != system]
        better_or_equal.append(sum(own <= rank for rank in others))
        better.append(sum(own < rank for rank in others))
    score, percent = sentence_mean(judgements, better_or_equal), 100 / (len(judgements[0].ranks) - 1)
    return SystemRanking(
        system=system,
        judgements=len(judgements),
        score=score,
        better_or_equal=percent * score,
        better=percent * sentence_mean(judgements, better),
        mean_rank=sentence_mean(judgements, [judgement.ranks[system] for judgement in judgements]),
    )


def sentence_mean(judgements: Sequence[Judgement], values: Sequence[int]) -> float:
    """Average `values`, one for each judgement, first within sentences, then over sentences."""
    by_sentence: dict[int, list[int]] = defaultdict(list)
    for judgement, value in zip(judgements, values, strict=True):
        by_sentence[judgement.item.number].append(value)
    return fmean(map(fmean, by_sentence.values()))


def rank_pair(group: str, first: str, second: str, judgements: Sequence[Judgement]) -> PairRanking:
    """Compare two systems. For p, each sentence has one vote, that of the majority of its annotators."""
    wins = losses = 0
    votes: Counter[int] = Counter()
    for judgement in judgements:
        own, other = judgement.ranks[first], judgement.ranks[second]
        wins, losses = wins + (own < other), losses + (own > other)
        votes[judgement.item.number] += (own < other) - (own > other)
    p = sign_test(sum(vote > 0 for vote in votes.values()), sum(vote < 0 for vote in votes.values()))
    return PairRanking(group, first, second, wins, len(judgements) - wins - losses, losses, p)


def sign_test(wins: int, losses: int) -> float:
    """Compute the two-sided p of a sign test."""
    trials = wins + losses
    tail = sum(math.comb(trials, count) for count in range(min(wins, losses) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**trials)))
