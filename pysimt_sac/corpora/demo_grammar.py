"""The grammar of the demo corpus: phrases and clauses in English and German.

German has agreement of gender, case and number, separable verbs, verb-second main clauses and verb-final subordinate
clauses.
"""

from dataclasses import dataclass

from pysimt_sac.corpora.demo_lexicon import Noun, Verb

NOMINATIVE, ACCUSATIVE, DATIVE = range(3)
SINGULAR_DETERMINERS = ("a", "the")

ARTICLES = {  # by case: nominative, accusative, dative
    ("a", "m"): ("ein", "einen", "einem"),
    ("a", "f"): ("eine", "eine", "einer"),
    ("a", "n"): ("ein", "ein", "einem"),
    ("the", "m"): ("der", "den", "dem"),
    ("the", "f"): ("die", "die", "der"),
    ("the", "n"): ("das", "das", "dem"),
}
ADJECTIVE_ENDINGS = {
    ("a", "m"): ("er", "en", "en"),
    ("a", "f"): ("e", "e", "en"),
    ("a", "n"): ("es", "es", "en"),
    ("the", "m"): ("e", "en", "en"),
    ("the", "f"): ("e", "e", "en"),
    ("the", "n"): ("e", "e", "en"),
}
PLURAL_ADJECTIVE_ENDINGS = ("e", "e", "en")
RELATIVE_PRONOUNS = {"m": "der", "f": "die", "n": "das"}
CONTRACTIONS = {"in dem": "im", "bei dem": "beim", "von dem": "vom"}


@dataclass(frozen=True)
class Phrase:
    """A phrase in both languages."""

    english: str
    german: str
    is_plural: bool = False


@dataclass(frozen=True)
class Clause:
    """Subject, verb, object and place."""

    subject: Phrase
    verb: Verb
    object: Phrase | None = None
    place: Phrase | None = None


def noun_phrase(
    noun: Noun, case: int, determiner: tuple[str, str] = ("a", ""), adjective: tuple[str, str] | None = None
) -> Phrase:
    """Build a noun phrase; the determiner is ("a", ""), ("the", "") or, for a plural, a number in both languages."""
    word, number = determiner
    if word in SINGULAR_DETERMINERS:
        german = [ARTICLES[word, noun.gender][case]]
        ending = ADJECTIVE_ENDINGS[word, noun.gender][case]
        german_noun = noun.german if case == NOMINATIVE else noun.german_oblique
        english_noun = noun.english
    else:
        german = [number + "n" if number.endswith("e") and case == DATIVE else number]
        ending = PLURAL_ADJECTIVE_ENDINGS[case]
        german_noun = dative_plural(noun.german_plural) if case == DATIVE else noun.german_plural
        english_noun = noun.english_plural
    english = [adjective[0]] if adjective else []
    german += [adjective[1] + ending] if adjective else []
    english.append(english_noun)
    german.append(german_noun)
    if word == "a" and english[0][0] in "aeiou":
        word = "an"
    return Phrase(" ".join([word, *english]), " ".join(german), word not in (*SINGULAR_DETERMINERS, "an"))


def dative_plural(plural: str) -> str:
    """Return the dative plural, which ends in n or s."""
    return plural if plural[-1] in "ns" else plural + "n"


def after_preposition(english: str, german: str, phrase: Phrase) -> Phrase:
    """Build a prepositional phrase, with German contractions."""
    joined = f"{german} {phrase.german}"
    for two_words, contracted in CONTRACTIONS.items():
        at_start, inside = joined.startswith(f"{two_words} "), f" {two_words} "
        if at_start:
            joined = contracted + joined[len(two_words) :]
        joined = joined.replace(inside, f" {contracted} ")
    return Phrase(f"{english} {phrase.english}", joined, phrase.is_plural)


def with_companion(head: Phrase, companion: Phrase) -> Phrase:
    """Attach a phrase in the dative: a man with a dog."""
    return Phrase(f"{head.english} with {companion.english}", f"{head.german} mit {companion.german}", head.is_plural)


def with_relative_clause(head: Phrase, gender: str, verb: Verb, thing: Phrase) -> Phrase:
    """Attach a relative clause whose pronoun agrees with the head."""
    pronoun = "die" if head.is_plural else RELATIVE_PRONOUNS[gender]
    english = f"{head.english} who {english_verb(head, verb)} {thing.english}"
    german = f"{head.german} , {pronoun} {thing.german} {verb.german_plural if head.is_plural else verb.german} ,"
    return Phrase(english, german, head.is_plural)


def english_verb(subject: Phrase, verb: Verb) -> str:
    """Return the progressive form."""
    return f"{'are' if subject.is_plural else 'is'} {verb.english}"


def join(*parts: str) -> str:
    """Join the non-empty parts."""
    return " ".join(part for part in parts if part)


def english_clause(clause: Clause, place_first: bool = False) -> str:
    """Build an English clause: subject, verb, object and place, or the place first."""
    place = clause.place.english if clause.place else ""
    thing = clause.object.english if clause.object else ""
    core = join(clause.subject.english, english_verb(clause.subject, clause.verb), thing)
    return f"{place} , {core}" if place and place_first else join(core, place)


def german_parts(clause: Clause) -> tuple[str, str, str]:
    """Return the finite verb, the object with its preposition, and the place."""
    verb = clause.verb.german_plural if clause.subject.is_plural else clause.verb.german
    thing = join(clause.verb.preposition, clause.object.german) if clause.object else ""
    return verb, thing, clause.place.german if clause.place else ""


def german_main_clause(clause: Clause, place_first: bool = False) -> str:
    """Build a verb-second clause; the particle of a separable verb comes last."""
    verb, thing, place = german_parts(clause)
    if place and place_first:
        return join(place, verb, clause.subject.german, thing, clause.verb.particle)
    return join(clause.subject.german, verb, thing, place, clause.verb.particle)


def german_inverted_clause(clause: Clause) -> str:
    """Build a main clause that follows a subordinate one, verb first."""
    verb, thing, place = german_parts(clause)
    return join(verb, clause.subject.german, thing, place, clause.verb.particle)


def german_subordinate_clause(clause: Clause) -> str:
    """Build a verb-final clause."""
    verb, thing, place = german_parts(clause)
    return join(clause.subject.german, thing, place, clause.verb.particle + verb)
