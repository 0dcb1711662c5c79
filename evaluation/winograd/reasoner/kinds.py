"""Abstraction of entities to types by WordNet, and agreement of a pronoun with them in number, gender and animacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hapax.evaluation.winograd.reasoner.parsing import Parse, Token
from hapax.evaluation.winograd.reasoner.wordnet import SENSES, WordNet

PERSON, ANIMAL, GROUP = "person", "animal", "group"
_BEINGS = {
    "person": PERSON,
    "animal": ANIMAL,
    "group": GROUP,
    "social group": GROUP,
    "people": GROUP,
    "administrative district": GROUP,
    "country": GROUP,
    "imaginary being": PERSON,
    "spiritual being": PERSON,  # vampires, elves and gods
    "automaton": ANIMAL,  # robots, of which both `he` and `it` are said
    "operator": PERSON,  # drivers are no kind of person in WordNet
}
_GENDERS = {"male": "male", "female": "female"}
_AMOUNT_WORDS = """
    lot number mass couple series majority group bunch pair rest people police variety million hundred
    thousand dozen billion
"""
_AMOUNTS = frozenset(_AMOUNT_WORDS.split())
"""Nouns whose singular goes with a plural pronoun."""

_AUX = ("aux", "auxpass")

_NEUTER_PERSONS = frozenset({"baby", "infant", "child", "toddler"})

SUBJECT_PRONOUNS = {
    "he": ("singular", "male"),
    "him": ("singular", "male"),
    "his": ("singular", "male"),
    "himself": ("singular", "male"),
    "she": ("singular", "female"),
    "her": ("singular", "female"),
    "hers": ("singular", "female"),
    "herself": ("singular", "female"),
    "it": ("singular", "neuter"),
    "its": ("singular", "neuter"),
    "itself": ("singular", "neuter"),
    "they": ("plural", ""),
    "them": ("plural", ""),
    "their": ("plural", ""),
    "theirs": ("plural", ""),
    "themselves": ("plural", ""),
}
"""Number and gender of each pronoun; "" for a plural, which has no gender."""


@dataclass(frozen=True, slots=True)
class EntityType:
    """Type of an entity. `concepts`: the words above its first sense, nearest first; empty for a name.

    `beings`: of `person`, `animal` and `group` those that it can be; a name of unknown type can be each. `numbers` and
    `genders` are likewise those that are possible.
    """

    concepts: tuple[str, ...]
    beings: frozenset[str]
    numbers: frozenset[str]
    genders: frozenset[str]

    def clash(self, pronoun: str) -> str | None:
        """The feature in which the entity cannot agree with this pronoun; None if it agrees."""
        number, gender = SUBJECT_PRONOUNS[pronoun.casefold()]
        if number not in self.numbers:
            return "number"
        if not gender:
            return None
        if gender == "neuter":
            return None if self.beings != {PERSON} else "animacy"
        if not self.beings & {PERSON, ANIMAL}:
            return "animacy"
        return None if gender in self.genders else "gender"

    @property
    def is_usually_an_object(self) -> bool:
        """True if no being is above its first sense."""
        return bool(self.concepts) and not set(self.concepts) & set(_BEINGS)

    def has_number_of(self, pronoun: str) -> bool:
        """True if the entity has the number of this pronoun and cannot have the other."""
        return self.numbers == {SUBJECT_PRONOUNS[pronoun.casefold()][0]}


class Abstraction:
    """Types of entities. `genders`: gender by first name, title or noun."""

    def __init__(self, wordnet: WordNet, genders: Mapping[str, str]) -> None:
        self._wordnet = wordnet
        self._genders = genders

    def of(self, parse: Parse, head: Token, span: range) -> EntityType:
        """Type of the phrase over `span` with this head word."""
        words = [parse[index].text.casefold() for index in span]
        known = {self._genders[word] for word in (*words, head.lemma) if word in self._genders}
        senses = [] if _is_name(parse, head, span) else self._senses(words, head)
        chains = []
        for kinds in senses:
            chains.append({_BEINGS[kind] for kind in kinds if kind in _BEINGS})
        # A name, or a word that WordNet does not know, can be any being.
        beings = {PERSON} if known else set().union(*chains) if senses else {PERSON, ANIMAL, GROUP}
        if senses and not all(chain == {PERSON} for chain in chains) and PERSON in beings:
            beings.add(ANIMAL)  # some sense is not a person, so that "it" agrees as well
        if senses and not beings and self._may_have_a_mind(words, head):
            beings.add(ANIMAL)
        # "The baby ... it": these persons agree with a neuter as animals do.
        if head.lemma in _NEUTER_PERSONS:
            beings.add(ANIMAL)
        if head.lemma in _AMOUNTS:  # of anything
            beings |= {PERSON, ANIMAL, GROUP}
        concepts = senses[0] if senses else ()
        genders = known or {_GENDERS[kind] for kind in concepts if kind in _GENDERS}
        # A plural that ends the phrase may be taken for a verb: "the girl scouts".
        is_sure = bool(senses or known) and not (span[-1] != head.index and parse[span[-1]].text.endswith("s"))
        # "one of the boys": the noun's number is not that of the one who is meant.
        is_sure &= not any(token.lemma == "one" for token in parse[max(span.start - 4, 0) : span.start])
        numbers = _numbers(parse, head, is_sure)
        if GROUP in beings and not known:
            # "The team ... they": a group in the singular agrees with both.
            numbers |= {"singular", "plural"} if "singular" in numbers else set()
        return EntityType(concepts, frozenset(beings), numbers, frozenset(genders or ("male", "female")))

    def _may_have_a_mind(self, words: list[str], head: Token) -> bool:
        """True if any sense, however rare, is a being, so that the word is barred from no pronoun."""
        kinds = set[str]().union(*self._senses(words, head, None))
        return bool(kinds & set(_BEINGS))

    def _senses(self, words: list[str], head: Token, count: int | None = SENSES) -> list[tuple[str, ...]]:
        # "fire engine" is listed as such, "body builder" as one word; else the head alone is looked up.
        # The singular first: "judges" is also the title of a book, and "twins" a constellation.
        single = [*words[:-1], head.lemma] if words[-1] == head.text.casefold() else words
        phrases = ("_".join(single), "".join(single), "_".join(words), head.lemma)
        return next((senses for phrase in phrases if (senses := self._wordnet.kinds(phrase, count))), [])


def _is_name(parse: Parse, head: Token, span: range) -> bool:
    """True for proper names. A capital counts inside a sentence, or where all of several words have one."""
    if head.tag == "NN" and len(span) == 1 and not any(token.text != token.text.casefold() for token in parse):
        # Without capitals, a singular that no determiner introduces is a name: "dick envies gareth".
        return not any(token.head == head.index and token.relation in ("det", "poss", "nummod") for token in parse)
    opens = head.index == 0 or parse[head.index - 1].tag == "."
    # A sentence begins with a bare singular only if that is a name: "Chrome beats Firefox."
    capital = head.text[:1].isupper() and (not opens or head.tag == "NN")
    return (
        head.tag.startswith("NNP") or capital or (len(span) > 1 and not any(parse[at].text[0].islower() for at in span))
    )


def _numbers(parse: Parse, head: Token, is_sure: bool) -> frozenset[str]:
    """Possible numbers; both where neither form nor sense decides. `is_sure`: a known word, not after `one of`."""
    both = frozenset(("singular", "plural"))
    joined = any(token.head == head.index and token.relation == "conj" for token in parse)
    # "politics" looks like a plural; an adjective as a noun, "the old", has no form of number.
    if not is_sure or joined or head.lemma in _AMOUNTS or head.text.endswith("ics") or head.tag.startswith("JJ"):
        return both
    if head.tag in ("NNS", "NNPS"):
        # "sheep" is spelled alike in both numbers
        return both if head.text.casefold() == head.lemma else frozenset(("plural",))
    # A plural that the tagger took for a singular, or that is spelled alike: "the fish are".
    is_open = head.text.endswith("s") or _has_plural_verb(parse, head)
    return both if is_open else frozenset(("singular",))


def _has_plural_verb(parse: Parse, head: Token) -> bool:
    """True if the word is the subject of a verb in the plural."""
    if head.relation not in ("nsubj", "nsubjpass"):
        return False
    forms = [
        token for token in parse if token.index == head.head or (token.head == head.head and token.relation in _AUX)
    ]
    return any(token.tag == "VBP" or token.text.casefold() == "were" for token in forms)
