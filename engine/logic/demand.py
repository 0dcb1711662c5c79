"""Answers to goals by demand: of each predicate only the atoms are derived that some call asks for (magic sets).

Each derived predicate has a table of atoms, and each pattern of bound arguments in which it is called a table of the
values asked for. A rule joins those values with its premise; the part of a premise before a call asks for the call's
values (Beeri and Ramakrishnan 1991). What a negation or an aggregate needs is asked for, and derived whole, before the
rule above it runs: so absence and numbers are those of all atoms. Tables are temporary, and the file is only read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from hapax.engine.inference.derive import RuleInstance, relevant_library
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
from hapax.engine.logic.entity_names import FOUND, JOINED, Names, Origin, Pair, by_identity, by_names
from hapax.engine.logic.evaluate import Clause, compile_clause, failures
from hapax.engine.logic.goal_rules import rule_of
from hapax.engine.logic.instances import InstanceFinder
from hapax.engine.logic.rounds import JoinStep, Rounds
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.parsing.declarations import SAME_AS
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
    grouped,
    variable_names,
)
from hapax.grammar.writing.prolog_text import definition_of, evaluation_order
from hapax.kb.atoms.derived_relations import BATCH, Relations
from hapax.kb.atoms.facts import columns_of
from hapax.kb.atoms.symbols import canonical
from hapax.kb.records import FactRecord
from hapax.kb.schema import union

MOST_PATTERNS = 16
"""Patterns of a predicate; all further calls of it ask for everything."""

SHOWN_ROWS = 10
"""Rows of an aggregate's group in the proof of an atom."""

_ROWS_PER_INSERT = 500

# Names of temporary tables, of which a connection has those of each goal that is being answered.
_NUMBERS = count()

_FACTS_OF = "facts of "
"""Before the name of a derived predicate: the predicate of those of its atoms that are stored facts."""

_STEPS_OF = "steps of "
"""Before the name of a predicate that a rule closes: that of its facts and of other rules' atoms."""

_PATHS_OF = "paths of "
"""Before the name of the steps of r in q(A, B) & r(B, C) -> r(A, C): where q leads from the values asked for."""

Pattern: TypeAlias = frozenset[int]
"""The places of a call's bound arguments, counted from 0."""


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
        at_work: list[Rule] | None = None,
        finds_instances: bool = False,
    ) -> None:
        """`stored`: atoms that need not be derived; the library lacks their rules. `given`: further true atoms.

        `at_work`: a list in which the rule stands whose rows are being joined. `finds_instances`: True if `instances`
        will be asked for.
        """
        self._asked: Collection[str] = ()
        """Indicators of the predicates whose calls are kept."""
        self._asked_calls: dict[tuple[str, Pattern], str] = {}
        self.source, self.library, self._stored = source, library.with_closure(), stored
        refuse_negative_cycles(self.library)
        self.relations = Relations(source.kb)
        self.names = self._joined_names()
        self.library = by_identity(self.library)
        stated = (atom for atom in (*self.library.facts, *source.assumed, *given) if atom.indicator != SAME_AS)
        self._given = grouped(map(self.names.read, stated), attrgetter("indicator"))
        self._derived = self.library.derived | self._given.keys()
        if stored is not None:
            self._derived -= stored.predicates
        self._layers: dict[str, int] = {}
        for number, layer in enumerate(evaluation_layers(self.library), 1):
            self._layers |= dict.fromkeys(layer, number)
        self._tables = _Tables(self)
        self._atoms: dict[str, str] = {}
        """By table of derived atoms, their predicate."""
        self._calls: dict[tuple[str, Pattern], str] = {}
        self._patterns: dict[str, list[Pattern]] = {}
        self._unanswered: list[tuple[str, Pattern]] = []
        self._own_rules: dict[str, list[Rule]] = {}
        """Rules of the predicates that only this evaluation has, by indicator."""
        # An instance may join atoms to which no step leads from what is asked for.
        self._goes_by_steps = self._goes_by_paths = not finds_instances
        self._at_work = [] if at_work is None else at_work
        self._rounds = Rounds(self.relations, self._at_work)
        self._stored_in: dict[str, str] = {}
        """By table of stored facts, the predicate."""
        self._read: dict[str, list[FactRecord]] = {}
        """By table of ours, the facts that the source lists."""
        self._beside: list[FactRecord] = []
        self._finder: InstanceFinder | None = None
        self._evaluated: list[Rule] = []
        self.relations.arithmetic.has_failed = False

    def _joined_names(self) -> Names:
        return joined_names(self.source, self.library)

    def failures(self) -> tuple[str, ...]:
        """Messages about calculations without a value: the comparison, a count of rows, and the first one."""
        if not self.relations.arithmetic.has_failed:
            return ()
        return failures(self._evaluated, self._context(), self.relations)

    def rows(self, atom: Atom, *, ordered: bool = False) -> Iterator[tuple[Value, ...]]:
        """The values of an atom's distinct variables, a row for each answer; `ordered`: as stored or derived."""
        names = list(dict.fromkeys(variable.name for variable in atom.variables))
        is_numbered = self._stored is None or atom.indicator not in self._stored.predicates
        order = (
            " ORDER BY t0.ref" if ordered and is_numbered and definition_of(Literal(atom), self.library) is None else ""
        )
        return self.answers([Literal(atom)], names, order)

    def answers(
        self, premise: Sequence[BodyLiteral], names: Sequence[str], order: str = ""
    ) -> Iterator[tuple[Value, ...]]:
        """The values of these variables, a row for each way in which the premise holds."""
        found = self.tagged([rule_of(premise, Atom("answers", ()))], names, order)
        while batch := list(islice(found, BATCH)):
            values = self.relations.symbols.values(tag for row in batch for tag in row)
            for row in batch:
                yield tuple(values[tag] for tag in row)

    def tagged(self, ways: Iterable[Rule], names: Sequence[str], order: str = "") -> Iterator[tuple[int, ...]]:
        """The tags of these variables, a row for each answer: where the premise of one of these rules holds."""
        premises = []
        for way in ways:
            rule = join_order(by_names(way))
            items = tuple(evaluation_order(rule.premise, self.library))
            self._evaluated.append(replace(rule, premise=items))
            self._add_calls_of(self._evaluated[-1])
            premises.append(items)
        self._ask_all()
        self._rounds.run()
        self._at_work[:] = self._evaluated[-1:]
        selects = []
        for items in premises:
            body = compile_premise(items, self._context())
            selects.append(body.select([body.values[name] for name in names] or ["1"]))
        select = selects[0].replace("SELECT ", "SELECT DISTINCT ", 1)
        if len(selects) > 1:
            select = f"SELECT DISTINCT * FROM ({union(selects)})"  # noqa: S608  ours
        for row in self.relations.rows(select + order):
            yield row[: len(names)]

    def holds(self, atom: Atom) -> bool:
        """True if a ground atom holds."""
        return next(self.rows(atom), None) is not None

    def proof(self, root: Atom) -> dict[Atom, list[RuleInstance]]:
        """By conclusion, the rule instances of one proof of an atom; of an aggregate's group only the first rows.

        Each joins atoms that were there before its conclusion, so that no proof rests on itself.
        """
        # A rule that a path stands for joins atoms that the path passes by.
        self._goes_by_paths = False
        written, root = root, self.names.atom(root)
        self._ask(root)
        self._rounds.run()
        waiting: list[tuple[str, int]] = []
        if root.indicator in self._derived:
            tests = [f"a{place} = {self.relations.symbols.tag(value)}" for place, value in enumerate(root.values, 1)]
            select = f"SELECT ref FROM {self._tables[root.indicator]} WHERE {conjunction(tests)}"  # noqa: S608  ours
            waiting = [(root.indicator, ref) for (ref,) in self.relations.rows(select)]
        seen = set(waiting)
        ways: dict[str, list[_Way]] = {}
        found: list[_Found] = []
        while waiting:
            indicator, ref = waiting.pop()
            if indicator not in ways:
                ways[indicator] = [self._way(clause) for clause in self._clauses_of(indicator)]
            moment = self._rounds.moment(self._tables[indicator], ref)
            for way in ways[indicator]:
                aggregate = way.rule.aggregate
                # A row with the best value proves it, and may have come later than another one.
                is_improved = aggregate is not None and aggregate.is_improved
                last = [self._rounds.last_before(self._tables[name], moment) for name in way.joined]
                rows = self.relations.rows(way.select, (ref,) if is_improved else (ref, *last))
                chosen = list(rows) if is_improved else list(islice(rows, SHOWN_ROWS if aggregate else 1))
                left_out = sum(1 for _ in rows) if aggregate else 0
                for row in chosen:
                    found.append(_Found(way.rule, row[len(way.joined) :], left_out))
                    below = {pair for pair in zip(way.joined, row, strict=False) if pair not in seen}
                    waiting += below
                    seen |= below
                if chosen and aggregate is None:
                    break
        return self.names.explained(self._by_atom(found), [written, root])

    def _way(self, clause: Clause) -> _Way:
        body, atoms = clause.body, self._atoms
        joined = {f"t{place}.ref": atoms[table] for place, table in enumerate(body.tables) if table in atoms}
        conditions = ["h.ref = ?1", *(f"h.a{place} = {cell}" for place, cell in enumerate(clause.head, 1))]
        if clause.rule.aggregate is None or not clause.rule.aggregate.is_improved:
            conditions += [f"{ref} <= ?{number}" for number, ref in enumerate(joined, 2)]
        columns = [*joined, *(body.values[variable.name] for variable in clause.rule.variables)]
        table = self._tables[clause.rule.conclusion.atom.indicator]
        select = body.select_from([f"{table} AS h"], columns or ["1"], conditions)
        return _Way(clause.rule, select, tuple(joined.values()))

    def _by_atom(self, found: Sequence[_Found]) -> dict[Atom, list[RuleInstance]]:
        values = self.relations.symbols.values(chain.from_iterable(item.tags for item in found))
        instances: dict[Atom, list[RuleInstance]] = {}
        for rule, tags, left_out in found:
            pairs = zip(rule.variables, tags, strict=False)
            substitution = Substitution(tuple((variable.name, Constant(values[tag])) for variable, tag in pairs))
            head = substitution.apply(rule.conclusion.atom)
            # A rule may write 2.0; in a table 2 and 2.0 are one number.
            head = replace(head, arguments=tuple(Constant(canonical(value)) for value in head.values))
            instances.setdefault(head, []).append(RuleInstance(rule, substitution, left_out=left_out))
        return instances

    def calls(self, roots: Iterable[Atom], asked: Collection[str]) -> Iterator[tuple[str, tuple[Value | None, ...]]]:
        """The calls of these predicates below atoms: indicators and arguments, None at free ones."""
        self._asked = asked
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
        found = [*self._beside, *self.names.facts]
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
                    f"a{place} = {self.names.tag(term.value)}"
                    for place, term in enumerate(root.arguments, 1)
                    if isinstance(term, Constant)
                ]
                select = f"SELECT ref FROM {table} WHERE {conjunction(tests)}"  # noqa: S608  ours
                rows.setdefault(table, set()).update(ref for (ref,) in self.relations.rows(select))
        if self._finder is None:
            self._finder = InstanceFinder(self.relations, self.library, {}, self._clauses_of, self._facts_of)
        self._finder.atoms = self._atoms
        self._finder.follow(rows)
        return self.names.explained(self._finder.instances(), roots)

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
        if indicator == JOINED:
            return self.names.pair_table()
        if self._stored is not None and indicator in self._stored.predicates:
            return self._view(self._stored.source(indicator))
        facts = indicator.removeprefix(_FACTS_OF)
        condition = self.source.stored(facts)
        if facts == indicator and condition is not None and (beside := list(self.source.beside(facts))):
            # The predicate is derived then: from its stored facts by demand, and from these.
            self._derived |= {indicator}
            self._given.setdefault(indicator, []).extend(self.names.read(fact.ground_atom) for fact in beside)
            self._beside += beside
        if indicator in self._derived:
            table = self._new_table(columns_of(indicator))
            self._atoms[table] = indicator
            self._add_rows(table, (atom.values for atom in self._given.get(indicator, ())))
            return table
        if condition is None:
            return self._read_facts(facts)
        table = self.names.relation(facts)
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
        by_arguments: dict[tuple[Value, ...], FactRecord] = {}
        for fact in self.source.facts(indicator):
            by_arguments.setdefault(self.names.read(fact.ground_atom).values, fact)
        self._add_rows(table, by_arguments)
        self._read[table] = list(by_arguments.values())
        return table

    def _new_table(self, columns: Sequence[str]) -> str:
        name = f"asked_{next(_NUMBERS)}"
        typed = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        unique = f"UNIQUE ({', '.join(columns)})"
        self.relations.run(f"CREATE TEMP TABLE {name} (ref INTEGER PRIMARY KEY, {typed}, {unique})")
        # A join starts where something is new, which may be at any column.
        for place in range(1, len(columns)):
            self.relations.run(f"CREATE INDEX temp.{name}_{place} ON {name} ({columns[place]})")
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
        rules = self._own_rules.get(indicator)
        if rules is None:
            closing = self._closing(indicator, pattern)
            rules = self._with_facts(indicator) if closing is None else self._step_by_step(closing, pattern)
        for rule in rules:
            self._add_rule(rule, pattern)

    def _with_facts(self, indicator: str) -> list[Rule]:
        """The rules of a predicate, before them one for its facts."""
        rules = list(self.library.concluding.get(indicator, ()))
        # A table for each predicate without facts would take most of the time of a library of many rules.
        if self._has_facts(indicator):
            name, _, arity = indicator.rpartition("/")
            variables = tuple(Variable(f"A{place}", "") for place in range(int(arity)))
            rules.insert(0, rule_of([Literal(Atom(_FACTS_OF + name, variables))], Atom(name, variables)))
        return rules

    def _closing(self, indicator: str, pattern: Pattern) -> Rule | None:
        """The rule for which calls are answered step by step; None: the rules are joined as they stand.

        It joins the predicate with itself, or is q(A, B) & r(B, C) -> r(A, C) with A alone bound, or has q last and C
        bound: as it stands, it would ask for all that follows from each B.
        """
        rules = self.library.concluding.get(indicator, ()) if indicator not in self._asked else ()
        joining = [rule for rule in rules if rule.joins_itself] if self._goes_by_steps else []
        if not joining and self._goes_by_paths and len(pattern) == 1:
            own = [1 in pattern, 0 in pattern]
            joining = [rule for rule in rules if [atom.indicator == indicator for atom in rule.chain or ()] == own]
        return joining[0] if joining else None

    def _step_by_step(self, closing: Rule, pattern: Pattern) -> list[Rule]:
        """The rules that answer calls of r by its steps: the facts, and what other rules than the closing one conclude.

        Where r is joined with itself, one of the two is a step. From atom to atom the same one would be found once for
        each place where its path can be divided. Else a path by q leads from what is asked for to a step.
        """
        head, (first, then) = closing.conclusion.atom, closing.chain or (closing.conclusion.atom,) * 2
        steps = self._steps_without(closing)
        if closing.joins_itself:
            joined = (_named(steps, first), then) if pattern == {1} else (first, _named(steps, then))
            return [_with_premise(closing, _named(steps, head)), _with_premise(closing, *joined)]
        (place,) = pattern
        link, last = (first, then) if place == 0 else (then, first)
        start, end, middle = head.arguments[place], head.arguments[1 - place], first.arguments[1]
        path = Atom(f"{_PATHS_OF}{steps}", (start, middle))
        if path.indicator not in self._own_rules:
            begins, goes_on = replace(path, arguments=(start, start)), replace(path, arguments=(end, middle))
            further = _with_premise(closing, replace(path, arguments=(end, start)), link)
            rules = [
                replace(_with_premise(closing), conclusion=Literal(begins)),
                replace(further, conclusion=Literal(goes_on)),
            ]
            self._add_own(path.indicator, self._layers[f"{steps}/2"], rules)
        return [_with_premise(closing, path, _named(steps, last))]

    def _steps_without(self, closing: Rule) -> str:
        """The predicate of the steps of a closure: of its facts, and of what other rules conclude."""
        head = closing.conclusion.atom
        steps = f"{_STEPS_OF}{head.predicate} without {self.library.rules.index(closing)}"
        if f"{steps}/2" not in self._own_rules:
            closed, layer = self._tables[head.indicator], self._layers.get(head.indicator, 1)
            others = [
                rule for rule in self._with_facts(head.indicator) if rule is not closing and not rule.joins_itself
            ]
            rules = [replace(rule, conclusion=Literal(_named(steps, rule.conclusion.atom))) for rule in others]
            self._add_own(f"{steps}/2", layer, rules)
            self._given[f"{steps}/2"] = self._given.get(head.indicator, [])
            if closing.joins_itself:
                # This goes before the steps are joined, so that a proof by the rule itself has them among its atoms.
                body = compile_premise([Literal(_named(steps, head))], self._context())
                cells = conclusion_cells(head, body, self._context())
                self._rounds.add(JoinStep(layer, closed, body, cells, rule=closing))
        return steps

    def _add_own(self, indicator: str, layer: int, rules: list[Rule]) -> None:
        """Add a predicate that only this evaluation has."""
        self._own_rules[indicator], self._layers[indicator] = rules, layer
        self._derived |= {indicator}

    def _has_facts(self, indicator: str) -> bool:
        if self.source.stored(indicator) is not None:
            return self.source.kb.fact_count(indicator, 1) > 0
        return any(True for _ in self.source.facts(indicator))

    def _add_rule(self, rule: Rule, pattern: Pattern) -> None:
        """Add the step of a rule for a pattern of calls, and before it those that make the calls of its premise."""
        head = rule.conclusion.atom
        terms = [head.arguments[place] for place in sorted(pattern)]
        asked = self._called(self._calls[head.indicator, pattern], terms)
        known = {term.name for term in terms if isinstance(term, Variable)}

        def answering(case: Sequence[BodyLiteral]) -> tuple[BodyLiteral, ...]:
            ordered = join_order(replace(rule, premise=tuple(case)), known).premise
            return tuple(evaluation_order([Literal(asked), *ordered], self.library))

        items = answering(rule.premise)
        asking = replace(rule, premise=items)
        self._evaluated.append(asking)
        self._add_calls_of(asking, asked)
        aggregate, context = rule.aggregate, self._context()
        layer, table = self._layers.get(head.indicator, 1), self._tables[head.indicator]
        if aggregate is None or aggregate.is_improved:
            clause = compile_clause(0, asking, context, is_ordered=True)
            self._rounds.add(replace(clause.step(layer, table, context), begins_first=True, rule=asking))
        elif rule.premise == aggregate.cases[-1]:
            # The one SELECT of all cases, whose calls are made by now.
            found = compile_aggregate(aggregate, map(answering, aggregate.cases), context)
            body, cells = found.cases[-1].premise, found.cases[-1].cells
            repeats = aggregate.counts_derivations
            self._rounds.add(JoinStep(layer, table, body, cells, found.select, rule=asking, repeats=repeats))

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
        projected = self.library.projected(atom) if literal.negated else None
        atom = projected or atom
        bound = variable_names(before)
        places = [p for p, term in enumerate(atom.arguments) if isinstance(term, Constant) or term.name in bound]
        if atom.indicator in self._asked:
            self._keep_calls(atom, frozenset(places), rule)
        _ = self._tables[atom.indicator]  # which says how its facts are read
        if atom.indicator not in self._derived:
            return
        if literal.negated and not projected and (covered := covering_places(atom, self.library)):
            # Another atom with the same first arguments can make this one false.
            places = places[:covered]
        calls, pattern = self._calls_of(atom.indicator, frozenset(places))
        terms = [atom.arguments[place] for place in sorted(pattern)]
        self._add_asking(calls, terms, rule, self._layers.get(atom.indicator, 0))

    def _keep_calls(self, atom: Atom, pattern: Pattern, rule: Rule) -> None:
        """Add the step that keeps the calls of an atom. Its layer is the rule's: what negations read is whole then."""
        key = atom.indicator, pattern
        if key not in self._asked_calls:
            columns = [f"a{place}" for place in range(1, max(1, len(pattern)) + 1)]
            self._asked_calls[key] = self._new_table(columns)
        layer = self._layers.get(rule.conclusion.atom.indicator, 0)
        self._add_asking(self._asked_calls[key], [atom.arguments[place] for place in sorted(pattern)], rule, layer)

    def _add_asking(self, calls: str, terms: Sequence[Term], rule: Rule, layer: int) -> None:
        """Add the step that puts the values of terms into a table of calls."""
        body = compile_premise(rule.premise, self._context())
        cells = conclusion_cells(self._called(calls, terms), body, self._context())
        self._rounds.add(JoinStep(layer, calls, body, cells, begins_first=True, rule=rule))

    def _called(self, calls: str, terms: Sequence[Term]) -> Atom:
        """The atom of a call. A call that binds nothing has a constant in place of arguments."""
        atom = Atom(f"calls in {calls}", tuple(terms) or (Constant(0),))
        self._tables[atom.indicator] = calls
        return atom

    def _context(self) -> CompileContext:
        return CompileContext(self.library, self._tables, self.names.tag, self.relations.arithmetic, self._denials)

    def _denials(self, indicator: str) -> str:
        name = f"denials of {indicator}"
        if name not in self._tables:
            table = self._tables[name] = self._new_table(columns_of(indicator))
            self._add_rows(table, (record.arguments for record in self.source.denials(indicator)))
        return self._tables[name]


def _named(predicate: str, atom: Atom) -> Atom:
    return replace(atom, predicate=predicate)


def _with_premise(rule: Rule, *atoms: Atom) -> Rule:
    return replace(rule, premise=tuple(map(Literal, atoms)))


class _Round(Demand):
    """Derives what follows with the names that are joined so far."""

    def __init__(self, source: FactSource, library: Library, names: Names) -> None:
        self._names = names
        super().__init__(source, library, finds_instances=True)

    def _joined_names(self) -> Names:
        return self._names


def joined_names(source: FactSource, library: Library) -> Names:
    """The names that `same_as` joins. What its rules rest on sees the names that are joined so far, in rounds."""
    stated = [atom for atom in (*library.facts, *source.assumed) if atom.indicator == SAME_AS]
    pairs: dict[Pair, Origin] = dict.fromkeys((atom.values for atom in stated), None)
    if library.knows(SAME_AS):
        pairs |= {fact.arguments: fact for fact in source.facts(SAME_AS)}
    names = Names(Relations(source.kb), source.stored, pairs)
    part = relevant_library(library, goals=[SAME_AS])
    while SAME_AS in library.derived:
        demand = _Round(source, part, names)
        found: dict[Pair, Origin] = dict.fromkeys(demand.rows(FOUND), demand)
        joined = Names(names.relations, source.stored, {**found, **names.pairs})
        if joined.representatives == names.representatives:
            break
        names = joined
    return names
