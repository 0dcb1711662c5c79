"""Atoms and rules in words, by templates or else by the predicates' names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal as Choice
from typing import NamedTuple, TypeAlias, get_args

from hapax.grammar.parsing.declarations import PredicateKind, Templates, premise_text
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import ANY, MISSING, Atom, BodyLiteral, Constant, Literal, Variable, variable_names
from hapax.grammar.writing.words import with_article

Form: TypeAlias = Choice["affirmative", "negated", "question"]

_SLOT = re.compile(r"\[(\d{1,3})\]")
_VERBS = (
    # "cannot" comes before "can": the first alternative that matches counts.
    "cannot|can|could|is|are|was|were|has|have|had|does|do|did|should|must|will|would|may|might"
)
# `[1] is not allergic to [2]`: the subject `[1] `, the verb `is`, ` not`, and the rest
_FIRST_VERB = re.compile(rf"^(?P<subject>.*?\]\s+)(?P<verb>{_VERBS})\b(?P<no>\s+not\b)?(?P<rest>.*)$", re.DOTALL)
_FULL_VERBS = ("has", "have", "had")

UNTRUE = "it is not true that "
IMPROVISED = (UNTRUE, "is it true that ")
"""First words of a negation and of a question whose sentence has no verb to form them with."""


class StatementText(NamedTuple):
    """The two halves of a statement, without capital letter and full stop."""

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
    """The atom as a clause of a sentence. Unbound variables stay slots (`[B]`); generic ones read `PersonX`."""
    arguments = []
    for term in atom.arguments:
        bound = (substitution or {}).get(term.name, term) if isinstance(term, Variable) else term
        if isinstance(bound, Constant):
            arguments.append(str(bound) if bound.value is MISSING else str(bound.value))
        elif bound.name in generic:
            # "Food Allergen" A reads "FoodAllergenA", as in the papers.
            arguments.append("".join(bound.data_type.split()).removeprefix(ANY) + bound.name)
        else:
            arguments.append(f"[{bound.name}]")

    def filled(slot: re.Match[str]) -> str:
        position = int(slot[1])
        return arguments[position - 1] if 0 < position <= len(arguments) else slot[0]

    # One pass over the template, so that a value that looks like a slot is not filled again.
    return _SLOT.sub(filled, template_of(atom, library, form))


def template_of(atom: Atom, library: Library, form: Form = "affirmative") -> str:
    """The predicate's template in this form; a missing form is made from the affirmative one."""
    signature = library.signature(atom.indicator) if library.knows(atom.indicator) else None
    templates = signature.templates if signature is not None else None
    return _in_form(templates or Templates(spelled_template(atom.predicate, len(atom.arguments))), form)


def _in_form(templates: Templates, form: Form) -> str:
    if form == "negated":
        return templates.negated or negated_template(templates.affirmative)
    if form == "question":
        return templates.question or question_template(templates.affirmative)
    return templates.affirmative


def all_forms(templates: Templates) -> str:
    """The three forms as a declaration has them; those that are missing are made from the affirmative one."""
    return " / ".join(f'"{_in_form(templates, form)}"' for form in get_args(Form))


def statement_text(rule: Rule, library: Library, substitution: Mapping[str, Constant] | None = None) -> StatementText:
    """Premise and conclusion as the papers print them; the premise is that of `stated_literals`."""
    stated = stated_literals(rule, library)
    premise = " and ".join(literal_text(literal, library, substitution, rule.generic) for literal in stated)
    return StatementText(premise, literal_text(rule.conclusion, library, substitution, rule.generic))


def stated_literals(rule: Rule, library: Library) -> list[Literal]:
    """The literals of the premise that a statement mentions.

    These are the ones about a generic variable. If there are none, or if they would mention no value that was searched
    for the premise alone, they are all positive literals, without computed atoms (`1882 is earlier than 1892`), which
    go without saying.
    """
    stated = [literal for literal in rule.literals if rule.is_information(literal)]
    only_in_premise = {variable.name for variable in rule.searched} - variable_names([rule.conclusion])
    if stated and not (only_in_premise and only_in_premise.isdisjoint(variable_names(stated))):
        return stated
    positive = (literal for literal in rule.literals if not literal.negated)
    return [item for item in positive if library.kind(item.atom.indicator) is not PredicateKind.COMPUTED]


def literal_text(
    literal: Literal,
    library: Library,
    substitution: Mapping[str, Constant] | None = None,
    generic: Collection[str] = (),
) -> str:
    """The atom of the literal, in its negated form if the literal is negated."""
    form: Form = "negated" if literal.negated else "affirmative"
    return atom_text(literal.atom, library, substitution, form, generic)


def spelled_template(predicate: str, arity: int) -> str:
    """`is_allergic_to`, 2 -> `[1] is allergic to [2]`; more arguments follow with "and".

    A name that is no verb, such as `parent`, makes no sentence: its template is the atom.
    """
    words = [word for word in predicate.split("_") if word]
    if not _is_sentence(predicate, words) or arity > MOST_SPELLED:
        return f"{predicate}({', '.join(f'[{position}]' for position in range(1, arity + 1))})"
    match words:
        case ["is", noun, "of"] if _PERSON_OR_PART.search(noun):
            words = ["is", with_article(noun), "of"]
    rest = " and ".join(f"[{position}]" for position in range(2, arity + 1))
    return f"[1] {' '.join(words)} {rest}".strip()


def item_text(item: BodyLiteral, library: Library) -> str:
    """An item of a premise as rule text; an exception and a negated conjunction are written out."""
    negation = library.exceptions.get(item.atom.indicator) if isinstance(item, Literal) else None
    if negation is None or not isinstance(item, Literal):
        return str(item)
    names = (variable.name for variable in negation.atom.arguments if isinstance(variable, Variable))
    stated = negation.replaced(dict(zip(names, item.atom.arguments, strict=True)))
    return str(stated) if item.negated else premise_text(stated.stated, stated.inner)


def is_worded(atom: Atom, library: Library) -> bool:
    """True if the atom has a sentence, by a template or by its name."""
    return not template_of(atom, library).startswith(f"{atom.predicate}(")


MOST_SPELLED = 3
"""Arguments of a sentence that is made of a predicate's name."""

_PERSON_OR_PART = re.compile(
    r"(?<!depend)(?:er|or|ent|ist)$|^(?:child|son|wife|husband|cousin|aunt|uncle|niece|nephew|friend|citizen)$"
)
"""Nouns between `is` and `of`: `is_parent_of`, but neither `is_part_of` nor `is_made_of`."""


def _is_sentence(predicate: str, words: Sequence[str]) -> bool:
    """True for a name of several words, for a verb (`likes`, `lived`, `has`), and for `[mask]`."""
    is_verb = re.fullmatch(rf"{_VERBS}|\w+(?<!s)s|\w+ed", predicate) is not None
    return len(words) > 1 or is_verb or not predicate.isidentifier()


def negated_template(affirmative: str) -> str:
    """The negation: "not" after the first verb ("is not", "cannot"), or removed if it is already there."""
    match = _FIRST_VERB.match(affirmative)
    # "[1] has a tail" is not negated as "[1] has not a tail".
    if match is None or (match["verb"] in _FULL_VERBS and not match["no"]):
        return UNTRUE + affirmative
    subject, verb, rest = match["subject"], match["verb"], match["rest"]
    if verb == "cannot":
        return f"{subject}can{rest}"
    if match["no"]:  # a double negation affirms
        return f"{subject}{verb}{rest}"
    return f"{subject}cannot{rest}" if verb == "can" else f"{subject}{verb} not{rest}"


def has_known_verb(template: str) -> bool:
    """True if the template has a verb after a slot, which shows that it is a sentence."""
    return _FIRST_VERB.match(template) is not None


def question_template(affirmative: str) -> str:
    """The yes/no question, "is [1] ...?"; of a negative template or a full verb, "is it true that [1] ...?"."""
    match = _FIRST_VERB.match(affirmative)
    if match is None or match["no"] or match["verb"] in (*_FULL_VERBS, "cannot"):
        return f"is it true that {affirmative}?"
    return f"{match['verb']} {match['subject'].rstrip()}{match['rest']}?"
