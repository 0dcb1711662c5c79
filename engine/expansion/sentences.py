"""Write a predicate's sentence templates, by grammar rules if they know its verb, otherwise by a model, and check them.

LINK has a model correct every sentence with minimal edits, in up to five tries until all slots are there. It leaves out
predicates beyond a model's knowledge (section 2.2): `grammar/checking/predicate_checks.py` recognises some by their
words; a model is asked about the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hapax.grammar.arguments import checked
from hapax.grammar.checking import faults
from hapax.grammar.checking.predicate_checks import asked_atoms
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.declarations import PredicateKind, Templates
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.writing.printing import signature_text
from hapax.grammar.writing.verbalize import (
    IMPROVISED,
    atom_text,
    has_known_verb,
    negated_template,
    question_template,
    spelled_template,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, CriticScore
from hapax.llm_oracle.questions.prompts import scope_claim, sense_claim
from hapax.llm_oracle.questions.rewriting import TRIES, FormWriter
from hapax.llm_oracle.registry import open_instructed, with_journal


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


# --- predicates that a model cannot know ------------------------------------------------------------------------------

MIN_PROBABILITY = 0.5
"""P(yes) below which the model objects to a claim."""


@checked
def lint_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> tuple[int, tuple[Diagnostic, ...]]:
    """Ask a model if predicates make sense over their types. Gives their number, and its warnings in rule order.

    A predicate counts once for each combination of argument types. A claim that the model refuses to judge gives no
    warning.
    """
    opening, journal = with_journal(kb, opening)
    critic = JournaledCritic(open_instructed(model, CRITIC, replace(opening, library=rules)), journal, role="rules")
    first: dict[tuple[str, tuple[str, ...]], tuple[Place, str, Atom]] = {}
    for place, owner, atom, types in asked_atoms(rules):
        first.setdefault((atom.indicator, types), (place, owner, atom))
    uses = list(first.values())
    sentences: list[str] = []
    for _, _, atom in uses:
        # Types stand in for values: `[Tree A] has the height [Height B]`.
        names = {variable.name: Constant(f"[{variable}]") for variable in atom.variables}
        sentences.append(atom_text(atom, rules, names))
    # One batch, the claims about scope first and those about sense behind them.
    scores = critic.probabilities([*map(scope_claim, sentences), *map(sense_claim, sentences)])
    warnings: list[Diagnostic] = []
    for number, (place, owner, atom) in enumerate(uses):
        scope, sense = scores[number], scores[number + len(uses)]
        if _objects(sense):
            warnings.append(
                faults.SENSELESS.at(
                    place,
                    f"{atom}{owner} reads '{sentences[number]}', which makes no sense to {critic.identity.name} "
                    f"(P(yes) {sense.probability:.2f})",
                    "Choose a verb or types that fit each other, or correct the predicate's sentence",
                )
            )
        # A sentence without sense is reported once: whether it is in scope says nothing then.
        elif _objects(scope):
            warnings.append(
                faults.OUT_OF_SCOPE.at(
                    place,
                    f"{atom}{owner} asks for facts that common texts do not contain, {critic.identity.name} says "
                    f"(P(yes) {scope.probability:.2f})",
                    "Ask about a type whose members are named, or declare the predicate given",
                )
            )
    return len(uses), tuple(warnings)


def _objects(score: CriticScore) -> bool:
    return score.probability < MIN_PROBABILITY and not score.refused
