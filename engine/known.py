"""What is held true already: facts of the store and of the rule files, read once a run and kept up to date."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from engine.inquiry import atom_values
from grammar.arithmetic import holds
from grammar.rules import Library, PredicateKind
from grammar.terms import Atom, Constant, Term, Value
from kb.records import FactRecord, Source, TypeFact
from kb.store import KnowledgeBase

Facts = dict[tuple[Value, ...], FactRecord]
"""Of one predicate, by their arguments."""


@dataclass(slots=True)
class _Held:
    """One predicate: all its facts, the given ones, those that this run found, and the candidates behind these.

    `supports`: ids of candidates by fact id.
    """

    facts: Facts
    given: Facts
    found: Facts = field(default_factory=dict)
    supports: dict[str, set[str]] = field(default_factory=dict)


class KnownFacts:
    """Facts by indicator and arguments. Given facts are never replaced by a model's."""

    def __init__(self, kb: KnowledgeBase, library: Library) -> None:
        self._kb, self._library = kb, library
        self._held: dict[str, _Held] = {}
        self._types: dict[tuple[Value, str], TypeFact] = {}

    def of(self, indicator: str) -> Facts:
        """The predicate's facts by their arguments."""
        return self._of(indicator).facts

    def _of(self, indicator: str) -> _Held:
        held = self._held.get(indicator)
        if held is None:
            stored = {fact.arguments: fact for fact in self._kb.facts(indicator)}
            for atom in self._library.facts:
                if atom.indicator == indicator:
                    types = self._library.signature(indicator).argument_types
                    stored[atom_values(atom)] = FactRecord(atom.predicate, atom_values(atom), types, Source.GIVEN)
            given = {key: one for key, one in stored.items() if one.source is Source.GIVEN}
            held = self._held[indicator] = _Held(stored, given)
        return held

    def held(self, indicator: str) -> list[FactRecord]:
        """The predicate's given facts, and those that this run has found so far.

        What goals of a run rest on: facts of other runs, and those that this very run found later before it was killed
        and resumed, would make its result depend on when it was run.
        """
        held = self._of(indicator)
        return [*held.given.values(), *held.found.values()]

    def types(self) -> list[TypeFact]:
        """The types that users gave values, and those under which this run accepted values."""
        return [*(one for one in self._kb.type_facts() if one.probability is None), *self._types.values()]

    def given(self, atom: Atom, name: str) -> list[Value]:
        """Values of the variable `name` for which the atom is a given fact, its other variables having any value."""
        given = self._of(atom.indicator).given
        found = (_matched(atom.arguments, arguments) for arguments in given)
        return list(dict.fromkeys(match[name] for match in found if match is not None))

    def add(self, facts: Sequence[FactRecord]) -> None:
        """Hold these true, in the store too (inside the caller's transaction)."""
        self._kb.add_facts(facts)
        for fact in facts:
            held = self._of(f"{fact.predicate}/{len(fact.arguments)}")
            earlier = held.facts.get(fact.arguments)
            if earlier is None or earlier.source is not Source.GIVEN:
                held.facts[fact.arguments] = fact
                if fact.source is Source.GIVEN:
                    held.given[fact.arguments] = fact
                held.found[fact.arguments] = fact
            held.supports.setdefault(fact.id, set()).add(fact.candidate_id or "")

    def add_types(self, types: Sequence[TypeFact]) -> None:
        """Hold the values to be of these types, in the store too (inside the caller's transaction)."""
        self._kb.add_type_facts(types)
        self._types.update(((one.constant, one.data_type), one) for one in types)

    def reject(self, facts: Iterable[FactRecord]) -> None:
        """No longer hold what stands on a candidate that the gate now rejects, unless this run found other support."""
        for fact in facts:
            held = self._of(f"{fact.predicate}/{len(fact.arguments)}")
            standing = held.facts.get(fact.arguments)
            supports = held.supports.get(fact.id, set())
            supports.discard(fact.candidate_id or "")
            if standing is not None and standing.candidate_id == fact.candidate_id and not supports:
                self._kb.retract_fact(fact.id)
                del held.facts[fact.arguments]
                held.given.pop(fact.arguments, None)
                held.found.pop(fact.arguments, None)

    def keep_only(self, indicators: Collection[str]) -> None:
        """Free the facts of all other predicates, and values' types, once nothing of this run will rest on them."""
        for indicator in [one for one in self._held if one not in indicators]:
            del self._held[indicator]
        self._types.clear()

    def truth(self, atom: Atom) -> float | None:
        """1 or 0 where no model is needed: given facts and arithmetic. A given predicate holds of nothing else."""
        signature = self._library.signature(atom.indicator)
        if signature.kind is PredicateKind.COMPUTED and signature.definition is not None:
            bindings = dict(zip((one.name for one in signature.parameters), atom_values(atom), strict=True))
            return 1.0 if holds(signature.definition, bindings) else 0.0
        fact = self.of(atom.indicator).get(atom_values(atom))
        if fact is not None and fact.source is Source.GIVEN:
            return 1.0
        return 0.0 if signature.kind is PredicateKind.GIVEN else None


def _matched(terms: Sequence[Term], values: Sequence[Value]) -> dict[str, Value] | None:
    """What the variables must be for the terms to be these values; None if they cannot."""
    bound: dict[str, Value] = {}
    for term, value in zip(terms, values, strict=True):
        expected = term.value if isinstance(term, Constant) else bound.setdefault(term.name, value)
        if expected != value:
            return None
    return bound
