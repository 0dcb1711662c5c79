"""Conflicts: smallest sets of facts that a declaration or constraint forbids, with the proofs that show it."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from hapax.engine.inference.derive import matched, relevant_library, stated_fact
from hapax.engine.inference.proof import Proof
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.inference.theory import FactSource
from hapax.engine.logic.demand import joined_names
from hapax.engine.logic.entity_names import Names
from hapax.engine.logic.proofs import given_facts, join_premise
from hapax.grammar.parsing.declarations import Constraint
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Substitution, Value, is_text
from hapax.kb.records import DenialRecord, FactRecord, Source
from hapax.kb.schema import GIVEN
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
        return " and ".join(fact.text for fact in self.facts)


def conflicts(
    kb: KnowledgeBase,
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
    stated = (stated_fact(library, atom) for atom in library.facts)
    names = joined_names(given_facts(kb, records), library)
    found = [
        *_broken_constraints(kb, library, records, list(denied), about),
        *_facts_of_disjoint_types(library, chain(stated, records), names),
    ]
    return _ordered(found)


def _ordered(found: Iterable[FactConflict]) -> list[FactConflict]:
    """Each conflict once, the smallest first."""
    distinct: dict[tuple[str, ...], FactConflict] = {}
    # A constraint such as `p(A, B) & p(B, A)` finds the same facts in either order. By identity, as the record of a
    # fact that was looked up may lack the types that another record of it has.
    for conflict in found:
        distinct.setdefault(tuple(fact.id for fact in conflict.facts), conflict)
    return sorted(distinct.values(), key=lambda conflict: (len(conflict.facts), conflict.declaration, conflict.text))


def new_conflicts(kb: KnowledgeBase, library: Library, facts: Iterable[FactRecord]) -> list[FactConflict]:
    """The conflicts that facts would bring into a knowledge base, which are not stored yet."""
    constrained = constrained_predicates(library)
    arriving = {fact.id: fact for fact in facts if fact.indicator in constrained}
    if not arriving:
        return []
    # A constraint that no arriving fact can break has no new conflict.
    changed = {fact.indicator for fact in arriving.values()}
    stored = [fact for fact in chain.from_iterable(map(kb.facts, sorted(constrained))) if fact.id not in arriving]
    found = conflicts(kb, library, [*stored, *arriving.values()], kb.denials(), changed)
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
    kb: KnowledgeBase,
    library: Library,
    facts: Sequence[FactRecord],
    denied: Sequence[DenialRecord],
    about: Collection[str] | None,
) -> Iterator[FactConflict]:
    source = given_facts(kb, facts, denied)
    for rule, needed in _constraint_rules(library):
        if about is None or any(needed.knows(indicator) for indicator in about):
            yield from _broken(source, needed, rule, [Substitution()])


def _constraint_rules(library: Library) -> Iterator[tuple[Rule, Library]]:
    """Each constraint as a rule, with the part of the library that it needs."""
    for constraint in library.constraints:
        rule = Rule(constraint.origin, constraint.premise, Literal(Atom("hapax_broken", ())))
        yield rule, relevant_library(library, goals=[literal.atom.indicator for literal in rule.literals])


def _broken(source: FactSource, needed: Library, rule: Rule, kept: Sequence[Substitution]) -> Iterator[FactConflict]:
    """The conflicts of one constraint for kept substitutions."""
    joined = join_premise(source, needed, rule, kept)
    by_id = {fact.id: fact for fact in joined.facts.stated_and_stored()}
    for _, values in joined.rows:
        proofs = tuple(joined.prover.item(item.replaced(values)) for item in rule.premise)
        yield FactConflict(rule.name, _facts_behind(proofs, by_id), proofs)


# --- conflicts of a few facts with many ------------------------------------------------------------------------------


def conflicts_around(
    library: Library,
    arrived: Sequence[FactRecord],
    known: RunFacts,
    *,
    denied: Iterable[DenialRecord] = (),
    lost: Container[str] = (),
) -> list[FactConflict]:
    """The conflicts of facts with those of a run, as `conflicts` finds them; `lost`: ids of facts that do not count.

    Facts of large predicates are looked up. All are read for a constraint of a predicate that rules conclude from such
    facts, as each proof may join any of them.
    """
    new = [fact for fact in arrived if fact.id not in lost]
    denials = list(denied)
    found: list[FactConflict] = []
    for rule, needed in _constraint_rules(library):
        if not any(needed.knows(fact.indicator) for fact in new):
            continue
        kept = _instances(rule, needed, new)
        if not kept:
            continue
        known.kb.index_facts(signature.indicator for signature in needed.completed().signatures)
        source = FactSource(
            known.kb,
            lambda indicator: _standing(new, known.of_run(indicator), indicator, lost),
            lambda indicator: [item for item in denials if f"{item.predicate}/{len(item.arguments)}" == indicator],
            stored=lambda _: GIVEN,
            beside=lambda indicator: _standing(new, known.found(indicator), indicator, lost),
        )
        found += _broken(source, needed, rule, kept)
    equal = _of_equal_values(library, new, known, lost)
    found += _facts_of_disjoint_types(library, equal, joined_names(given_facts(known.kb, equal), library))
    ids = {fact.id for fact in new}
    return _ordered(conflict for conflict in found if any(fact.id in ids for fact in conflict.facts))


def _standing(
    new: Iterable[FactRecord], known: Iterable[FactRecord], indicator: str, lost: Container[str]
) -> list[FactRecord]:
    """The facts of a predicate that are new or known and have not lost."""
    return [fact for fact in (*new, *known) if fact.indicator == indicator and fact.id not in lost]


def _instances(rule: Rule, needed: Library, facts: Sequence[FactRecord]) -> list[Substitution]:
    """The bindings by which the facts are premises of a constraint; none in one of them if a rule may be between."""
    below = {literal.atom.indicator for item in needed.rules for literal in item.literals}
    if not below.isdisjoint(fact.indicator for fact in facts):
        return [Substitution()]
    return list(dict.fromkeys(premises_among(rule, facts)))


def premises_among(rule: Rule, facts: Iterable[FactRecord]) -> Iterator[Substitution]:
    """The substitutions by which one of these facts is a premise of the rule that must hold."""
    literals = [item for item in rule.literals if not item.negated and not rule.is_information(item)]
    for fact in facts:
        for literal in literals:
            if literal.atom.indicator == fact.indicator:
                bindings = matched(literal.atom.arguments, fact.arguments)
                if bindings is not None:
                    yield Substitution.of(bindings.items())


def _of_equal_values(
    library: Library, new: Sequence[FactRecord], known: RunFacts, lost: Container[str]
) -> list[FactRecord]:
    """The facts, and those of the run that have a text of theirs, where types are declared disjoint."""
    if not library.disjoint_types:
        return []
    found = {fact.id: fact for fact in new}
    texts = {value for fact in new for value in fact.arguments if isinstance(value, str)}
    indicators = [signature.indicator for signature in library.completed().signatures]
    known.kb.index_facts(indicators)
    for indicator in indicators:
        for fact in known.with_values(indicator, texts):
            if fact.id not in lost:
                found[fact.id] = fact
    return list(found.values())


def _facts_behind(proofs: Iterable[Proof], by_id: Mapping[str, FactRecord]) -> tuple[FactRecord, ...]:
    """The facts of the proofs, each once, in alphabetical order."""
    used: dict[str, FactRecord] = {}
    for proof in proofs:
        used |= {fact_id: by_id[fact_id] for fact_id in proof.fact_ids()}
    return tuple(sorted(used.values(), key=attrgetter("text")))


def _facts_of_disjoint_types(library: Library, facts: Iterable[FactRecord], names: Names) -> Iterator[FactConflict]:
    """Pairs of facts, or single facts, by which a text is of two types that are declared disjoint.

    Numbers are left out: a year and a height may be the same number.
    """
    if not library.disjoint_types:
        return
    declared = {signature.indicator: signature.argument_types for signature in library.completed().signatures}
    typed: dict[Value, list[tuple[str, FactRecord]]] = {}
    for fact in facts:
        # Facts that were imported without rules have no types of their own.
        types = fact.types or declared.get(fact.indicator, ())
        for value, data_type in zip(fact.arguments, types, strict=False):
            if is_text(value):
                typed.setdefault(names.name(value), []).append((data_type, fact))
    for uses in typed.values():
        for item in library.disjoint_types:
            first = {fact.id: fact for data_type, fact in uses if library.is_subtype(data_type, item.first)}
            second = {fact.id: fact for data_type, fact in uses if library.is_subtype(data_type, item.second)}
            if not second:
                continue
            # A single pair for each fact is enough, the same in any order of the facts: the caller looks for conflicts
            # again.
            fact_of_second = min(second.values(), key=attrgetter("text"))
            for fact_of_first in first.values():
                both = {fact.id: fact for fact in (fact_of_first, fact_of_second)}
                yield FactConflict(str(item), tuple(sorted(both.values(), key=attrgetter("text"))))


@dataclass(frozen=True, slots=True)
class Settlement:
    """A conflict with the facts that lose, none if all are given, and the reason in words."""

    conflict: FactConflict
    lost: tuple[FactRecord, ...]
    reason: str


def settlement(conflict: FactConflict) -> Settlement:
    """Decide a conflict: of its facts the least sure loses, by P(yes), 1 without a score. A given fact never does.

    Facts that tie as the least sure lose together, because nobody knows which of them is wrong.
    """
    sure = {
        fact: 1.0 if fact.probability is None else fact.probability
        for fact in conflict.facts
        if fact.source is not Source.GIVEN
    }
    if not sure:
        reason = "every fact is given: correct the facts or the declaration"
        return Settlement(conflict, (), reason)
    least = min(sure.values())
    lost = tuple(fact for fact in sure if sure[fact] == least)
    if len(conflict.facts) == 1:
        reason = f'it breaks "{conflict.declaration}" alone'
    elif len(sure) == 1:
        reason = f'it breaks "{conflict.declaration}" beside given facts'
    elif len(lost) == 1:
        reason = f'P(yes) {least:.3f} is the lowest of the facts that break "{conflict.declaration}" together'
    else:
        reason = f'P(yes) {least:.3f} is a tie of facts that break "{conflict.declaration}" together, so all lose'
    return Settlement(conflict, lost, reason)
