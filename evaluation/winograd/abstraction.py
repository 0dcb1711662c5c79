"""Mappings from entities to concepts that replies state, and sentences about concepts instead of entities."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches

from hapax.evaluation.winograd.data import Pair
from hapax.evaluation.winograd.reading import named
from hapax.kb.records import FactRecord, PredicateRecord, Source
from hapax.kb.values import refusal

ABSTRACTS_TO = PredicateRecord(
    "abstracts_to",
    ("Entity", "Concept"),
    "oracle",
    "[1] can be conceptualized as [2]",
    "[1] cannot be conceptualized as [2]",
    "can [1] be conceptualized as [2]?",
)
"""Predicate of the facts that store mappings."""

MOST_CHARACTERS = 80
"""Longest concept; longer texts are whole sentences."""

MARKS = ("\ue000", "\ue001")
"""Stand for the two options while a sentence is rewritten: private-use characters, which other text does not have."""

CLOSE_SPELLING = 0.9
"""Least similarity (difflib's ratio) of an option of one word and a misspelling of it in the sentence."""

# `The fish can be conceptualized as a predator`: the concept ends at a sign or where the next statement begins.
_STATED = re.compile(
    r"(?P<entity>[^.,;:\n]+?)\s+(?:can|could|may|might) be (?:conceptuali[sz]ed|abstracted|seen|described) as\s+"
    r"(?P<concept>.+?)"
    r"(?=[.,;:\n(]|\s+(?:and|while|whereas)\s[^.,;\n]*?\bbe (?:conceptuali|abstracted|seen|described)|$)",
    re.IGNORECASE,
)
_OWNING = "this|that|these|those|my|your|his|her|its|our|their|some"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)
_DETERMINER = re.compile(rf"^(?:the|a|an|{_OWNING}|one of the|one of)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
# A mark, a possessive ending, a word with its hyphens and apostrophes, or a sign.
_TOKEN = re.compile(rf"[{''.join(MARKS)}]|'s\b|\w+(?:[-']\w+)*|[.,;:!?]")
# Irregular forms come before the rule for all others, `n't`.
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\b(he|she|it|that|there)'s\b"), r"\1 is"),
    (re.compile(r"(?<=s)'(?!\w)"), "'s"),  # `the boys' ball`
    (re.compile(rf"(?<=[{''.join(MARKS)}])'(?!\w)"), "'s"),
)

Concepts = tuple[str, str]
"""The concepts of the two options, in their order."""


def read_concepts(reply: str, options: tuple[str, str]) -> Concepts | None:
    """The first concept that the reply states for each option; None unless it states a concept for both.

    Two equal concepts become `person X` and `person Y`, as in the paper's figure 1.
    """
    concepts: dict[int, str] = {}
    for match in _STATED.finditer(reply.replace("*", "")):  # without Markdown emphasis
        entity = re.sub(r"^\s*(?:and|while|whereas)\s+", "", match["entity"], flags=re.IGNORECASE)
        option = named(entity, options)
        concept = _ARTICLE.sub("", " ".join(match["concept"].split()).strip("\"'“” "))
        # A concept that the knowledge base cannot store is not a concept.
        if option is not None and concept and len(concept) <= MOST_CHARACTERS and not refusal(concept):
            concepts.setdefault(option, concept)
    if len(concepts) < 2:
        return None
    if concepts[0].casefold() == concepts[1].casefold():
        return f"{concepts[0]} X", f"{concepts[1]} Y"
    return concepts[0], concepts[1]


def abstract_pair(pair: Pair, concepts: Concepts) -> Pair | None:
    """The pair with concepts instead of entities; None if a sentence does not name both entities."""
    items = []
    for item in pair:
        text = _renamed(item.text, item.options, (f"the {concepts[0]}", f"the {concepts[1]}"))
        if text is None:
            return None
        for concept in concepts:
            # The sentence may have an article or a possessive before the entity already.
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text)
        items.append(replace(item, text=text[0].upper() + text[1:], options=concepts, pronoun_start=None))
    return items[0], items[1]


def _renamed(text: str, options: tuple[str, str], names: tuple[str, str]) -> str | None:
    """The sentence with these names instead of its options, in lower case and without contractions.

    None if it does not name both options as separate phrases.
    """
    # A text that contains a mark could pretend to name an entity.
    if any(mark in text for mark in MARKS):
        return None
    entities = [_entity(option) for option in options]
    if not all(entities) or entities[0].casefold() == entities[1].casefold():
        return None
    for number in sorted((0, 1), key=lambda number: -len(entities[number])):  # "laptop bag" before "laptop"
        text = _marked(text, entities[number], MARKS[number])
    if not all(mark in text for mark in MARKS):
        return None
    words = " ".join(_tokens(text))
    for mark, name in zip(MARKS, names, strict=True):
        words = words.replace(mark, name)
    return re.sub(r" (?=[.,;:!?]|'s(?: |$))", "", words) + "."


def _entity(option: str) -> str:
    """The option without determiner and possessive ending."""
    words = " ".join(option.split())
    return _POSSESSIVE.sub("", _DETERMINER.sub("", words)).strip()


def _marked(text: str, entity: str, mark: str) -> str:
    """The text with marks in place of the entity."""
    words = [re.escape(word) for word in entity.split()]
    whole = r"\s+".join(words)
    # Tried in this order: the phrase, its plural, "ones" as its noun, a misspelling of a single word.
    phrases = [whole, whole + "e?s"]
    if len(words) > 1:
        phrases.append(r"\s+".join([*words[:-1], "ones?"]))
    else:
        phrases += map(re.escape, get_close_matches(entity, text.split(), 1, CLOSE_SPELLING))
    for phrase in phrases:
        marked, count = re.subn(rf"(?<!\w){phrase}(?!\w)", mark, text, flags=re.IGNORECASE)
        if count:
            return marked
    return text


def _tokens(text: str) -> list[str]:
    """The words and signs in lower case, with contractions written out and no final punctuation."""
    plain = text.casefold().replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        plain = pattern.sub(full, plain)
    tokens: list[str] = _TOKEN.findall(plain)
    while tokens and tokens[-1] in ".,;:!?":
        tokens.pop()
    return tokens


def mapping_facts(options: tuple[str, str], concepts: Concepts, run_id: str) -> list[FactRecord]:
    """Mapping of a reply as facts `abstracts_to(Entity, Concept)`."""
    name, types = ABSTRACTS_TO.name, ABSTRACTS_TO.argument_types
    facts = []
    for entity, concept in zip(options, concepts, strict=True):
        if not refusal(entity):
            facts.append(FactRecord(name, (entity, concept), types, Source.MODEL, run_id=run_id))
    return facts
