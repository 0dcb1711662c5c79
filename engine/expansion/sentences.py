"""A predicate's three sentences: by grammar where it has a verb that grammar knows, else by a model.

LINK has every sentence corrected by a model with minimal edits, in up to five tries until all slots are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grammar.rules import Library, PredicateKind, PredicateSignature, Templates
from grammar.terms import Atom
from grammar.verbalize import IMPROVISED, has_known_verb, negated_template, question_template, spelled_template
from llm_oracle.calls import GoingOn
from llm_oracle.rewriting import TRIES, FormWriter


@dataclass(frozen=True, slots=True)
class Sentences:
    """All three forms. `notes` name those that a model was asked for in vain, so that a person looks at them."""

    templates: Templates
    notes: tuple[str, ...] = ()


def sentences_for(atom: Atom, given: Templates | None, writer: FormWriter) -> Sentences:
    """The sentences of a predicate, those that are `given` kept."""
    notes: list[str] = []

    def told(written: str | None, made: str, what: str) -> str:
        if written is None:
            notes.append(f"no {what} in {TRIES} tries that keeps every slot: '{made}'")
            return made
        return written[0].lower() + written[1:]

    affirmative = given.affirmative if given else spelled_template(atom.predicate, len(atom.arguments))
    if given is None and not has_known_verb(affirmative):
        affirmative = told(writer.correction(affirmative), affirmative, "sentence")
    negated = (given and given.negated) or negated_template(affirmative)
    if negated.startswith(IMPROVISED):
        negated = told(writer.negation(affirmative), negated, "negation")
    question = (given and given.question) or question_template(affirmative)
    if question.startswith(IMPROVISED):
        question = told(writer.question(affirmative), question, "question").rstrip("?") + "?"
    return Sentences(Templates(affirmative, negated, question), tuple(notes))


def guessed_kind(atom: Atom, library: Library) -> PredicateKind:
    """Of a predicate that no file declares: given where it is only concluded or said of a generic variable."""
    asked = any(
        literal.atom.indicator == atom.indicator and not rule.is_information(literal)
        for rule in library.rules
        for literal in rule.literals
    )
    return PredicateKind.ORACLE if asked else PredicateKind.GIVEN


def declarations(library: Library, writer: FormWriter) -> Iterator[tuple[PredicateSignature, tuple[str, ...]]]:
    """Every predicate that is not declared or lacks sentences, with all of them, and what could not be written."""
    atoms = {atom.indicator: atom for rule in library.rules for atom in rule.atoms}
    going_on = GoingOn()
    for signature in dict.fromkeys(map(library.signature, (*(one.indicator for one in library.signatures), *atoms))):
        given = signature.templates
        if given and given.negated and given.question:
            continue
        atom = atoms.get(signature.indicator) or Atom(signature.name, signature.parameters)
        made = None
        with going_on:
            made = sentences_for(atom, given, writer)
        if made is None:
            continue
        kind = signature.kind if signature.declared else guessed_kind(atom, library)
        yield replace(signature, kind=kind, templates=made.templates, declared=True), made.notes
    going_on.settle()
