"""Bulk derivation: apply rules to all facts of a knowledge base and store the resulting statements.

A rule's premise becomes one SQL SELECT over the relations of the knowledge base (`sql.py`). The derived predicates in
it are computed first: a transitive closure from one start node after the other, other recursion semi-naively in
rounds. Rules that SQL would not decide exactly as Prolog does are left to Prolog. Statements and proofs equal those
of `derive_statements` with one empty substitution; `test_random_programs` compares both with loops over the facts.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias
from typing import Literal as OneOf

from hapax.engine.inference.derive import (
    BULK_LIMITS,
    FactIndex,
    KeptSubstitutions,
    Prover,
    RuleInstance,
    StatementJoin,
    StatementWriter,
    derive_statements,
    filled,
    instances_by_conclusion,
    relevant_library,
    rule_words,
    sentence_pieces,
)
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.maintenance import (
    MaintainedClause,
    MaintainedLayer,
    MaintainedPremise,
    Maintainer,
    NotMaintained,
)
from hapax.engine.inference.program import build_program, join_order
from hapax.engine.inference.session import (
    AnswerCell,
    LimitExceeded,
    PrologSession,
    PrologTerm,
)
from hapax.engine.inference.sql import (
    CompileContext,
    CompiledPremise,
    NotCompiled,
    compile_aggregate,
    compile_premise,
    conclusion_cells,
)
from hapax.engine.inference.stored_atoms import atoms_fingerprint, rule_fingerprint
from hapax.engine.inference.theory import Theory, open_session
from hapax.grammar.dependencies import evaluation_layers, strata
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    CutDecimal,
    Expression,
    Literal,
    Substitution,
    Value,
    variable_names,
)
from hapax.grammar.words import counted
from hapax.kb import system
from hapax.kb.changes import TableChanges
from hapax.kb.derived_ids import DerivedIds
from hapax.kb.derived_statements import store_words
from hapax.kb.loading import MOST_ARGUMENTS, columns_of
from hapax.kb.records import Distribution, StatementRecord, statement_id
from hapax.kb.relations import Relations, StoredDerivation
from hapax.kb.store import KnowledgeBase
from hapax.kb.symbols import EXACT, NumberExtent, canonical, exact_extent
from hapax.kb.values import is_exact

Engine: TypeAlias = OneOf["auto", "sql", "prolog"]

RUN_ID = "derive"
"""The run id in the records of bulk statements."""

RowBatch: TypeAlias = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class DerivedRule:
    """The result of a rule. `reason`: why it was left to Prolog, where SQL was tried first.

    `anew`: why all its statements were derived, although those stored were up to date before facts changed; empty if
    only what the change affects was derived, or if there were none. `left_out`: why the rule has no statements.
    """

    rule: str
    statements: int
    engine: str
    seconds: float
    reason: str = ""
    anew: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class DerivationReport:
    """The result of a bulk derivation."""

    facts: int
    """New facts that were read."""
    seconds_reading: float
    atoms: dict[str, int]
    """Atoms by derived predicate."""
    rules: tuple[DerivedRule, ...]
    left_out: tuple[str, ...] = ()
    """The rules that have errors, with the reasons."""


def derive_all(
    kb: KnowledgeBase,
    library: Library,
    rules: Sequence[Rule],
    engine: Engine = "auto",
    session: PrologSession | None = None,
    *,
    seconds: float | None = None,
) -> DerivationReport:
    """Derive the statements of these rules and store them, in one transaction.

    Where statements are stored and few facts have changed since, only what the change affects is derived. Predicates
    that definitions of the library conclude are computed as well, whether or not these rules use them. A rule that SQL
    does not decide exactly goes to Prolog (`auto`) or is an error (`sql`). Raises HapaxError for that,
    and for a predicate that depends on its own negation, and LimitExceeded after `seconds`, with nothing stored.
    """
    deadline = _Deadline(seconds)
    defined = [rule.conclusion.atom.indicator for rule in library.rules if library.is_definition(rule)]
    part = relevant_library(library, *rules, goals=[*defined, *sorted(library.standing)])
    strata(part)  # raises for negation in a cycle
    relations = Relations(kb)
    # In one transaction: a run that is killed leaves the results of the last one.
    with open_session(session) as prolog, kb.transaction(), relations.interruptible(deadline.check):
        began = time.perf_counter()
        # Prolog derives every statement, so that it need not know what has changed.
        changes = relations.changes() if engine != "prolog" else None
        read = relations.bring_up_to_date(changes)
        seconds = time.perf_counter() - began
        compiled = _CompiledLibrary(relations, part, rules) if engine != "prolog" else None
        deriver = _RuleDeriver(kb, relations, library, prolog, compiled, deadline)
        if compiled is not None and changes is not None:
            has_changed = bool(changes)
            compiled.maintain(changes)
            for rule in rules:
                deriver.maintain(rule, Maintainer(relations, changes, compiled.tables))
            relations.settle(changes)
            # After `settle`: until then the tables still have the rows that are gone.
            atoms = compiled.materialise()
            # Of other rules nothing was brought up to date: their statements no longer count.
            if has_changed:
                relations.retire([], compiled.derived - set(compiled.refused))
        else:
            atoms = compiled.materialise() if compiled else {}
        results = tuple(deriver.derive(rule, sql_only=engine == "sql") for rule in rules)
        relations.confirm([rule.name for rule in rules])
        store_words(kb.database.conn, {rule.name: rule_words(rule, library) for rule in rules})
    return DerivationReport(read, seconds, atoms, results)


@dataclass
class _Deadline:
    """The end of a derivation's time. None: each rule, and before them the relations that they share, has Prolog's."""

    seconds: float | None
    began: float = field(default_factory=system.monotonic)

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise HapaxError(f"seconds is {self.seconds!r}. Set it to a number above 0.")

    def begin_rule(self) -> None:
        """Begin the time of a rule."""
        if self.seconds is None:
            self.began = system.monotonic()

    def check(self) -> None:
        """Raise LimitExceeded if the time is up."""
        seconds = BULK_LIMITS.seconds if self.seconds is None else self.seconds
        if system.monotonic() - self.began > seconds:
            raise self.exceeded("The derivation")

    def exceeded(self, subject: str) -> LimitExceeded:
        """The error of a time limit: of this one, or without it of Prolog's."""
        seconds = BULK_LIMITS.seconds if self.seconds is None else self.seconds
        return LimitExceeded(
            f"{subject} needs more than {counted(seconds, 'second')}; nothing of it is stored.",
            "seconds",
            Remedy(
                "Allow more with {}, or derive fewer rules at once. {} names rules that may count for ever.",
                Setting("seconds"),
                Operation("check_rules"),
            ),
        )

    def limits(self) -> QueryLimits:
        """The limits of a goal in the time that is left."""
        if self.seconds is None:
            return BULK_LIMITS
        left = self.seconds - (system.monotonic() - self.began)
        # A limit must be above 0, also when no time is left.
        return replace(BULK_LIMITS, seconds=max(0.01, left))


def read_statements(
    kb: KnowledgeBase, library: Library, rule: Rule, session: PrologSession | None = None
) -> Iterator[StatementRecord]:
    """Yield the stored statements of a rule with their sentences and proofs, in the order of storage.

    Only a batch is in memory at a time. Raises HapaxError if nothing is stored, or if facts or rules have changed
    since: a proof may only name facts that still exist.
    """
    relations = Relations(kb)
    with relations.snapshot():
        derivation = _current(kb, relations, library, rule)
        yield from _records(kb, relations, library, rule, relations.batches(derivation), session=session)


def find_statement(
    kb: KnowledgeBase, library: Library, is_wanted: Callable[[str, str], bool], session: PrologSession | None = None
) -> StatementRecord | None:
    """The first stored statement that is wanted by its id and sentence, with its proof; None if there is none.

    Raises HapaxError if facts have changed since its rule was derived.
    """
    relations = Relations(kb)
    with relations.snapshot():
        stored = relations.derivations()
        for rule in (rule for rule in library.rules if rule.name in stored):
            derivation = stored[rule.name]
            if derivation.fingerprint != rule_fingerprint(kb, library, rule):
                continue  # by other rules, whose variables need not be those of this one
            row = _wanted_row(relations, library, rule, derivation, is_wanted)
            if row is not None:
                # Raises if the row is out of date: its proof may name facts that are gone.
                _current(kb, relations, library, rule)
                return next(_records(kb, relations, library, rule, [[row]], session=session), None)
    return None


def statement_by_id(
    kb: KnowledgeBase, library: Library, identity: str, session: PrologSession | None = None
) -> StatementRecord | None:
    """The stored statement with this id and its proof, as `find_statement` gives it, looked up in an index."""
    ids = DerivedIds(kb)
    if not ids.prepare():
        return find_statement(kb, library, lambda found, _: found == identity, session)
    rules = {rule.name: rule for rule in library.rules}
    relations = Relations(kb)
    with relations.snapshot():
        for name, instance in ids.find(identity):
            derivation = relations.derivations()[name]
            if name not in rules or derivation.fingerprint != rule_fingerprint(kb, library, rules[name]):
                continue  # by other rules, as in `find_statement`
            # Raises if the row is out of date: its proof may name facts that are gone.
            _current(kb, relations, library, rules[name])
            rows = [relations.instance(derivation, instance)]
            return next(_records(kb, relations, library, rules[name], rows, session=session), None)
    return None


def _wanted_row(
    relations: Relations,
    library: Library,
    rule: Rule,
    derivation: StoredDerivation,
    is_wanted: Callable[[str, str], bool],
) -> tuple[Any, ...] | None:
    sentence = sentence_pieces(rule, library)
    # A row is the id, the variables' tags and the numbers of the joined rows.
    width = len(rule.searched) + 1
    for batch in relations.batches(derivation):
        tags = chain.from_iterable(row[1:width] for row in batch)
        values = relations.symbols.values(tag for tag in tags if tag is not None)
        for row in batch:
            found = _substitution(rule, row[1:width], values)
            cells = [(name, constant.value) for name, constant in found.bindings]
            if is_wanted(statement_id(rule.name, cells), filled(sentence, found)):
                return row
    return None


def outdated_rules(kb: KnowledgeBase) -> list[str]:
    """Rules whose stored statements are from before facts changed."""
    relations = Relations(kb)
    found = relations.derivations().values()
    # Facts that were not read yet may change the statements of any rule.
    return [item.rule for item in found if item.stale] if relations.is_up_to_date else [item.rule for item in found]


def followed_rules(kb: KnowledgeBase, library: Library) -> list[Rule]:
    """Rules whose stored statements SQL derived, by these rules and from the facts as they are."""
    found = Relations(kb).derivations()
    return [rule for rule in current_rules(kb, library) if found[rule.name].engine == "sql"]


def current_rules(kb: KnowledgeBase, library: Library) -> list[Rule]:
    """Rules whose stored statements were derived by these rules and from the facts as they are."""
    relations = Relations(kb)
    if not relations.is_up_to_date:
        return []
    found = {name: item for name, item in relations.derivations().items() if not item.stale}
    rules = [rule for rule in library.rules if rule.name in found]
    return [rule for rule in rules if found[rule.name].fingerprint == rule_fingerprint(kb, library, rule)]


def _records(
    kb: KnowledgeBase,
    relations: Relations,
    library: Library,
    rule: Rule,
    batches: Iterable[RowBatch],
    *,
    session: PrologSession | None,
) -> Iterator[StatementRecord]:
    """The statements of stored rows. Those of one batch are proved together."""
    if relations.derivations()[rule.name].engine == "sql":
        yield from _proved_by_sql(relations, library, rule, batches)
        return
    with open_session(session) as prolog:
        theory = Theory(library, kb).relevant_to(rule)
        facts, denied = list(theory.facts()), kb.denials()
        # Prolog's proofs are not stored, only its substitutions, so they are derived again.
        for batch in batches:
            tags = chain.from_iterable(row[1:] for row in batch)
            values = relations.symbols.values(tag for tag in tags if tag is not None)
            substitutions = [_substitution(rule, row[1:], values) for row in batch]
            kept = KeptSubstitutions(rule, {Distribution.HEAD: substitutions}, RUN_ID)
            yield from derive_statements(prolog, library, facts, kept, denied)


def fact_tables(
    kb: KnowledgeBase, relations: Relations, library: Library, rule: Rule
) -> tuple[StoredDerivation, tuple[str, ...]] | None:
    """The stored derivation of a rule, and the relation of facts that each positive literal of its premise matched.

    None for a rule that was left to Prolog, or whose premise has derived predicates. Raises as `read_statements` does.
    """
    derivation = _current(kb, relations, library, rule)
    if derivation.engine != "sql":
        return None
    compiled = _CompiledLibrary(relations, relevant_library(library, rule), [rule])
    joined = [item for item in rule.literals if not item.negated and not rule.is_information(item)]
    if any(item.atom.indicator in compiled.derived for item in joined):
        return None
    # A negation may need derived predicates.
    compiled.materialise()
    return derivation, compiled.body(rule).tables


RowKey: TypeAlias = tuple[str, int]
"""A row of a relation or of derived atoms: the table's name and the row's number."""


@dataclass(frozen=True)
class JoinedRows:
    """The rows that a rule's stored statements join, and those that the derived atoms below them join."""

    statements: list[tuple[RowKey, ...]]
    """The premises of each statement, in the order of `read_statements`."""
    instances: list[tuple[Rule, RowKey, tuple[RowKey, ...]]]
    """Rule instances: rule, conclusion and premises."""
    facts: list[tuple[RowKey, int]]
    """Derived atoms that are stored facts as well, with the row of the fact."""
    stated: list[RowKey]
    """Derived atoms that a rule file states."""
    derived: dict[str, str]
    """Indicators of the derived predicates by table. In other tables a row's number is that of its fact."""


def joined_rows(kb: KnowledgeBase, library: Library, rule: Rule) -> JoinedRows | None:
    """The rows behind a rule's stored statements; None for a rule left to Prolog. Raises as `read_statements`."""
    relations = Relations(kb)
    with relations.snapshot():
        derivation = _current(kb, relations, library, rule)
        if derivation.engine != "sql":
            return None
        compiled = _CompiledLibrary(relations, relevant_library(library, rule), [rule])
        compiled.materialise()
        tables, width = compiled.body(rule).tables, len(rule.searched) + 1
        statements: list[tuple[RowKey, ...]] = []
        for batch in relations.batches(derivation):
            statements.extend(tuple(zip(tables, row[width:], strict=True)) for row in batch)
        derived = {compiled.tables[name]: name for name in sorted(compiled.derived & set(compiled.tables))}
        joined = JoinedRows(statements, [], [], [], derived)
        # Where statements join stored facts alone, nothing below them is needed.
        for table, indicator in derived.items() if set(tables) & set(derived) else ():
            _add_rows(joined, compiled, table, indicator)
        return joined


def _add_rows(joined: JoinedRows, compiled: _CompiledLibrary, table: str, indicator: str) -> None:
    """Add the instances of a derived predicate, and its atoms that are facts."""
    relations = compiled.relations
    for clause in compiled.clauses.get(indicator, ()):
        same = [f"h.a{place} = {cell}" for place, cell in enumerate(clause.head, 1)]
        select = clause.body.select_from([f"{table} AS h"], [*clause.body.references, "h.ref"], same)
        for row in relations.rows(select):
            premises = tuple(zip(clause.body.tables, row[:-1], strict=True))
            joined.instances.append((clause.rule, (table, row[-1]), premises))
    columns = columns_of(indicator)
    same_cells = " AND ".join(f"r.{column} = h.{column}" for column in columns)
    facts = relations.relation(indicator)
    select = f"SELECT h.ref, r.ref FROM {facts} AS r JOIN {table} AS h ON {same_cells}"  # noqa: S608  ours
    joined.facts.extend(((table, ref), fact) for ref, fact in relations.rows(select))
    for atom in compiled.library.facts:
        if atom.indicator == indicator:
            tags = [compiled.relations.symbols.tag(value) for value in _values_of([atom])]
            test = " AND ".join(f"{column} = {tag}" for column, tag in zip(columns, tags, strict=True))
            stated = relations.rows(f"SELECT ref FROM {table} WHERE {test}")  # noqa: S608  ours
            joined.stated.extend((table, row[0]) for row in stated)


WriteTable: TypeAlias = Callable[[str, Sequence[str], Iterator[RowBatch]], None]
"""A function that writes a table; it takes the name, the columns and the rows in batches."""


def export_tables(kb: KnowledgeBase, library: Library, rules: Sequence[Rule], write: WriteTable) -> str:
    """Write the tables that these rules' joins read, and return the joins as SQL that DuckDB runs as well.

    The SQL makes each table a view of the Parquet file of its name, and creates for each rule the table `instances_N`
    that `derive_all` made. Rules that were left to Prolog become comments. Raises HapaxError as `read_statements` does.
    """
    relations = Relations(kb)
    with relations.snapshot():
        derivations = [(rule, _current(kb, relations, library, rule)) for rule in rules]
        compiled = _CompiledLibrary(relations, relevant_library(library, *rules), rules)
        compiled.materialise()
        # Every relation holds tags, whose values are in `symbols`.
        used, lines = {"symbols"}, []
        for rule, derivation in derivations:
            name = " ".join(rule.name.split())
            if derivation.engine == "prolog":
                lines.append(f"-- {name} is left to Prolog")
                continue
            select = _instances_of(rule, compiled.body(rule), "0")
            if "decimal_tag(" in select:
                lines.append(f"-- {name} calculates decimals, which only Hapax's own SQL can store")
                continue
            # All names in the SQL are generated, so a pattern finds the tables. Their underscore stays behind.
            select = re.sub(r"\b_((?:relation|atoms)_\d+)\b", r"\1", select)
            used.update(re.findall(r"\b(?:relation|atoms|exact_numbers)_\d+", select))
            lines.append(f"-- {name}\nCREATE TABLE {derivation.table.removeprefix('_')} AS {select};")
        for table in sorted(used):
            write(table, *relations.table(f"_{table}" if table.startswith(("relation_", "atoms_")) else table))
    views = [f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{name}.parquet');" for name in sorted(used)]  # noqa: S608
    return "\n".join([*views, *lines]) + "\n"


def _instances_of(rule: Rule, body: CompiledPremise, identity: str) -> str:
    """The SELECT of a rule's instances: `identity`, the variables, and the row that each positive literal matched."""
    names, cells = (*_columns(rule), *_premises(body)), (*_cells(rule, body), *body.references)
    columns = [f"{cell} AS {name}" for name, cell in zip(names, cells, strict=True)]
    return body.select([f"{identity} AS id", *columns])


def _cells(rule: Rule, body: CompiledPremise) -> list[str]:
    """SQL for the values of a rule's variables."""
    values = body.values
    return [values[variable.name].text if variable.name in values else "NULL" for variable in rule.searched]


def _current(kb: KnowledgeBase, relations: Relations, library: Library, rule: Rule) -> StoredDerivation:
    """The stored derivation of a rule. Raises HapaxError where there is none, or an outdated one."""
    found = relations.derivations().get(rule.name)
    if found is None:
        raise HapaxError(
            f"{kb.place}: no statements of rule {rule.name} are stored.", Remedy("Run {} first.", Operation("derive"))
        )
    if found.stale or not relations.is_up_to_date or found.fingerprint != rule_fingerprint(kb, library, rule):
        raise HapaxError(
            f"{kb.place}: facts or rules have changed since rule {rule.name} was derived.",
            Remedy("Run {} again.", Operation("derive")),
        )
    return found


def _columns(rule: Rule) -> list[str]:
    return [f"v{number}" for number in range(1, len(rule.searched) + 1)]


def _premises(body: CompiledPremise) -> list[str]:
    return [f"p{number}" for number in range(1, len(body.tables) + 1)]


# --- SQL --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Clause:
    """A rule of a derived predicate: its compiled premise, and its conclusion's arguments as SQL."""

    number: int
    rule: Rule
    body: CompiledPremise
    head: tuple[str, ...]
    grouped: str = ""
    """The SELECT of an aggregate's atoms; its head and body are those of a row `h` of them."""


@dataclass
class _CompiledLibrary:
    """The predicates that some rules depend on, compiled to SQL. Dictionaries go by indicator."""

    relations: Relations
    library: Library
    rules: Sequence[Rule]
    tables: dict[str, str] = field(default_factory=dict)
    clauses: dict[str, list[_Clause]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Why SQL cannot decide a predicate."""
    anew: dict[str, str] = field(default_factory=dict)
    """Why a derived predicate is not maintained but filled again; empty where it was never filled."""
    is_maintained: bool = False

    def __post_init__(self) -> None:
        library = self.library
        stated = {fact.indicator for fact in library.facts}
        self.concluded = {rule.conclusion.atom.indicator for rule in library.rules}
        used = {signature.indicator for signature in library.completed().signatures}
        layers = [layer for layer in evaluation_layers(library) if layer & self.concluded]
        # Predicates with facts in rule files but without rules come first: they depend on nothing.
        stated_only = stated.difference(*layers)
        self.layers = [*(frozenset([indicator]) for indicator in sorted(stated_only)), *layers]
        self.derived = self.concluded | stated
        wide = {indicator for indicator in used | self.derived if len(columns_of(indicator)) > MOST_ARGUMENTS}
        self.refused = dict.fromkeys(sorted(wide), f"it names a predicate of more than {MOST_ARGUMENTS} arguments")
        # Sorted, so that the numbers of new tables do not depend on the process.
        for indicator in sorted(used - self.derived - wide):
            self.tables[indicator] = self.relations.relation(indicator)
        self.extent = self._extent()
        for signature in library.signatures:
            if signature.indicator not in wide:
                self._refuse_mixed(signature.indicator)

    def _extent(self) -> NumberExtent:
        """The bounds of every number that a join can meet, by which arithmetic is proved to stay exact."""
        library = self.library
        used = {signature.indicator for signature in library.completed().signatures}
        extent = self.relations.exact_extent(sorted(used))
        definitions = [signature.definition for signature in library.signatures if signature.definition is not None]
        for value in _constants((*self.rules, *library.rules), library.facts, definitions):
            extent |= exact_extent([value])
        # Each is within the bounds, but the largest may be too large with the most decimal places.
        return extent | NumberExtent(inexact=extent.largest * 10**extent.places >= EXACT)

    def _refuse_mixed(self, indicator: str) -> None:
        """Refuse a computed predicate that also has facts or rules: only Prolog combines the two meanings."""
        signature = self.library.signature(indicator)
        if signature.definition is not None and (
            indicator in self.library.derived | self.derived
            or not self.relations.is_empty(self.relations.relation(indicator))
        ):
            self.refused[indicator] = f"{indicator} is computed and also has facts or rules"

    def setting(self) -> CompileContext:
        return CompileContext(
            self.library, self.tables, self.relations.symbols.tag, self.extent, self.relations.exact_numbers
        )

    def require(self, rule: Rule) -> None:
        """Raise NotCompiled if the rule uses a predicate or a number that SQL cannot decide."""
        for literal in rule.literals:
            if literal.atom.indicator in self.refused:
                raise NotCompiled(self.refused[literal.atom.indicator])
        # A proof shows a rule's numbers as written; SQL would only know the canonical ones (2 for 2.0).
        for value in _values_of(literal.atom for literal in (*rule.literals, rule.conclusion)):
            if not isinstance(value, str) and str(canonical(value)) != str(value):
                raise NotCompiled(f"it writes the number {canonical(value)} as {value}")

    def maintain(self, changes: TableChanges) -> None:
        """Bring the stored derived predicates up to date with changes of facts; `materialise` fills the others."""
        maintainer = Maintainer(self.relations, changes, self.tables)
        self.is_maintained = True
        for layer in self.layers:
            members, extent = sorted(layer & self.derived), self.extent
            try:
                self._maintain(members, maintainer)
            except (NotMaintained, NotCompiled) as reason:
                self.extent = extent  # its clauses are compiled again
                for indicator in members:
                    self.anew[indicator] = str(reason)
                    self.tables.pop(indicator, None)
                    self.clauses.pop(indicator, None)

    def _maintain(self, members: Sequence[str], maintainer: Maintainer) -> None:
        # Without a reason: these were never filled, so that nothing is lost that a user would ask about.
        if any(indicator in self.refused for indicator in members):
            raise NotMaintained("")
        tables = {indicator: self.relations.atoms(indicator, self._fingerprint(members)) for indicator in members}
        self.require_maintained(literal.atom.indicator for literal in literals_of(self._rules_of(members)))
        stored = {indicator: table for indicator, table in tables.items() if table is not None}
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
            if clause.grouped:
                raise NotMaintained("it is an aggregate")
            self._index(clause.body.tables, ())
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
                    tags = [self.relations.symbols.tag(value) for value in _values_of([fact])]
                    stated.append((stored[fact.indicator], tags))
            maintainer.maintain(MaintainedLayer(stored, maintained, stated))
        except (NotMaintained, NotCompiled):
            # Its tables are half changed, so that nothing above may follow their changes.
            maintainer.give_up(stored)
            raise

    def premise(self, items: Sequence[BodyLiteral], body: CompiledPremise, maintainer: Maintainer) -> MaintainedPremise:
        """A compiled premise with the states of its tables before and after a change."""
        old = compile_premise(items, replace(self.setting(), tables=maintainer.old()))
        now = compile_premise(items, replace(self.setting(), tables=maintainer.now()))
        return MaintainedPremise(body.tables, old, now)

    def require_maintained(self, indicators: Iterable[str]) -> None:
        """Raise NotMaintained if one of these predicates is to be filled again."""
        for indicator in indicators:
            if indicator in self.anew:
                raise NotMaintained(f"{indicator} was derived anew" + _because(self.anew[indicator]))

    def _fingerprint(self, members: Sequence[str]) -> str:
        return atoms_fingerprint(self.library, members)

    def materialise(self) -> dict[str, int]:
        """Compute the derived predicates, lower layers first, and return how many atoms each has.

        Tables that the same rules filled from the same facts are used again. Maintained predicates are compiled again,
        by the numbers that are left and that lower layers make: so SQL decides what it decides without any maintenance.
        """
        counts: dict[str, int] = {}
        if self.is_maintained:
            self.extent = self._extent()
        for layer in self.layers:
            members = sorted(layer & self.derived)
            wide = [indicator for indicator in members if len(columns_of(indicator)) > MOST_ARGUMENTS]
            if wide:  # no table may have so many columns, and the members of a layer depend on each other
                self.refused |= dict.fromkeys(members, self.refused[wide[0]])
                continue
            # A layer that was maintained has its tables already.
            is_filled = not self.tables.keys().isdisjoint(members)
            if not (self._try_compile(members) if is_filled else self._materialise(members)):
                continue
            for indicator in members:
                if indicator in self.concluded:
                    counts[indicator] = self.relations.atom_count(indicator)
        return counts

    def _materialise(self, members: Sequence[str]) -> bool:
        """Compute the predicates of a layer; False if SQL cannot decide them."""
        fingerprint = self._fingerprint(members)
        filled = {indicator: self.relations.atoms(indicator, fingerprint) for indicator in members}
        # Members of a layer depend on each other: if one table is missing or out of date, all are filled again.
        is_new = self.is_maintained or None in filled.values()
        for indicator, table in filled.items():
            if table is not None and not is_new:
                self.tables[indicator] = table
            else:
                self.tables[indicator] = self.relations.new_atoms(indicator, fingerprint)
        if not self._try_compile(members):
            return False
        if is_new:
            self._fill(members)
            self.relations.count_atoms(members)
        return True

    def _try_compile(self, members: Sequence[str]) -> bool:
        """Compile the clauses of a layer with tables; False, without the tables, if SQL cannot decide it."""
        for indicator in members:
            self.clauses.pop(indicator, None)
        try:
            self._compile(members)
        except NotCompiled as refusal:
            self.refused |= dict.fromkeys(members, str(refusal))
            self.relations.remove_atoms(members)
            for indicator in members:
                del self.tables[indicator]
            return False
        return True

    def _rules_of(self, members: Sequence[str]) -> list[Rule]:
        """The rules that conclude these predicates."""
        return [rule for rule in self.library.rules if rule.conclusion.atom.indicator in members]

    def _compile(self, members: Sequence[str]) -> None:
        """Compile the clauses of a layer.

        Only clauses that are not recursive may calculate. They are compiled first, and recursive ones see the numbers
        they produce: whatever the order of the rules, no clause meets a larger number than it was compiled for.
        """
        own: list[tuple[int, Rule]] = []
        recursive = set[int]()
        for number, rule in enumerate(self.library.rules):
            if rule.conclusion.atom.indicator not in members:
                continue
            own.append((number, rule))
            if any(item.atom.indicator in members for item in rule.literals):
                recursive.add(number)
        lower = [self._clause(number, rule) for number, rule in own if number not in recursive]
        for clause in lower:
            self.extent |= clause.body.extent
        upper = [self._clause(number, rule, recursive=True) for number, rule in own if number in recursive]
        for clause in sorted((*lower, *upper), key=lambda clause: clause.number):
            self.clauses.setdefault(clause.rule.conclusion.atom.indicator, []).append(clause)

    def _clause(self, number: int, rule: Rule, recursive: bool = False) -> _Clause:
        indicator = rule.conclusion.atom.indicator
        try:
            self.require(rule)
            if rule.aggregate is not None:
                premise = join_order(rule).premise
                compiled = compile_aggregate(rule.aggregate, premise, self.setting(), self.relations.row_count)
                return _Clause(number, rule, compiled.premise, compiled.cells, compiled.select)
            body = compile_premise(join_order(rule).premise, self.setting())
            # A recursive clause must not make larger numbers than those for which it was compiled.
            if recursive and (body.calculates or body.extent | self.extent != self.extent):
                raise NotCompiled("it calculates in a recursion, which may never end")
            return _Clause(number, rule, body, conclusion_cells(rule.conclusion.atom, body, self.setting()))
        except NotCompiled as refusal:
            raise NotCompiled(f"{indicator} needs Prolog for rule {rule.name}: {refusal}") from None

    def _fill(self, members: Sequence[str]) -> None:
        """Fill the tables of a layer: facts, then the clauses over lower predicates, then the recursive ones."""
        clauses: list[_Clause] = []
        for indicator in members:
            self._add_facts(indicator)
            clauses += self.clauses.get(indicator, ())
        tables = [self.tables[indicator] for indicator in members]
        recursive = [clause for clause in clauses if not set(tables).isdisjoint(clause.body.tables)]
        for clause in clauses:
            self._index(clause.body.tables, members)
            if clause not in recursive:
                self._add(clause, clause.grouped or clause.body.select(clause.head))
        # A transitive closure alone needs no rounds.
        step = _transitive_step(recursive[0]) if len(recursive) == 1 else None
        if step is not None:
            self._close(recursive[0], step)
        elif recursive:
            self._add_rounds(recursive, tables)

    def _close(self, clause: _Clause, step: _JoinStep) -> None:
        """Fill a transitive closure from one start node after the other.

        In memory are the graph's edges and the nodes that one start reaches, never the whole closure.
        """
        first, then = (self.tables[indicator] for indicator in step)
        closure = self.tables[clause.rule.conclusion.atom.indicator]
        known = self.relations.successors(closure)
        edges = known if first == then else self.relations.successors(then if first == closure else first)
        for start in sorted({*known, *edges}):
            self.relations.check_time()
            if first == closure:  # r(A, B) & edge(B, C): from the known ends along edges
                ends = _reached(known.get(start, ()), edges)
            else:  # edge(A, B) & r(B, C): along edges, and then to the known ends
                ends = set().union(*(known.get(node, ()) for node in _reached([start], edges)))
            self.relations.add_pairs(closure, start, ends)

    def _add_rounds(self, recursive: Sequence[_Clause], tables: Sequence[str]) -> None:
        """Semi-naive evaluation: apply the clauses to the rows that the last round added, until a round adds none."""
        # An index on a growing table costs at each row; it pays where a clause joins the layer's tables to each other.
        if any(sum(map(clause.body.tables.count, tables)) > 1 for clause in recursive):
            self._index(tables, ())
        low = dict.fromkeys(tables, 0)
        while (high := {table: self.relations.highest(table) for table in low}) != low:
            for clause in recursive:
                self._add_round(clause, low, high)
            low = high

    def _add_round(self, clause: _Clause, low: dict[str, int], high: dict[str, int]) -> None:
        """Add the clause's conclusions for which some literal matches a row of the last round, numbered (low, high]."""
        for number, table in enumerate(clause.body.tables):
            # Only the layer's own tables grow from round to round.
            if high.get(table, 0) > low.get(table, 0):
                alias = f"t{number}"
                new = [f"{alias}.ref > {low[table]}", f"{alias}.ref <= {high[table]}"]
                self._add(clause, clause.body.select_from([f"{table} AS {alias}"], clause.head, new))

    def _add(self, clause: _Clause, select: str) -> None:
        indicator = clause.rule.conclusion.atom.indicator
        self.relations.add_atoms(self.tables[indicator], indicator, select)

    def _add_facts(self, indicator: str) -> None:
        table, columns = self.tables[indicator], ", ".join(columns_of(indicator))
        relation = self.relations.relation(indicator)
        self.relations.add_atoms(table, indicator, f"SELECT {columns} FROM {relation} ORDER BY {columns}")  # noqa: S608
        for fact in self.library.facts:
            if fact.indicator == indicator:
                cells = ", ".join(str(self.relations.symbols.tag(value)) for value in _values_of([fact]))
                self.relations.add_atoms(table, indicator, f"SELECT {cells}")

    def _index(self, tables: Iterable[str], growing: Sequence[str]) -> None:
        """Index every argument of these tables, so that a join can begin at any; those that still grow are left out."""
        indicators = {table: indicator for indicator, table in self.tables.items() if indicator not in growing}
        for table in set(tables) & set(indicators):
            self.relations.index(table, indicators[table])

    def body(self, rule: Rule) -> CompiledPremise:
        """Compile what must hold for a rule's statements. Raises NotCompiled."""
        self.require(rule)
        return compile_premise(_constraints(rule), self.setting())

    def prepare(self, rule: Rule) -> None:
        """Index the tables that the rule's statements and their proofs read."""
        used = [signature.indicator for signature in relevant_library(self.library, rule).completed().signatures]
        self._index([self.tables[indicator] for indicator in used if indicator in self.tables], ())


def _constraints(rule: Rule) -> list[BodyLiteral]:
    """The premise without its hypotheses, the literals about a generic variable, which are assumed."""
    return [item for item in rule.premise if not rule.is_information(item)]


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


_JoinStep: TypeAlias = tuple[str, str]
"""The two predicates of a premise p(A, B) & q(B, C) that concludes r(A, C)."""


def _transitive_step(clause: _Clause) -> _JoinStep | None:
    """The join of a clause r(A, B) & q(B, C) -> r(A, C), or q before r; None for a clause of another form."""
    premise, head = clause.rule.premise, clause.rule.conclusion.atom.arguments
    atoms = [item.atom for item in premise if isinstance(item, Literal) and not item.negated]
    if len(atoms) != len(premise) or [len(atom.arguments) for atom in atoms] != [2, 2]:
        return None
    if len(clause.body.conditions) != 1:  # one shared variable, and no constants or variables that repeat
        return None
    # The premise may name the two in either order.
    for first, then in (atoms, atoms[::-1]):
        (begin, middle), (again, end) = first.arguments, then.arguments
        if head == (begin, end) and middle == again and len({*first.variables, *then.variables}) == 3:
            return first.indicator, then.indicator
    return None


def _reached(starts: Iterable[int], edges: Mapping[int, Sequence[int]]) -> set[int]:
    """The nodes that can be reached along edges from the starts, which are included."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        for node in edges.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _constants(rules: Iterable[Rule], facts: Iterable[Atom], definitions: Iterable[Comparison]) -> Iterator[Value]:
    """The constants that a variable can take as its value: those in atoms, and whole sides of equations."""
    yield from _values_of(facts)
    comparisons = list(definitions)
    for rule in rules:
        yield from _values_of(rule.atoms)
        comparisons += rule.comparisons
    for comparison in comparisons:
        if comparison.operator == "=":
            sides: tuple[Expression, ...] = (comparison.left, comparison.right)
            yield from (side.value for side in sides if isinstance(side, Constant))


def _values_of(atoms: Iterable[Atom]) -> Iterator[Value]:
    for atom in atoms:
        for term in atom.arguments:
            if isinstance(term, Constant):
                yield term.value


@dataclass
class _RuleDeriver:
    """Derives the statements of one rule after another, by SQL if there is a compiled library, else by Prolog."""

    kb: KnowledgeBase
    relations: Relations
    library: Library
    session: PrologSession
    compiled: _CompiledLibrary | None
    deadline: _Deadline
    maintained: dict[str, DerivedRule] = field(default_factory=dict)
    """The results of the rules whose stored statements followed the changes of facts."""
    anew: dict[str, str] = field(default_factory=dict)
    """Why the statements of other rules could not follow them."""
    unaffected: dict[str, int] = field(default_factory=dict)
    """Number of stored statements of the rules that were left to Prolog and depend on no fact that has changed."""

    def maintain(self, rule: Rule, maintainer: Maintainer) -> None:
        """Bring the stored statements of a rule up to date with changes of facts, where that is possible."""
        self.deadline.begin_rule()
        stored = self.relations.derivations().get(rule.name)
        if (
            stored is None
            or stored.stale
            or _open_variables(rule)
            or stored.fingerprint != rule_fingerprint(self.kb, self.library, rule)
        ):
            return
        # Statements of Prolog name no rows that could be followed.
        if stored.engine == "prolog":
            signatures = relevant_library(self.library, rule).completed().signatures
            if self.relations.changed(maintainer.changes, [signature.indicator for signature in signatures]):
                self.anew[rule.name] = "Prolog derives all statements of a rule"
            elif self._lacks_values(rule, stored):
                self.anew[rule.name] = "an earlier version left out numbers such as a third"
            else:
                self.unaffected[rule.name] = stored.statements
            return
        began = time.perf_counter()
        try:
            count = self._maintain(rule, stored, maintainer)
        except (NotMaintained, NotCompiled) as reason:
            self.anew[rule.name] = str(reason)
        else:
            self.maintained[rule.name] = DerivedRule(rule.name, count, stored.engine, time.perf_counter() - began)

    def _fingerprint(self, rule: Rule) -> str:
        return rule_fingerprint(self.kb, self.library, rule)

    def _lacks_values(self, rule: Rule, stored: StoredDerivation) -> bool:
        empty = " OR ".join(f"{column} IS NULL" for column in _columns(rule))
        return bool(empty) and bool(list(self.relations.rows(f"SELECT 1 FROM {stored.table} WHERE {empty} LIMIT 1")))  # noqa: S608  ours

    def _maintain(self, rule: Rule, stored: StoredDerivation, maintainer: Maintainer) -> int:
        compiled = self.compiled
        assert compiled is not None  # noqa: S101  there are changes to follow
        compiled.require_maintained(literal.atom.indicator for literal in rule.literals)
        body = compiled.body(rule)
        if not maintainer.affects(body):
            return stored.statements
        if not body.tables:
            raise NotMaintained("it has no positive premise")
        compiled.prepare(rule)
        premise = compiled.premise(_constraints(rule), body, maintainer)
        return maintainer.instances(stored, premise, _cells(rule, body))

    def derive(self, rule: Rule, sql_only: bool) -> DerivedRule:
        """Derive a rule and store its statements. Raises HapaxError if `sql_only` and SQL cannot decide the rule."""
        if rule.name in self.maintained:
            return self.maintained[rule.name]
        if names := _open_variables(rule):
            # Without a row, in place of those that an earlier version stored with empty slots.
            self.relations.new_instances(
                rule.name, "sql", rule_fingerprint(self.kb, self.library, rule), _columns(rule)
            )
            return DerivedRule(rule.name, 0, "sql", 0.0, left_out=_left_out(rule, names))
        self.deadline.begin_rule()
        began = time.perf_counter()
        reason, anew = "", self.anew.get(rule.name, "")
        if self.compiled is not None:
            try:
                count = self._by_sql(rule, self.compiled)
            except NotCompiled as refusal:
                if sql_only:
                    raise HapaxError(
                        f"{rule.place}: rule {rule.name} cannot be compiled to SQL: {refusal}.",
                        Remedy("Omit {}.", Setting("engine")),
                    ) from None
                reason = str(refusal)
                # None of the facts that it depends on has changed.
                if rule.name in self.unaffected:
                    return DerivedRule(rule.name, self.unaffected[rule.name], "prolog", 0.0, reason)
            else:
                return DerivedRule(rule.name, count, "sql", time.perf_counter() - began, anew=anew)
        count = self._by_prolog(rule)
        return DerivedRule(rule.name, count, "prolog", time.perf_counter() - began, reason, anew)

    def _by_sql(self, rule: Rule, compiled: _CompiledLibrary) -> int:
        body = compiled.body(rule)
        compiled.prepare(rule)
        columns = [*_columns(rule), *_premises(body)]
        derivation = self.relations.new_instances(
            rule.name, "sql", rule_fingerprint(self.kb, self.library, rule), columns
        )
        # SQLite numbers the instances where the id is NULL.
        count = self.relations.fill(derivation, _instances_of(rule, body, "NULL"))
        self.relations.index_premises(derivation, len(body.tables))
        return count

    def _by_prolog(self, rule: Rule) -> int:
        theory = Theory(self.library, self.kb).relevant_to(rule)
        # One empty substitution leaves every variable open.
        join = StatementJoin(rule, [Substitution()])
        self.session.load(
            build_program(theory.library, theory.facts(), denied=self.kb.denials()) + join.program(theory.library)
        )
        try:
            limits = self.deadline.limits()
            answers = self.session.solutions(join.goal, join.variables, limits, trusted=True, distinct=True)
        except LimitExceeded as exceeded:
            subject = f"{rule.place}: rule {rule.name}"
            if exceeded.limit == "seconds":
                raise self.deadline.exceeded(subject) from None
            raise LimitExceeded(f"{subject}: {exceeded.message}", exceeded.limit) from None
        # Without the substitution's number, in an order that does not depend on the process.
        rows = sorted((row[1:] for row in answers.rows), key=repr)
        values = [tuple(map(_stored, row)) for row in rows]
        derivation = self.relations.new_instances(
            rule.name, "prolog", rule_fingerprint(self.kb, self.library, rule), _columns(rule)
        )
        # Rows that differ only in values that are left out are one statement.
        return self.relations.fill_rows(derivation, dict.fromkeys(values))


def _open_variables(rule: Rule) -> list[str]:
    """Names of the searched variables that only hypotheses mention: no fact gives them a value."""
    constrained = variable_names(_constraints(rule))
    return [variable.name for variable in rule.searched if variable.name not in constrained]


def _left_out(rule: Rule, names: Sequence[str]) -> str:
    return (
        f"no fact gives {' or '.join(names)} a value, because only what is assumed about {rule.generic_names} mentions "
        f"{'it' if len(names) == 1 else 'them'}. Search the rule, or write `@generic none` before it"
    )


def _stored(cell: AnswerCell) -> Value | None:
    """The value of a cell; None for a term, and for a fraction that is too large to be stored.

    Arithmetic gives such a number again, exactly, when the statement is proved.
    """
    if isinstance(cell, PrologTerm) or (isinstance(cell, CutDecimal) and not is_exact(cell)):
        return None
    return cell


# --- reading --------------------------------------------------------------------------------------------------------


def _proved_by_sql(
    relations: Relations, library: Library, rule: Rule, batches: Iterable[RowBatch]
) -> Iterator[StatementRecord]:
    needed = relevant_library(library, rule)
    compiled = _CompiledLibrary(relations, needed, [rule])
    compiled.materialise()
    tables = compiled.body(rule).tables
    proofs = _ProofFinder(compiled)
    width = len(rule.searched)
    for batch in batches:
        tags = chain.from_iterable(row[1 : width + 1] for row in batch)
        values = relations.symbols.values(tag for tag in tags if tag is not None)
        # By table, the rows under the statements of the batch, which are proved together.
        rests_on: dict[str, set[int]] = {table: set() for table in tables}
        for place, table in enumerate(tables, width + 1):
            rests_on[table].update(row[place] for row in batch)
        scribe = StatementWriter(needed, rule, proofs.prover(rests_on), RUN_ID)
        for row in batch:
            yield scribe.record(Distribution.HEAD, _substitution(rule, row[1 : width + 1], values))


def _substitution(rule: Rule, tags: Sequence[int | None], values: dict[int, Value]) -> Substitution:
    """The values of the searched variables, without those that have none."""
    pairs = zip(rule.searched, tags, strict=True)
    return Substitution(tuple((variable.name, Constant(values[tag])) for variable, tag in pairs if tag is not None))


@dataclass
class _ProofFinder:
    """Collects the facts and rule instances behind derived atoms, down to the facts."""

    compiled: _CompiledLibrary

    def prover(self, rests_on: dict[str, set[int]]) -> Prover:
        """A prover of the rows with these refs, by table."""
        relations, library = self.compiled.relations, self.compiled.library
        derived = self.compiled.derived
        atoms = {table: indicator for indicator, table in self.compiled.tables.items() if indicator in derived}
        facts: set[int] = set()
        # Each atom is followed once, so that cyclic data ends.
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
        """Refs of the facts among derived atoms: a predicate may have both facts and rules."""
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
        """Add the instances that conclude these atoms to `found`, and yield the rows that they join, by table."""
        relations, table = self.compiled.relations, self.compiled.tables[indicator]
        wanted = relations.wanted("wanted", refs)
        for clause in self.compiled.clauses.get(indicator, ()):
            body = clause.body
            # w: the wanted refs, h: the table of the atoms, t0, t1, ...: the tables of the premise.
            same = ["h.ref = w.ref", *(f"h.a{place} = {cell}" for place, cell in enumerate(clause.head, 1))]
            values = [body.values[variable.name].text for variable in clause.rule.variables]
            select = body.select_from([f"{wanted} AS w", f"{table} AS h"], [*body.references, *values, "w.ref"], same)
            width = len(body.tables)
            below: dict[str, set[int]] = {name: set() for name in body.tables}
            for row in relations.rows(select):
                found.append((clause, row[width:-1]))
                for name, ref in zip(body.tables, row[:width], strict=True):
                    below[name].add(ref)
            yield from below.items()

    def _instances(self, found: Sequence[tuple[_Clause, tuple[int, ...]]]) -> dict[Atom, list[RuleInstance]]:
        """The instances by conclusion, in the order of `derivations`, so that the same proof is chosen."""
        values = self.compiled.relations.symbols.values(chain.from_iterable(row for _, row in found))
        rows = []
        for clause, tags in found:
            cells = tuple(values[tag] for tag in tags)
            pairs = zip(clause.rule.variables, cells, strict=True)
            substitution = Substitution(tuple((variable.name, Constant(cell)) for variable, cell in pairs))
            head = substitution.apply(clause.rule.conclusion.atom)
            term = PrologTerm(head.predicate, tuple(_values_of([head])))
            rows.append((term, clause.number, PrologTerm("[]", cells)))
        return instances_by_conclusion(self.compiled.library, rows)
