"""Proofs: of atoms, and of the premises of rules for substitutions that a search has kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hapax.engine.inference.derive import (
    FactIndex,
    KeptSubstitutions,
    Prover,
    RuleInstance,
    StatementWriter,
    relevant_library,
)
from hapax.engine.inference.proof import By, Proof
from hapax.engine.inference.theory import AskedAtom, FactSource, Theory, sort_key
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.evaluate import constraints
from hapax.engine.logic.goal_rules import GOAL, rule_of, with_rules
from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Substitution,
    Value,
    Variable,
    grouped,
    variable_names,
)
from hapax.grammar.writing.prolog_text import definition_of
from hapax.grammar.writing.words import counted
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.facts import one_state
from hapax.kb.records import DenialRecord, FactRecord, StatementRecord
from hapax.kb.store import KnowledgeBase

_KEPT = "kept"
_JOINED = "joined"
_NUMBER = Variable("Kept number", "Number")


@contextmanager
def reading(kb: KnowledgeBase) -> Iterator[None]:
    """Evaluate inside the block over one state of the file, without writing to it."""
    with one_state(kb), kb.symbols.borrowing():
        yield


@contextmanager
def time_limit(kb: KnowledgeBase, seconds: float, setting: str = "limits.seconds") -> Iterator[None]:
    """Raise LimitExceeded inside the block after so many seconds of processor time in SQL.

    `setting`: the argument by which a caller raises the limit.
    """
    end = time.process_time() + seconds

    def check() -> None:
        if time.process_time() > end:
            raise LimitExceeded(
                f"The goal needs more than {counted(seconds, 'second')} of processor time.",
                "seconds",
                Remedy("Raise the limit with {}.", Setting(setting)),
            )

    with Relations(kb).interruptible(check):
        yield


def given_facts(kb: KnowledgeBase, facts: Iterable[FactRecord], denied: Iterable[DenialRecord] = ()) -> FactSource:
    """A source of these facts and denials alone; the knowledge base only lends its connection."""
    by_indicator, denials = grouped(facts, attrgetter("indicator")), grouped(denied, attrgetter("indicator"))
    return FactSource(kb, lambda name: by_indicator.get(name, ()), lambda name: denials.get(name, ()))


# -- atoms


def prove(theory: Theory, atom: Atom) -> Proof | None:
    """Prove a ground atom from the theory's facts, rules and assumptions. None if it does not hold."""
    part = theory.relevant_to(goals=[atom.indicator])
    part.index()
    with reading(theory.kb):
        leaf = FactIndex(part.library, _facts_of(theory, atom), part.assumed).leaf(atom)
        if leaf is not None:
            return leaf
        demand = Demand(part.source(), part.library)
        if definition_of(Literal(atom), part.library) is not None:
            return Proof(Literal(atom), By.COMPUTED) if demand.holds(atom) else None
        instances = demand.proof(atom)
        facts = chain.from_iterable(_facts_of(theory, premise) for premise in _premises(instances))
        return Prover(demand.library, FactIndex(demand.library, facts, part.assumed), instances).atom(atom)


def atoms_that_hold(theory: Theory, asked: AskedAtom, most: int) -> list[Atom]:
    """Atoms, at most so many, that a user may have named, and that follow from facts, rules and assumptions."""
    if asked.atom.is_ground:
        return [asked.atom] if holds(theory, asked.atom) else []
    part = theory.relevant_to(goals=[asked.atom.indicator])
    part.index()
    names = [variable.name for variable in asked.atom.variables]
    with reading(theory.kb):
        found = Demand(part.source(), part.library).answers([Literal(asked.atom), *asked.tests], names)
        rows = sorted(islice(found, most), key=sort_key)
    return [Substitution.of(zip(names, row, strict=True)).apply(asked.atom) for row in rows]


def holds(theory: Theory, atom: Atom) -> bool:
    """True if a ground atom follows from the theory's facts, rules and assumptions."""
    part = theory.relevant_to(goals=[atom.indicator])
    part.index()
    with reading(theory.kb):
        return Demand(part.source(), part.library).holds(atom)


def _premises(instances: Mapping[Atom, Sequence[RuleInstance]]) -> Iterable[Atom]:
    """The atoms that the premises of some instances need, each once."""
    found: dict[Atom, None] = {}
    for instance in chain.from_iterable(instances.values()):
        for literal in instance.rule.literals:
            if not literal.negated:
                found[instance.substitution.apply(literal.atom)] = None
    return found


def _facts_of(theory: Theory, atom: Atom) -> list[FactRecord]:
    """The stored facts that may be equal to a ground atom."""
    # By the index, since the predicate may have a million facts.
    return list(theory.kb.relations.at(atom.indicator, atom.bound))


# -- premises


def holding_prefixes(
    theory: Theory, rule: Rule, premise: Sequence[BodyLiteral], bound: Substitution, most: int
) -> Iterator[list[Substitution]]:
    """Substitutions under which the first item of a premise holds, then the first two, and so on: at most so many each.

    They extend `bound`, and are sorted by their values.
    """
    part = theory.relevant_to(rule)
    items = [item.replaced(bound) for item in premise]
    part.index()
    with reading(theory.kb):
        demand = Demand(part.source(), part.library)
        for length in range(1, len(items) + 1):
            named = variable_names(items[:length])
            names = [variable.name for variable in rule.variables if variable.name in named]
            yield [
                Substitution((*bound.bindings, *zip(names, map(Constant, row), strict=True)))
                for row in sorted(islice(demand.answers(items[:length], names), most), key=sort_key)
            ]


# -- premises of kept substitutions


@dataclass(frozen=True, slots=True)
class JoinedPremise:
    """A rule's premise for kept substitutions: those that hold, each with the number of the kept one, and a prover."""

    rows: list[tuple[int, Substitution]]
    prover: Prover
    facts: FactIndex


def join_premise(source: FactSource, library: Library, rule: Rule, kept: Sequence[Substitution]) -> JoinedPremise:
    """Join kept substitutions, which may leave variables open, with what the rule's premise needs.

    Hypotheses are assumed. The rows are in the order of the substitutions, then by content.
    """
    constraints = tuple(item for item in rule.premise if not rule.is_information(item))
    shapes: dict[tuple[Variable, ...], list[Atom]] = {}
    for number, substitution in enumerate(kept):
        bound = tuple(variable for variable in rule.searched if variable.name in substitution)
        values = tuple(Constant(substitution[variable.name].value) for variable in bound)
        rows = shapes.setdefault(bound, [])
        rows.append(Atom(f"{_KEPT} {list(shapes).index(bound)}", (Constant(number), *values)))
    rules: list[Rule] = []
    for shape, bound in enumerate(shapes):
        asked = Literal(Atom(f"{_KEPT} {shape}", (_NUMBER, *bound)))
        known = {variable.name for variable in bound} | variable_names(constraints)
        shown = tuple(variable for variable in rule.searched if variable.name in known)
        rules.append(rule_of((asked, *constraints), Atom(f"{_JOINED} {shape}", (_NUMBER, *shown))))
    given = [atom for rows in shapes.values() for atom in rows]
    with reading(source.kb):
        demand = Demand(source, with_rules(library, rules), given=given, finds_instances=True)
        heads = [item.conclusion.atom for item in rules]
        found: list[tuple[int, Substitution]] = []
        for head in heads:
            names = [variable.name for variable in head.variables[1:]]
            for place, *cells in demand.rows(head):
                number = int(place)
                found.append((number, _completed(kept[number], names, cells)))
        instances = demand.instances(heads)
        index = FactIndex(library, demand.records(), source.assumed)
    below = {atom: group for atom, group in instances.items() if not atom.predicate.startswith(f"{_JOINED} ")}
    found.sort(key=lambda row: (row[0], repr(row[1])))
    return JoinedPremise(found, Prover(library, index, below), index)


def derive_statements(
    kb: KnowledgeBase,
    library: Library,
    facts: Iterable[FactRecord],
    kept: KeptSubstitutions,
    denied: Iterable[DenialRecord] = (),
) -> list[StatementRecord]:
    """The statements of a rule, in the order of the kept substitutions, each with its proof.

    `denied` are the denials that negations of open predicates need. The join gives a variable that a
    substitution leaves open every value that fits.
    """
    rule, pairs = kept.rule, kept.pairs()
    if not pairs:
        return []
    needed = relevant_library(library, rule)
    joined = join_premise(given_facts(kb, facts, denied), needed, rule, [substitution for _, substitution in pairs])
    writer = StatementWriter(needed, rule, joined.prover, kept.run_id)
    return [writer.record(pairs[number][0], substitution) for number, substitution in joined.rows]


def _completed(kept: Substitution, names: Sequence[str], cells: Sequence[Value]) -> Substitution:
    """The kept substitution with the values that the join found for the variables it leaves open."""
    # Not the join's cell where one was kept: to a join 2.0 and 2 are one number.
    return Substitution(
        tuple((name, kept.get(name) or Constant(cell)) for name, cell in zip(names, cells, strict=True))
    )


# --- products ---------------------------------------------------------------------------------------------------------


LARGE = 1_000_000
"""Combinations from which a product is worth a word."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product that a rule evaluates: of each part of its premise the largest predicate, and the number of its rows.

    `is_concluded`: each part has a variable in the conclusion, so that the rule asks for the combinations.
    """

    rule: Rule
    parts: tuple[tuple[str, int], ...]
    is_concluded: bool

    @property
    def size(self) -> int:
        return math.prod(rows for _, rows in self.parts)

    def __str__(self) -> str:
        joined = " with ".join(f"{rows:,} rows of {indicator}" for indicator, rows in self.parts)
        # The rules of a goal have names that no rule file can give.
        name = GOAL if self.rule.name.startswith(GOAL) else f"rule {self.rule.name}"
        return f"{name} joins {joined} that share no variable: {self.size:,} combinations"


class _Connected(NamedTuple):
    """Items of a premise that are connected: the names of their variables, and their atoms."""

    names: frozenset[str]
    atoms: tuple[Atom, ...]


def row_counts(kb: KnowledgeBase, library: Library) -> Callable[[Atom], int]:
    """A function that says how many rows match an atom: facts, or atoms as last derived, 0 where that is not known."""
    facts, relations = kb.fact_counts(), Relations(kb)

    def rows(atom: Atom) -> int:
        is_derived = atom.indicator in library.derived
        if not any(isinstance(term, Constant) for term in atom.arguments):
            return max(facts.get(atom.indicator, 0), relations.atom_count(atom.indicator) if is_derived else 0)
        if is_derived:
            return 0
        with reading(kb):
            return sum(1 for _ in Demand(Theory(library, kb).source(), Library()).rows(atom))

    return rows


def product_of(rule: Rule, library: Library, rows: Callable[[Atom], int]) -> Product | None:
    """The product that the rule evaluates; None without one."""
    parts: list[_Connected] = []
    for item in constraints(rule):
        names = frozenset(variable_names([item]))
        if isinstance(item, Literal) and not item.negated and definition_of(item, library) is None:
            part = _Connected(names, (item.atom,))
        elif isinstance(item, Comparison) and item.operator == "=":
            part = _Connected(names, ())
        else:
            continue  # it only tests combinations
        for sharing in [earlier for earlier in parts if earlier.names & names]:
            parts.remove(sharing)
            part = _Connected(part.names | sharing.names, part.atoms + sharing.atoms)
        parts.append(part)
    # Atoms without variables and equations with constants multiply nothing.
    parts = [part for part in parts if part.names and part.atoms]
    sized = []
    for part in parts:
        largest = max(((atom.indicator, rows(atom)) for atom in part.atoms), key=itemgetter(1))
        # Neither does a part with one row.
        if largest[1] != 1:
            sized.append(largest)
    if len(sized) < 2:
        return None
    concluded = {variable.name for variable in rule.conclusion.variables}
    return Product(rule, tuple(sized), all(part.names & concluded for part in parts))


@contextmanager
def naming_products(rules: Iterable[Rule], library: Library, kb: KnowledgeBase) -> Iterator[None]:
    """Let an error of a time limit name the largest product of the rules that were at work."""
    try:
        yield
    except LimitExceeded as limit:
        product = max(large_products(rules, library, kb), key=lambda product: product.size, default=None)
        if product is not None:
            text = str(product)
            limit.message += f" {text[0].upper()}{text[1:]}."
        raise


def large_products(rules: Iterable[Rule], library: Library, kb: KnowledgeBase) -> Iterator[Product]:
    """The products of these rules that are worth a word."""
    rows = row_counts(kb, library)
    for rule in rules:
        product = product_of(rule, library, rows)
        if product is not None and product.size >= LARGE:
            yield product
