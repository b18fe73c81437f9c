"""Generate the captions of the demo corpus.

The other words of a sentence disambiguate an ambiguous word (bank, match, ...): people, things and places of one topic
go with the financial bank, those of another with the river bank. Out-of-domain captions have structures that are rare
in training, mixed topics, a flat word distribution and some unknown words; both senses are equally likely.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pysimt_sac.corpora import demo_lexicon as lexicon
from pysimt_sac.corpora.demo_grammar import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
    SINGULAR_DETERMINERS,
    Clause,
    Phrase,
    after_preposition,
    english_clause,
    german_inverted_clause,
    german_main_clause,
    german_subordinate_clause,
    noun_phrase,
    with_companion,
    with_relative_clause,
)
from pysimt_sac.corpora.demo_lexicon import GENERIC, TOPICS, Ambiguous, Noun, Topic, Verb

T = TypeVar("T")


@dataclass(frozen=True)
class Caption:
    """A sentence pair and the ambiguous word in it, if any, with its translation."""

    english: str
    german: str
    word: str = ""
    translation: str = ""


@dataclass(frozen=True)
class Domain:
    """Parameters of a domain: probabilities, unless noted otherwise."""

    ambiguous: float = 0.8
    two_clauses: float = 0.15
    subordinate_first: float = 0.05
    place_first: float = 0.05
    coordination: float = 0.0
    companion: float = 0.2
    relative_clause: float = 0.12
    free_word_order: float = 0.25
    decoy: float = 0.08
    unseen: float = 0.0
    flatness: float = 0.0  # 0: Zipf-like word distribution, 1: uniform
    rare_share: float | None = None  # None: the word's own
    foreign_topics: bool = False  # neutral words come from other topics, not from GENERIC


IN_DOMAIN = Domain()
OUT_OF_DOMAIN = Domain(
    two_clauses=0.35,
    subordinate_first=0.35,
    place_first=0.35,
    coordination=0.3,
    companion=0.4,
    relative_clause=0.25,
    unseen=0.3,
    flatness=1.0,
    rare_share=0.5,
    foreign_topics=True,
)

# Places of the disambiguating words, their weights, and the probability of a further cue in each place.
CUE_PLACES = ("subject", "place", "second clause")
CUE_WEIGHTS = (0.4, 0.3, 0.3)
MORE_CUES = 0.35


class CaptionWriter:
    """Writes captions of one domain."""

    def __init__(self, rng: random.Random, domain: Domain) -> None:
        self.rng = rng
        self.domain = domain

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.rng.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Draw an item; earlier ones are more likely unless the domain is flat."""
        weights = [(1 / (rank + 1)) ** (1.5 * (1 - self.domain.flatness)) for rank in range(len(items))]
        return self.rng.choices(items, weights)[0]

    def caption(self) -> Caption:
        """Generate a sentence pair."""
        if not self.chance(self.domain.ambiguous):
            topic = TOPICS[self.rng.choice(list(TOPICS))]
            cues = {place for place in CUE_PLACES if self.chance(0.5)}
            return self.sentence(topic, None, cues, None)
        entry = self.rng.choice(lexicon.AMBIGUOUS)
        is_rare = self.chance(entry.rare_share if self.domain.rare_share is None else self.domain.rare_share)
        noun, topic, other = entry.dominant, TOPICS[entry.dominant_topic], TOPICS[entry.rare_topic]
        if is_rare:
            noun, topic, other = entry.rare, other, topic
        cues = {self.rng.choices(CUE_PLACES, CUE_WEIGHTS)[0]}
        cues |= {place for place in CUE_PLACES if self.chance(MORE_CUES)}
        decoy = None
        if self.chance(self.domain.decoy):  # one cue for the wrong sense, two for the right one
            cues, decoy = {"place", "second clause"}, other
        caption = self.sentence(topic, entry if entry.dominant is noun else exchange_senses(entry), cues, decoy)
        return replace(caption, word=noun.english, translation=noun.german_oblique)

    def sentence(self, topic: Topic, entry: Ambiguous | None, cues: set[str], decoy: Topic | None) -> Caption:
        """Generate a caption with topic words in the places `cues`; the ambiguous word is the entry's dominant noun."""
        neutral = self.neutral_topic(topic, entry)
        subject = self.subject(topic if "subject" in cues else neutral, decoy)
        place = self.place(topic if "place" in cues else neutral)
        if entry is None:
            first = self.free_clause(subject, topic if "subject" in cues else neutral, place)
        else:
            first = self.clause_about(entry, subject, place if "place" in cues or self.chance(0.3) else None)
        if "second clause" not in cues and not self.chance(self.domain.two_clauses):
            return self.one_clause(first)
        source = topic if "second clause" in cues else neutral
        other_subject = self.subject(self.neutral_topic(topic, entry), None)
        if self.chance(0.4):
            second = self.free_clause(self.subject(source, None), neutral, None)
        else:
            second = Clause(other_subject, *self.verb_and_object(source))
        return self.two_clauses(first, second)

    def neutral_topic(self, topic: Topic, entry: Ambiguous | None) -> Topic:
        """Return GENERIC or, out of domain, possibly a topic of neither sense."""
        if not self.domain.foreign_topics:
            return GENERIC
        excluded = {entry.dominant_topic, entry.rare_topic} if entry else set()
        others = [other for name, other in TOPICS.items() if name not in excluded and other is not topic]
        return self.rng.choice([*others, GENERIC, GENERIC])

    def subject(self, topic: Topic, decoy: Topic | None) -> Phrase:
        """Generate a subject, possibly plural or with a companion or relative clause."""
        noun = self.pick(topic.people)
        if topic is GENERIC and self.chance(self.domain.unseen):
            noun = self.rng.choice(lexicon.UNSEEN_PEOPLE)
        number = self.rng.choices([("a", ""), ("the", ""), self.number()], (0.65, 0.15, 0.2))[0]
        phrase = noun_phrase(noun, NOMINATIVE, number, self.adjective(lexicon.ADJECTIVES_OF_PEOPLE, 0.35))
        if decoy is not None or self.chance(self.domain.companion):
            companion = self.pick(decoy.small if decoy is not None else GENERIC.small)
            phrase = with_companion(phrase, self.thing(companion, DATIVE))
        elif self.chance(self.domain.relative_clause):
            clothing = self.thing(self.pick(lexicon.CLOTHES), ACCUSATIVE)
            phrase = with_relative_clause(phrase, noun.gender, lexicon.WEARING, clothing)
        return phrase

    def adjective(self, adjectives: Sequence[tuple[str, str]], probability: float) -> tuple[str, str] | None:
        """Draw an adjective with the given probability."""
        return self.pick(adjectives) if self.chance(probability) else None

    def number(self) -> tuple[str, str]:
        """Draw a number word and one of its translations."""
        english, usual, other, share = self.pick(lexicon.NUMBERS)
        return english, other if self.chance(share) else usual

    def thing(self, noun: Noun, case: int, may_be_plural: bool = True) -> Phrase:
        """Generate a noun phrase for a thing, possibly plural."""
        determiner = ("the", "") if self.chance(0.3) else ("a", "")
        if may_be_plural and self.chance(0.15):
            determiner = self.number()
        return noun_phrase(noun, case, determiner, self.adjective(lexicon.ADJECTIVES_OF_THINGS, 0.4))

    def place(self, topic: Topic) -> Phrase:
        """Generate a place with a preposition, in the dative."""
        noun = self.pick(topic.places)
        if topic is GENERIC and self.chance(self.domain.unseen):
            noun = self.rng.choice(lexicon.UNSEEN_PLACES)
        determiner = (self.rng.choices(SINGULAR_DETERMINERS, (0.3, 0.7))[0], "")
        phrase = noun_phrase(noun, DATIVE, determiner, self.adjective(lexicon.ADJECTIVES_OF_THINGS, 0.2))
        return self.located(phrase, list(lexicon.PREPOSITIONS_OF_PLACE))

    def located(self, phrase: Phrase, prepositions: Sequence[str]) -> Phrase:
        """Add one of the prepositions to a phrase in the dative."""
        english = self.pick(prepositions)
        usual, other, share = lexicon.PREPOSITIONS_OF_PLACE[english]
        return after_preposition(english, other if self.chance(share) else usual, phrase)

    def translated(self, verb: Verb) -> Verb:
        """Return the verb with one of its translations."""
        other, share = lexicon.OTHER_VERBS.get(verb.english, (verb, 0.0))
        return other if self.chance(share) else verb

    def verb_and_object(self, topic: Topic) -> tuple[Verb, Phrase]:
        """Draw a verb, and one of the topic's things as its object."""
        is_small = self.chance(0.6)
        noun = self.pick(topic.small if is_small else topic.large)
        specific = lexicon.VERBS_FOR_SMALL if is_small else lexicon.VERBS_FOR_LARGE
        verb = self.pick(specific if self.chance(0.6) else lexicon.VERBS_FOR_ALL)
        return self.translated(verb), self.thing(noun, ACCUSATIVE)

    def free_clause(self, subject: Phrase, topic: Topic, place: Phrase | None) -> Clause:
        """Generate a clause without an ambiguous word."""
        if self.chance(0.5):
            where = place or self.place(topic)
            return Clause(subject, self.translated(self.pick(lexicon.VERBS_OF_PLACE)), place=where)
        return Clause(subject, *self.verb_and_object(topic), place=place if self.chance(0.5) else None)

    def clause_about(self, entry: Ambiguous, subject: Phrase, place: Phrase | None) -> Clause:
        """Generate a clause with the ambiguous word as object or, if it is large and no place is given, as place.

        Verbs and prepositions are the same for both senses, so they do not disambiguate.
        """
        noun = entry.dominant
        if entry.is_large and place is None and self.chance(0.6):
            nearby = [preposition for preposition in lexicon.PREPOSITIONS_OF_PLACE if preposition != "in"]
            where = self.located(noun_phrase(noun, DATIVE, ("the", "")), nearby)
            return Clause(subject, self.translated(self.pick(lexicon.VERBS_OF_PLACE)), place=where)
        verb = self.translated(self.pick(lexicon.VERBS_FOR_ALL))
        return Clause(subject, verb, self.thing(noun, ACCUSATIVE, may_be_plural=False), place)

    def one_clause(self, clause: Clause) -> Caption:
        """Write a caption of one main clause; German may put the place first even if English does not."""
        place_first = clause.place is not None and self.chance(self.domain.place_first)
        german_place_first = place_first or (clause.place is not None and self.chance(self.domain.free_word_order))
        return caption(english_clause(clause, place_first), german_main_clause(clause, german_place_first))

    def two_clauses(self, first: Clause, second: Clause) -> Caption:
        """Write a caption of two clauses, the second coordinate or subordinate."""
        if self.chance(self.domain.coordination):
            english = f"{english_clause(first)} and {english_clause(second)}"
            return caption(english, f"{german_main_clause(first)} und {german_main_clause(second)}")
        if self.chance(self.domain.subordinate_first):
            english = f"while {english_clause(second)} , {english_clause(first)}"
            return caption(english, f"während {german_subordinate_clause(second)} , {german_inverted_clause(first)}")
        english = f"{english_clause(first)} while {english_clause(second)}"
        return caption(english, f"{german_main_clause(first)} , während {german_subordinate_clause(second)}")


def exchange_senses(entry: Ambiguous) -> Ambiguous:
    """Swap the two senses of a word."""
    return replace(
        entry,
        dominant=entry.rare,
        dominant_topic=entry.rare_topic,
        rare=entry.dominant,
        rare_topic=entry.dominant_topic,
    )


def caption(english: str, german: str) -> Caption:
    """Add full stops and remove doubled commas."""
    return Caption(f"{english} .", f"{german} .".replace(" , ,", " ,").replace(" , .", " ."))
