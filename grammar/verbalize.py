"""Atoms and rules in words, by the templates of their predicates or, without one, by the predicate's name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal as Choice
from typing import NamedTuple, TypeAlias

from grammar.rules import Library, PredicateKind, Rule, Templates
from grammar.terms import Atom, Constant, Literal, Term, Variable

Form: TypeAlias = Choice["affirmative", "negated", "question"]

_SLOT = re.compile(r"\[(\d{1,3})\]")
_VERBS = (
    "cannot|can|could|is|are|was|were|has|have|had|does|do|did|should|must|will|would|may|might"  # the first one counts
)
_FIRST_VERB = re.compile(rf"^(?P<subject>.*?\]\s+)(?P<verb>{_VERBS})\b(?P<no>\s+not\b)?(?P<rest>.*)$", re.DOTALL)
_FULL_VERBS = ("has", "have", "had")

UNTRUE = "it is not true that "
IMPROVISED = (UNTRUE, "is it true that ")
"""How a denial or question begins whose sentence has no verb that can be denied or asked with."""


class StatementText(NamedTuple):
    """A statement's two halves, without capital letter or full stop."""

    premise: str
    conclusion: str

    @property
    def sentence(self) -> str:
        return f"If {self.premise}, then {self.conclusion}."


def atom_text(
    atom: Atom,
    library: Library,
    substitution: Mapping[str, Constant] | None = None,
    form: Form = "affirmative",
    generic: Collection[str] = (),
) -> str:
    """The atom as a clause of a sentence. Unbound variables stay slots (`[B]`), generic ones read `PersonX`."""
    arguments = [_term_text(term, substitution or {}, generic) for term in atom.arguments]
    template = template_of(atom, library, form)
    # One pass: a value that looks like a slot is never filled again.
    return _SLOT.sub(
        lambda slot: arguments[int(slot[1]) - 1] if 0 < int(slot[1]) <= len(arguments) else slot[0], template
    )


def template_of(atom: Atom, library: Library, form: Form = "affirmative") -> str:
    """The predicate's template in that form; a form that no file gives is made from the affirmative one."""
    declared = library.signature(atom.indicator).templates if library.knows(atom.indicator) else None
    templates = declared or Templates(spelled_template(atom.predicate, len(atom.arguments)))
    if form == "negated":
        return templates.negated or negated_template(templates.affirmative)
    if form == "question":
        return templates.question or question_template(templates.affirmative)
    return templates.affirmative


def statement_text(rule: Rule, library: Library, substitution: Mapping[str, Constant] | None = None) -> StatementText:
    """Premise and conclusion as the papers print them: the premise tells only what concerns the generic variable.

    The whole positive premise is told where there is no such variable, and where the statement would not mention any
    of the values that were searched for the premise alone; computed atoms (`1882 is earlier than 1892`) go without
    saying.
    """
    told = told_literals(rule, library)
    premise = " and ".join(literal_text(literal, library, substitution, rule.generic) for literal in told)
    return StatementText(premise, literal_text(rule.conclusion, library, substitution, rule.generic))


def told_literals(rule: Rule, library: Library) -> list[Literal]:
    """The literals of the premise that a statement tells; see `statement_text`."""
    told = [literal for literal in rule.literals if rule.is_information(literal)]
    concluded = {variable.name for variable in rule.conclusion.variables}
    outside = {variable.name for variable in rule.searched} - concluded
    mentioned = {variable.name for literal in told for variable in literal.variables}
    if not told or (outside and not outside & mentioned):
        return [literal for literal in rule.literals if not (literal.negated or _is_computed(literal.atom, library))]
    return told


def _is_computed(atom: Atom, library: Library) -> bool:
    return library.knows(atom.indicator) and library.signature(atom.indicator).kind is PredicateKind.COMPUTED


def literal_text(
    literal: Literal,
    library: Library,
    substitution: Mapping[str, Constant] | None = None,
    generic: Collection[str] = (),
) -> str:
    """The atom of the literal, in its negated form where the literal is negated."""
    form: Form = "negated" if literal.negated else "affirmative"
    return atom_text(literal.atom, library, substitution, form, generic)


def spelled_template(predicate: str, arity: int) -> str:
    """`is_allergic_to`, 2 -> `[1] is allergic to [2]`; more arguments follow with "and"."""
    words = " ".join(predicate.split("_")).strip()
    rest = " and ".join(f"[{position}]" for position in range(2, arity + 1))
    return f"[1] {words} {rest}".strip()


def negated_template(affirmative: str) -> str:
    """The denial: "not" after the first verb ("is not", "cannot"), or taken out where it is there already."""
    match = _FIRST_VERB.match(affirmative)
    if match is None or (match["verb"] in _FULL_VERBS and not match["no"]):
        return UNTRUE + affirmative
    subject, verb, rest = match["subject"], match["verb"], match["rest"]
    if verb == "cannot":
        return f"{subject}can{rest}"
    if match["no"]:
        return f"{subject}{verb}{rest}"
    return f"{subject}cannot{rest}" if verb == "can" else f"{subject}{verb} not{rest}"


def has_known_verb(template: str) -> bool:
    """Whether it begins with its first argument and a verb that shows that it is a sentence."""
    return _FIRST_VERB.match(template) is not None


def question_template(affirmative: str) -> str:
    """The yes/no question about the positive statement: "is [1] ...?"; a denying template is asked as it stands."""
    match = _FIRST_VERB.match(affirmative)
    plain = match and not match["no"] and match["verb"] not in (*_FULL_VERBS, "cannot")
    if match is None or not plain:
        return f"is it true that {affirmative}?"
    return f"{match['verb']} {match['subject'].rstrip()}{match['rest']}?"


def _term_text(term: Term, substitution: Mapping[str, Constant], generic: Collection[str]) -> str:
    if isinstance(term, Variable):
        bound = substitution.get(term.name)
        if bound is not None:
            return str(bound.value)
        return "".join(term.data_type.split()) + term.name if term.name in generic else f"[{term.name}]"
    return str(term.value)
