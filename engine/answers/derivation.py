"""Apply rules to all facts of a knowledge base and store the statements that follow, each with the rows that it joins.

Where statements are stored and few facts have changed, only what the change affects is derived.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from hapax.engine.inference.derive import (
    BULK_LIMITS,
    FactIndex,
    Prover,
    StatementWriter,
    filled,
    relevant_library,
    rule_words,
    sentence_pieces,
    values_in_sentence,
)
from hapax.engine.inference.stored_atoms import Fingerprints
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.compile import CompiledPremise
from hapax.engine.logic.demand import joined_names
from hapax.engine.logic.evaluate import CompiledLibrary, constraints, idle_negations, left_out, open_variables
from hapax.engine.logic.instances import InstanceFinder
from hapax.engine.logic.maintenance import Maintainer, NotMaintained
from hapax.engine.logic.proofs import naming_products
from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.dependencies import refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Substitution, Value
from hapax.grammar.writing.words import counted
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.atoms.derived_relations import Relations, StoredDerivation
from hapax.kb.atoms.derived_statements import store_words
from hapax.kb.files import system
from hapax.kb.records import Distribution, FactRecord, StatementRecord, statement_id
from hapax.kb.store import KnowledgeBase

RUN_ID = "derive"
"""The run id in the records of bulk statements."""

RowBatch: TypeAlias = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class DerivedRule:
    """The result of a rule.

    `anew`: why all its statements were derived, although those stored were up to date before facts changed; empty if
    only what the change affects was derived, or if there were none. `left_out`: why the rule has no statements.
    """

    rule: str
    statements: int
    seconds: float
    anew: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class DerivationReport:
    """The result of a bulk derivation."""

    facts: int
    """New facts that were read."""
    atoms: dict[str, int]
    """Atoms by derived predicate."""
    rules: tuple[DerivedRule, ...]
    left_out: tuple[str, ...] = ()
    """The rules that have errors, with the reasons."""
    failures: tuple[str, ...] = ()
    """Comparisons that had no value for some rows, with the first one, and negations that exclude nothing."""


def derive_all(
    kb: KnowledgeBase, library: Library, rules: Sequence[Rule], *, seconds: float | None = None
) -> DerivationReport:
    """Derive the statements of these rules and store them, in one transaction.

    Where statements are stored and few facts have changed since, only what the change affects is derived. Predicates
    that definitions of the library conclude are computed as well, whether or not these rules use them. Raises
    HapaxError for a predicate that depends on its own negation, and LimitExceeded after `seconds`, with nothing stored.
    """
    deadline = _Deadline(seconds)
    defined = [rule.conclusion.atom.indicator for rule in library.rules if library.is_definition(rule)]
    part = relevant_library(library, *rules, goals=[*defined, *sorted(library.standing)])
    refuse_negative_cycles(part)
    relations = Relations(kb)
    # In one transaction: a run that is killed leaves the results of the last one.
    with (
        naming_products(deadline.at_work((*part.rules, *rules)), part, kb),
        kb.transaction(),
        relations.interruptible(deadline.check),
    ):
        relations.arithmetic.has_failed = False
        # Which rows have another name depends on all facts of `same_as`.
        changes = None if part.knows(SAME_AS) else relations.changes()
        read = relations.bring_up_to_date(changes)
        compiled = _compiled(kb, relations, part, begin=deadline.begin)
        deriver = _RuleDeriver(kb, relations, library, compiled, deadline)
        if changes is not None:
            has_changed = bool(changes)
            compiled.maintain(changes)
            for rule in rules:
                deriver.maintain(rule, Maintainer(relations, changes, compiled.tables))
            relations.settle(changes)
            # After `settle`: until then the tables still have the rows that are gone.
            atoms = compiled.materialise()
            # Of other rules nothing was brought up to date: their statements no longer count.
            if has_changed:
                relations.retire([], compiled.derived)
        else:
            atoms = compiled.materialise()
        results = tuple(map(deriver.derive, rules))
        relations.confirm([rule.name for rule in rules])
        all_rules = dict.fromkeys((*part.rules, *rules))
        idle = idle_negations(all_rules, library, lambda indicator: bool(kb.fact_count(indicator, 1)))
        failed = (*compiled.failures(rules), *idle)
        atoms = {indicator: count for indicator, count in atoms.items() if indicator not in library.excepted}
        store_words(kb.connection, {rule.name: rule_words(rule, library) for rule in rules})
    return DerivationReport(read, atoms, results, failures=failed)


@dataclass
class _Deadline:
    """The end of a derivation's time. None: each rule, and before them the relations that they share, has its own."""

    seconds: float | None
    began: float = field(default_factory=system.monotonic)
    subject: str = "the facts"
    """The rule or predicates that are being derived."""

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise HapaxError(f"seconds is {self.seconds!r}. Set it to a number above 0.")

    def begin(self, subject: str) -> None:
        """Begin with a rule or predicates; without a limit for all of them, each has its own time."""
        self.subject = subject
        if self.seconds is None:
            self.began = system.monotonic()

    def at_work(self, rules: Iterable[Rule]) -> Iterator[Rule]:
        """The statements of some rules, which are derived while this is read."""
        predicates = self.subject.split(" and ")
        for rule in rules:
            if self.subject == f"rule {rule.name}" or rule.conclusion.atom.indicator in predicates:
                yield rule

    def check(self) -> None:
        """Raise LimitExceeded if the time is up."""
        seconds = BULK_LIMITS.seconds if self.seconds is None else self.seconds
        if system.monotonic() - self.began > seconds:
            raise self.exceeded()

    def exceeded(self) -> LimitExceeded:
        """The error of a time limit."""
        seconds = BULK_LIMITS.seconds if self.seconds is None else self.seconds
        return LimitExceeded(
            f"Deriving {self.subject} needs more than {counted(seconds, 'second')}; nothing is stored.",
            "seconds",
            Remedy(
                "Allow more with {}, or derive fewer rules at once. {} names rules that may count for ever.",
                Setting("seconds"),
                Operation("check_rules"),
            ),
        )


def read_statements(kb: KnowledgeBase, library: Library, rule: Rule) -> Iterator[StatementRecord]:
    """Yield the stored statements of a rule with their sentences and proofs, in the order of storage.

    Only a batch is in memory at a time. Raises HapaxError if nothing is stored, or if facts or rules have changed
    since: a proof may only name facts that still exist.
    """
    relations = Relations(kb)
    with relations.snapshot():
        derivation = _current(kb, relations, library, rule)
        yield from _records(relations, library, rule, relations.batches(derivation))


def stored_values(kb: KnowledgeBase, library: Library, rule: Rule) -> Iterator[Substitution]:
    """Yield the values of a rule's stored statements, in the order of `read_statements`. Raises as that does."""
    relations, width = Relations(kb), len(rule.searched) + 1
    with relations.snapshot():
        for batch in relations.batches(_current(kb, relations, library, rule)):
            tags = chain.from_iterable(row[1:width] for row in batch)
            values = relations.symbols.values(tag for tag in tags if tag is not None)
            yield from (_substitution(rule, row[1:width], values) for row in batch)


def find_statement(
    kb: KnowledgeBase, library: Library, is_wanted: Callable[[str, str], bool], text: str = ""
) -> StatementRecord | None:
    """The first stored statement that is wanted by its id and sentence, with its proof; None if there is none.

    `text`: the sentence, if it is known: then its values are looked up. Raises HapaxError if facts have changed since
    its rule was derived.
    """
    relations = Relations(kb)
    with relations.snapshot(), relations.symbols.borrowing():
        stored, fingerprints = relations.derivations(), Fingerprints(kb, library)
        for rule in (rule for rule in library.rules if rule.name in stored):
            derivation = stored[rule.name]
            if derivation.fingerprint != fingerprints.statements(rule):
                continue  # by other rules, whose variables need not be those of this one
            readings = values_in_sentence(rule, library, text) if text else []
            if text and not readings:
                continue
            row = _row_with(relations, rule, derivation, readings)
            # Names may be written in another case, and one text may be read in several ways.
            row = row or _wanted_row(relations, library, rule, derivation, is_wanted)
            if row is not None:
                # Raises if the row is out of date: its proof may name facts that are gone.
                _current(kb, relations, library, rule)
                return next(_records(relations, library, rule, [[row]]), None)
    return None


def statement_by_id(kb: KnowledgeBase, library: Library, identity: str) -> StatementRecord | None:
    """The stored statement with this id and its proof, as `find_statement` gives it, looked up in an index."""
    ids = DerivedIds(kb)
    if not ids.prepare():
        return find_statement(kb, library, lambda found, _: found == identity)
    rules = {rule.name: rule for rule in library.rules}
    relations, fingerprints = Relations(kb), Fingerprints(kb, library)
    with relations.snapshot():
        for name, instance in ids.find(identity):
            derivation = relations.derivations()[name]
            if name not in rules or derivation.fingerprint != fingerprints.statements(rules[name]):
                continue  # by other rules, as in `find_statement`
            # Raises if the row is out of date: its proof may name facts that are gone.
            _current(kb, relations, library, rules[name])
            rows = [relations.instance(derivation, instance)]
            return next(_records(relations, library, rules[name], rows), None)
    return None


def _row_with(
    relations: Relations, rule: Rule, derivation: StoredDerivation, readings: Iterable[Substitution]
) -> tuple[Any, ...] | None:
    """The first row of a rule's instances that has the values of one of these readings."""
    for values in readings:
        tests = [
            f"v{place} = {relations.symbols.tag(values[variable.name].value)}"
            for place, variable in enumerate(rule.searched, 1)
            if variable.name in values
        ]
        select = f"SELECT * FROM {derivation.table} WHERE {' AND '.join(tests) or '1'} LIMIT 1"  # noqa: S608  ours
        for row in relations.rows(select):
            return row
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


def current_rules(kb: KnowledgeBase, library: Library) -> list[Rule]:
    """Rules whose stored statements were derived by these rules and from the facts as they are."""
    relations = Relations(kb)
    if not relations.is_up_to_date:
        return []
    found = {name: item for name, item in relations.derivations().items() if not item.stale}
    rules = [rule for rule in library.rules if rule.name in found]
    fingerprints = Fingerprints(kb, library)
    return [rule for rule in rules if found[rule.name].fingerprint == fingerprints.statements(rule)]


def fact_tables(
    kb: KnowledgeBase, relations: Relations, library: Library, rule: Rule
) -> tuple[StoredDerivation, tuple[str, ...]] | None:
    """The stored derivation of a rule, and the relation of facts that each positive literal of its premise matched.

    None for a rule whose premise has derived predicates, or facts with names that `same_as` joins. Raises as
    `read_statements` does.
    """
    derivation = _current(kb, relations, library, rule)
    compiled = _compiled(kb, relations, relevant_library(library, rule))
    joined = [item for item in rule.literals if not item.negated and not rule.is_information(item)]
    used = [item.atom.indicator for item in joined]
    if any(indicator in compiled.derived or compiled.names.touched(indicator) for indicator in used):
        return None
    # A negation may need derived predicates.
    compiled.materialise()
    return derivation, compiled.body(rule).tables


def _compiled(
    kb: KnowledgeBase, relations: Relations, library: Library, begin: Callable[[str], None] = lambda _: None
) -> CompiledLibrary:
    """A library's rules over all facts of a knowledge base, with the names that `same_as` joins."""
    return CompiledLibrary(relations, library, joined_names(Theory(library, kb).source(), library), begin=begin)


def _instances_of(rule: Rule, body: CompiledPremise) -> str:
    """The SELECT of a rule's instances: NULL, the variables, and the row that each positive literal matched."""
    names, cells = (*_columns(rule), *_premises(body)), (*_cells(rule, body), *body.references)
    columns = [f"{cell} AS {name}" for name, cell in zip(names, cells, strict=True)]
    return body.select(["NULL AS id", *columns])


def _cells(rule: Rule, body: CompiledPremise) -> list[str]:
    """SQL for the values of a rule's variables."""
    return [body.values.get(variable.name, "NULL") for variable in rule.searched]


def _current(kb: KnowledgeBase, relations: Relations, library: Library, rule: Rule) -> StoredDerivation:
    """The stored derivation of a rule. Raises HapaxError where there is none, or an outdated one."""
    found = relations.derivations().get(rule.name)
    if found is None:
        raise HapaxError(
            f"{kb.place}: no statements of rule {rule.name} are stored.", Remedy("Run {} first.", Operation("derive"))
        )
    if found.stale or not relations.is_up_to_date or found.fingerprint != Fingerprints(kb, library).statements(rule):
        raise HapaxError(
            f"{kb.place}: facts or rules have changed since rule {rule.name} was derived.",
            Remedy("Run {} again.", Operation("derive")),
        )
    return found


def _columns(rule: Rule) -> list[str]:
    return [f"v{number}" for number in range(1, len(rule.searched) + 1)]


def _premises(body: CompiledPremise) -> list[str]:
    return [f"p{number}" for number in range(1, len(body.tables) + 1)]


@dataclass
class _RuleDeriver:
    """Derives the statements of one rule after another."""

    kb: KnowledgeBase
    relations: Relations
    library: Library
    compiled: CompiledLibrary
    deadline: _Deadline
    maintained: dict[str, DerivedRule] = field(default_factory=dict)
    """The results of the rules whose stored statements followed the changes of facts."""
    anew: dict[str, str] = field(default_factory=dict)
    """Why the statements of other rules could not follow them."""

    def __post_init__(self) -> None:
        self._fingerprints = Fingerprints(self.kb, self.library)

    def maintain(self, rule: Rule, maintainer: Maintainer) -> None:
        """Bring the stored statements of a rule up to date with changes of facts, where that is possible."""
        self.deadline.begin(f"rule {rule.name}")
        stored = self.relations.derivations().get(rule.name)
        if (
            stored is None
            or stored.stale
            or open_variables(rule, self.library)
            or stored.fingerprint != self._fingerprint(rule)
        ):
            return
        began = time.perf_counter()
        try:
            count = self._maintain(rule, stored, maintainer)
        except NotMaintained as reason:
            self.anew[rule.name] = str(reason)
        else:
            self.maintained[rule.name] = DerivedRule(rule.name, count, time.perf_counter() - began)

    def _fingerprint(self, rule: Rule) -> str:
        return self._fingerprints.statements(rule)

    def _maintain(self, rule: Rule, stored: StoredDerivation, maintainer: Maintainer) -> int:
        compiled = self.compiled
        compiled.require_maintained([rule])
        body = compiled.body(rule)
        if not maintainer.affects(body):
            return stored.statements
        if not body.tables:
            raise NotMaintained("it has no positive premise")
        compiled.prepare(rule, body)
        premise = compiled.premise(constraints(rule), body, maintainer)
        return maintainer.instances(stored, premise, _cells(rule, body))

    def derive(self, rule: Rule) -> DerivedRule:
        """Derive a rule and store its statements."""
        if rule.name in self.maintained:
            return self.maintained[rule.name]
        self.deadline.begin(f"rule {rule.name}")
        began = time.perf_counter()
        body = self.compiled.body(rule)
        columns = [*_columns(rule), *_premises(body)]
        derivation = self.relations.new_instances(rule.name, self._fingerprint(rule), columns)
        if names := open_variables(rule, self.library):
            return DerivedRule(rule.name, 0, 0.0, left_out=left_out(rule, names))
        self.compiled.prepare(rule, body)
        # SQLite numbers the instances where the id is NULL.
        count = self.relations.fill(derivation, _instances_of(rule, body))
        self.relations.index_premises(derivation, len(body.tables))
        return DerivedRule(rule.name, count, time.perf_counter() - began, self.anew.get(rule.name, ""))


# --- reading --------------------------------------------------------------------------------------------------------


def _records(
    relations: Relations, library: Library, rule: Rule, batches: Iterable[RowBatch]
) -> Iterator[StatementRecord]:
    needed = relevant_library(library, rule)
    compiled = _compiled(relations.kb, relations, needed)
    compiled.materialise()
    tables = compiled.body(rule).tables
    width = len(rule.searched)
    for batch in batches:
        tags = chain.from_iterable(row[1 : width + 1] for row in batch)
        values = relations.symbols.values(tag for tag in tags if tag is not None)
        # By table, the rows under the statements of the batch, which are proved together.
        rests_on: dict[str, set[int]] = {table: set() for table in tables}
        for place, table in enumerate(tables, width + 1):
            rests_on[table].update(row[place] for row in batch)
        substitutions = [_substitution(rule, row[1 : width + 1], values) for row in batch]
        scribe = StatementWriter(needed, rule, _prover(compiled, rests_on, _premises_of(rule, substitutions)), RUN_ID)
        for substitution in substitutions:
            yield scribe.record(Distribution.HEAD, substitution)


def _substitution(rule: Rule, tags: Sequence[int | None], values: dict[int, Value]) -> Substitution:
    """The values of the searched variables, without those that have none."""
    pairs = zip(rule.searched, tags, strict=True)
    return Substitution(tuple((variable.name, Constant(values[tag])) for variable, tag in pairs if tag is not None))


def _premises_of(rule: Rule, substitutions: Iterable[Substitution]) -> list[Atom]:
    """The atoms that statements rest on, with the names that the rule has for them."""
    literals = [item for item in rule.literals if not item.negated and not rule.is_information(item)]
    return [substitution.apply(item.atom) for substitution in substitutions for item in literals]


def _prover(compiled: CompiledLibrary, rows: Mapping[str, Iterable[int]], premises: Iterable[Atom]) -> Prover:
    """A prover of rows of facts and derived atoms, by table, and of premises."""
    relations, library = compiled.relations, compiled.library
    derived = {table: indicator for indicator, table in compiled.tables.items() if indicator in compiled.derived}
    clauses = compiled.clauses
    names = compiled.names
    finder = InstanceFinder(relations, library, derived, lambda name: clauses.get(name, ()), names.relation)
    finder.follow(rows)
    indicators = {names.relation(indicator): indicator for indicator in compiled.used}
    facts: list[FactRecord] = []
    for table, refs in finder.fact_rows.items():
        facts += [fact for _, fact in compiled.relations.kb.relations.by_ref(indicators[table], refs)]
    given = chain((fact.ground_atom for fact in facts), library.facts)
    instances = names.explained(finder.instances(), [*map(names.read, given), *premises])
    return Prover(library, FactIndex(library, [*facts, *names.facts]), instances)
