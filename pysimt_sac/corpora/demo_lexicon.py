"""The lexicon of the demo corpus: word types, and the words themselves, from the tables in demo_words.toml."""

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Noun:
    """A noun in both languages. german_oblique: the singular in cases other than the nominative (den jungen)."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    german_oblique: str


@dataclass(frozen=True)
class Verb:
    """A verb in both languages.

    particle: of a separable verb (hebt ... auf); preposition: before the German object, which is in the accusative.
    """

    english: str
    german: str
    german_plural: str
    particle: str = ""
    preposition: str = ""


@dataclass(frozen=True)
class Topic:
    """Nouns that occur together: people, things that can be held, larger things, places."""

    people: tuple[Noun, ...]
    small: tuple[Noun, ...]
    large: tuple[Noun, ...]
    places: tuple[Noun, ...]


@dataclass(frozen=True)
class Ambiguous:
    """A source word with a dominant and a rare sense; the topic of the sentence decides which."""

    dominant: Noun
    dominant_topic: str
    rare: Noun
    rare_topic: str
    rare_share: float
    is_large: bool


def parse_nouns(table: str) -> tuple[Noun, ...]:
    """Parse nouns, separated by commas: `english/plural german/plural gender [oblique]`."""
    nouns = []
    for entry in table.split(","):
        english, german, gender, *oblique = (field.replace("_", " ") for field in entry.split())
        english_singular, english_plural = english.split("/")
        singular, plural = german.split("/")
        case_form = oblique[0] if oblique else singular
        nouns.append(Noun(english_singular, english_plural, singular, plural, gender, case_form))
    return tuple(nouns)


def parse_topic(table: str) -> Topic:
    """Parse a topic's four lists of nouns, separated by semicolons."""
    return Topic(*(parse_nouns(nouns) for nouns in table.split(";")))


def parse_ambiguous(table: str) -> tuple[Ambiguous, ...]:
    """Parse lines: `english; dominant gender topic; rare gender topic; share of the rare sense; small|large`."""
    words = []
    for line in table.strip().splitlines():
        english, dominant, rare, share, size = line.split(";")
        senses = []
        for sense in (dominant, rare):
            german, gender, topic = sense.split()
            nominative, _, oblique = german.partition("/")
            senses.append((Noun(english, "", nominative, "", gender, oblique or nominative), topic))
        words.append(Ambiguous(*senses[0], *senses[1], float(share), size.strip() == "large"))
    return tuple(words)


TABLES = tomllib.loads(resources.files(__package__).joinpath("demo_words.toml").read_text(encoding="utf-8"))

VERBS_FOR_SMALL, VERBS_FOR_LARGE, VERBS_FOR_ALL, VERBS_OF_PLACE, (WEARING,) = (
    tuple(Verb(*forms) for forms in table) for table in TABLES["verbs"].values()
)
OTHER_VERBS = {english: (Verb(*forms), share) for english, (forms, share) in TABLES["other_verbs"].items()}
PREPOSITIONS_OF_PLACE: dict[str, tuple[str, str, float]] = {
    english: tuple(forms) for english, forms in TABLES["prepositions"].items()
}
NUMBERS = tuple((english, *forms) for english, forms in TABLES["numbers"].items())
ADJECTIVES_OF_PEOPLE, ADJECTIVES_OF_THINGS = (
    tuple((english, german) for english, german in table) for table in TABLES["adjectives"].values()
)
TOPICS = {name: parse_topic(table) for name, table in TABLES["topics"].items()}
GENERIC = TOPICS.pop("generic")
CLOTHES, UNSEEN_PEOPLE, UNSEEN_PLACES = (parse_nouns(table) for table in TABLES["nouns"].values())
AMBIGUOUS = parse_ambiguous(TABLES["ambiguous"]["words"])
