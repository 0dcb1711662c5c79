"""True instances of the shipped rules over the atlas, found by a plain join: the statements that a search could derive.

The likelihood model reads them in training, so that the words of a statement cost it next to nothing and the names
decide. They are stated, never asked: the critic learns nothing from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from grammar.arithmetic import holds
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Atom, Constant, Literal, Term, Value, Variable
from grammar.verbalize import statement_text
from llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, popularity

MOST_OF_A_RULE = 20_000
"""True instances of one rule that are taken; a rule with more would only lengthen the preparation."""


_Facts: TypeAlias = Callable[[str, Value | None, Value | None], list[tuple[Value, Value]]]


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence that is true by the atlas, and the popularity of the names in it added up."""

    sentence: str
    popularity: float


def rule_statements(library: Library, atlas: Atlas) -> dict[str, tuple[Told, ...]]:
    """By rule, the distinct statements that follow from the atlas; a rule it cannot answer is left out."""
    found = {rule.name: tuple(_statements(rule, library, atlas)) for rule in library.rules}
    return {name: statements for name, statements in found.items() if statements}


def _statements(rule: Rule, library: Library, atlas: Atlas) -> Iterator[Told]:
    if library.is_definition(rule) or not all(_is_answered(rule, literal, library, atlas) for literal in rule.literals):
        return
    mentioned = {
        variable.name
        for item in (*filter(rule.is_information, rule.literals), rule.conclusion)
        for variable in item.variables
        if variable.name not in rule.generic
    }
    seen: dict[str, Told] = {}
    for bindings in _groundings(rule, library, atlas):
        constants = {name: Constant(value) for name, value in bindings.items()}
        sentence = statement_text(rule, library, constants).sentence
        if sentence not in seen:
            known = sum(popularity(str(bindings[name])) for name in mentioned if name in bindings)
            seen[sentence] = Told(sentence, known)
            if len(seen) == MOST_OF_A_RULE:
                break
    yield from seen.values()


def _is_answered(rule: Rule, literal: Literal, library: Library, atlas: Atlas) -> bool:
    """Whether the atlas, arithmetic or the statement's own assumption decides the literal."""
    indicator = literal.atom.indicator
    if indicator in library.derived:
        return False
    kind = library.signature(indicator).kind
    if kind is PredicateKind.GIVEN:
        return rule.is_information(literal)
    return kind is PredicateKind.COMPUTED or (atlas.knows(literal.atom.predicate) and len(literal.atom.arguments) == 2)


def _groundings(rule: Rule, library: Library, atlas: Atlas) -> Iterator[dict[str, Value]]:
    """Every binding of the searched variables under which the whole premise holds."""
    tests = [literal for literal in rule.literals if literal.negated or not atlas.knows(literal.atom.predicate)]
    tests = [literal for literal in tests if not rule.is_information(literal)]
    facts = _facts(atlas)
    joined = [literal.atom for literal in rule.literals if not literal.negated and atlas.knows(literal.atom.predicate)]
    for bindings in _joined(joined, {}, facts):
        if all(holds(comparison, bindings) for comparison in rule.comparisons) and all(
            _holds(literal, bindings, library, atlas) for literal in tests
        ):
            yield bindings


def _holds(literal: Literal, bindings: Mapping[str, Value], library: Library, atlas: Atlas) -> bool:
    values = [_value(term, bindings) for term in literal.atom.arguments]
    signature = library.signature(literal.atom.indicator)
    if signature.definition is None:
        return atlas.holds(literal.atom.predicate, values) != literal.negated
    formal = {parameter.name: value for parameter, value in zip(signature.parameters, values, strict=True)}
    return holds(signature.definition, formal) != literal.negated


def _joined(atoms: Sequence[Atom], bindings: dict[str, Value], facts: _Facts) -> Iterator[dict[str, Value]]:
    """Depth-first, the atom with the fewest matching facts first."""
    if not atoms:
        yield dict(bindings)
        return
    matches = {atom: facts(atom.predicate, *(_known(term, bindings) for term in atom.arguments)) for atom in atoms}
    chosen = min(atoms, key=lambda atom: len(matches[atom]))
    rest = [atom for atom in atoms if atom is not chosen]
    for arguments in matches[chosen]:
        extended = dict(bindings)
        for term, value in zip(chosen.arguments, arguments, strict=True):
            if isinstance(term, Variable) and extended.setdefault(term.name, value) != value:
                break
        else:
            yield from _joined(rest, extended, facts)


def _facts(atlas: Atlas) -> _Facts:
    """Finds the facts of a predicate by its arguments, None where any will do; numbers come as numbers."""
    index: dict[tuple[str, Value | None, Value | None], list[tuple[Value, Value]]] = defaultdict(list)
    for predicate, relation in atlas.relations.items():
        for fact in relation.facts:
            first, second = (
                Decimal(argument) if data_type in NUMERIC_TYPES else argument
                for argument, data_type in zip(fact.arguments, relation.argument_types, strict=True)
            )
            for key in ((None, None), (first, None), (None, second), (first, second)):
                index[(predicate, *key)].append((first, second))
    return lambda predicate, first, second: index.get((predicate, first, second), [])


def _known(term: Term, bindings: Mapping[str, Value]) -> Value | None:
    return bindings.get(term.name) if isinstance(term, Variable) else term.value


def _value(term: Term, bindings: Mapping[str, Value]) -> Value:
    return bindings[term.name] if isinstance(term, Variable) else term.value
