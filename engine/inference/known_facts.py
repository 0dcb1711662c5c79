"""Facts that are true for a run: those of the knowledge base and the rule files, read once and kept up to date."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import islice

from hapax.grammar.arithmetic import holds
from hapax.grammar.declarations import GENERATING, Closedness, Property
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import MISSING, Atom, Constant, CutDecimal, Term, Value, Variable, number_of
from hapax.kb.records import DENIALS, TYPE_FACTS, USER, DenialRecord, FactRecord, Source, TypeFact, fact_id
from hapax.kb.store import KnowledgeBase

Row = tuple[Value, ...]
"""The arguments of a fact."""

Facts = MutableMapping[Row, FactRecord]
"""Facts of one predicate, by their arguments."""

MOST_EXAMPLES = 100_000
"""Facts of a predicate that are read for examples in prompts, where its facts are looked up."""


class StoredFacts(MutableMapping[Row, FactRecord]):
    """The facts of a large predicate as they are in the knowledge base, looked up by index; `given`: the given ones.

    Facts that are added or removed here are added to and removed from the knowledge base by the caller.
    """

    def __init__(self, kb: KnowledgeBase, indicator: str, stated: Mapping[Row, FactRecord], *, given: bool) -> None:
        self._kb, self._indicator, self._stated, self._given = kb, indicator, stated, given

    def at(self, positions: tuple[int, ...], key: Row) -> list[FactRecord]:
        """The facts with these values at these positions, in the order of storage, those of rule files last."""
        bound = dict(zip(positions, key, strict=True))
        found: Facts = {}
        for fact in self._kb.relations.at(self._indicator, bound):
            if self._counts(fact):
                found[fact.arguments] = fact
        found.update((row, fact) for row, fact in self._stated.items() if _has(row, bound))
        return list(found.values())

    def some_given(self, most: int) -> list[Row]:
        """The arguments of at most so many of the given facts."""
        stored = islice(self._kb.relations.at(self._indicator, {}, given=True), most)
        return list(dict.fromkeys([*(fact.arguments for fact in stored), *self._stated]))[:most]

    def _counts(self, fact: FactRecord) -> bool:
        return not self._given or fact.source is Source.GIVEN or fact.arguments in self._stated

    def __getitem__(self, row: Row) -> FactRecord:
        for fact in self.at(tuple(range(len(row))), row):
            return fact
        raise KeyError(row)

    def __setitem__(self, row: Row, fact: FactRecord) -> None:
        """Nothing: the knowledge base has it."""

    def __delitem__(self, row: Row) -> None:
        """Nothing: the knowledge base has it no more."""

    def __iter__(self) -> Iterator[Row]:
        for fact in self._kb.facts(self._indicator):
            if self._counts(fact):
                yield fact.arguments
        yield from (row for row in self._stated if self._kb.fact(self._indicator.rpartition("/")[0], row) is None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _has(row: Row, bound: Mapping[int, Value]) -> bool:
    return all(row[place] == value for place, value in bound.items())


class FactTable:
    """Rows of one predicate, by the values at some of their positions. An index is made when it is first used."""

    def __init__(self, rows: Collection[Row]) -> None:
        self._rows = rows
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, positions: tuple[int, ...], key: Row) -> Collection[Row]:
        """The rows with these values at these positions, in their order."""
        if not positions:
            return self._rows
        if isinstance(self._rows, StoredFacts):
            return [fact.arguments for fact in self._rows.at(positions, key)]
        index = self._indexes.get(positions)
        if index is None:
            index = self._indexes[positions] = {}
            for row in self._rows:
                index.setdefault(tuple(row[position] for position in positions), []).append(row)
        return index.get(key, ())

    def values(self, atom: Atom, name: str) -> list[Value]:
        """Values of the variable `name` for which the atom is a row, whatever its other variables are."""
        constants = {place: term.value for place, term in enumerate(atom.arguments) if isinstance(term, Constant)}
        rows = self.rows(tuple(constants), tuple(constants.values()))
        matches = (matched(atom.arguments, row) for row in rows)
        return list(dict.fromkeys(_shortest(bindings[name]) for bindings in matches if bindings is not None))


class StoredOthers(Mapping[Value, Sequence[Value]]):
    """By the value at a place of the facts of a large binary predicate, the values at the other place."""

    def __init__(self, facts: StoredFacts, place: int, symmetric: bool) -> None:
        self._facts, self._places = facts, (place, 1 - place) if symmetric else (place,)

    def __getitem__(self, value: Value) -> list[Value]:
        found = [fact.arguments[1 - place] for place in self._places for fact in self._facts.at((place,), (value,))]
        if not found:
            raise KeyError(value)
        return found

    def __iter__(self) -> Iterator[Value]:
        return iter(dict.fromkeys(row[place] for row in self._facts for place in self._places))

    def __len__(self) -> int:
        return sum(1 for _ in self)


Others = Mapping[Value, Sequence[Value]]
"""Values that rows of a binary predicate have at one place, by the value at the other place."""


class FactClosure:
    """Rows of a binary predicate with those that follow by its declared properties. Reads only what a look-up reaches.

    A transitive predicate holds of two values if one or more rows lead from the first to the second.
    """

    def __init__(self, rows: Iterable[Row], *, symmetric: bool, transitive: bool) -> None:
        self._transitive = transitive
        if isinstance(rows, StoredFacts):
            self._other: tuple[Others, Others] = (StoredOthers(rows, 0, symmetric), StoredOthers(rows, 1, symmetric))
            return
        # By the place of the bound value: the values that its rows have at the other place.
        after: dict[Value, list[Value]] = {}
        before: dict[Value, list[Value]] = {}
        for first, second in rows:
            pairs = [(first, second), (second, first)] if symmetric else [(first, second)]
            for left, right in pairs:
                after.setdefault(left, []).append(right)
                before.setdefault(right, []).append(left)
        self._other = (after, before)

    def holds(self, row: Row) -> bool:
        """True if the row is one of the predicate, or follows."""
        return row[1] in self._reached(0, row[0])

    def values(self, atom: Atom, name: str) -> list[Value]:
        """Values of the variable `name` for which the atom holds, whatever its other variable is."""
        first, second = atom.arguments
        # p(X, X): the values that the predicate joins with themselves.
        if first == second:
            return [_shortest(value) for value in self._other[0] if self.holds((value, value))]
        wanted = 0 if isinstance(first, Variable) and first.name == name else 1
        bound = atom.arguments[1 - wanted]
        # A value of a further row is at the same place of a row that is there.
        found = self._reached(1 - wanted, bound.value) if isinstance(bound, Constant) else self._other[wanted]
        return [_shortest(value) for value in found]

    def _reached(self, place: int, value: Value) -> Collection[Value]:
        """The values at the other place, each once, nearest first."""
        others = self._other[place]
        reached = dict.fromkeys(others.get(value, ()))
        if self._transitive:
            waiting = deque(reached)
            while waiting:
                for further in others.get(waiting.popleft(), ()):
                    if further not in reached:
                        reached[further] = None
                        waiting.append(further)
        return reached


@dataclass(slots=True)
class _PredicateFacts:
    """Facts of one predicate: all, the given ones, and those that this run found.

    `supports`: ids of the candidates behind a fact of this run, by fact id. `table`: of the given facts, once needed;
    `closure`: with those that follow from them by declared properties.
    """

    facts: Facts
    given: Facts
    found: Facts = field(default_factory=dict)
    supports: dict[str, set[str]] = field(default_factory=dict)
    table: FactTable | None = None
    closure: FactClosure | None = None

    def given_changed(self) -> None:
        """Forget the given facts, so that they are read again."""
        self.table = self.closure = None


class KnownFacts:
    """Facts by indicator and arguments. A model's fact never replaces a given one."""

    def __init__(self, kb: KnowledgeBase, library: Library) -> None:
        self._kb, self._library = kb, library
        self._predicates: dict[str, _PredicateFacts] = {}
        self._types: dict[tuple[Value, str], TypeFact] = {}
        self._denials: dict[str, DenialRecord] = {}
        self._withdrawn = {item.fact.id: item.reason for item in kb.withdrawals() if item.author == USER}
        self.looks_up = False
        """True to look up the facts of large predicates that are indexed, instead of reading them all."""

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base that has the facts."""
        return self._kb

    def is_looked_up(self, indicator: str) -> bool:
        """True if the facts of the predicate are looked up in the knowledge base."""
        return isinstance(self._of(indicator).given, StoredFacts)

    def withdrawn(self, fact: FactRecord) -> str | None:
        """The reason why the user withdrew a fact; None for any other. Only the user brings such a fact back."""
        return self._withdrawn.get(fact.id) if self._withdrawn else None

    def of(self, indicator: str) -> Facts:
        """The predicate's facts by their arguments."""
        return self._of(indicator).facts

    def of_run(self, indicator: str) -> list[FactRecord]:
        """The predicate's given facts, and those that this run has found so far."""
        # Facts of other runs are left out, and so are those that this run found before it was killed and resumed:
        # with them the result would depend on when the run took place.
        known = self._of(indicator)
        return [*known.given.values(), *known.found.values()]

    def found_of(self, indicator: str) -> list[FactRecord]:
        """The predicate's facts that this run has found so far."""
        return list(self._of(indicator).found.values())

    def with_values(self, indicator: str, wanted: Collection[Value]) -> list[FactRecord]:
        """The predicate's given facts, and those of this run, that have a wanted value."""
        given = self._of(indicator).given
        if not isinstance(given, StoredFacts):
            return [fact for fact in self.of_run(indicator) if not set(wanted).isdisjoint(fact.arguments)]
        found = {fact.id: fact for fact in self.found_of(indicator) if not set(wanted).isdisjoint(fact.arguments)}
        for place in range(int(indicator.rpartition("/")[2])):
            for value in wanted:
                found.update((fact.id, fact) for fact in given.at((place,), (value,)))
        return list(found.values())

    def types(self) -> list[TypeFact]:
        """The types that users gave to values, and those under which this run accepted values."""
        given = [type_fact for type_fact in self._kb.select(TYPE_FACTS) if type_fact.probability is None]
        return [*given, *self._types.values()]

    def given(self, atom: Atom, name: str) -> list[Value]:
        """Values of the variable `name` for which the atom is a given fact, whatever its other variables are.

        Facts that follow from given ones by the predicate's declared properties are among them.
        """
        closure = self._closure(atom.indicator)
        if closure is not None:
            return closure.values(atom, name)
        return self.table(atom.indicator).values(atom, name)

    def _closure(self, indicator: str) -> FactClosure | None:
        """The predicate's given facts and what its declared properties add; None if it declares no such properties."""
        if indicator not in self._library.generating or not indicator.endswith("/2"):
            return None
        known = self._of(indicator)
        if known.closure is None:
            # GENERATING names symmetry first.
            symmetric, transitive = (self._library.has_property(indicator, item) for item in GENERATING)
            known.closure = FactClosure(known.given, symmetric=symmetric, transitive=transitive)
        return known.closure

    def table(self, indicator: str) -> FactTable:
        """The predicate's given facts as a table."""
        known = self._of(indicator)
        if known.table is None:
            known.table = FactTable(known.given)
        return known.table

    def given_rows(self, indicator: str) -> list[tuple[Value, ...]]:
        """The arguments of the predicate's given facts; of those that are looked up, the first MOST_EXAMPLES."""
        given = self._of(indicator).given
        return given.some_given(MOST_EXAMPLES) if isinstance(given, StoredFacts) else list(given)

    def truth(self, atom: Atom) -> float | None:
        """1 or 0 by given facts, the user's withdrawal, a declaration or arithmetic; None if a model has to say.

        Given predicates have no other facts than the given ones.
        """
        if self._is_reflexive(atom):
            return 0.0
        signature = self._library.signature(atom.indicator)
        values = atom_values(atom)
        if signature.kind is PredicateKind.COMPUTED and signature.definition is not None:
            names = (parameter.name for parameter in signature.parameters)
            return 1.0 if holds(signature.definition, dict(zip(names, values, strict=True))) else 0.0
        if any(isinstance(value, CutDecimal) for value in values):
            return 0.0  # no fact has a number that cannot be written down
        fact = self.of(atom.indicator).get(values)
        if fact is not None and fact.source is Source.GIVEN:
            return 1.0
        # A withdrawn fact is not among the facts: it is looked up by its identity.
        is_withdrawn = self._withdrawn and fact_id(atom.predicate, values) in self._withdrawn
        if is_withdrawn:
            return 0.0
        closure = self._closure(atom.indicator)
        if closure is not None and closure.holds(values):
            return 1.0
        return 0.0 if signature.kind is PredicateKind.GIVEN else None

    def _is_reflexive(self, atom: Atom) -> bool:
        """True for p(a, a) where p is declared irreflexive or asymmetric."""
        if len(set(atom.arguments)) != 1 or len(atom.arguments) != 2:
            return False
        forbidding = (Property.IRREFLEXIVE, Property.ASYMMETRIC)
        return any(self._library.has_property(atom.indicator, item) for item in forbidding)

    def add(self, facts: Sequence[FactRecord]) -> None:
        """Add facts, to the knowledge base too (inside the caller's transaction)."""
        facts = [fact for fact in facts if self.withdrawn(fact) is None]
        self._kb.add_facts(facts)
        for fact in facts:
            known = self._of(f"{fact.predicate}/{len(fact.arguments)}")
            earlier = known.facts.get(fact.arguments)
            if earlier is None or earlier.source is not Source.GIVEN:
                known.facts[fact.arguments] = fact
                if fact.source is Source.GIVEN:
                    known.given[fact.arguments] = fact
                    known.given_changed()
                known.found[fact.arguments] = fact
            known.supports.setdefault(fact.id, set()).add(fact.candidate_id or "")

    def add_types(self, types: Sequence[TypeFact]) -> None:
        """Add types of values, to the knowledge base too (inside the caller's transaction)."""
        self._kb.add(TYPE_FACTS, types)
        for type_fact in types:
            self._types[type_fact.constant, type_fact.data_type] = type_fact

    def deny(self, denials: Sequence[DenialRecord]) -> None:
        """Add atoms that a critic denied, to the knowledge base too (inside the caller's transaction).

        Only negations of open predicates need them, so those of other predicates are not stored.
        """
        needed = [item for item in denials if f"{item.predicate}/{len(item.arguments)}" in self._library.open_negations]
        self._kb.add(DENIALS, needed)
        for denial in needed:
            self._denials[denial.id] = denial

    def denials(self, indicator: str) -> list[DenialRecord]:
        """The atoms of the predicate that a critic denied in this run."""
        return [item for item in self._denials.values() if f"{item.predicate}/{len(item.arguments)}" == indicator]

    def is_covered(self, atom: Atom) -> bool:
        """True if the atom is false unless it is known: by the declared closedness of its predicate."""
        closedness = self._library.closedness(atom.indicator)
        if closedness is Closedness.CLOSED_FOR_FIRST:
            first, facts = atom_values(atom)[:1], self.of(atom.indicator)
            if isinstance(facts, StoredFacts):
                return bool(facts.at((0,), first))
            return any(arguments[:1] == first for arguments in facts)
        return closedness is Closedness.CLOSED

    def reject(self, facts: Iterable[FactRecord]) -> None:
        """Retract facts of candidates that a gate now rejects, unless this run found them by another candidate too."""
        for fact in facts:
            known = self._of(f"{fact.predicate}/{len(fact.arguments)}")
            current = known.facts.get(fact.arguments)
            supports = known.supports.get(fact.id, set())
            # Another candidate, of another spelling or question, may have found the same fact.
            supports.discard(fact.candidate_id or "")
            if current is not None and current.candidate_id == fact.candidate_id and not supports:
                self._kb.withdraw([fact], "a gate rejects the proposal that it rests on", "the gates of a search")
                del known.facts[fact.arguments]
                if known.given.pop(fact.arguments, None) is not None:
                    known.given_changed()
                known.found.pop(fact.arguments, None)

    def retract(self, reasons: Mapping[FactRecord, str], author: str) -> None:
        """Withdraw facts for these reasons, whichever candidates found them, from the knowledge base too."""
        for fact, reason in reasons.items():
            known = self._of(f"{fact.predicate}/{len(fact.arguments)}")
            self._kb.withdraw([fact], reason, author)
            known.supports.pop(fact.id, None)
            for index in (known.facts, known.given, known.found):
                index.pop(fact.arguments, None)
            known.given_changed()

    def keep_only(self, indicators: Collection[str]) -> None:
        """Free the facts of all other predicates, and the types of values, which no later rule of the run uses."""
        for indicator in [indicator for indicator in self._predicates if indicator not in indicators]:
            del self._predicates[indicator]
        # Only derived premises look up types, and the caller has none left.
        self._types.clear()

    def _of(self, indicator: str) -> _PredicateFacts:
        known = self._predicates.get(indicator)
        if known is None:
            stated: Facts = {}
            for atom in self._library.facts:
                if atom.indicator == indicator:
                    fact = stated_fact(self._library, atom)
                    stated[fact.arguments] = fact
            if self.looks_up and self._kb.relations.is_large(indicator):
                every, given = (StoredFacts(self._kb, indicator, stated, given=given) for given in (False, True))
                known = _PredicateFacts(every, given)
            else:
                facts = {**{fact.arguments: fact for fact in self._kb.facts(indicator)}, **stated}
                # Given facts are read apart: those of other runs are in `facts` as well.
                own = {arguments: fact for arguments, fact in facts.items() if fact.source is Source.GIVEN}
                known = _PredicateFacts(facts, own)
            self._predicates[indicator] = known
        return known


def atom_values(atom: Atom) -> tuple[Value, ...]:
    """The arguments of a ground atom."""
    return tuple(term.value for term in atom.arguments if isinstance(term, Constant))


def stated_fact(library: Library, atom: Atom) -> FactRecord:
    """The record of a fact that a rule file states."""
    types = library.signature(atom.indicator).argument_types
    return FactRecord(atom.predicate, atom_values(atom), types, Source.GIVEN)


def _shortest(value: Value) -> Value:
    """The value as inference writes it: 2 for 2.0."""
    return number_of(Fraction(value)) if isinstance(value, Decimal) else value


def matched(terms: Sequence[Term], values: Sequence[Value]) -> dict[str, Value] | None:
    """Values of the variables under which the terms are these values; None if there are none."""
    bindings: dict[str, Value] = {}
    for term, value in zip(terms, values, strict=True):
        if value is MISSING and isinstance(term, Variable) and not term.is_anonymous:
            return None
        expected = term.value if isinstance(term, Constant) else bindings.setdefault(term.name, value)
        if expected != value:
            return None
    return bindings
