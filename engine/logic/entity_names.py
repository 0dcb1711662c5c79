"""The names that `same_as/2` joins: rules see one name of an entity, its representative.

Facts keep their spelling in the file. Where a relation has rows with a joined name, rules read these rows with the
representative in its place; all other rows are read as they are. So a base in which few names are joined costs little
more than one without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, pairwise
from typing import Protocol, TypeAlias

from hapax.engine.inference.derive import RuleInstance
from hapax.engine.logic.goal_rules import GOAL
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS
from hapax.grammar.remedies import Remedy
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Constant,
    Literal,
    Substitution,
    Term,
    Value,
    Variable,
    variable_names,
)
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.facts import columns_of
from hapax.kb.records import FactRecord

_NAMES = count()
"""Numbers of temporary tables."""

_PREDICATE = SAME_AS.rpartition("/")[0]

# No rule file can name predicates with blanks.
_JOINED = "names of an entity"
JOINED = f"{_JOINED}/2"
"""The predicate of each two names of an entity, by indicator."""

FOUND = Atom("same_as by rules", (Variable("A", ""), Variable("B", "")))
"""The predicate of the names that rules conclude to be the same."""

Pair: TypeAlias = tuple[Value, ...]
"""Two names that are the same."""
Instances: TypeAlias = dict[Atom, list[RuleInstance]]


class SameAsRules(Protocol):
    """The evaluation of the rules that conclude `same_as`."""

    def instances(self, roots: Iterable[Atom]) -> Instances:
        """The instances below atoms."""

    def records(self) -> list[FactRecord]:
        """The facts on which these rest."""


Origin: TypeAlias = FactRecord | SameAsRules | None
"""What says that two names are the same; None for a fact of a rule file or an assumption."""


@dataclass
class Names:
    """Names by which an evaluation reads facts.

    `stored`: as in FactSource. `pairs`: the names that are said to be the same.
    """

    relations: Relations
    stored: Callable[[str], str | None]
    pairs: Mapping[Pair, Origin]
    facts: list[FactRecord] = field(init=False, default_factory=list)
    """The facts on which the instances of `explained` rest."""
    representatives: dict[Value, Value] = field(init=False, default_factory=dict)
    """By each name that is joined with another one, the name that rules see: the first of all."""

    def __post_init__(self) -> None:
        self._linked: dict[Value, dict[Value, None]] = {}
        self._tables: dict[str, str] = {}
        self._touched: dict[str, str] = {}
        self._views: dict[str, str] = {}
        self._written: dict[Atom, Atom] = {}
        for first, second in self.pairs:
            if not isinstance(first, str) or not isinstance(second, str):
                raise HapaxError(
                    f"{Atom(_PREDICATE, _constants((first, second)))} is about a number, but same_as joins names.",
                    Remedy("Import what numbers name as texts, by a column of type Text."),
                )
            if first != second:
                self._linked.setdefault(first, {})[second] = None
                self._linked.setdefault(second, {})[first] = None
        for name in sorted(self._linked, key=str):
            if name not in self.representatives:
                self.representatives |= dict.fromkeys(self._paths(name), name)

    def _paths(self, start: Value) -> dict[Value, Value]:
        """The names that are joined with one, each with the name before it on the shortest way from there."""
        found = {start: start}
        waiting = deque([start])
        while waiting:
            name = waiting.popleft()
            for neighbour in self._linked[name]:
                if neighbour not in found:
                    found[neighbour] = name
                    waiting.append(neighbour)
        return found

    # -- values

    def name(self, value: Value) -> Value:
        """The name that rules see in the place of a value."""
        return self.representatives.get(value, value) if isinstance(value, str) else value

    def atom(self, written: Atom) -> Atom:
        """An atom as rules see it."""
        if not self.representatives or written.indicator == SAME_AS:
            return written
        terms = (Constant(self.name(term.value)) if isinstance(term, Constant) else term for term in written.arguments)
        return replace(written, arguments=tuple(terms))

    def read(self, fact: Atom) -> Atom:
        """A fact as rules see it; what was written is remembered for proofs."""
        seen = self.atom(fact)
        if seen != fact:
            self._written.setdefault(seen, fact)
        return seen

    def tag(self, value: Value) -> int:
        return self.relations.symbols.tag(self.name(value))

    # -- tables

    @property
    def _renamed(self) -> str:
        """A temporary table of the tags of joined names with those of their representatives."""
        if "" not in self._tables:
            table = self._tables[""] = f"names_{next(_NAMES)}"
            tags = self.relations.symbols.tags
            rows = zip(tags(list(self.representatives)), tags(list(self.representatives.values())), strict=True)
            self.relations.run(f"CREATE TEMP TABLE {table} (tag INTEGER PRIMARY KEY, name INTEGER NOT NULL)")
            self.relations.insert(f"temp.{table}", rows)
        return f"temp.{self._tables['']}"

    def pair_table(self) -> str:
        """A temporary table of each two names of an entity, each name with itself among them."""
        if SAME_AS not in self._tables:
            table, names = f"pairs_{next(_NAMES)}", self._renamed
            self.relations.run(
                f"CREATE TEMP TABLE {table} AS SELECT row_number() OVER () AS ref, x.tag AS a1, y.tag AS a2 "  # noqa: S608
                f"FROM {names} AS x, {names} AS y ON x.name = y.name"
            )
            self._tables[SAME_AS] = table
        return f"temp.{self._tables[SAME_AS]}"

    def touched(self, indicator: str) -> str:
        """A temporary table of a predicate's stored facts with joined names, as rules see them; empty without any.

        `ref` is the number of one of the facts that become such a row.
        """
        relation, condition = self.relations.kb.relations.get(indicator), self.stored(indicator)
        if not self.representatives or condition is None or relation is None or not relation.columns:
            return ""
        if indicator not in self._touched:
            number, names, columns = next(_NAMES), self._renamed, relation.columns
            table, refs = f"renamed_{number}", f"temp.written_{number}"
            self.relations.run(f"CREATE TEMP TABLE written_{number} (ref INTEGER PRIMARY KEY)")
            for column in columns:
                self.relations.run(
                    f"INSERT OR IGNORE INTO {refs} SELECT ref FROM {relation.table} "  # noqa: S608  ours
                    f"WHERE {column} IN (SELECT tag FROM {names}) AND ({condition})"
                )
            name = f"coalesce((SELECT n.name FROM {names} AS n WHERE n.tag = {{0}}), {{0}}) AS {{0}}"  # noqa: S608
            listed = ", ".join(columns)
            # SQLite takes a view apart whose SELECTs have columns of the same types.
            typed = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
            self.relations.run(f"CREATE TEMP TABLE {table} (ref INTEGER PRIMARY KEY, {typed})")
            self.relations.run(
                f"INSERT INTO temp.{table} SELECT min(ref), {listed} FROM "  # noqa: S608  ours
                f"(SELECT ref, {', '.join(map(name.format, columns))} FROM {refs} "
                f"CROSS JOIN {relation.table} USING (ref)) "
                f"GROUP BY {listed}"
            )
            for column in columns:
                self.relations.run(f"CREATE INDEX temp.{table}_{column} ON {table} ({column})")
            self._touched[indicator] = "" if self.relations.is_empty(refs) else f"temp.{table}"
        return self._touched[indicator]

    def relation(self, indicator: str) -> str:
        """The table of a predicate's stored facts as rules see them: its relation, or a view with other names.

        A row keeps the number of its fact.
        """
        relation, touched = self.relations.relation(indicator), self.touched(indicator)
        if not touched:
            return relation
        if indicator not in self._views:
            view, columns = f"seen_{next(_NAMES)}", columns_of(indicator)
            listed = ", ".join(("ref", *columns))
            written = touched.replace("renamed", "written")
            # SQLite joins each of the two by its own indexes.
            self.relations.run(
                f"CREATE TEMP VIEW {view} AS SELECT {listed} FROM {relation} "  # noqa: S608  ours
                f"WHERE ref NOT IN (SELECT ref FROM {written}) AND ({self.stored(indicator)}) "
                f"UNION ALL SELECT {listed} FROM {touched}"
            )
            self._views[indicator] = f"temp.{view}"
        return self._views[indicator]

    # -- proofs

    def explained(self, instances: Instances, roots: Iterable[Atom] = ()) -> Instances:
        """The instances with those by which roots and premises follow from what is written, and from `same_as`."""
        if not self.representatives:
            return instances
        premises = dict.fromkeys(roots)
        for instance in chain.from_iterable(instances.values()):
            atoms = [literal.atom for literal in instance.rule.literals if not literal.negated]
            premises |= dict.fromkeys(map(instance.substitution.apply, atoms))
        found = {conclusion: list(group) for conclusion, group in instances.items()}
        for atom in premises:
            if not atom.is_ground:
                continue
            if atom.indicator == SAME_AS:
                self._equality(atom, found)
                continue
            seen = self.atom(atom)
            written = self._written.get(seen) or self._stored(seen)
            if seen != atom:
                self._renaming(seen, atom, found)
            if written is not None and written not in (seen, atom):
                self._renaming(written, seen, found)
        return found

    def _stored(self, seen: Atom) -> Atom | None:
        """A stored fact that rules see as this atom."""
        touched = self.touched(seen.indicator)
        if not touched or self.representatives.keys().isdisjoint(seen.values):
            return None
        tests = [f"a{place} = {self.tag(value)}" for place, value in enumerate(seen.values, 1)]
        select = f"SELECT ref FROM {touched} WHERE {' AND '.join(tests)}"  # noqa: S608  ours
        refs = [ref for (ref,) in self.relations.rows(select)]
        facts = [fact for _, fact in self.relations.kb.relations.by_ref(seen.indicator, refs)]
        self.facts += facts
        return facts[0].ground_atom if facts else None

    def _renaming(self, atom: Atom, renamed: Atom, found: Instances) -> None:
        """Add the instances by which one atom follows from another one with other names of the same entities."""
        before = [Variable(f"A{place}", "") for place in range(len(atom.arguments))]
        after = [*before]
        bindings = dict(zip((variable.name for variable in before), atom.arguments, strict=True))
        premise = [Literal(Atom(atom.predicate, tuple(before)))]
        for place, terms in enumerate(zip(atom.arguments, renamed.arguments, strict=True)):
            if terms[0] != terms[1]:
                after[place] = Variable(f"B{place}", "")
                bindings[after[place].name] = terms[1]
                premise.append(Literal(Atom(_PREDICATE, (before[place], after[place]))))
                self._equality(Atom(_PREDICATE, terms), found)
        values = Substitution(tuple((name, term) for name, term in bindings.items() if isinstance(term, Constant)))
        _add(_declared(SAME_AS, premise, Atom(atom.predicate, tuple(after))), values, found)

    def _equality(self, atom: Atom, found: Instances) -> None:
        """Add the instances by which two names are the same: of symmetry, transitivity and the rules of `same_as`."""
        start, end = atom.values
        if self.name(start) != self.name(end) or start == end:
            return
        after = self._paths(end)
        way = [start]
        while way[-1] != end:
            way.append(after[way[-1]])
        a, b, c = (Variable(name, "") for name in "ABC")
        for pair in pairwise(way):
            stated = pair if pair in self.pairs else pair[::-1]
            self._origin(stated, found)
            if pair != stated:
                values = Substitution(tuple(zip("AB", _constants(pair), strict=True)))
                _add(_declared(f"symmetric {SAME_AS}", [_same(b, a)], _same(a, b).atom), values, found)
        for pair in pairwise(way[:-1]):
            values = Substitution(tuple(zip("ABC", _constants((*pair, end)), strict=True)))
            _add(_declared(f"transitive {SAME_AS}", [_same(a, b), _same(b, c)], _same(a, c).atom), values, found)

    def _origin(self, pair: Pair, found: Instances) -> None:
        """Add the fact that says that two names are the same, or the instances of rules that conclude it."""
        origin = self.pairs[pair]
        if isinstance(origin, FactRecord):
            self.facts.append(origin)
        elif origin is not None:
            for conclusion, group in origin.instances([replace(FOUND, arguments=_constants(pair))]).items():
                is_found = conclusion.predicate == FOUND.predicate
                found.setdefault(replace(conclusion, predicate=_PREDICATE) if is_found else conclusion, group)
            self.facts += origin.records()


def _add(rule: Rule, values: Substitution, found: Instances) -> None:
    group = found.setdefault(values.apply(rule.conclusion.atom), [])
    instance = RuleInstance(rule, values)
    if instance not in group:
        group.append(instance)


def _constants(values: Iterable[Value]) -> tuple[Constant, ...]:
    return tuple(map(Constant, values))


def _same(first: Term, second: Term) -> Literal:
    return Literal(Atom(_PREDICATE, (first, second)))


def _declared(name: str, premise: Sequence[BodyLiteral], conclusion: Atom) -> Rule:
    return Rule(name, tuple(premise), Literal(conclusion), by_declaration=True)


def by_identity(library: Library) -> Library:
    """The library in whose premises `same_as` is identity, as rules see one name of an entity.

    What rules conclude of it they conclude of FOUND, and goals ask for names by JOINED.
    """
    if not library.knows(SAME_AS):
        return library
    return replace(library.with_identity(), rules=tuple(map(_identical, library.rules)))


def _identical(rule: Rule) -> Rule:
    conclusion = rule.conclusion.atom
    if conclusion.indicator == SAME_AS:
        return replace(rule, conclusion=Literal(replace(conclusion, predicate=FOUND.predicate)))
    return by_names(rule) if conclusion.predicate.startswith(GOAL) else rule


def by_names(rule: Rule) -> Rule:
    """The rule of a goal, which asks for all names of an entity where nothing else gives them."""
    others = [item for item in rule.literals if item.atom.indicator != SAME_AS and not item.negated]
    bound = variable_names(others)
    premise = list(rule.premise)
    for place, item in enumerate(premise):
        if isinstance(item, Literal) and item.atom.indicator == SAME_AS and not variable_names([item]) <= bound:
            premise[place] = replace(item, atom=replace(item.atom, predicate=_JOINED))
    return replace(rule, premise=tuple(premise))
