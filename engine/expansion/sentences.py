"""Write a predicate's three sentence templates, by grammar rules if they know its verb, otherwise by a model.

LINK has a model correct every sentence with minimal edits, in up to five tries until all slots are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hapax.grammar.arguments import checked
from hapax.grammar.printing import signature_text
from hapax.grammar.rules import Library, PredicateKind, Templates
from hapax.grammar.terms import Atom
from hapax.grammar.verbalize import IMPROVISED, has_known_verb, negated_template, question_template, spelled_template
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.protocols import KNOWLEDGE
from hapax.llm_oracle.registry import open_instructed, with_journal
from hapax.llm_oracle.rewriting import TRIES, FormWriter


@dataclass(frozen=True, slots=True)
class Sentences:
    """The templates of a predicate. `notes` name those that the model failed to write, for a person to look at."""

    templates: Templates
    notes: tuple[str, ...] = ()


def sentences_for(atom: Atom, given: Templates | None, writer: FormWriter) -> Sentences:
    """Write the templates of a predicate that `given` does not contain."""
    notes: list[str] = []

    def checked(written: str | None, improvised: str, form: str) -> str:
        if written is None:
            notes.append(f"the model wrote no {form} with every slot in {TRIES} tries: '{improvised}'")
            return improvised
        # A template stands within a sentence.
        return written[0].lower() + written[1:]

    affirmative = given.affirmative if given else spelled_template(atom.predicate, len(atom.arguments))
    if given is None and not has_known_verb(affirmative):
        affirmative = checked(writer.correction(affirmative), affirmative, "sentence")
    negated = (given and given.negated) or negated_template(affirmative)
    if negated.startswith(IMPROVISED):
        negated = checked(writer.negation(affirmative), negated, "negation")
    question = (given and given.question) or question_template(affirmative)
    if question.startswith(IMPROVISED):
        question = checked(writer.question(affirmative), question, "question").rstrip("?") + "?"
    return Sentences(Templates(affirmative, negated, question), tuple(notes))


def guessed_kind(atom: Atom, library: Library) -> PredicateKind:
    """The kind of an undeclared predicate: given if rules only conclude it or use it about generic variables."""
    for rule in library.rules:
        for literal in rule.literals:
            if literal.atom.indicator == atom.indicator and not rule.is_information(literal):
                return PredicateKind.ORACLE
    return PredicateKind.GIVEN


@checked
def verbalise_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, declaration and notes of each predicate that lacks a sentence; the model writes what grammar cannot.

    The notes name templates that failed.
    """
    opening, journal = with_journal(kb, opening)
    opened = open_instructed(model, KNOWLEDGE, replace(opening, library=rules))
    writer = FormWriter(JournaledGenerator(opened, journal, role="rules"), opening.seed)
    atoms: dict[str, Atom] = {}
    for rule in rules.rules:
        atoms |= {atom.indicator: atom for atom in rule.atoms}
    indicators = [*(signature.indicator for signature in rules.signatures), *atoms]
    deferrals = DeferralCollector()
    for signature in dict.fromkeys(map(rules.signature, indicators)):
        given = signature.templates
        if given and given.negated and given.question:
            continue
        # A declared predicate may occur in no rule.
        atom = atoms.get(signature.indicator) or Atom(signature.name, signature.parameters)
        made = None
        with deferrals:
            made = sentences_for(atom, given, writer)
        if made is None:
            continue
        kind = signature.kind if signature.declared else guessed_kind(atom, rules)
        declaration = replace(signature, kind=kind, templates=made.templates, declared=True)
        yield declaration.name, signature_text(declaration), made.notes
    deferrals.raise_first()
