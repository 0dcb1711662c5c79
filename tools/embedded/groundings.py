"""True instances of the shipped rules over the atlas, found by a plain join: the statements that a search could derive.

The likelihood model reads them in training, so that the fixed words of a statement cost it next to nothing and the
names decide. The critic is not asked about them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from hapax.grammar.arithmetic import holds
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, Constant, Literal, Term, Value, Variable
from hapax.grammar.verbalize import statement_text
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, popularity

MOST_OF_A_RULE = 20_000
"""Most true instances of a rule; more of them would only lengthen the preparation."""

_Facts: TypeAlias = Callable[[str, Value | None, Value | None], list[tuple[Value, Value]]]


@dataclass(frozen=True, slots=True)
class AtlasStatement:
    """A sentence that is true by the atlas, and the total popularity of the names in it."""

    sentence: str
    popularity: float


def rule_statements(library: Library, atlas: Atlas) -> dict[str, tuple[AtlasStatement, ...]]:
    """The distinct statements that follow from the atlas, by rule, without the rules that it cannot answer."""
    by_rule = {rule.name: tuple(_statements(rule, library, atlas)) for rule in library.rules}
    return {name: statements for name, statements in by_rule.items() if statements}


def _statements(rule: Rule, library: Library, atlas: Atlas) -> Iterator[AtlasStatement]:
    if library.is_definition(rule) or not all(_is_answered(rule, literal, library, atlas) for literal in rule.literals):
        return
    mentioned = {variable.name for variable in rule.conclusion.variables}
    for literal in filter(rule.is_information, rule.literals):
        mentioned.update(variable.name for variable in literal.variables)
    mentioned.difference_update(rule.generic)
    seen: dict[str, AtlasStatement] = {}
    for bindings in _groundings(rule, library, atlas):
        constants = {name: Constant(value) for name, value in bindings.items()}
        sentence = statement_text(rule, library, constants).sentence
        if sentence not in seen:
            known = sum(popularity(str(bindings[name])) for name in mentioned if name in bindings)
            seen[sentence] = AtlasStatement(sentence, known)
            if len(seen) == MOST_OF_A_RULE:
                break
    yield from seen.values()


def _is_answered(rule: Rule, literal: Literal, library: Library, atlas: Atlas) -> bool:
    """True if the atlas, arithmetic or an assumption of the statement decides the literal."""
    indicator = literal.atom.indicator
    if indicator in library.derived:
        return False
    kind = library.signature(indicator).kind
    if kind is PredicateKind.GIVEN:
        return rule.is_information(literal)
    return kind is PredicateKind.COMPUTED or (atlas.knows(literal.atom.predicate) and len(literal.atom.arguments) == 2)


def _groundings(rule: Rule, library: Library, atlas: Atlas) -> Iterator[dict[str, Value]]:
    """All bindings of the searched variables under which the premise holds."""
    joined: list[Atom] = []
    tests: list[Literal] = []
    for literal in rule.literals:
        if not literal.negated and atlas.knows(literal.atom.predicate):
            joined.append(literal.atom)
        elif not rule.is_information(literal):  # the statement assumes those
            tests.append(literal)
    for bindings in _joined(joined, {}, _facts(atlas)):
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
    """The bindings under which all atoms are facts, by a depth-first join: the atom with the fewest matches first."""
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
    """A function that finds the facts of a predicate by its arguments; None matches any. Numbers become Decimals."""
    index: dict[tuple[str, Value | None, Value | None], list[tuple[Value, Value]]] = defaultdict(list)
    for predicate, relation in atlas.relations.items():
        for fact in relation.facts:
            values: list[Value] = []
            for argument, data_type in zip(fact.arguments, relation.argument_types, strict=True):
                values.append(Decimal(argument) if data_type in NUMERIC_TYPES else argument)
            first, second = values
            for key in ((None, None), (first, None), (None, second), (first, second)):
                index[(predicate, *key)].append((first, second))
    return lambda predicate, first, second: index.get((predicate, first, second), [])


def _known(term: Term, bindings: Mapping[str, Value]) -> Value | None:
    return bindings.get(term.name) if isinstance(term, Variable) else term.value


def _value(term: Term, bindings: Mapping[str, Value]) -> Value:
    return bindings[term.name] if isinstance(term, Variable) else term.value
