"""Stored entailments looked up by predicate, so that a goal reads the edges on its own chains and no others.

The score of a chain is the product of the scores of its steps (soft transitivity, Chen et al. 2022). Chains are
followed on demand and never stored. A predicate's edge for the types at hand counts; without one the mean over all
types does, as in typed entailment graphs (Hosseini et al. 2018, section 5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from hapax.engine.entailment.graph import Edge, edges, store_edges, stored_edge
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library, type_key
from hapax.grammar.terms import Atom, Value, Variable
from hapax.kb import rows
from hapax.kb.loading import check_identity
from hapax.kb.schema import ENTAILMENT_INDEXES, ENTAILMENT_NAMES, ENTAILS, if_missing
from hapax.kb.store import KnowledgeBase

PREMISE, HYPOTHESIS = 0, 1
"""Places of the atoms in a fact `entails(P, Q, Score)`."""

# `went_to(`, perhaps with a blank before the bracket
_CALLED = re.compile(r"(?:'((?:[^'\\\n]|\\.)+)'|(\w+))\s*\(")

Types = tuple[str, ...] | None
"""The types of a predicate's arguments, None where they are not known."""


@checked
def store_entailments(kb: KnowledgeBase, entailments: Sequence[Edge]) -> int:
    """Store entailments as facts `entails(P, Q, Score)`, for `with_entailments` and `check_rules`; return their number.

    Entailments of an atom by itself are skipped.
    """
    stored = store_edges(kb, entailments)
    # Made while the file is open for writing: without indexes each look-up reads all entailments.
    StoredEdges(kb).prepare()
    return stored


class StoredEdges:
    """The entailments of a knowledge base by the predicate on one side."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def prepare(self) -> None:
        """Make the indexes, unless they are there. Without them each look-up reads all entailments."""
        for sql in ENTAILMENT_INDEXES:
            self._kb.query(if_missing(sql))

    def into(self, predicate: str, at_least: float = 0.0) -> list[Edge]:
        """The entailments whose hypothesis has this predicate; of equal ones the strongest.

        Those between two predicates are left out if none of them, whatever its types, has this score.
        """
        return self._at(HYPOTHESIS, predicate, at_least)

    def out_of(self, predicate: str, at_least: float = 0.0) -> list[Edge]:
        """The same for entailments whose premise has this predicate."""
        return self._at(PREMISE, predicate, at_least)

    def names(self) -> set[str]:
        """The names of all predicates in stored entailments."""
        found: set[str] = set()
        for name in ENTAILMENT_NAMES:
            found.update(
                text
                for (text,) in self._kb.query(f"SELECT DISTINCT {name} FROM facts WHERE predicate = '{ENTAILS}'")  # noqa: S608
            )
        return found

    def count(self) -> int:
        """Number of stored entailments."""
        ((count,),) = self._kb.query("SELECT count(*) FROM facts WHERE predicate = ?", (ENTAILS,))
        return int(count)

    def _at(self, place: int, predicate: str, at_least: float) -> list[Edge]:
        # The name of the predicate is written out: SQLite uses a partial index for its own condition only.
        sql = f"SELECT id, arguments FROM facts WHERE predicate = '{ENTAILS}' AND {ENTAILMENT_NAMES[place]} = ?"  # noqa: S608
        found: dict[str, list[tuple[Value | None, ...]]] = {}
        for identity, text in self._kb.query(sql, (predicate,)):
            check_identity(identity, ENTAILS, text)
            arguments = rows.VALUES.decode(text)
            partner = str(arguments[1 - place]).partition("(")[0]
            found.setdefault(partner, []).append(arguments)
        strong: list[Edge] = []
        for same in found.values():
            # Before atoms are made, which takes longest: most entailments of a graph are weak.
            if max(float(arguments[-1] or 0) for arguments in same) >= at_least:
                strong.extend(map(stored_edge, same))
        return strongest_of(strong)


def strongest_of(found: Iterable[Edge]) -> list[Edge]:
    """Of several entailments between the same atoms the strongest, in order of their texts."""
    best: dict[tuple[Atom, Atom], Edge] = {}
    for edge in found:
        pair = (edge.premise, edge.hypothesis)
        if pair not in best or best[pair].score < edge.score:
            best[pair] = edge
    return sorted(best.values(), key=lambda edge: (str(edge.premise), str(edge.hypothesis)))


def strongest(kb: KnowledgeBase, indicator: str) -> float | None:
    """The highest score of a stored entailment from or to a predicate; None if there is none."""
    stored, name = StoredEdges(kb), indicator.rpartition("/")[0]
    scores: list[float] = []
    for edge in (*stored.into(name), *stored.out_of(name)):
        if indicator in (edge.premise.indicator, edge.hypothesis.indicator):
            scores.append(edge.score)
    return max(scores, default=None)


def called_names(text: str) -> list[str]:
    """The names before brackets in a goal, quoted or not: those of its predicates, and perhaps of others."""
    return list(dict.fromkeys(quoted or bare for quoted, bare in _CALLED.findall(text)))


@checked
def with_entailments(rules: Library, kb: KnowledgeBase, at_least: float, goal: str | None = None) -> Library:
    """The rules and, as further rules, the entailments between predicates that the knowledge base scores this high.

    With a goal: those that it can use, on chains whose product of scores is as high. They are looked up, so that a
    graph of a million entailments costs a goal no more than its own chains. A text without an atom, such as a
    statement, stands for every predicate of the rules.
    """
    if goal is None:
        found = edges(kb, at_least)
    else:
        names = called_names(goal) or [signature.name for signature in rules.completed().signatures]
        found = edges_into(kb, rules, names, at_least)
    # A declared oracle predicate is still asked about when rules conclude it.
    declared = tuple(replace(signature, declared=True) for signature in rules.completed().signatures)
    return replace(rules, signatures=declared, rules=(*rules.rules, *(edge.rule for edge in found)))


def edges_into(kb: KnowledgeBase, library: Library, goals: Iterable[str], at_least: float) -> list[Edge]:
    """The entailments on chains of at least this score that end in a goal or below it, in what rules need for it.

    `goals`: names of predicates. A rule passes a chain on with the same score.
    """
    rules_of: dict[str, list[str]] = {}
    for rule in library.with_closure().rules:
        names = rules_of.setdefault(rule.conclusion.atom.predicate, [])
        names.extend(literal.atom.predicate for literal in rule.literals)
    types = {signature.name: tuple(signature.argument_types) for signature in library.completed().signatures}
    stored = StoredEdges(kb)

    def before(name: str, wanted: Types, least: float) -> Iterator[tuple[Edge | None, str, Types]]:
        for premise in rules_of.get(name, ()):
            yield None, premise, types.get(premise)
        for edge in by_types(stored.into(name, least), types.get(name, wanted), library):
            premise = edge.premise.predicate
            yield edge, premise, types.get(premise, _types(edge.premise))

    return _walked([(name, types.get(name)) for name in goals], before, at_least)


def edges_out_of(kb: KnowledgeBase, starts: Iterable[str], at_least: float) -> list[Edge]:
    """The entailments on chains of at least this score that begin in one of these predicates."""
    stored = StoredEdges(kb)

    def after(name: str, _: Types, least: float) -> Iterator[tuple[Edge | None, str, Types]]:
        for edge in stored.out_of(name, least):
            yield edge, edge.hypothesis.predicate, None

    return _walked([(name, None) for name in starts], after, at_least)


def _walked(
    starts: Iterable[tuple[str, Types]],
    steps: Callable[[str, Types, float], Iterator[tuple[Edge | None, str, Types]]],
    at_least: float,
) -> list[Edge]:
    """The edges of a best-first walk, by Dijkstra's algorithm: a longer chain is never stronger."""
    # The empty tuple stands for unknown types, because None has no order.
    waiting: list[tuple[float, str, tuple[str, ...]]] = [(-1.0, name, types or ()) for name, types in starts]
    visited: set[tuple[str, tuple[str, ...]]] = set()
    used: list[Edge] = []
    waiting.sort()
    while waiting:
        negated, name, types = heappop(waiting)
        if (name, types) in visited:
            continue
        visited.add((name, types))
        # The further steps of the chain need at least this score.
        for edge, following, following_types in steps(name, types or None, at_least / -negated if negated else 0.0):
            score = -negated * (1.0 if edge is None else edge.score)
            if score < at_least:
                continue
            if edge is not None:
                used.append(edge)
            if (following, following_types or ()) not in visited:
                heappush(waiting, (-score, following, following_types or ()))
    return strongest_of(used)


def by_types(found: Iterable[Edge], wanted: Types, library: Library) -> list[Edge]:
    """One entailment for each pair of predicates and order of arguments, with its score for these types.

    The strongest of those whose hypothesis has the types, or supertypes of them. Without one, the mean over all types.
    """
    pairs: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Edge]] = {}
    for edge in found:
        # With the names: an entailment that exchanges arguments is another one.
        pairs.setdefault((edge.premise.predicate, _names(edge.premise), _names(edge.hypothesis)), []).append(edge)
    chosen: list[Edge] = []
    for same in pairs.values():
        fitting = [edge for edge in same if wanted is not None and _fits(edge.hypothesis, wanted, library)]
        if fitting:
            chosen.append(max(fitting, key=lambda edge: edge.score))
        else:
            chosen.append(replace(same[0], score=sum(edge.score for edge in same) / len(same)))
    return chosen


def _fits(atom: Atom, wanted: Sequence[str], library: Library) -> bool:
    types = _types(atom)
    if len(types) != len(wanted):
        return False
    pairs = zip(wanted, types, strict=True)
    return all(type_key(want) == type_key(kind) or library.is_subtype(want, kind) for want, kind in pairs)


def _types(atom: Atom) -> tuple[str, ...]:
    return tuple(term.data_type for term in atom.arguments if isinstance(term, Variable))


def _names(atom: Atom) -> tuple[str, ...]:
    return tuple(term.name for term in atom.arguments if isinstance(term, Variable))
