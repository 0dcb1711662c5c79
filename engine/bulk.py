"""Everything that rules say of the facts a knowledge base holds, derived in bulk and stored with what each rests on.

A rule's premise becomes one SQL SELECT over the relations of the knowledge base (`engine/sql.py`), and the predicates
that it rests on are worked out first: transitive closures one beginning after the other, other recursion in rounds.
What SQL would not decide exactly as Prolog does is left to Prolog. A statement is that of `derive_statements` with one
empty substitution, and so is its proof: `tests/test_bulk_inference.py` holds both against Prolog.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from typing import Literal as OneOf

from engine.derive import BULK, FactIndex, Instance, Join, Prover, Scribe, derive_statements, in_order, relevant_library
from engine.program import build_program, join_order
from engine.query import Theory, opened
from engine.session import PrologSession, PrologTerm
from engine.sql import Body, NotCompiled, Setting, compile_body, head_cells
from grammar.dependencies import evaluation_layers, strata
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from grammar.terms import Atom, BodyLiteral, Comparison, Constant, Expression, Literal, Substitution, Value
from kb.loading import MOST_ARGUMENTS, columns_of
from kb.records import Distribution, StatementRecord, content_id
from kb.relations import Derivation, Relations
from kb.store import KnowledgeBase
from kb.symbols import Extent, canonical, extent_of

Engine: TypeAlias = OneOf["auto", "sql", "prolog"]

RUN = "derive"
"""What the records of bulk statements name as their run."""

Rows: TypeAlias = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class DerivedRule:
    """What one rule gave; `reason`: why Prolog did it, where SQL was asked for first."""

    rule: str
    statements: int
    engine: str
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Derived:
    """What a bulk derivation gave. `facts`: those read because they were new; `atoms`: by derived predicate."""

    facts: int
    seconds_reading: float
    atoms: dict[str, int]
    rules: tuple[DerivedRule, ...]


def derive_all(
    kb: KnowledgeBase,
    library: Library,
    rules: Sequence[Rule],
    engine: Engine = "auto",
    session: PrologSession | None = None,
) -> Derived:
    """Derive the statements of these rules and store them in place of what was stored of them, all or nothing.

    Predicates that rules of the library only define are worked out too, whether or not these rules use them.
    What SQL does not decide exactly, `auto` leaves to Prolog and `sql` refuses. Raises HapaxError for that, and for a
    predicate that rests on its own negation.
    """
    defined = [one.conclusion.atom.indicator for one in library.rules if library.is_definition(one)]
    part = relevant_library(library, *rules, goals=defined)
    strata(part)
    relations = Relations(kb)
    with opened(session) as prolog, kb.transaction(), relations.interruptible():
        began = time.perf_counter()
        read = relations.bring_up_to_date()
        seconds = time.perf_counter() - began
        compiled = _Compiled(relations, part, rules) if engine != "prolog" else None
        atoms = compiled.materialise() if compiled else {}
        runs = _Runs(kb, relations, library, prolog, compiled)
        found = tuple(runs.derive(rule, must=engine == "sql") for rule in rules)
    return Derived(read, seconds, atoms, found)


def read_statements(
    kb: KnowledgeBase, library: Library, rule: Rule, session: PrologSession | None = None
) -> Iterator[StatementRecord]:
    """The stored statements of a rule with their words and proofs, in the order in which they were stored.

    Only a batch is in memory at a time. Raises HapaxError where nothing is stored, or where facts or rules have changed
    since: a proof must name facts that are there.
    """
    relations = Relations(kb)
    with relations.snapshot():
        derivation = _current(kb, relations, library, rule)
        batches = relations.batches(derivation)
        if derivation.engine == "sql":
            yield from _proved_by_sql(relations, library, rule, batches)
            return
        with opened(session) as prolog:
            facts = list(Theory(library, kb).behind(rule).facts())
            for kept in _substitutions(relations, rule, batches):
                yield from derive_statements(prolog, library, rule, {Distribution.HEAD: kept}, facts, RUN)


WriteTable: TypeAlias = Callable[[str, Sequence[str], Iterator[Rows]], None]
"""Takes a table's name, its columns and its rows in batches."""


def export_tables(kb: KnowledgeBase, library: Library, rules: Sequence[Rule], write: WriteTable) -> str:
    """Hand over the tables that these rules' joins read; gives the joins as SQL that DuckDB understands, too.

    The SQL makes of each table a view of the Parquet file of its name, and of each rule the table `instances_N` that
    `derive_all` made. Rules that were left to Prolog stand in it as comments. Raises HapaxError as `read_statements`.
    """
    relations = Relations(kb)
    with relations.snapshot():
        found = [(rule, _current(kb, relations, library, rule)) for rule in rules]
        compiled = _Compiled(relations, relevant_library(library, *rules), rules)
        compiled.materialise()
        used, lines = {"symbols"}, []
        for rule, derivation in found:
            name = " ".join(rule.name.split())
            if derivation.engine == "prolog":
                lines.append(f"-- {name} is left to Prolog")
                continue
            select = _instances_of(rule, compiled.body(rule), "0")
            used.update(re.findall(r"\b(?:relation|atoms)_\d+", select))
            lines.append(f"-- {name}\nCREATE TABLE {derivation.table} AS {select};")
        for table in sorted(used):
            write(table, *relations.table(table))
    views = [f"CREATE VIEW {one} AS SELECT * FROM read_parquet('{one}.parquet');" for one in sorted(used)]  # noqa: S608
    return "\n".join([*views, *lines]) + "\n"


def _instances_of(rule: Rule, body: Body, identity: str) -> str:
    """The SELECT of a rule's instances: `identity`, the variables, and what each positive premise rests on."""
    cells = (body.values[one.name].text if one.name in body.values else "NULL" for one in rule.searched)
    columns = zip((*_columns(rule), *_premises(body)), (*cells, *body.references), strict=True)
    return body.select([f"{identity} AS id", *(f"{cell} AS {name}" for name, cell in columns)])


def _current(kb: KnowledgeBase, relations: Relations, library: Library, rule: Rule) -> Derivation:
    found = relations.derivations().get(rule.name)
    if found is None:
        raise HapaxError(f"{kb.place}: nothing is derived of rule {rule.name}. Run `hapax derive` first.")
    if found.stale or not relations.is_up_to_date or found.fingerprint != _fingerprint(library, rule):
        raise HapaxError(
            f"{kb.place}: facts or rules have changed since rule {rule.name} was derived. Run `hapax derive` again."
        )
    return found


def _fingerprint(library: Library, rule: Rule) -> str:
    """Of everything in the library that decides a rule's statements."""
    return content_id("derivation", str(rule), *_told(relevant_library(library, rule)))


def _told(library: Library) -> Iterator[str]:
    """What a library says that bears on truth, as texts."""
    yield from (str(one) for one in (*library.rules, *library.facts))
    signatures = (f"{one.indicator} {one.argument_types} {one.kind} {one.definition}" for one in library.signatures)
    yield from sorted(signatures)
    yield from sorted(f"{lower} < {upper}" for lower, upper in library.subtypes)


def _columns(rule: Rule) -> list[str]:
    return [f"v{number}" for number in range(1, len(rule.searched) + 1)]


def _premises(body: Body) -> list[str]:
    return [f"p{number}" for number in range(1, len(body.tables) + 1)]


def _constraints(rule: Rule) -> tuple[BodyLiteral, ...]:
    """What must hold: literals about a generic variable are told, not proved."""
    return tuple(item for item in rule.premise if not rule.is_information(item))


# --- SQL --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Clause:
    """A rule of a derived predicate: its premise and, as SQL, its conclusion's arguments."""

    number: int
    rule: Rule
    body: Body
    head: tuple[str, ...]


@dataclass
class _Compiled:
    """The predicates below some rules: which table holds each, their clauses, and which of them SQL cannot decide."""

    relations: Relations
    library: Library
    rules: Sequence[Rule]
    tables: dict[str, str] = field(default_factory=dict)
    clauses: dict[str, list[_Clause]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        library = self.library
        stated = {fact.indicator for fact in library.facts}
        self.concluded = {one.conclusion.atom.indicator for one in library.rules if not one.conclusion.negated}
        used = {one.indicator for one in library.completed().signatures}
        layers = [layer for layer in evaluation_layers(library) if layer & self.concluded]
        placed = {one for layer in layers for one in layer}
        self.layers = [*(frozenset([one]) for one in sorted(stated - placed)), *layers]
        self.derived = self.concluded | stated
        self.extent = Extent()
        wide = {one for one in used | self.derived if len(columns_of(one)) > MOST_ARGUMENTS}
        self.refused = dict.fromkeys(sorted(wide), f"it names a predicate of more than {MOST_ARGUMENTS} arguments")
        for indicator in used - self.derived - wide:
            self.tables[indicator] = self.relations.relation(indicator)
        for indicator in used:
            self.extent |= self.relations.extent(indicator)
        definitions = [one.definition for one in library.signatures if one.definition is not None]
        for value in _constants((*self.rules, *library.rules), library.facts, definitions):
            self.extent |= extent_of(value)
        for signature in library.signatures:
            if signature.indicator not in wide:
                self._refuse_mixed(signature.indicator)

    def _refuse_mixed(self, indicator: str) -> None:
        """A computed predicate that facts or rules speak of too has two meanings that only Prolog puts together."""
        signature = self.library.signature(indicator)
        if signature.definition is not None and (
            indicator in self.library.derived | self.derived
            or not self.relations.is_empty(self.relations.relation(indicator))
        ):
            self.refused[indicator] = f"{indicator} is computed and held as facts or rules, too"

    def setting(self) -> Setting:
        return Setting(self.library, self.tables, self.relations.symbols.tag, self.extent)

    def require(self, rule: Rule) -> None:
        """Raises NotCompiled where the rule's premise uses what SQL cannot decide."""
        for literal in rule.literals:
            if literal.atom.indicator in self.refused:
                raise NotCompiled(self.refused[literal.atom.indicator])
        for value in _values_of(literal.atom for literal in (*rule.literals, rule.conclusion)):
            if not isinstance(value, str) and str(canonical(value)) != str(value):
                raise NotCompiled(f"it writes the number {canonical(value)} as {value}")

    def materialise(self) -> dict[str, int]:
        """Work out the derived predicates, lower ones first; gives how many atoms each has.

        What was derived by the same rules from the same facts is there already.
        """
        found: dict[str, int] = {}
        for layer in self.layers:
            members = sorted(layer & self.derived)
            if self._refuse_wide(members):
                continue
            fingerprint = content_id("derived", *members, *_told(relevant_library(self.library, goals=members)))
            held = {one: self.relations.atoms(one, fingerprint) for one in members}
            is_new = None in held.values()
            for one, table in held.items():
                self.tables[one] = table if table and not is_new else self.relations.new_atoms(one, fingerprint)
            try:
                self._compile(members)
            except NotCompiled as refusal:
                self.refused |= dict.fromkeys(members, str(refusal))
                continue
            if is_new:
                self._fill(members)
            found |= {one: self.relations.highest(self.tables[one]) for one in members if one in self.concluded}
        return found

    def _refuse_wide(self, members: Sequence[str]) -> bool:
        """Whether a predicate of the layer has more arguments than a table gets columns; no table is made then."""
        wide = [one for one in members if len(columns_of(one)) > MOST_ARGUMENTS]
        for one in members if wide else ():
            self.refused[one] = self.refused[wide[0]]
        return bool(wide)

    def _compile(self, members: Sequence[str]) -> None:
        """The clauses of a layer. Only those that rest on lower predicates alone may calculate, so they come first.

        Each of them sees the numbers of the predicates below, and those that go in circles all that the others give: in
        whatever order the rules are written, none meets a number larger than it was compiled for.
        """
        own = [
            (number, rule)
            for number, rule in enumerate(self.library.rules)
            if rule.conclusion.atom.indicator in members and not rule.conclusion.negated
        ]
        circular = [number for number, rule in own if any(one.atom.indicator in members for one in rule.literals)]
        lower = [self._clause(number, rule) for number, rule in own if number not in circular]
        for clause in lower:
            self.extent |= Extent(clause.body.largest)
        upper = [self._clause(number, rule, circular=True) for number, rule in own if number in circular]
        for clause in sorted((*lower, *upper), key=lambda one: one.number):
            self.clauses.setdefault(clause.rule.conclusion.atom.indicator, []).append(clause)

    def _clause(self, number: int, rule: Rule, circular: bool = False) -> _Clause:
        indicator = rule.conclusion.atom.indicator
        try:
            self.require(rule)
            body = compile_body(join_order(rule).premise, self.setting())
            if circular and (body.calculates or body.largest > self.extent.largest):
                raise NotCompiled("it calculates in a circle, perhaps without end")
            return _Clause(number, rule, body, head_cells(rule.conclusion.atom, body, self.setting()))
        except NotCompiled as refusal:
            raise NotCompiled(f"{indicator} needs Prolog for rule {rule.name}: {refusal}") from None

    def _is_recursive(self, clause: _Clause, members: Sequence[str]) -> bool:
        return any(self.tables[one] in clause.body.tables for one in members)

    def _fill(self, members: Sequence[str]) -> None:
        """Facts, then what rules say of lower predicates, then what follows from what is there already."""
        clauses = [clause for one in members for clause in self.clauses.get(one, ())]
        circular = [one for one in clauses if self._is_recursive(one, members)]
        for one in members:
            self._add_facts(one)
        for clause in clauses:
            self._index(clause.body.tables, members)
            if clause not in circular:
                self._add(clause, clause.body.select(clause.head))
        step = _closing(circular[0]) if len(circular) == 1 else None
        if step is not None:
            self._close(circular[0], step)
        elif circular:
            self._add_rounds(circular, [self.tables[one] for one in members])

    def _close(self, clause: _Clause, step: _Step) -> None:
        """A transitive closure, one beginning after the other: the steps and one beginning's ends are in memory."""
        first, then = (self.tables[one] for one in step)
        here = self.tables[clause.rule.conclusion.atom.indicator]
        known = self.relations.successors(here)
        steps = known if first == then else self.relations.successors(then if first == here else first)
        for begin in sorted({*known, *steps}):
            if first == here:
                found = _reached(known.get(begin, ()), steps)
            else:
                found = {end for place in _reached([begin], steps) for end in known.get(place, ())}
            self.relations.add_pairs(here, begin, found)

    def _add_rounds(self, circular: Sequence[_Clause], tables: Sequence[str]) -> None:
        """Rounds of what the clauses say of what the last round added, until one adds nothing."""
        if any(sum(map(one.body.tables.count, tables)) > 1 for one in circular):
            self._index(tables, ())
        low = dict.fromkeys(tables, 0)
        while (high := {table: self.relations.highest(table) for table in low}) != low:
            for clause in circular:
                self._add_round(clause, low, high)
            low = high

    def _add_round(self, clause: _Clause, low: dict[str, int], high: dict[str, int]) -> None:
        """What follows where one of the premises is among the atoms of the last round."""
        for number, table in enumerate(clause.body.tables):
            if high.get(table, 0) > low.get(table, 0):
                alias = f"t{number}"
                new = [f"{alias}.ref > {low[table]}", f"{alias}.ref <= {high[table]}"]
                self._add(clause, clause.body.select_from([f"{table} AS {alias}"], clause.head, new))

    def _add(self, clause: _Clause, select: str) -> None:
        indicator = clause.rule.conclusion.atom.indicator
        self.relations.add_atoms(self.tables[indicator], indicator, select)

    def _add_facts(self, indicator: str) -> None:
        table, columns = self.tables[indicator], ", ".join(columns_of(indicator))
        held = self.relations.relation(indicator)
        self.relations.add_atoms(table, indicator, f"SELECT {columns} FROM {held} ORDER BY {columns}")  # noqa: S608  ours
        for fact in self.library.facts:
            if fact.indicator == indicator:
                cells = ", ".join(str(self.relations.symbols.tag(value)) for value in _values_of([fact]))
                self.relations.add_atoms(table, indicator, f"SELECT {cells}")

    def _index(self, tables: Iterable[str], growing: Sequence[str]) -> None:
        """So that joins can begin at any argument of these predicates, those that still grow left out."""
        indicators = {table: one for one, table in self.tables.items() if one not in growing}
        for table in set(tables) & set(indicators):
            self.relations.index(table, indicators[table])

    def body(self, rule: Rule) -> Body:
        """The premise of a rule whose statements are wanted. Raises NotCompiled."""
        self.require(rule)
        return compile_body(_constraints(rule), self.setting())

    def prepare(self, rule: Rule) -> None:
        """Index what the rule's statements and their proofs rest on."""
        below = relevant_library(self.library, rule).completed().signatures
        self._index((self.tables[one.indicator] for one in below if one.indicator in self.tables), ())


_Step: TypeAlias = tuple[str, str]
"""The two predicates of a premise p(A, B) & q(B, C) that concludes r(A, C)."""


def _closing(clause: _Clause) -> _Step | None:
    """The step of a clause r(A, B) & q(B, C) -> r(A, C), or q before r; None for a clause of another form."""
    premise, head = clause.rule.premise, clause.rule.conclusion.atom.arguments
    atoms = [one.atom for one in premise if isinstance(one, Literal) and not one.negated]
    if (
        len(atoms) != len(premise)
        or [len(one.arguments) for one in atoms] != [2, 2]
        or len(clause.body.conditions) != 1
    ):
        return None
    for first, then in (atoms, atoms[::-1]):
        (begin, middle), (again, end) = first.arguments, then.arguments
        if head == (begin, end) and middle == again and len({*first.variables, *then.variables}) == 3:
            return first.indicator, then.indicator
    return None


def _reached(begin: Iterable[int], steps: Mapping[int, Sequence[int]]) -> set[int]:
    """Where one comes from here, the beginnings included."""
    found = set(begin)
    waiting = list(found)
    while waiting:
        for place in steps.get(waiting.pop(), ()):
            if place not in found:
                found.add(place)
                waiting.append(place)
    return found


def _constants(rules: Iterable[Rule], facts: Iterable[Atom], definitions: Iterable[Comparison]) -> Iterator[Value]:
    """The constants that can become a variable's value: those of atoms, and whole sides of equations."""
    yield from _values_of(facts)
    comparisons = list(definitions)
    for rule in rules:
        yield from _values_of(rule.atoms)
        comparisons += rule.comparisons
    for comparison in comparisons:
        if comparison.operator == "=":
            sides: tuple[Expression, ...] = (comparison.left, comparison.right)
            yield from (one.value for one in sides if isinstance(one, Constant))


def _values_of(atoms: Iterable[Atom]) -> Iterator[Value]:
    return (term.value for atom in atoms for term in atom.arguments if isinstance(term, Constant))


@dataclass
class _Runs:
    """Derives one rule after another."""

    kb: KnowledgeBase
    relations: Relations
    library: Library
    session: PrologSession
    compiled: _Compiled | None

    def derive(self, rule: Rule, must: bool) -> DerivedRule:
        began = time.perf_counter()
        reason = ""
        if self.compiled is not None:
            try:
                count = self._by_sql(rule, self.compiled)
            except NotCompiled as refusal:
                if must:
                    raise HapaxError(
                        f"{rule.place}: rule {rule.name} is no rule for SQL: {refusal}. Leave --engine out."
                    ) from None
                reason = str(refusal)
            else:
                return DerivedRule(rule.name, count, "sql", time.perf_counter() - began)
        count = self._by_prolog(rule)
        return DerivedRule(rule.name, count, "prolog", time.perf_counter() - began, reason)

    def _by_sql(self, rule: Rule, compiled: _Compiled) -> int:
        body = compiled.body(rule)
        compiled.prepare(rule)
        columns = [*_columns(rule), *_premises(body)]
        derivation = self.relations.new_instances(rule.name, "sql", _fingerprint(self.library, rule), columns)
        return self.relations.fill(derivation, _instances_of(rule, body, "NULL"))

    def _by_prolog(self, rule: Rule) -> int:
        theory = Theory(self.library, self.kb).behind(rule)
        join = Join(rule, [Substitution()])
        self.session.load(build_program(theory.library, theory.facts()) + join.program(theory.library))
        answers = self.session.solutions(join.goal, join.variables, BULK, trusted=True, distinct=True)
        rows = sorted((row[1:] for row in answers.rows), key=repr)
        values = ([None if isinstance(cell, PrologTerm) else cell for cell in row] for row in rows)
        derivation = self.relations.new_instances(rule.name, "prolog", _fingerprint(self.library, rule), _columns(rule))
        return self.relations.fill_rows(derivation, values)


# --- reading --------------------------------------------------------------------------------------------------------


def _substitutions(relations: Relations, rule: Rule, batches: Iterable[Rows]) -> Iterator[list[Substitution]]:
    """What is stored of a rule that Prolog derived; Prolog proves it once more."""
    for batch in batches:
        values = relations.symbols.values(tag for row in batch for tag in row[1:] if tag is not None)
        yield [_substitution(rule, row[1:], values) for row in batch]


def _proved_by_sql(
    relations: Relations, library: Library, rule: Rule, batches: Iterable[Rows]
) -> Iterator[StatementRecord]:
    needed = relevant_library(library, rule)
    compiled = _Compiled(relations, needed, [rule])
    compiled.materialise()
    tables = compiled.body(rule).tables
    proofs = _Proofs(compiled)
    width = len(rule.searched)
    for batch in batches:
        values = relations.symbols.values(tag for row in batch for tag in row[1 : width + 1] if tag is not None)
        rests_on: dict[str, set[int]] = {table: set() for table in tables}
        for place, table in enumerate(tables, width + 1):
            rests_on[table].update(row[place] for row in batch)
        scribe = Scribe(needed, rule, proofs.prover(rests_on), RUN)
        for row in batch:
            yield scribe.record(Distribution.HEAD, _substitution(rule, row[1 : width + 1], values))


def _substitution(rule: Rule, tags: Sequence[int | None], values: dict[int, Value]) -> Substitution:
    """Variables without a value stay out."""
    pairs = zip(rule.searched, tags, strict=False)
    return Substitution(tuple((one.name, Constant(values[tag])) for one, tag in pairs if tag is not None))


@dataclass
class _Proofs:
    """Finds the facts and rule instances that some facts and derived atoms rest on, down to the facts."""

    compiled: _Compiled

    def prover(self, rests_on: dict[str, set[int]]) -> Prover:
        """A prover of what these tables hold under these refs."""
        relations, library = self.compiled.relations, self.compiled.library
        atoms = {table: one for one, table in self.compiled.tables.items() if one in self.compiled.derived}
        facts: set[int] = set()
        seen: dict[str, set[int]] = {table: set() for table in atoms}
        found: list[tuple[_Clause, tuple[int, ...]]] = []
        waiting = list(rests_on.items())
        while waiting:
            table, refs = waiting.pop()
            if table not in atoms:
                facts |= refs
                continue
            new = refs - seen[table]
            if new:
                seen[table] |= new
                facts |= self._leaves(atoms[table], new)
                waiting.extend(self._below(atoms[table], new, found))
        index = FactIndex(library, relations.facts(facts))
        return Prover(library, index, self._instances(found))

    def _leaves(self, indicator: str, refs: set[int]) -> set[int]:
        """The facts among derived atoms."""
        relations, table = self.compiled.relations, self.compiled.tables[indicator]
        same = " AND ".join(f"r.{column} = h.{column}" for column in columns_of(indicator))
        wanted = relations.wanted("wanted", refs)
        select = (
            f"SELECT r.ref FROM {wanted} AS w CROSS JOIN {table} AS h ON h.ref = w.ref "  # noqa: S608  ours
            f"CROSS JOIN {relations.relation(indicator)} AS r ON {same}"
        )
        return {row[0] for row in relations.rows(select)}

    def _below(
        self, indicator: str, refs: set[int], found: list[tuple[_Clause, tuple[int, ...]]]
    ) -> Iterator[tuple[str, set[int]]]:
        """Adds the instances that conclude these atoms to `found`; gives what they rest on."""
        relations, table = self.compiled.relations, self.compiled.tables[indicator]
        wanted = relations.wanted("wanted", refs)
        for clause in self.compiled.clauses.get(indicator, ()):
            body = clause.body
            same = ["h.ref = w.ref", *(f"h.a{place} = {cell}" for place, cell in enumerate(clause.head, 1))]
            columns = [*body.references, *(body.values[one.name].text for one in clause.rule.variables), "w.ref"]
            select = body.select_from([f"{wanted} AS w", f"{table} AS h"], columns, same)
            below: dict[str, set[int]] = {one: set() for one in body.tables}
            for row in relations.rows(select):
                found.append((clause, row[len(body.tables) : -1]))
                for one, ref in zip(body.tables, row, strict=False):
                    below[one].add(ref)
            yield from below.items()

    def _instances(self, found: Sequence[tuple[_Clause, tuple[int, ...]]]) -> dict[Atom, list[Instance]]:
        """The instances by conclusion, in the order in which `derivations` would give them."""
        values = self.compiled.relations.symbols.values(tag for _, row in found for tag in row)
        rows = []
        for clause, tags in found:
            cells = tuple(values[tag] for tag in tags)
            pairs = zip(clause.rule.variables, cells, strict=True)
            substitution = Substitution(tuple((one.name, Constant(cell)) for one, cell in pairs))
            head = substitution.apply(clause.rule.conclusion.atom)
            term = PrologTerm(head.predicate, tuple(_values_of([head])))
            rows.append((term, clause.number, PrologTerm("[]", cells)))
        return in_order(self.compiled.library, rows)
