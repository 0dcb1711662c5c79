"""Answers to goals by demand: of each predicate only the atoms are derived that some call asks for (magic sets).

Each derived predicate has a table of atoms, and each pattern of bound arguments in which it is called a table of the
values asked for. A rule joins those values with its premise; the part of a premise before a call asks for the call's
values (Beeri and Ramakrishnan 1991). What a negation or an aggregate needs is asked for, and derived whole, before the
rule above it runs: so absence and numbers are those of all atoms. Tables are temporary, and the file is only read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import TypeAlias

from hapax.engine.inference.derive import RuleInstance
from hapax.engine.inference.stored_atoms import StoredAtoms
from hapax.engine.inference.theory import FactSource
from hapax.engine.logic.compile import (
    CompileContext,
    compile_aggregate,
    compile_premise,
    conclusion_cells,
    conjunction,
    covering_places,
    join_order,
)
from hapax.engine.logic.evaluate import Clause, compile_clause
from hapax.engine.logic.goals import rule_of
from hapax.engine.logic.instances import InstanceFinder
from hapax.engine.logic.rounds import Rounds, JoinStep
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.prolog_text import definition_of, evaluation_order
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Constant,
    Literal,
    Term,
    Value,
    Variable,
    variable_names,
)
from hapax.kb.facts import columns_of
from hapax.kb.records import FactRecord
from hapax.kb.relations import BATCH, Relations

MOST_PATTERNS = 16
"""Patterns of a predicate; all further calls of it ask for everything."""

_ROWS_PER_INSERT = 500

# Names of temporary tables, of which a connection has those of each goal that is being answered.
_NUMBERS = count()

_FACTS_OF = "facts of "
"""Before the name of a derived predicate: the predicate of those of its atoms that are stored facts."""

Pattern: TypeAlias = frozenset[int]
"""The places of a call's bound arguments, counted from 0."""


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
        asked: Collection[str] = (),
    ) -> None:
        """`stored`: atoms that need not be derived; the library lacks their rules. `given`: further true atoms.

        `asked`: indicators of the predicates whose calls are kept, for `calls`.
        """
        self._asked = frozenset(asked)
        self._asked_calls: dict[tuple[str, Pattern], str] = {}
        self.source, self.library, self._stored = source, library.with_closure(), stored
        refuse_negative_cycles(self.library)
        self.relations = Relations(source.kb)
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
        self._calls: dict[tuple[str, Pattern], str] = {}
        self._unanswered: list[tuple[str, Pattern]] = []
        self._rounds = Rounds(self.relations)
        self._stored_in: dict[str, str] = {}
        """By table of stored facts, the predicate."""
        self._read: dict[str, list[FactRecord]] = {}
        """By table of ours, the facts that the source lists."""
        self._beside: list[FactRecord] = []
        self._finder: InstanceFinder | None = None

    def rows(self, atom: Atom, *, ordered: bool = False) -> Iterator[tuple[Value, ...]]:
        """The values of an atom's distinct variables, a row for each answer; `ordered`: as stored or derived."""
        names = list(dict.fromkeys(variable.name for variable in atom.variables))
        self._ask(atom)
        self._rounds.run()
        body = compile_premise([Literal(atom)], self._context())
        cells = [body.values[name] for name in names] or ["1"]
        is_numbered = self._stored is None or atom.indicator not in self._stored.predicates
        order = " ORDER BY t0.ref" if ordered and is_numbered and body.tables else ""
        found = self.relations.rows(body.select(cells).replace("SELECT ", "SELECT DISTINCT ", 1) + order)
        while batch := list(islice(found, BATCH)):
            values = self.relations.symbols.values(tag for row in batch for tag in row)
            for row in batch:
                yield tuple(values[tag] for tag in row[: len(names)])

    def holds(self, atom: Atom) -> bool:
        """True if a ground atom holds."""
        return next(self.rows(atom), None) is not None

    def calls(self, roots: Iterable[Atom]) -> Iterator[tuple[str, tuple[Value | None, ...]]]:
        """The calls of the `asked` predicates below atoms: indicators and arguments, None at free ones."""
        for root in roots:
            self._ask(root)
        self._rounds.run()
        for (indicator, pattern), table in self._asked_calls.items():
            width = int(indicator.rpartition("/")[2])
            found = list(self.relations.rows(f"SELECT * FROM {table}"))  # noqa: S608  ours
            values = self.relations.symbols.values(tag for _, *tags in found for tag in tags)
            for _, *tags in found:
                bound = dict(zip(sorted(pattern), tags, strict=False))
                yield indicator, tuple(values[bound[place]] if place in bound else None for place in range(width))

    def records(self) -> list[FactRecord]:
        """The facts on which the instances rest that were asked for."""
        found = list(self._beside)
        for table, refs in (self._finder.fact_rows if self._finder else {}).items():
            if table in self._read:
                found += [self._read[table][ref - 1] for ref in sorted(refs)]
            else:
                found += [fact for _, fact in self.source.kb.relations.by_ref(self._stored_in[table], refs)]
        return found

    def instances(self, roots: Iterable[Atom]) -> dict[Atom, list[RuleInstance]]:
        """Every rule instance that takes part in deriving the atoms that match one of these, by conclusion."""
        roots = list(roots)
        for root in roots:
            self._ask(root)
        self._rounds.run()
        rows: dict[str, set[int]] = {}
        for root in roots:
            if definition_of(Literal(root), self.library) is None:
                table = self._tables[root.indicator]
                tests = [
                    f"a{place} = {self.relations.symbols.tag(term.value)}"
                    for place, term in enumerate(root.arguments, 1)
                    if isinstance(term, Constant)
                ]
                select = f"SELECT ref FROM {table} WHERE {conjunction(tests)}"  # noqa: S608  ours
                rows.setdefault(table, set()).update(ref for (ref,) in self.relations.rows(select))
        if self._finder is None:
            self._finder = InstanceFinder(self.relations, self.library, {}, self._clauses_of, self._facts_of)
        self._finder.atoms = {self._tables[name]: name for name in self._derived if name in self._tables}
        self._finder.follow(rows)
        return self._finder.instances()

    def _clauses_of(self, indicator: str) -> Iterator[Clause]:
        for number, rule in enumerate(self.library.rules):
            if rule.conclusion.atom.indicator == indicator:
                yield compile_clause(number, rule, self._context())

    def _facts_of(self, indicator: str) -> str | None:
        """The table of the facts among a derived predicate's atoms."""
        return self._tables.get(_FACTS_OF + indicator)

    # -- tables

    def new_source(self, indicator: str) -> str:
        """The table of a predicate's atoms or facts."""
        if self._stored is not None and indicator in self._stored.predicates:
            return self._view(self._stored.source(indicator))
        facts = indicator.removeprefix(_FACTS_OF)
        condition = self.source.stored(facts)
        if facts == indicator and condition is not None and (beside := list(self.source.beside(facts))):
            # The predicate is derived then: from its stored facts by demand, and from these.
            self._derived |= {indicator}
            self._given.setdefault(indicator, []).extend(_atom(fact) for fact in beside)
            self._beside += beside
        if indicator in self._derived:
            table = self._new_table(columns_of(indicator))
            self._add_rows(table, map(_values, self._given.get(indicator, ())))
            return table
        if condition is None:
            return self._read_facts(facts)
        table = self.relations.relation(facts)
        if condition != "1" and not table.startswith("temp."):
            columns = ", ".join((*columns_of(facts), "ref"))
            table = self._view(f"SELECT {columns} FROM {table} WHERE {condition}")  # noqa: S608  ours
        self._stored_in[table] = facts
        return table

    def _view(self, source: str) -> str:
        """The table itself, or a view of a SELECT."""
        if not source.startswith("SELECT"):
            return source
        name = f"asked_{next(_NUMBERS)}"
        self.relations.run(f"CREATE TEMP VIEW {name} AS {source}")
        return f"temp.{name}"

    def _read_facts(self, indicator: str) -> str:
        """A table of the facts that the source lists, in whose order they are numbered."""
        table = self._new_table(columns_of(indicator))
        by_arguments = {fact.arguments: fact for fact in self.source.facts(indicator)}
        self._add_rows(table, by_arguments)
        self._read[table] = list(by_arguments.values())
        return table

    def _new_table(self, columns: Sequence[str]) -> str:
        columns = columns or ("a1",)  # of an atom without arguments: its one row says that it holds
        name = f"asked_{next(_NUMBERS)}"
        typed = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        unique = f"UNIQUE ({', '.join(columns)})"
        self.relations.run(f"CREATE TEMP TABLE {name} (ref INTEGER PRIMARY KEY, {typed}, {unique})")
        table = f"temp.{name}"
        self._rounds.watch(table, columns)
        return table

    def _add_rows(self, table: str, rows: Iterable[Sequence[Value]]) -> None:
        tags = self.relations.symbols.tags
        tagged = (tags(row) or [0] for row in rows)
        while batch := list(islice(tagged, _ROWS_PER_INSERT)):
            lines = (f"({', '.join(map(str, row))})" for row in batch)
            self._rounds.insert(table, f"VALUES {', '.join(lines)}")

    # -- calls

    def _ask(self, atom: Atom) -> None:
        """Ask for the atoms that have the constants of this one."""
        if definition_of(Literal(atom), self.library) is None:
            self._add_calls(Literal(atom), ())
        while self._unanswered:
            self._answer(*self._unanswered.pop())

    def _calls_of(self, indicator: str, pattern: Pattern) -> tuple[str, Pattern]:
        """The table of the values that calls of a pattern ask for, and the pattern that stands for it."""
        for rule in self.library.concluding.get(indicator, ()):
            if rule.aggregate is not None:
                # The value of a group comes last: a call cannot ask for the groups that have it.
                group = set(rule.aggregate.group)
                pattern &= {place for place, term in enumerate(rule.conclusion.atom.arguments) if term in group}
        known = [found for name, found in self._calls if name == indicator]
        if frozenset() in known or (len(known) >= MOST_PATTERNS and pattern not in known):
            pattern = frozenset()
        if (indicator, pattern) not in self._calls:
            # Where nothing is bound, the one row says that everything is asked for.
            columns = [f"a{place}" for place in range(1, max(1, len(pattern)) + 1)]
            self._calls[indicator, pattern] = self._new_table(columns)
            self._unanswered.append((indicator, pattern))
        return self._calls[indicator, pattern], pattern

    def _answer(self, indicator: str, pattern: Pattern) -> None:
        """Add the steps that give a predicate the atoms that calls of a pattern ask for."""
        name, _, arity = indicator.rpartition("/")
        variables = tuple(Variable(f"A{place}", "") for place in range(int(arity)))
        facts = Literal(Atom(_FACTS_OF + name, variables))
        self._add_rule(rule_of([facts], Atom(name, variables)), pattern)
        for rule in self.library.concluding.get(indicator, ()):
            self._add_rule(rule, pattern)

    def _add_rule(self, rule: Rule, pattern: Pattern) -> None:
        """Add the step of a rule for a pattern of calls, and before it those that make the calls of its premise."""
        head = rule.conclusion.atom
        terms = [head.arguments[place] for place in sorted(pattern)]
        asked = self._called(self._calls[head.indicator, pattern], terms)
        known = {term.name for term in terms if isinstance(term, Variable)}
        items = list(evaluation_order([Literal(asked), *join_order(rule, known).premise], self.library))
        for number, item in enumerate(items):
            if isinstance(item, Literal) and item.atom is not asked and definition_of(item, self.library) is None:
                self._add_calls(item, items[:number], self._layers.get(head.indicator, 1))
        context, layer, table = self._context(), self._layers.get(head.indicator, 1), self._tables[head.indicator]
        if rule.aggregate is not None:
            found = compile_aggregate(rule.aggregate, items, context)
            self._rounds.add(JoinStep(layer, table, found.premise, found.cells, found.select))
        else:
            body = compile_premise(items, context)
            self._rounds.add(JoinStep(layer, table, body, conclusion_cells(head, body, context), begins_first=True))

    def _add_calls(self, literal: Literal, before: Sequence[BodyLiteral], layer: int = 0) -> None:
        """Add the step that asks for what a literal needs, given what comes before it in a premise of this layer."""
        atom = literal.atom
        bound = variable_names(before)
        places = [p for p, term in enumerate(atom.arguments) if isinstance(term, Constant) or term.name in bound]
        if atom.indicator in self._asked:
            self._keep_calls(atom, frozenset(places), before, layer)
        _ = self._tables[atom.indicator]  # which says how its facts are read
        if atom.indicator not in self._derived:
            return
        if literal.negated and (covered := covering_places(atom, self.library)):
            # Another atom with the same first arguments can make this one false.
            places = places[:covered]
        calls, pattern = self._calls_of(atom.indicator, frozenset(places))
        head = self._called(calls, [atom.arguments[place] for place in sorted(pattern)])
        body = compile_premise(before, self._context())
        layer = self._layers.get(atom.indicator, 0)
        self._rounds.add(JoinStep(layer, calls, body, conclusion_cells(head, body, self._context()), begins_first=True))

    def _keep_calls(self, atom: Atom, pattern: Pattern, before: Sequence[BodyLiteral], layer: int) -> None:
        """Add the step that keeps the calls of an atom. Its layer is the rule's: what negations read is whole then."""
        key = atom.indicator, pattern
        if key not in self._asked_calls:
            columns = [f"a{place}" for place in range(1, max(1, len(pattern)) + 1)]
            self._asked_calls[key] = self._new_table(columns)
        head = self._called(self._asked_calls[key], [atom.arguments[place] for place in sorted(pattern)])
        body = compile_premise(before, self._context())
        cells = conclusion_cells(head, body, self._context())
        self._rounds.add(JoinStep(layer, self._asked_calls[key], body, cells, begins_first=True))

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


def _atom(fact: FactRecord) -> Atom:
    return Atom(fact.predicate, tuple(map(Constant, fact.arguments)))


def _values(atom: Atom) -> list[Value]:
    return [term.value for term in atom.arguments if isinstance(term, Constant)]
