"""Conflicts: smallest sets of facts that a declaration or constraint forbids, with the proofs that show it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hapax.engine.inference.derive import (
    BULK_LIMITS,
    FactIndex,
    Prover,
    StatementJoin,
    derivations,
    relevant_library,
)
from hapax.engine.inference.program import build_program
from hapax.engine.inference.proof import Proof, instantiated
from hapax.engine.inference.session import PrologSession, PrologTerm
from hapax.engine.inference.theory import open_session
from hapax.grammar.declarations import Constraint
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Literal, Substitution, Value
from hapax.kb.records import DenialRecord, FactRecord, Source
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class FactConflict:
    """Facts that break a declaration together; each of them is needed for it. `proofs`: of the forbidden premises."""

    declaration: str
    facts: tuple[FactRecord, ...]
    proofs: tuple[Proof, ...] = ()

    @property
    def text(self) -> str:
        """The facts as atoms, in alphabetical order."""
        return " and ".join(map(fact_text, self.facts))


def fact_text(fact: FactRecord) -> str:
    """The fact as rule text."""
    return str(Atom(fact.predicate, tuple(map(Constant, fact.arguments))))


def conflicts(
    session: PrologSession,
    library: Library,
    facts: Iterable[FactRecord],
    denied: Iterable[DenialRecord] = (),
    about: Collection[str] | None = None,
) -> list[FactConflict]:
    """The conflicts of these facts and those that the rule files state, the smallest first.

    `about`: only of constraints that facts of these predicates (indicators) can break.

    Facts that follow from others by rules or declarations are replaced by these others. Of several proofs of one
    forbidden premise only the shallowest counts: the caller who removes a fact looks for conflicts again.
    """
    records = list(facts)
    found = [
        *_broken_constraints(session, library, records, list(denied), about),
        *_facts_of_disjoint_types(library, records),
    ]
    distinct: dict[tuple[FactRecord, ...], FactConflict] = {}
    # A constraint such as `p(A, B) & p(B, A)` finds the same facts in either order.
    for conflict in found:
        distinct.setdefault(conflict.facts, conflict)
    return sorted(distinct.values(), key=lambda conflict: (len(conflict.facts), conflict.declaration, conflict.text))


def new_conflicts(
    kb: KnowledgeBase, library: Library, facts: Iterable[FactRecord], session: PrologSession | None = None
) -> list[FactConflict]:
    """The conflicts that facts would bring into a knowledge base, which are not stored yet."""
    constrained = constrained_predicates(library)
    arriving = {fact.id: fact for fact in facts if f"{fact.predicate}/{len(fact.arguments)}" in constrained}
    if not arriving:
        return []
    # A constraint that no arriving fact can break has no new conflict.
    changed = {f"{fact.predicate}/{len(fact.arguments)}" for fact in arriving.values()}
    stored = [fact for fact in chain.from_iterable(map(kb.facts, sorted(constrained))) if fact.id not in arriving]
    with open_session(session) as prolog:
        found = conflicts(prolog, library, [*stored, *arriving.values()], kb.denials(), changed)
    return [conflict for conflict in found if any(fact.id in arriving for fact in conflict.facts)]


def constrained_predicates(library: Library) -> frozenset[str]:
    """Indicators of the predicates whose facts can break a declaration, those behind derived ones included.

    A fact of any predicate can be of disjoint types.
    """
    if library.disjoint_types:
        return frozenset(signature.indicator for signature in library.completed().signatures)
    goals: list[str] = []
    for constraint in library.constraints:
        goals += [literal.atom.indicator for literal in _literals(constraint)]
    return frozenset(signature.indicator for signature in relevant_library(library, goals=goals).signatures)


def _literals(constraint: Constraint) -> Iterator[Literal]:
    return (item for item in constraint.premise if isinstance(item, Literal))


def _broken_constraints(
    session: PrologSession,
    library: Library,
    facts: Sequence[FactRecord],
    denied: Sequence[DenialRecord],
    about: Collection[str] | None,
) -> Iterator[FactConflict]:
    for constraint in library.constraints:
        rule = Rule(constraint.origin, constraint.premise, Literal(Atom("hapax_broken", ())))
        needed = relevant_library(library, goals=[literal.atom.indicator for literal in rule.literals])
        if about is None or any(needed.knows(indicator) for indicator in about):
            yield from _broken(session, needed, rule, FactIndex(needed, facts), denied)


def _broken(
    session: PrologSession, needed: Library, rule: Rule, known: FactIndex, denied: Sequence[DenialRecord]
) -> Iterator[FactConflict]:
    """The conflicts of one constraint, whose premise is the rule's."""
    join = StatementJoin(rule, [Substitution()])
    session.load(build_program(needed, known.records, denied=denied) + join.program(needed))
    rows = session.solutions(join.goal, join.variables, BULK_LIMITS, trusted=True, distinct=True).rows
    if not rows:
        return
    by_id = {fact.id: fact for fact in known.stated_and_stored()}
    roots = join.derived_goals(needed)
    prover = Prover(needed, known, derivations(session, needed, roots) if roots else {})
    for row in sorted(rows, key=repr):
        # The first cell is the number of the kept substitution, of which there is one.
        pairs = zip(join.variables[1:], row[1:], strict=True)
        values = Substitution(tuple((name, Constant(c)) for name, c in pairs if not isinstance(c, PrologTerm)))
        proofs = tuple(prover.item(instantiated(item, values)) for item in rule.premise)
        yield FactConflict(rule.name, _facts_behind(proofs, by_id), proofs)


def _facts_behind(proofs: Iterable[Proof], by_id: Mapping[str, FactRecord]) -> tuple[FactRecord, ...]:
    """The facts of the proofs, each once, in alphabetical order."""
    used: dict[str, FactRecord] = {}
    for proof in proofs:
        used |= {fact_id: by_id[fact_id] for fact_id in proof.fact_ids()}
    return tuple(sorted(used.values(), key=fact_text))


def _facts_of_disjoint_types(library: Library, facts: Iterable[FactRecord]) -> Iterator[FactConflict]:
    """Pairs of facts, or single facts, by which a text is of two types that are declared disjoint.

    Numbers are left out: a year and a height may be the same number.
    """
    if not library.disjoint_types:
        return
    typed: dict[Value, list[tuple[str, FactRecord]]] = {}
    for fact in facts:
        for value, data_type in zip(fact.arguments, fact.types, strict=False):  # imported facts may have no types
            if isinstance(value, str):
                typed.setdefault(value, []).append((data_type, fact))
    for uses in typed.values():
        for item in library.disjoint_types:
            first = {fact.id: fact for data_type, fact in uses if library.is_subtype(data_type, item.first)}
            second = {fact.id: fact for data_type, fact in uses if library.is_subtype(data_type, item.second)}
            for fact_of_first in first.values() if second else ():
                # A single pair for each fact is enough: the caller looks for conflicts again.
                fact_of_second = next(iter(second.values()))
                both = {fact.id: fact for fact in (fact_of_first, fact_of_second)}
                yield FactConflict(str(item), tuple(sorted(both.values(), key=fact_text)))


@dataclass(frozen=True, slots=True)
class Settlement:
    """A conflict with the facts that lose, none if all are given, and the reason in words."""

    conflict: FactConflict
    lost: tuple[FactRecord, ...]
    reason: str


def settlement(
    conflict: FactConflict, probabilities: Mapping[str, float | None], covered: Collection[str] = ()
) -> Settlement:
    """Decide a conflict: of its facts the least sure loses, by P(yes) for a fact's id.

    A given fact never does, nor one that a reference covers (`covered`, ids), as long as others can lose.

    Facts that tie as the least sure lose together, because nobody knows which of them is wrong.
    """
    claimed = [fact for fact in conflict.facts if fact.source is not Source.GIVEN and fact.id not in covered]
    if not claimed:
        reason = "every fact is given, or covered by a reference: correct the facts or the declaration"
        return Settlement(conflict, (), reason)
    sure = {fact.id: _sureness(fact, probabilities) for fact in claimed}
    least = min(sure.values())
    lost = tuple(fact for fact in claimed if sure[fact.id] == least)
    if len(conflict.facts) == 1:
        reason = f'it breaks "{conflict.declaration}" alone'
    elif len(lost) == 1:
        reason = f'P(true) {least:.3f} is the lowest of the facts that break "{conflict.declaration}" together'
    else:
        reason = f'P(true) {least:.3f} is a tie of facts that break "{conflict.declaration}" together, so all lose'
    return Settlement(conflict, lost, reason)


def _sureness(fact: FactRecord, probabilities: Mapping[str, float | None]) -> float:
    """The P(yes) of a fact; 1 for a fact that nobody scored, as without a critic."""
    scores = [probabilities.get(fact.id), fact.probability]
    return next((score for score in scores if score is not None), 1.0)
