"""The lexicon of the demo corpus: word types, parsers for the word tables, verbs, adjectives and prepositions.

The nouns are in `demo_nouns`. In tables, an underscore is a space. Lists are ordered by frequency.
"""

from dataclasses import dataclass


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


VERBS_FOR_SMALL = (
    Verb("holding", "hält", "halten"),
    Verb("carrying", "trägt", "tragen"),
    Verb("buying", "kauft", "kaufen"),
    Verb("picking up", "hebt", "heben", particle="auf"),
    Verb("bringing along", "bringt", "bringen", particle="mit"),
    Verb("selling", "verkauft", "verkaufen"),
    Verb("throwing away", "wirft", "werfen", particle="weg"),
)
VERBS_FOR_LARGE = (
    Verb("cleaning", "putzt", "putzen"),
    Verb("watching", "beobachtet", "beobachten"),
    Verb("looking for", "sucht", "suchen"),
    Verb("finding", "findet", "finden"),
)
VERBS_FOR_ALL = (
    Verb("looking at", "betrachtet", "betrachten"),
    Verb("photographing", "fotografiert", "fotografieren"),
    Verb("pointing at", "zeigt", "zeigen", preposition="auf"),
    Verb("drawing", "zeichnet", "zeichnen"),
    Verb("talking about", "spricht", "sprechen", preposition="über"),
    Verb("touching", "berührt", "berühren"),
    Verb("waiting for", "wartet", "warten", preposition="auf"),
    Verb("thinking of", "denkt", "denken", preposition="an"),
)
VERBS_OF_PLACE = (
    Verb("standing", "steht", "stehen"),
    Verb("sitting", "sitzt", "sitzen"),
    Verb("waiting", "wartet", "warten"),
    Verb("walking", "geht", "gehen"),
    Verb("playing", "spielt", "spielen"),
    Verb("sleeping", "schläft", "schlafen"),
    Verb("singing", "singt", "singen"),
    Verb("arriving", "kommt", "kommen", particle="an"),
)
WEARING = Verb("wearing", "trägt", "tragen")

# Alternative translations: the usual one, the other one, and the probability of the other one.
PREPOSITIONS_OF_PLACE = {
    "in": ("in", "in", 0.0),
    "next to": ("neben", "neben", 0.0),
    "in front of": ("vor", "vor", 0.0),
    "behind": ("hinter", "hinter", 0.0),
    "near": ("bei", "in der nähe von", 0.35),
}
NUMBERS = (
    ("two", "zwei", "zwei", 0.0),
    ("several", "mehrere", "einige", 0.35),
    ("three", "drei", "drei", 0.0),
    ("four", "vier", "vier", 0.0),
)
OTHER_VERBS = {
    "looking at": (Verb("looking at", "sieht", "sehen", particle="an"), 0.35),
    "drawing": (Verb("drawing", "malt", "malen"), 0.35),
    "talking about": (Verb("talking about", "redet", "reden", preposition="über"), 0.35),
    "walking": (Verb("walking", "läuft", "laufen"), 0.35),
    "carrying": (Verb("carrying", "schleppt", "schleppen"), 0.35),
    "playing": (Verb("playing", "tobt", "toben"), 0.35),
}

ADJECTIVES_OF_PEOPLE = (
    ("young", "jung"),
    ("old", "alt"),
    ("little", "klein"),
    ("happy", "fröhlich"),
    ("tired", "müd"),
    ("tall", "groß"),
    ("strong", "stark"),
    ("friendly", "freundlich"),
)
ADJECTIVES_OF_THINGS = (
    ("red", "rot"),
    ("white", "weiß"),
    ("big", "groß"),
    ("old", "alt"),
    ("blue", "blau"),
    ("small", "klein"),
    ("black", "schwarz"),
    ("green", "grün"),
    ("yellow", "gelb"),
    ("new", "neu"),
    ("strange", "seltsam"),
    ("dirty", "schmutzig"),
    ("beautiful", "schön"),
)
