"""The derived predicates of a library: each layer's rules as SQL, evaluated semi-naively in rounds.

A transitive closure is computed from one start node after the other. What is stored is used again while rules and facts
are the same, and follows the changes of few facts (`maintenance.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain

from hapax.engine.inference.stored_atoms import Fingerprints
from hapax.engine.logic.compile import (
    CompileContext,
    CompiledPremise,
    PremiseCompiler,
    compile_aggregate,
    compile_premise,
    conclusion_cells,
    join_order,
)
from hapax.engine.logic.entity_names import Names, by_identity
from hapax.engine.logic.goal_rules import GOAL
from hapax.engine.logic.maintenance import (
    MaintainedClause,
    MaintainedLayer,
    MaintainedPremise,
    Maintainer,
    NotMaintained,
)
from hapax.engine.logic.rounds import Improvement, JoinStep, Rounds
from hapax.grammar.dependencies import evaluation_layers, unreachable_variables
from hapax.grammar.errors import HapaxError, Place
from hapax.grammar.parsing.declarations import SAME_AS, AggregateDeclaration
from hapax.grammar.rules import Library, Rule, comparison_of, literals_of
from hapax.grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Value,
    grouped,
    reached,
    variable_names,
)
from hapax.grammar.writing.prolog_text import assignment, compares_numbers, definition_of
from hapax.grammar.writing.words import counted, short
from hapax.kb.atoms.changes import TableChanges
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.facts import columns_of
from hapax.kb.atoms.sql_arithmetic import Calculated
from hapax.kb.atoms.symbols import MISSING_TAG
from hapax.kb.exchange.values import MOST_ARGUMENTS


@dataclass(frozen=True)
class Clause:
    """A rule of a derived predicate: its compiled premise, and its conclusion's arguments as SQL."""

    number: int
    rule: Rule
    body: CompiledPremise
    head: tuple[str, ...]
    grouped: str = ""
    """The SELECT of an aggregate's atoms; its head and body are those of a row `h` of them."""

    def step(self, layer: int, target: str, context: CompileContext) -> JoinStep:
        """The step that adds the clause's atoms to their table."""
        better = Improvement.of(self.rule.aggregate, context)
        repeats = self.rule.aggregate is not None and self.rule.aggregate.counts_derivations
        grouped = "" if better is not None else self.grouped
        return JoinStep(layer, target, self.body, self.head, grouped, rule=self.rule, better=better, repeats=repeats)


def compile_clause(number: int, rule: Rule, context: CompileContext, *, is_ordered: bool = False) -> Clause:
    """Compile a rule, given with its number in its library; `is_ordered`: its premise is as it is to be joined."""
    premise = rule.premise if is_ordered else join_order(rule).premise
    if rule.aggregate is not None:
        others = [case for case in rule.aggregate.cases if case != rule.premise] if not is_ordered else []
        compiled = compile_aggregate(rule.aggregate, [premise, *others], context)
        own = compiled.cases[0]
        return Clause(number, rule, own.premise, own.cells, compiled.select)
    body = compile_premise(premise, context)
    return Clause(number, rule, body, conclusion_cells(rule.conclusion.atom, body, context))


@dataclass
class CompiledLibrary:
    """The predicates that some rules depend on, compiled to SQL. Dictionaries go by indicator."""

    relations: Relations
    library: Library
    names: Names
    tables: dict[str, str] = field(default_factory=dict)
    clauses: dict[str, list[Clause]] = field(default_factory=dict)
    anew: dict[str, str] = field(default_factory=dict)
    """Why a derived predicate is not maintained but filled again; empty where it was never filled."""
    is_maintained: bool = False
    begin: Callable[[str], None] = lambda _: None
    """Called with a text that names the predicates that are derived next."""

    def __post_init__(self) -> None:
        self._fingerprints = Fingerprints(self.relations.kb, self.library)
        # What rules conclude of `same_as` is known before.
        rules = tuple(rule for rule in self.library.rules if rule.conclusion.atom.indicator != SAME_AS)
        library = self.library = by_identity(replace(self.library, rules=rules))
        self._numbered = grouped(enumerate(library.rules), lambda pair: pair[1].conclusion.atom.indicator)
        stated = library.stated - {SAME_AS}
        # What is looked for in its place, see `Library.projected`, is known before, too: rules depend on both.
        heads = [rule.conclusion.atom for rule in library.rules]
        projected = {atom.indicator for atom in heads if library.projected(atom) is not None}
        self.concluded = {atom.indicator for atom in heads} - projected
        self.used = {signature.indicator for signature in library.completed().signatures} - {SAME_AS} - projected
        layers = [layer for layer in evaluation_layers(library) if layer & self.concluded]
        # Predicates with facts in rule files but without rules come first: they depend on nothing.
        stated_only = stated.difference(*layers)
        self.layers = [*(frozenset([indicator]) for indicator in sorted(stated_only)), *layers]
        self.derived = self.concluded | stated
        for indicator in sorted(self.used | self.derived):
            if len(columns_of(indicator)) > MOST_ARGUMENTS:
                raise HapaxError(
                    f"{indicator} has more than {MOST_ARGUMENTS} arguments, which no rule can join. Give it fewer."
                )
        # Sorted, so that the numbers of new tables do not depend on the process.
        for indicator in sorted(self.used - self.derived):
            if self.names.representatives:
                # By which joined names are found; `prepare` would make it anyway.
                self.relations.index(self.relations.relation(indicator), indicator)
            self.tables[indicator] = self.names.relation(indicator)

    def setting(self) -> CompileContext:
        relations = self.relations
        return CompileContext(self.library, self.tables, self.names.tag, relations.arithmetic, relations.denials)

    def maintain(self, changes: TableChanges) -> None:
        """Bring the stored derived predicates up to date with changes of facts; `materialise` fills the others."""
        maintainer = Maintainer(self.relations, changes, self.tables)
        self.is_maintained = True
        for layer in self.layers:
            members = sorted(layer & self.derived)
            try:
                self._maintain(members, maintainer)
            except NotMaintained as reason:
                for indicator in members:
                    self.anew[indicator] = str(reason)
                    self.tables.pop(indicator, None)
                    self.clauses.pop(indicator, None)

    def _maintain(self, members: Sequence[str], maintainer: Maintainer) -> None:
        tables = {name: self.relations.atoms(name, self._fingerprints.atoms(name)) for name in members}
        self.require_maintained(self._rules_of(members))
        stored = {indicator: table for indicator, table in tables.items() if table is not None}
        # Without a reason: these were never filled, so that nothing is lost that a user would ask about.
        if len(stored) < len(members):
            raise NotMaintained("")
        self.tables |= stored
        self._compile(members)
        clauses = list(chain.from_iterable(self.clauses.get(indicator, ()) for indicator in members))
        facts = (self.relations.relation(indicator) for indicator in members)
        if not any(maintainer.changes.get(table) for table in facts) and not any(
            maintainer.affects(clause.body) for clause in clauses
        ):
            return
        for clause in clauses:
            if clause.rule.aggregate is not None:
                raise NotMaintained("it is an aggregate")
            self._index(clause.body, clause.head)
        maintainer.open(stored)
        try:
            maintained = [
                MaintainedClause(
                    self.tables[clause.rule.conclusion.atom.indicator],
                    self.premise(join_order(clause.rule).premise, clause.body, maintainer),
                    clause.head,
                )
                for clause in clauses
            ]
            stated = []
            for fact in self.library.facts:
                if fact.indicator in stored:
                    tags = [self.relations.symbols.tag(value) for value in values_of([fact])]
                    stated.append((stored[fact.indicator], tags))
            maintainer.maintain(MaintainedLayer(stored, maintained, stated))
        except NotMaintained:
            # Its tables are half changed, so that nothing above may follow their changes.
            maintainer.give_up(stored)
            raise

    def premise(self, items: Sequence[BodyLiteral], body: CompiledPremise, maintainer: Maintainer) -> MaintainedPremise:
        """A compiled premise with the states of its tables before and after a change."""
        old = compile_premise(items, replace(self.setting(), tables=maintainer.old()))
        now = compile_premise(items, replace(self.setting(), tables=maintainer.now()))
        return MaintainedPremise(body.tables, old, now)

    def require_maintained(self, rules: Iterable[Rule]) -> None:
        """Raise NotMaintained if a predicate that one of these rules reads is to be filled again."""
        for literal in literals_of(rules):
            projected = self.library.projected(literal.atom) if literal.negated else None
            indicator = (projected or literal.atom).indicator
            if indicator in self.anew:
                raise NotMaintained(f"{indicator} was derived anew" + _because(self.anew[indicator]))

    def materialise(self) -> dict[str, int]:
        """Compute the derived predicates, lower layers first, and return how many atoms each has.

        Tables that the same rules filled from the same facts are used again.
        """
        counts: dict[str, int] = {}
        for layer in self.layers:
            members = sorted(layer & self.derived)
            self.begin(" and ".join(members))
            # A layer that was maintained has its tables already.
            if self.tables.keys().isdisjoint(members):
                self._materialise(members)
            else:
                self._compile(members)
            for indicator in members:
                if indicator in self.concluded:
                    counts[indicator] = self.relations.atom_count(indicator)
        return counts

    def _materialise(self, members: Sequence[str]) -> None:
        """Compute the predicates of a layer."""
        fingerprint = self._fingerprints.atoms(members[0])
        filled = {indicator: self.relations.atoms(indicator, fingerprint) for indicator in members}
        # Members of a layer depend on each other: if one table is missing or out of date, all are filled again.
        is_new = self.is_maintained or None in filled.values()
        for indicator, table in filled.items():
            if table is not None and not is_new:
                self.tables[indicator] = table
            else:
                self.tables[indicator] = self.relations.new_atoms(indicator, fingerprint)
        self._compile(members)
        if is_new:
            self._fill(members)
            self.relations.count_atoms(members)

    def _rules_of(self, members: Sequence[str]) -> list[Rule]:
        """The rules that conclude these predicates."""
        return [rule for name in members for _, rule in self._numbered.get(name, ())]

    def _compile(self, members: Sequence[str]) -> None:
        """Compile the clauses of a layer."""
        for indicator in members:
            self.clauses.pop(indicator, None)
        for indicator in members:
            for number, rule in self._numbered.get(indicator, ()):
                self.clauses.setdefault(indicator, []).append(compile_clause(number, rule, self.setting()))

    def _fill(self, members: Sequence[str]) -> None:
        """Fill the tables of a layer: facts, then by the clauses over lower predicates, then by the recursive ones."""
        rounds = Rounds(self.relations)
        clauses: list[Clause] = []
        for indicator in members:
            rounds.watch(self.tables[indicator], columns_of(indicator))
            self._add_facts(indicator, rounds)
            clauses += self.clauses.get(indicator, ())
        tables = [self.tables[indicator] for indicator in members]
        recursive = [clause for clause in clauses if not set(tables).isdisjoint(clause.body.tables)]
        # A transitive closure alone needs no rounds: two tables that share a variable, tested for empty cells alone.
        tests = [test for clause in recursive for test in clause.body.conditions]
        is_plain = len(recursive) == 1 and sum(not test.endswith(f" <> {MISSING_TAG}") for test in tests) == 1
        closing = recursive[0].rule.chain if is_plain else None
        grouped: set[AggregateDeclaration] = set()
        for clause in clauses:
            self._index(clause.body, clause.head, members)
            step = clause.step(int(clause in recursive), self._target(clause), self.setting())
            # The cases of an aggregate have one SELECT.
            aggregate = clause.rule.aggregate if step.grouped else None
            if (closing is None or clause not in recursive) and aggregate not in grouped:
                grouped.update(filter(None, [aggregate]))
                rounds.add(step)
        # An index on a growing table costs at each row; it pays where a clause joins the layer's tables to each other.
        if closing is None and any(sum(map(clause.body.tables.count, tables)) > 1 for clause in recursive):
            for clause in recursive:
                self._index(clause.body, clause.head)
        rounds.run()
        if closing is not None:
            self._close(recursive[0], closing)

    def _target(self, clause: Clause) -> str:
        return self.tables[clause.rule.conclusion.atom.indicator]

    def _close(self, clause: Clause, chain: tuple[Atom, Atom]) -> None:
        """Fill a transitive closure from one start node after the other.

        In memory are the graph's edges and the nodes that one start reaches, never the whole closure.
        """
        first, then = (self.tables[atom.indicator] for atom in chain)
        closure = self.tables[clause.rule.conclusion.atom.indicator]
        known = self.relations.successors(closure)
        edges = known if first == then else self.relations.successors(then if first == closure else first)

        def following(node: int) -> Sequence[int]:
            return edges.get(node, ())

        for start in sorted({*known, *edges}):
            self.relations.check_time()
            if first == closure:  # r(A, B) & edge(B, C): from the known ends along edges
                ends: Collection[int] = reached(known.get(start, ()), following)
            else:  # edge(A, B) & r(B, C): along edges, and then to the known ends
                ends = set().union(*(known.get(node, ()) for node in reached([start], following)))
            self.relations.add_pairs(closure, start, ends)

    def _add_facts(self, indicator: str, rounds: Rounds) -> None:
        table, columns = self.tables[indicator], ", ".join(columns_of(indicator))
        relation = self.names.relation(indicator)
        rounds.insert(table, f"SELECT {columns} FROM {relation} ORDER BY {columns}")  # noqa: S608  ours
        for fact in self.library.facts:
            if fact.indicator == indicator:
                tags = map(self.names.tag, values_of([self.names.read(fact)]))
                rounds.insert(table, f"SELECT {', '.join(map(str, tags)) or '0'}")

    def _index(self, body: CompiledPremise, head: Sequence[str], growing: Sequence[str] = ()) -> None:
        """Index the arguments by which a premise or its conclusion finds rows, but of tables that still grow."""
        indicators = {table: indicator for indicator, table in self.tables.items()}
        places: dict[str, set[int]] = {}
        for number, place in body.looked_up(head):
            places.setdefault(indicators[body.tables[number]], set()).add(place)
        for absent in body.absent:
            first = next((place for place, cell in enumerate(absent.cells, 1) if cell is not None), 1)
            places.setdefault(absent.indicator, set()).add(first)
        for indicator in places.keys() - growing:
            # With joined names, the table of facts is a view of the relation.
            is_derived = indicator in self.derived
            table = self.tables[indicator] if is_derived else self.relations.relation(indicator)
            self.relations.index(table, indicator, places[indicator])

    def body(self, rule: Rule) -> CompiledPremise:
        """Compile what must hold for a rule's statements, but for tests of open variables: such a rule has none."""
        names = set(open_variables(rule, self.library))
        items = [item for item in constraints(rule) if names.isdisjoint(variable_names([item]))]
        return compile_premise(items, self.setting())

    def failures(self, rules: Iterable[Rule]) -> tuple[str, ...]:
        """Messages about calculations without a value, in these rules and those below them."""
        if not self.relations.arithmetic.has_failed:
            return ()
        derived = [rule for rule in self.library.rules if rule not in set(rules)]
        stated = [replace(rule, premise=tuple(constraints(rule))) for rule in rules]
        return failures([*derived, *stated], self.setting(), self.relations)

    def prepare(self, rule: Rule, body: CompiledPremise) -> None:
        """Index what the statements of a rule, with this compiled premise, and their proofs read."""
        names = [variable.name for variable in rule.conclusion.atom.variables]
        self._index(body, [body.values[name] for name in names if name in body.values])


def constraints(rule: Rule) -> list[BodyLiteral]:
    """The premise without its hypotheses, the literals about a generic variable, which are assumed."""
    return [item for item in rule.premise if not rule.is_information(item)]


def open_variables(rule: Rule, library: Library) -> list[str]:
    """Names of the searched variables to which only hypotheses could give a value, and no fact does."""
    part = replace(rule, premise=tuple(constraints(rule)))
    unreachable = {variable.name for variable in unreachable_variables(part, library)}
    constrained = variable_names(part.premise) - unreachable
    return [variable.name for variable in rule.searched if variable.name not in constrained]


def left_out(rule: Rule, names: Sequence[str]) -> str:
    """The reason why a rule with such open variables has no statements."""
    return (
        f"no fact gives {' or '.join(names)} a value, because only what is assumed about {rule.generic_names} could. "
        "Search the rule, or write `@generic none` before it"
    )


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def values_of(atoms: Iterable[Atom]) -> Iterator[Value]:
    """The constants of atoms, one after the other."""
    for atom in atoms:
        for term in atom.arguments:
            if isinstance(term, Constant):
                yield term.value


# --- messages about premises ------------------------------------------------------------------------------------------


_SHOWN = 6
"""Variables of a row that are shown."""


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A comparison of a rule, the number of rows for which it has no value, and the first of these with the reason."""

    rule: str
    place: Place
    comparison: str
    rows: int
    values: tuple[tuple[str, Value], ...]
    reason: str

    def __str__(self) -> str:
        subject = GOAL if self.rule.startswith(GOAL) else f"{self.place}: rule {self.rule}"
        shown = ", ".join(f"{name} = {short(value)}" for name, value in self.values[:_SHOWN])
        rows = f"{counted(self.rows, 'row')}, such as {shown}" if shown else "its only row"
        return f'{subject}: "{self.comparison}" has no value for {rows}: {self.reason}'


def failures(rules: Iterable[Rule], context: CompileContext, relations: Relations) -> tuple[str, ...]:
    """Messages about the rules; to be called where a calculation has failed."""
    found: dict[str, None] = {}
    for rule in rules:
        for item in rule.premise:
            comparison = item if isinstance(item, Comparison) else comparison_of(item, context.library)
            if comparison is not None and (failure := _failure(rule, item, comparison, context, relations)):
                found[str(failure)] = None
    return tuple(found)


def idle_negations(rules: Iterable[Rule], library: Library, has_facts: Callable[[str], bool]) -> Iterator[str]:
    """Messages about negated atoms and exceptions of undeclared predicates that nothing states or concludes.

    `has_facts`: true for the indicator of a predicate that has stored facts.
    """
    known = library.derived | library.stated
    others = (signature for signature in library.completed().signatures if signature.indicator not in library.excepted)
    names = {signature.name: signature.indicator for signature in others}
    for rule in rules:
        clauses = [(clause.premise, str(clause)) for clause in rule.whole_exceptions]
        denied = [((replace(item, negated=False),), str(item)) for item in rule.literals if item.negated]
        for premise, text in (*denied, *clauses):
            for item in premise if len(premise) == 1 else ():
                if not isinstance(item, Literal) or item.negated:
                    continue
                indicator = item.atom.indicator
                is_known = indicator in known | library.excepted or library.signature(indicator).declared
                # What a model may supply is not known to be false.
                if is_known or library.is_open(indicator) or has_facts(indicator):
                    continue
                written = item.atom.predicate
                near = get_close_matches(written, [name for name in names if name != written], n=1, cutoff=0.6)
                question = f" Did you mean {names[near[0]]}?" if near else ""
                yield f'{rule.place}: {indicator} has neither facts nor rules, so "{text}" excludes nothing.{question}'


def _failure(
    rule: Rule, item: BodyLiteral, comparison: Comparison, context: CompileContext, relations: Relations
) -> MissingValue | None:
    """The failure of one comparison over the rows that the rest of the premise has."""
    is_calculated = any(isinstance(side, Arithmetic) for side in comparison.sides)
    if comparison.operator in ("=", "\\=") and not is_calculated and not compares_numbers(comparison, context.library):
        return None  # terms are the same or not
    compiler = PremiseCompiler(context).read(_evaluable(rule, item, context.library))
    bound = set(compiler.values)
    target = assignment(comparison, bound)
    if target is not None and target not in bound:
        (source,) = (source for variable, source in comparison.equations if variable.name == target)
        whole = compiler.operand(source)
    elif variable_names([comparison]) <= bound:
        whole = Calculated(comparison.operator, tuple(map(compiler.operand, comparison.sides)))
    else:
        return None
    if not isinstance(whole, Calculated):
        return None
    own = variable_names([comparison])
    names = sorted((name for name in bound if not name.startswith("_")), key=lambda name: (name not in own, name))
    reason = context.arithmetic.fails(whole)
    body = compiler.compiled()
    conditions = [f"{reason} IS NOT NULL"]
    # An empty cell has no value, and that is no failure.
    (empty,) = relations.symbols.known([""])
    if empty is not None:
        conditions += [f"{body.values[name]} <> {empty}" for name in names if name in own]
    select = body.select([reason, *(body.values[name] for name in names)], conditions)
    rows = relations.rows(select.replace("SELECT ", "SELECT DISTINCT ", 1))
    first = next(rows, None)
    if first is None:
        return None
    known = relations.symbols.values(first[1:])
    values = tuple((name, known[tag]) for name, tag in zip(names, first[1:], strict=True))
    return MissingValue(
        rule.name, rule.at(comparison.place), str(comparison), 1 + sum(1 for _ in rows), values, first[0]
    )


def _evaluable(rule: Rule, left_out: BodyLiteral, library: Library) -> list[BodyLiteral]:
    """The premise without an item, and without those that need the value that it gives."""
    others = [item for item in rule.premise if item is not left_out]
    sources = (item for item in others if isinstance(item, Literal) and not item.negated)
    bound = variable_names(item for item in sources if definition_of(item, library) is None)
    comparisons = [item if isinstance(item, Comparison) else comparison_of(item, library) for item in others]
    for _ in comparisons:  # an equation may need the value that another one gives
        bound |= {name for item in comparisons if item is not None and (name := assignment(item, bound))}
    return [item for item in others if variable_names([item]) <= bound]
