"""The mapping that abstraction states, from entities to concepts, and the pair that is left when it is applied."""

from __future__ import annotations

import re
from dataclasses import replace

from evaluation.winograd.data import Pair
from evaluation.winograd.reading import named
from evaluation.winograd.theories.abstraction import abstracted
from kb.records import FactRecord, PredicateRecord, Source
from kb.values import refusal

ABSTRACTS_TO = PredicateRecord(
    "abstracts_to",
    ("Entity", "Concept"),
    "oracle",
    "[1] can be conceptualized as [2]",
    "[1] cannot be conceptualized as [2]",
    "can [1] be conceptualized as [2]?",
)
"""The predicate under which mappings are stored."""

MOST_CHARACTERS = 80
"""Of a concept; what is longer is a sentence."""

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
    """The first concept that the reply states of each option; None unless it states one of both.

    Where both are conceptualised alike they become `person X` and `person Y`, as in the paper's figure 1.
    """
    found: dict[int, str] = {}
    for match in _STATED.finditer(reply.replace("*", "")):
        entity = re.sub(r"^\s*(?:and|while|whereas)\s+", "", match["entity"], flags=re.IGNORECASE)
        option = named(entity, options)
        concept = _ARTICLE.sub("", " ".join(match["concept"].split()).strip("\"'“” "))
        if option is not None and concept and len(concept) <= MOST_CHARACTERS and not refusal(concept):
            found.setdefault(option, concept)
    if len(found) < 2:
        return None
    if found[0].casefold() == found[1].casefold():
        return f"{found[0]} X", f"{found[1]} Y"
    return found[0], found[1]


def abstract_pair(pair: Pair, concepts: Concepts) -> Pair | None:
    """The pair about concepts; None where a sentence does not name both entities."""
    made = []
    for item in pair:
        sentence = abstracted(item.text, item.options)
        if sentence is None:
            return None
        text = sentence.shown((f"the {concepts[0]}", f"the {concepts[1]}"))
        for concept in concepts:
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text)
        made.append(replace(item, text=text[0].upper() + text[1:], options=concepts))
    return made[0], made[1]


def mapping_facts(options: tuple[str, str], concepts: Concepts, run_id: str) -> list[FactRecord]:
    """What a reply states, as facts `abstracts_to(Entity, Concept)`."""
    return [
        FactRecord(ABSTRACTS_TO.name, (entity, concept), ABSTRACTS_TO.argument_types, Source.MODEL, run_id=run_id)
        for entity, concept in zip(options, concepts, strict=True)
        if not refusal(entity)
    ]
