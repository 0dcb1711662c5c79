"""Reasons why a goal may have no answer: names that no fact has but are close to one, and predicates without facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from rapidfuzz import fuzz, process, utils

from hapax.engine.inference.theory import Theory
from hapax.engine.logic.failures import idle_negations
from hapax.engine.logic.goal_rules import GOAL, NotRules, goal_rules, with_rules
from hapax.grammar.arguments import checked, texts
from hapax.grammar.checking.rule_checks import comparison_of_texts, constant_of_wrong_kind
from hapax.grammar.goal_language import Compound, Goal, GoalList, GoalTerm, all_names, called_indicators
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value, expression_variables
from hapax.grammar.writing.prolog_text import prolog_atom
from hapax.grammar.writing.words import plain_letters, some
from hapax.kb.store import KnowledgeBase

ALIKE = 80
"""Least likeness of two names, of 100 (rapidfuzz's ratio, without case, accents and punctuation)."""

MOST_FACTS = 100_000
"""No names are compared if the goal depends on more facts: that would take longer than the goal."""

MOST_NAMES = 3


@checked
def near_misses(goal: str, rules: Library, kb: KnowledgeBase, *, assume: str | Sequence[str] = ()) -> list[str]:
    """Reasons why a goal may have no answer: names like those of the facts, and predicates without facts.

    A name of the goal that no fact has is compared with the names in the facts on which the goal depends. Raises
    GoalRejected.
    """
    theory = Theory(rules, kb, texts(assume))
    parsed = theory.goal(goal)
    part = theory.relevant_to(goals=called_indicators(parsed, theory.library))
    stated = [*part.library.facts, *part.assumed]
    # Predicates that only facts decide: those of rules and of arithmetic need none of their own.
    base = [
        signature.indicator
        for signature in part.library.completed().signatures
        if signature.indicator not in part.library.derived and signature.definition is None
    ]
    counts = Counter(atom.indicator for atom in stated)
    for indicator in base:
        counts[indicator] += kb.fact_count(indicator, MOST_FACTS + 1)
    lines = list(_of_other_kinds(parsed, theory.library))
    if not lines and sum(counts[indicator] for indicator in base) <= MOST_FACTS:
        known = _known_names(theory, base, stated)
        names = dict.fromkeys(_names(parsed.term, theory.library))
        lines = [_about(name, known, base) for name in names if known and name not in known]
    lines += [f"{indicator} has no facts." for indicator in base if not counts[indicator]]
    if asked := [indicator for indicator in base if part.library.is_asked(indicator)]:
        lines.append(f"{Setting('models')} asks a model for facts of {some(asked)}.")
    return lines


def _of_other_kinds(goal: Goal, library: Library) -> Iterator[str]:
    """The faults of a goal that a rule would have: numbers where the rules have texts or dates, and vice versa."""
    try:
        rules = goal_rules(goal, library, by_failure=True)
    except NotRules:
        return
    checked = with_rules(replace(library.completed(), rules=(), facts=(), declarations=()), rules)
    for diagnostic in (*comparison_of_texts(checked), *constant_of_wrong_kind(checked)):
        yield re.sub(f" of rule {GOAL} [0-9]+", "", f"{diagnostic.message}. {diagnostic.remedy}.")


def idle_premises(goal: Goal, theory: Theory) -> list[str]:
    """Notes about negations below the goal that exclude nothing, since their predicate is not known."""
    part = theory.relevant_to(goals=called_indicators(goal, theory.library))
    if not any(literal.negated for rule in part.library.rules for literal in rule.literals):
        return []
    assumed = {atom.indicator for atom in part.assumed}

    def has_facts(indicator: str) -> bool:
        return indicator in assumed or bool(theory.kb.fact_count(indicator, 1))

    return list(idle_negations(part.library.rules, theory.library, has_facts))


def capitalised_values(goal: Goal, theory: Theory) -> list[str]:
    """A note for each variable of the goal, or of a rule below it, that occurs once and is spelt like a value."""
    part = theory.relevant_to(goals=called_indicators(goal, theory.library))
    found = [("", name) for name in _single(all_names(goal.term))]
    for rule in part.library.rules:
        terms = chain.from_iterable(atom.arguments for atom in rule.atoms)
        sides = chain.from_iterable(comparison.sides for comparison in rule.comparisons)
        variables = chain.from_iterable(map(expression_variables, (*terms, *sides)))
        found += [(f"{rule.place}: ", name) for name in _single(variable.name for variable in variables)]
    names = [name for _, name in found]
    known = dict(zip(names, theory.kb.symbols.known(names), strict=True))
    stated = {term.value for atom in theory.library.facts for term in atom.arguments if isinstance(term, Constant)}
    return [
        f"{place}{name} is a variable here; the stored name is written {prolog_atom(name)}."
        for place, name in found
        if known[name] is not None or name in stated
    ]


def _single(names: Iterable[str]) -> list[str]:
    """The names that occur once; a single letter, or one behind `_`, is meant as a variable."""
    return [name for name, number in Counter(names).items() if number == 1 and len(name) > 1 and name[0] != "_"]


def _known_names(theory: Theory, predicates: Sequence[str], stated: Sequence[Atom]) -> dict[str, None]:
    """The texts in stored facts of these predicates and in facts of rule files and assumptions, each once."""
    values: list[Value] = []
    for indicator in predicates:
        for fact in theory.kb.facts(indicator.rpartition("/")[0]):
            values += fact.arguments
    for atom in stated:
        values += [term.value for term in atom.arguments if isinstance(term, Constant)]
    return {value: None for value in values if isinstance(value, str)}


def _plain_letters(name: str) -> str:
    """A name in small letters, without accents and punctuation."""
    return str(utils.default_process(plain_letters(name)))


def _about(name: str, known: Collection[str], predicates: Sequence[str]) -> str:
    found = process.extract(
        name, list(known), scorer=fuzz.ratio, processor=_plain_letters, score_cutoff=ALIKE, limit=MOST_NAMES
    )
    near = " or ".join(prolog_atom(choice) for choice, _, _ in found)
    # Facts of other predicates may have it.
    return f"No fact of {some(predicates, 3)} has {prolog_atom(name)}. " + (
        f"Did you mean {near}?" if near else "No name in these facts is like it."
    )


def _names(term: GoalTerm, library: Library) -> Iterator[str]:
    """The texts in a goal that facts should have, in order: in atoms, in lists, and alone in an equation."""
    if isinstance(term, GoalList):
        yield from (part.value for part in term.items if isinstance(part, Constant) and isinstance(part.value, str))
    if not isinstance(term, Compound):
        return
    for part in term.arguments:
        if isinstance(part, Constant) and isinstance(part.value, str):
            if library.knows(term.indicator) or term.functor in ("=", "=="):
                yield part.value
        else:
            yield from _names(part, library)
