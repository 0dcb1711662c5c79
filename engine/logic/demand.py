"""Answers to goals by demand: of each predicate only the atoms are derived that some call asks for (magic sets).

Each derived predicate has a table of atoms, and each pattern of bound arguments in which it is called a table of the
values asked for. A rule joins those values with its premise; the part of a premise before a call asks for the call's
values (Beeri and Ramakrishnan 1991). What a negation or an aggregate needs is asked for, and derived whole, before the
rule above it runs: so absence and numbers are those of all atoms. Tables are temporary, and the file is only read.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from hapax.engine.inference.derive import RuleInstance, instances_by_conclusion
from hapax.engine.inference.program import join_order
from hapax.engine.inference.session import PrologTerm
from hapax.engine.inference.stored_atoms import StoredAtoms
from hapax.engine.inference.theory import FactSource
from hapax.engine.logic.compile import (
    CompileContext,
    CompiledPremise,
    compile_aggregate,
    compile_premise,
    conclusion_cells,
    conjunction,
    covering_places,
)
from hapax.engine.logic.goals import rule_of
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.prolog_text import definition_of, evaluation_order
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
from hapax.kb.argument_index import ArgumentIndex, facts_at
from hapax.kb.loading import columns_of, is_sayable
from hapax.kb.records import FactRecord
from hapax.kb.relations import BATCH, Relations
from hapax.kb.symbols import canonical

MOST_PATTERNS = 16
"""Patterns of a predicate; all further calls of it ask for everything."""

MOST_LOOKED_UP = 500
"""Calls of a predicate whose facts are looked up one by one. After them all are read, which is faster."""

SHOWN_ROWS = 10
"""Rows of an aggregate's group in the proof of an atom."""

_ROWS_PER_INSERT = 500

# Names of temporary tables, of which a connection has those of each goal that is being answered.
_NUMBERS = count()

_FACTS_OF = "facts of "
"""Before the name of a derived predicate: the predicate of those of its atoms that are stored facts."""

Pattern: TypeAlias = frozenset[int]
"""The places of a call's bound arguments, counted from 0."""


@dataclass
class _Clause:
    """A SELECT that adds rows to a table when a table that it reads has grown. A lower layer goes first."""

    layer: int
    target: str
    body: CompiledPremise
    head: Sequence[str]
    rule: Rule
    """With the calls that it answers before its premise."""
    grouped: str = ""
    """The SELECT of an aggregate: of the groups that are asked for, once everything below them is derived."""
    seen: dict[str, int] = field(default_factory=dict)
    """By table, the number of the last row that was joined."""

    @property
    def reads(self) -> Sequence[str]:
        # The first table of an aggregate has the groups that are asked for.
        return self.body.tables[:1] if self.grouped else self.body.tables


@dataclass
class _Lookup:
    """Adds the facts of a predicate that calls of a pattern ask for."""

    indicator: str
    pattern: Pattern
    calls: str
    layer: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    @property
    def reads(self) -> Sequence[str]:
        return (self.calls,)


class _Way(NamedTuple):
    """A rule as a SELECT of its instances that conclude the atom in row ?1.

    The columns are the rows of the derived atoms that it joins, whose predicates are `joined`, and the rule's values;
    the further parameters are the last rows that these may have.
    """

    rule: Rule
    select: str
    joined: tuple[str, ...]


class _Found(NamedTuple):
    """An instance of a rule with the tags of its values. `left_out`: how many more rows an aggregate's group has."""

    rule: Rule
    tags: tuple[int, ...]
    left_out: int


class _Tables(dict[str, str]):
    """Tables by indicator, made when they are first named."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand

    def __missing__(self, indicator: str) -> str:
        table = self[indicator] = self._demand.new_source(indicator)
        return table


class Demand:
    """Derives the atoms that calls ask for, by a library's rules from the facts of a source."""

    def __init__(
        self,
        source: FactSource,
        library: Library,
        stored: StoredAtoms | None = None,
        *,
        given: Iterable[Atom] = (),
        keeps_records: bool = False,
        at_work: list[Rule] | None = None,
    ) -> None:
        """`stored`: atoms that need not be derived; the library lacks their rules. `given`: further true atoms.

        `keeps_records`: the facts that were read are wanted as records, too, as proofs need them.
        `at_work`: a list in which the rule stands whose rows are being joined.
        """
        self._at_work: list[Rule] = [] if at_work is None else at_work
        self.source, self.library, self._stored = source, library.with_closure(), stored
        refuse_negative_cycles(self.library)
        self.relations = Relations(source.kb)
        self._index = ArgumentIndex(source.kb)
        self._reads_relations = source.is_stored and not keeps_records and self.relations.is_up_to_date
        self._given: dict[str, list[Atom]] = {}
        for atom in (*self.library.facts, *source.assumed, *given):
            self._given.setdefault(atom.indicator, []).append(atom)
        self._derived = self.library.derived | self._given.keys()
        if stored is not None:
            self._derived -= stored.predicates
        self._layers: dict[str, int] = {}
        for number, layer in enumerate(evaluation_layers(self.library), 1):
            self._layers |= dict.fromkeys(layer, number)
        self._tables = _Tables(self)
        self._atoms: dict[str, str] = {}
        """By table of derived atoms, their predicate."""
        self._looked_up: set[str] = set()
        """Indicators of the predicates whose facts are read by call."""
        self._whole: set[str] = set()
        """Those of them of which all facts have been read since."""
        self._calls: dict[tuple[str, Pattern], str] = {}
        self._patterns: dict[str, list[Pattern]] = {}
        self._unanswered: list[tuple[str, Pattern]] = []
        self._steps: list[_Clause | _Lookup] = []
        self._readers: dict[str, list[int]] = {}
        self._highest: dict[str, int] = {}
        """By table of ours, the number of its last row."""
        self._growth: dict[str, list[tuple[int, int]]] = {}
        """By table of ours, each time that it grew: the number of its last row then, and the moment."""
        self._moments = count(1)
        self._columns: dict[str, Sequence[str]] = {}
        self._pending: list[tuple[int, int]] = []
        self._awake: set[int] = set()
        self._records: list[FactRecord] = []
        self._refs: set[int] = set()
        """Rowids of the facts that were looked up."""

    def rows(self, atom: Atom) -> Iterator[tuple[Value, ...]]:
        """The values of an atom's distinct variables, a row for each answer, in no order."""
        return self.answers([Literal(atom)], list(dict.fromkeys(variable.name for variable in atom.variables)))

    def answers(self, premise: Sequence[BodyLiteral], names: Sequence[str]) -> Iterator[tuple[Value, ...]]:
        """The values of these variables, a row for each way in which the premise holds, in no order."""
        rule = join_order(rule_of(premise, Atom("answers", ())))
        items = tuple(evaluation_order(rule.premise, self.library))
        self._add_calls_of(replace(rule, premise=items))
        self._ask_all()
        self._run()
        body = compile_premise(items, self._context())
        cells = [body.values[name] for name in names] or ["1"]
        found = self.relations.rows(body.select(cells).replace("SELECT ", "SELECT DISTINCT ", 1))
        while batch := list(islice(found, BATCH)):
            values = self.relations.symbols.values(tag for row in batch for tag in row)
            for row in batch:
                yield tuple(values[tag] for tag in row[: len(names)])

    def holds(self, atom: Atom) -> bool:
        """True if a ground atom holds."""
        return next(self.rows(atom), None) is not None

    def proof(self, root: Atom) -> dict[Atom, list[RuleInstance]]:
        """By conclusion, the rule instances of one proof of an atom; of an aggregate's group only the first rows.

        Each joins atoms that were there before its conclusion, so that no proof rests on itself.
        """
        self._ask(root)
        self._run()
        waiting: list[tuple[str, int]] = []
        if root.indicator in self._derived:
            tests = [f"a{place} = {self.relations.symbols.tag(value)}" for place, value in enumerate(_values(root), 1)]
            select = f"SELECT ref FROM {self._tables[root.indicator]} WHERE {conjunction(tests)}"  # noqa: S608  ours
            waiting = [(root.indicator, ref) for (ref,) in self.relations.rows(select)]
        seen = set(waiting)
        ways: dict[str, list[_Way]] = {}
        found: list[_Found] = []
        while waiting:
            indicator, ref = waiting.pop()
            if indicator not in ways:
                ways[indicator] = [self._way(rule) for rule in self.library.concluding.get(indicator, ())]
            moment = self._moment(self._tables[indicator], ref)
            for way in ways[indicator]:
                last = [self._last_before(self._tables[name], moment) for name in way.joined]
                rows = self.relations.rows(way.select, (ref, *last))
                chosen = list(islice(rows, SHOWN_ROWS if way.rule.aggregate else 1))
                left_out = sum(1 for _ in rows) if way.rule.aggregate else 0
                for row in chosen:
                    found.append(_Found(way.rule, row[len(way.joined) :], left_out))
                    below = {pair for pair in zip(way.joined, row, strict=False) if pair not in seen}
                    waiting += below
                    seen |= below
                if chosen:
                    break
        return self._by_atom(found)

    def _way(self, rule: Rule) -> _Way:
        context, atom = self._context(), rule.conclusion.atom
        if rule.aggregate is not None:
            grouped = compile_aggregate(rule.aggregate, join_order(rule).premise, context)
            body, head = grouped.premise, grouped.cells
        else:
            body = compile_premise(join_order(rule).premise, context)
            head = conclusion_cells(atom, body, context)
        atoms = self._atoms
        joined = {f"t{place}.ref": atoms[table] for place, table in enumerate(body.tables) if table in atoms}
        conditions = ["h.ref = ?1", *(f"h.a{place} = {cell}" for place, cell in enumerate(head, 1))]
        conditions += [f"{ref} <= ?{number}" for number, ref in enumerate(joined, 2)]
        columns = [*joined, *(body.values[variable.name] for variable in rule.variables)]
        select = body.select_from([f"{self._tables[atom.indicator]} AS h"], columns or ["1"], conditions)
        return _Way(rule, select, tuple(joined.values()))

    def _moment(self, table: str, ref: int) -> int:
        """The moment at which a row was added to a table of ours."""
        growth = self._growth[table]
        return growth[bisect_left(growth, (ref, 0))][1]

    def _last_before(self, table: str, moment: int) -> int:
        """The number of the last row that a table of ours had before a moment; 0 if it had none."""
        growth = self._growth.get(table, [])
        place = bisect_left(growth, moment, key=itemgetter(1))
        return growth[place - 1][0] if place else 0

    def _by_atom(self, found: Sequence[_Found]) -> dict[Atom, list[RuleInstance]]:
        values = self.relations.symbols.values(chain.from_iterable(item.tags for item in found))
        instances: dict[Atom, list[RuleInstance]] = {}
        for rule, tags, left_out in found:
            pairs = zip(rule.variables, tags, strict=False)
            substitution = Substitution(tuple((variable.name, Constant(values[tag])) for variable, tag in pairs))
            head = substitution.apply(rule.conclusion.atom)
            # A rule may write 2.0; in a table 2 and 2.0 are one number.
            head = replace(head, arguments=tuple(Constant(canonical(value)) for value in _values(head)))
            instances.setdefault(head, []).append(RuleInstance(rule, substitution, left_out=left_out))
        return instances

    def records(self) -> list[FactRecord]:
        """The facts that were read."""
        return [*self._records, *facts_at(self.source.kb, self._refs)]

    def instances(self, roots: Iterable[Atom]) -> dict[Atom, list[RuleInstance]]:
        """Every rule instance that takes part in deriving the atoms that match one of these, by conclusion."""
        roots = list(roots)
        for root in roots:
            self._ask(root)
        self._run()
        waiting: list[tuple[str, set[int]]] = []
        for root in roots:
            if root.indicator in self._derived:
                tests = [
                    f"a{place} = {self.relations.symbols.tag(term.value)}"
                    for place, term in enumerate(root.arguments, 1)
                    if isinstance(term, Constant)
                ]
                select = f"SELECT ref FROM {self._tables[root.indicator]} WHERE {conjunction(tests)}"  # noqa: S608  ours
                waiting.append((root.indicator, {ref for (ref,) in self.relations.rows(select)}))
        # Each atom is followed once, so that cyclic data ends.
        seen: dict[str, set[int]] = {}
        found: list[tuple[int, tuple[int, ...]]] = []
        while waiting:
            indicator, refs = waiting.pop()
            new = refs - seen.setdefault(indicator, set())
            if new:
                seen[indicator] |= new
                waiting += self._below(indicator, new, found)
        return self._by_conclusion(found)

    def _below(
        self, indicator: str, refs: set[int], found: list[tuple[int, tuple[int, ...]]]
    ) -> Iterator[tuple[str, set[int]]]:
        """Add the instances that conclude the atoms with these numbers; yield the derived atoms that they join."""
        context, table = self._context(), self._tables[indicator]
        wanted = self.relations.wanted("wanted", refs)
        for number, rule in enumerate(self.library.rules):
            if rule.conclusion.atom.indicator != indicator:
                continue
            items = join_order(rule).premise
            if rule.aggregate is not None:
                grouped = compile_aggregate(rule.aggregate, items, context)
                body, head = grouped.premise, grouped.cells
            else:
                body = compile_premise(items, context)
                head = conclusion_cells(rule.conclusion.atom, body, context)
            same = ["h.ref = w.ref", *(f"h.a{place} = {cell}" for place, cell in enumerate(head, 1))]
            joined = [place for place, source in enumerate(body.tables) if source in self._atoms]
            columns = [f"t{place}.ref" for place in joined] + [body.values[item.name] for item in rule.variables]
            below: dict[str, set[int]] = {}
            select = body.select_from([f"{wanted} AS w", f"{table} AS h"], columns or ["1"], same)
            for row in self.relations.rows(select):
                found.append((number, row[len(joined) :] if columns else ()))
                for place, ref in zip(joined, row, strict=False):
                    below.setdefault(self._atoms[body.tables[place]], set()).add(ref)
            yield from below.items()

    def _by_conclusion(self, found: Sequence[tuple[int, tuple[int, ...]]]) -> dict[Atom, list[RuleInstance]]:
        values = self.relations.symbols.values(chain.from_iterable(tags for _, tags in found))
        rows: list[tuple[PrologTerm, int, PrologTerm]] = []
        for number, tags in found:
            rule, cells = self.library.rules[number], tuple(values[tag] for tag in tags)
            pairs = zip(rule.variables, cells, strict=True)
            substitution = Substitution(tuple((variable.name, Constant(cell)) for variable, cell in pairs))
            head = substitution.apply(rule.conclusion.atom)
            # A rule may write 2.0; in a table 2 and 2.0 are one number.
            rows.append(
                (PrologTerm(head.predicate, tuple(map(canonical, _values(head)))), number, PrologTerm("[]", cells))
            )
        return instances_by_conclusion(self.library, rows)

    # -- tables

    def new_source(self, indicator: str) -> str:
        """The table of a predicate's atoms or facts."""
        if self._stored is not None and indicator in self._stored.predicates:
            return self._view(self._stored.source(indicator))
        if indicator in self._derived:
            table = self._new_table(columns_of(indicator))
            self._atoms[table] = indicator
            self._add_rows(table, map(_values, self._given.get(indicator, ())))
            return table
        stored = indicator.removeprefix(_FACTS_OF)
        if self._reads_relations:
            is_large = not self._index.is_small(stored.rpartition("/")[0])
            if relation := self.relations.stored(stored, indexed=is_large):
                return relation
        table = self._new_table(columns_of(indicator))
        if self.source.looked_up(stored):
            self._looked_up.add(indicator)
            self._add_facts(table, self.source.beside(stored))
        else:
            self._read_whole(indicator, table)
        return table

    def _view(self, source: str) -> str:
        """The table itself, or a view of a SELECT."""
        if not source.startswith("SELECT"):
            return source
        name = f"asked_{next(_NUMBERS)}"
        self.relations.run(f"CREATE TEMP VIEW {name} AS {source}")
        return f"temp.{name}"

    def _read_whole(self, indicator: str, table: str) -> None:
        """Read all facts of a predicate."""
        self._whole.add(indicator)
        self._add_facts(table, self.source.facts(indicator.removeprefix(_FACTS_OF)))

    def _add_facts(self, table: str, facts: Iterable[FactRecord]) -> None:
        facts = list(facts)
        self._records += facts
        self._add_rows(table, (fact.arguments for fact in facts))

    def _new_table(self, columns: Sequence[str]) -> str:
        columns = columns or ("a1",)  # of an atom without arguments: its one row says that it holds
        name = f"asked_{next(_NUMBERS)}"
        typed = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        unique = f"UNIQUE ({', '.join(columns)})"
        self.relations.run(f"CREATE TEMP TABLE {name} (ref INTEGER PRIMARY KEY, {typed}, {unique})")
        # A join starts where something is new, which may be at any column.
        for place in range(1, len(columns)):
            self.relations.run(f"CREATE INDEX temp.{name}_{place} ON {name} ({columns[place]})")
        table = f"temp.{name}"
        self._highest[table], self._columns[table] = 0, columns
        return table

    def _add_rows(self, table: str, rows: Iterable[Sequence[Value]]) -> None:
        tags = self.relations.symbols.tags
        tagged = (tags(row) or [0] for row in rows if is_sayable(row))
        while batch := list(islice(tagged, _ROWS_PER_INSERT)):
            lines = (f"({', '.join(map(str, row))})" for row in batch)
            self._insert(table, f"VALUES {', '.join(lines)}")

    def _insert(self, table: str, select: str) -> None:
        """Add the rows that are missing, and wake the steps that read the table."""
        if not self.relations.run(f"INSERT OR IGNORE INTO {table} ({', '.join(self._columns[table])}) {select}"):
            return
        self._highest[table] = self.relations.highest(table)
        self._growth.setdefault(table, []).append((self._highest[table], next(self._moments)))
        for number in self._readers.get(table, ()):
            self._wake(number)

    def _wake(self, number: int) -> None:
        if number not in self._awake:
            self._awake.add(number)
            heapq.heappush(self._pending, (self._steps[number].layer, number))

    # -- calls

    def _ask(self, atom: Atom) -> None:
        """Ask for the atoms that have the constants of this one."""
        self._add_calls_of(rule_of([Literal(atom)], atom))
        self._ask_all()

    def _ask_all(self) -> None:
        while self._unanswered:
            self._answer(*self._unanswered.pop())

    def _calls_of(self, indicator: str, pattern: Pattern) -> tuple[str, Pattern]:
        """The table of the values that calls of a pattern ask for, and the pattern that stands for it."""
        for rule in self.library.concluding.get(indicator, ()):
            if rule.aggregate is not None:
                # The value of a group comes last: a call cannot ask for the groups that have it.
                group = set(rule.aggregate.group)
                pattern &= {place for place, term in enumerate(rule.conclusion.atom.arguments) if term in group}
        known = self._patterns.setdefault(indicator, [])
        if frozenset() in known or (len(known) >= MOST_PATTERNS and pattern not in known):
            pattern = frozenset()
        if (indicator, pattern) not in self._calls:
            # Where nothing is bound, the one row says that everything is asked for.
            columns = [f"a{place}" for place in range(1, max(1, len(pattern)) + 1)]
            self._calls[indicator, pattern] = self._new_table(columns)
            self._unanswered.append((indicator, pattern))
            known.append(pattern)
        return self._calls[indicator, pattern], pattern

    def _answer(self, indicator: str, pattern: Pattern) -> None:
        """Add the steps that give a predicate the atoms that calls of a pattern ask for."""
        if indicator in self._looked_up:
            self._add_step(_Lookup(indicator, pattern, self._calls[indicator, pattern]))
            return
        # A table for each predicate without facts would take most of the time of a library of many rules.
        if self._has_facts(indicator):
            name, _, arity = indicator.rpartition("/")
            variables = tuple(Variable(f"A{place}", "") for place in range(int(arity)))
            facts = Literal(Atom(_FACTS_OF + name, variables))
            self._add_rule(rule_of([facts], Atom(name, variables)), pattern)
        for rule in self.library.concluding.get(indicator, ()):
            self._add_rule(rule, pattern)

    def _has_facts(self, indicator: str) -> bool:
        source = self.source
        if source.is_stored or source.looked_up(indicator):
            return source.kb.fact_count(indicator, 1) > 0 or any(True for _ in source.beside(indicator))
        return any(True for _ in source.facts(indicator))

    def _add_rule(self, rule: Rule, pattern: Pattern) -> None:
        """Add the step of a rule for a pattern of calls, and before it those that make the calls of its premise."""
        head = rule.conclusion.atom
        terms = [head.arguments[place] for place in sorted(pattern)]
        asked = self._called(self._calls[head.indicator, pattern], terms)
        known = {term.name for term in terms if isinstance(term, Variable)}
        items = list(evaluation_order([Literal(asked), *join_order(rule, known).premise], self.library))
        asking = replace(rule, premise=tuple(items))
        self._add_calls_of(asking, asked)
        context, layer, table = self._context(), self._layers.get(head.indicator, 1), self._tables[head.indicator]
        if rule.aggregate is not None:
            found = compile_aggregate(rule.aggregate, items, context)
            self._add_step(_Clause(layer, table, found.premise, found.cells, asking, found.select))
        else:
            body = compile_premise(items, context)
            self._add_step(_Clause(layer, table, body, conclusion_cells(head, body, context), asking))

    def _add_calls_of(self, rule: Rule, asked: Atom | None = None) -> None:
        """Add the steps that ask for what each item of a premise needs, given those before it.

        `asked`: the calls that the rule answers.
        """
        for number, item in enumerate(rule.premise):
            if isinstance(item, Literal) and item.atom is not asked and definition_of(item, self.library) is None:
                self._add_calls(item, replace(rule, premise=rule.premise[:number]))

    def _add_calls(self, literal: Literal, rule: Rule) -> None:
        """Add the step that asks for what a literal needs, given what comes before it in the rule, which ends there."""
        atom, before = literal.atom, rule.premise
        _ = self._tables[atom.indicator]  # which says how its facts are read
        if atom.indicator not in self._derived and atom.indicator not in self._looked_up:
            return
        bound = variable_names(before)
        places = [p for p, term in enumerate(atom.arguments) if isinstance(term, Constant) or term.name in bound]
        if literal.negated and (covered := covering_places(atom, self.library)):
            # Another atom with the same first arguments can make this one false.
            places = places[:covered]
        calls, pattern = self._calls_of(atom.indicator, frozenset(places))
        head = self._called(calls, [atom.arguments[place] for place in sorted(pattern)])
        body = compile_premise(before, self._context())
        layer = self._layers.get(atom.indicator, 0)
        self._add_step(_Clause(layer, calls, body, conclusion_cells(head, body, self._context()), rule))

    def _called(self, calls: str, terms: Sequence[Term]) -> Atom:
        """The atom of a call. A call that binds nothing has a constant in place of arguments."""
        atom = Atom(f"calls in {calls}", tuple(terms) or (Constant(0),))
        self._tables[atom.indicator] = calls
        return atom

    def _context(self) -> CompileContext:
        return CompileContext(
            self.library, self._tables, self.relations.symbols.tag, self.relations.arithmetic, self._denials
        )

    def _denials(self, indicator: str) -> str:
        name = f"denials of {indicator}"
        if name not in self._tables:
            table = self._tables[name] = self._new_table(columns_of(indicator))
            self._add_rows(table, (record.arguments for record in self.source.denials(indicator)))
        return self._tables[name]

    # -- steps

    def _add_step(self, step: _Clause | _Lookup) -> None:
        self._steps.append(step)
        number = len(self._steps) - 1
        for table in set(step.reads):
            self._readers.setdefault(table, []).append(number)
        self._wake(number)

    def _run(self) -> None:
        """Run the steps until none has anything new to read: lower layers first, whole before those above them."""
        while self._pending:
            _, number = heapq.heappop(self._pending)
            self._awake.remove(number)
            step = self._steps[number]
            self.relations.check_time()
            before, step.seen = (
                step.seen,
                {table: self._highest[table] for table in step.reads if table in self._highest},
            )
            if isinstance(step, _Lookup):
                self._look_up(step, before.get(step.calls, 0))
            elif all(step.seen.values()):
                self._at_work[:] = [step.rule]
                for select in self._selects(step, before):
                    self._insert(step.target, select)

    def _selects(self, step: _Clause, before: Mapping[str, int]) -> Iterator[str]:
        """The SELECTs of the rows that join something new."""
        body, head = step.body, step.head or ("0",)
        if step.grouped:
            yield step.grouped
        elif not all(before.get(table) for table in step.seen) or not step.seen:
            # The first time, or the first time that no table is empty.
            outer = [f"{table} AS t0" for table in body.tables[:1]]
            yield body.select_from(outer, head, ())
        else:
            for place, table in enumerate(body.tables):
                if step.seen.get(table, 0) > before.get(table, 0):
                    new = [f"t{place}.ref > {before[table]}", f"t{place}.ref <= {step.seen[table]}"]
                    yield body.select_from([f"{table} AS t{place}"], head, new)

    def _look_up(self, step: _Lookup, last: int) -> None:
        """Read the facts of the calls after the last one that was answered."""
        if step.indicator in self._whole:
            return
        table = self._tables[step.indicator]
        if not step.pattern or self._highest[step.calls] > MOST_LOOKED_UP:
            self._read_whole(step.indicator, table)
            return
        calls = list(self.relations.rows(f"SELECT * FROM {step.calls} WHERE ref > {last}"))  # noqa: S608  ours
        values = self.relations.symbols.values(tag for call in calls for tag in call[1:])
        places, stored = sorted(step.pattern), step.indicator.removeprefix(_FACTS_OF)
        for _, *tags in calls:
            bound = {place: values[tag] for place, tag in zip(places, tags, strict=True)}
            found = self._index.rows(stored, bound, given=self.source.only_given)
            self._refs.update(ref for ref, _ in found)
            self._add_rows(table, (cells for _, cells in found))


def _values(atom: Atom) -> list[Value]:
    return [term.value for term in atom.arguments if isinstance(term, Constant)]
