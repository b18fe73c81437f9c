"""Texts to score: generated references, and outputs made by damaging them."""

import random
from collections.abc import Callable

import pytest

WORDS = [
    f"{start}{end}"
    for start in ["ein", "zwei", "mann", "frau", "hund", "ball", "auf", "rot", "blau", "im", "park", "steht"]
    for end in ("", "e", "n")
]


def make_references(sentences: int, seed: int = 0) -> tuple[str, ...]:
    rng = random.Random(seed)
    return tuple(" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 14))) + " ." for _ in range(sentences))


def damage(references: tuple[str, ...], seed: int, noise: float) -> tuple[str, ...]:
    """Replace, drop and move words; every line keeps at least one word."""
    rng = random.Random(seed)
    lines = []
    for reference in references:
        words = [rng.choice(WORDS) if rng.random() < noise else word for word in reference.split()]
        words = [word for word in words if rng.random() > noise / 3] or words[:1]
        if rng.random() < noise and len(words) > 3:
            cut = rng.randrange(1, len(words) - 1)
            words = words[cut:] + words[:cut]
        lines.append(" ".join(words))
    return tuple(lines)


@pytest.fixture
def references() -> tuple[str, ...]:
    return make_references(300)


@pytest.fixture
def output(references: tuple[str, ...]) -> Callable[[int, float], tuple[str, ...]]:
    """An output by seed and noise."""

    def output_of(seed: int, noise: float = 0.2) -> tuple[str, ...]:
        return damage(references, seed, noise)

    return output_of
