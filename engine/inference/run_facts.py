"""Facts that are true for a run: the given ones, which the knowledge base holds, and those that the run has found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter

from hapax.engine.inference.derive import stated_fact
from hapax.grammar.parsing.declarations import Closedness, PredicateKind, Property
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, CutDecimal, Value, grouped
from hapax.grammar.values.functions import holds
from hapax.kb.records import DENIALS, TYPE_FACTS, USER, DenialRecord, FactRecord, Source, TypeFact, fact_id
from hapax.kb.store import KnowledgeBase

MOST_EXAMPLES = 100_000
"""Given facts of a predicate that are read for examples in prompts."""


class RunFacts:
    """Given facts, as they are in the knowledge base, and the facts, types and denials that a run has found.

    Facts that other runs found are left out, and so are those that this run found before it was killed and resumed:
    with them the result would depend on when the run took place.
    """

    def __init__(self, kb: KnowledgeBase, library: Library) -> None:
        self.kb, self.library = kb, library
        self._stated = grouped((stated_fact(library, atom) for atom in library.facts), attrgetter("indicator"))
        self._found: dict[str, dict[str, FactRecord]] = {}
        """By indicator and id."""
        self._supports: dict[str, set[str]] = {}
        """By fact id, ids of the candidates behind a fact of this run."""
        self._types: dict[tuple[Value, str], TypeFact] = {}
        self._denials: dict[str, DenialRecord] = {}
        self._withdrawn = {item.fact.id: item.reason for item in kb.withdrawals() if item.author == USER}

    def withdrawn(self, fact: FactRecord) -> str | None:
        """The reason why the user withdrew a fact; None for any other. Only the user brings such a fact back."""
        return self._withdrawn.get(fact.id) if self._withdrawn else None

    def given(self, indicator: str, bound: Mapping[int, Value] | None = None) -> Iterator[FactRecord]:
        """The predicate's given facts with these values at these places, those that only rule files state last."""
        bound, stated = bound or {}, self._stated.get(indicator, ())
        own = {fact.id: fact for fact in stated if all(fact.arguments[place] == bound[place] for place in bound)}
        for fact in self.kb.relations.at(indicator, bound, given=True):
            own.pop(fact.id, None)
            yield fact
        yield from own.values()

    def has_given(self, indicator: str) -> bool:
        """True if a predicate may have given facts."""
        return indicator in self._stated or self.kb.fact_count(indicator, 1) > 0

    def of_run(self, indicator: str) -> list[FactRecord]:
        """The predicate's given facts, and those that this run has found so far."""
        given = {fact.id: fact for fact in self.given(indicator)}
        return [*given.values(), *(fact for fact in self.found(indicator) if fact.id not in given)]

    def found(self, indicator: str) -> list[FactRecord]:
        """The predicate's facts that this run has found so far."""
        return list(self._found.get(indicator, {}).values())

    def with_values(self, indicator: str, wanted: Collection[Value]) -> list[FactRecord]:
        """The predicate's given facts, and those of this run, that have a wanted value."""
        stored = (fact for fact in self.kb.relations.with_any(indicator, wanted) if fact.source is Source.GIVEN)
        stated_or_found = (*self._stated.get(indicator, ()), *self.found(indicator))
        return [*stored, *(fact for fact in stated_or_found if not set(wanted).isdisjoint(fact.arguments))]

    def types(self) -> list[TypeFact]:
        """The types that users gave to values, and those under which this run accepted values."""
        given = [type_fact for type_fact in self.kb.select(TYPE_FACTS) if type_fact.probability is None]
        return [*given, *self._types.values()]

    def given_rows(self, indicator: str) -> list[tuple[Value, ...]]:
        """The arguments of the first MOST_EXAMPLES of the predicate's given facts."""
        return [fact.arguments for fact in islice(self.given(indicator), MOST_EXAMPLES)]

    def truth(self, atom: Atom) -> float | None:
        """1 or 0 by given facts, the user's withdrawal, a declaration or arithmetic; None if a model has to say.

        Given predicates have no other facts than the given ones. What follows by declared properties is not known here.
        """
        forbidding = (Property.IRREFLEXIVE, Property.ASYMMETRIC)
        is_reflexive = len(atom.arguments) == 2 and len(set(atom.arguments)) == 1
        if is_reflexive and any(self.library.has_property(atom.indicator, item) for item in forbidding):
            return 0.0
        signature = self.library.signature(atom.indicator)
        values = atom.values
        if signature.kind is PredicateKind.COMPUTED and signature.definition is not None:
            names = (parameter.name for parameter in signature.parameters)
            return 1.0 if holds(signature.definition, dict(zip(names, values, strict=True))) else 0.0
        if any(isinstance(value, CutDecimal) for value in values):
            return 0.0  # no fact has a number that cannot be written down
        if self.has_given(atom.indicator) and any(True for _ in self.given(atom.indicator, dict(enumerate(values)))):
            return 1.0
        is_withdrawn = self._withdrawn and fact_id(atom.predicate, values) in self._withdrawn
        return 0.0 if is_withdrawn or signature.kind is PredicateKind.GIVEN else None

    def add(self, facts: Sequence[FactRecord]) -> None:
        """Add facts, to the knowledge base too (inside the caller's transaction)."""
        facts = [fact for fact in facts if self.withdrawn(fact) is None]
        self.kb.add_facts(facts)
        for fact in facts:
            self._found.setdefault(fact.indicator, {})[fact.id] = fact
            self._supports.setdefault(fact.id, set()).add(fact.candidate_id or "")

    def add_types(self, types: Sequence[TypeFact]) -> None:
        """Add types of values, to the knowledge base too (inside the caller's transaction)."""
        self.kb.add(TYPE_FACTS, types)
        self._types |= {(type_fact.constant, type_fact.data_type): type_fact for type_fact in types}

    def deny(self, denials: Sequence[DenialRecord]) -> None:
        """Add atoms that a critic denied, to the knowledge base too (inside the caller's transaction).

        Only negations of open predicates need them, so those of other predicates are not stored.
        """
        needed = [denial for denial in denials if denial.indicator in self.library.open_negations]
        self.kb.add(DENIALS, needed)
        self._denials |= {denial.id: denial for denial in needed}

    def denials(self, indicator: str) -> list[DenialRecord]:
        """The atoms of the predicate that a critic denied in this run."""
        return [denial for denial in self._denials.values() if denial.indicator == indicator]

    def is_covered(self, atom: Atom) -> bool:
        """True if the atom is false unless it is known: by the declared closedness of its predicate."""
        closedness = self.library.closedness(atom.indicator)
        if closedness is not Closedness.CLOSED_FOR_FIRST:
            return closedness is Closedness.CLOSED
        first = atom.values[:1]
        known = chain(
            self.kb.relations.at(atom.indicator, dict(enumerate(first))), self._stated.get(atom.indicator, ())
        )
        return any(fact.arguments[:1] == first for fact in known)

    def reject(self, facts: Iterable[FactRecord]) -> None:
        """Retract facts of candidates that a gate now rejects, unless this run found them by another candidate too."""
        for fact in facts:
            supports = self._supports.get(fact.id, set())
            # Another candidate, of another spelling or question, may have found the same fact.
            supports.discard(fact.candidate_id or "")
            current = None if supports else self.kb.fact(fact.predicate, fact.arguments)
            if current is not None and current.candidate_id == fact.candidate_id:
                self.kb.withdraw([fact], "a gate rejects the proposal that it rests on", "the gates of a search")
                self._found.get(fact.indicator, {}).pop(fact.id, None)

    def retract(self, reasons: Mapping[FactRecord, str], author: str) -> None:
        """Withdraw facts for these reasons, whichever candidates found them, from the knowledge base too."""
        for fact, reason in reasons.items():
            self.kb.withdraw([fact], reason, author)
            self._supports.pop(fact.id, None)
            self._found.get(fact.indicator, {}).pop(fact.id, None)

    def keep_only(self, indicators: Collection[str]) -> None:
        """Free the facts of all other predicates, and the types of values, which no later rule of the run uses."""
        for indicator in self._found.keys() - set(indicators):
            del self._found[indicator]
        # Only derived premises look up types, and the caller has none left.
        self._types.clear()
