"""Mappings from entities to concepts that replies state, and their application to pairs."""

from __future__ import annotations

import re
from dataclasses import replace

from hapax.evaluation.winograd.data import Pair
from hapax.evaluation.winograd.reading import named
from hapax.evaluation.winograd.theories.abstraction import abstracted
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

# `The fish can be conceptualized as a predator`: the concept ends at a sign or where the next statement begins.
_STATED = re.compile(
    r"(?P<entity>[^.,;:\n]+?)\s+(?:can|could|may|might) be (?:conceptuali[sz]ed|abstracted|seen|described) as\s+"
    r"(?P<concept>.+?)"
    r"(?=[.,;:\n(]|\s+(?:and|while|whereas)\s[^.,;\n]*?\bbe (?:conceptuali|abstracted|seen|described)|$)",
    re.IGNORECASE,
)
_OWNING = "this|that|these|those|my|your|his|her|its|our|their|some"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)

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
        sentence = abstracted(item.text, item.options)
        if sentence is None:
            return None
        text = sentence.shown((f"the {concepts[0]}", f"the {concepts[1]}"))
        for concept in concepts:
            # The sentence may have an article or a possessive before the entity already.
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text)
        items.append(replace(item, text=text[0].upper() + text[1:], options=concepts, pronoun_start=None))
    return items[0], items[1]


def mapping_facts(options: tuple[str, str], concepts: Concepts, run_id: str) -> list[FactRecord]:
    """Mapping of a reply as facts `abstracts_to(Entity, Concept)`."""
    name, types = ABSTRACTS_TO.name, ABSTRACTS_TO.argument_types
    facts = []
    for entity, concept in zip(options, concepts, strict=True):
        if not refusal(entity):
            facts.append(FactRecord(name, (entity, concept), types, Source.MODEL, run_id=run_id))
    return facts
