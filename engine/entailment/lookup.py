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

from hapax.engine.entailment.graph import INDICATOR, Edge, edges, store_edges, stored_edge, strongest_of
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library, type_key
from hapax.grammar.terms import Atom, Value, Variable
from hapax.kb import rows
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
    return store_edges(kb, entailments)


class StoredEdges:
    """The entailments of a knowledge base by the predicate on one side."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._relation = kb.relations.get(INDICATOR)

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
        if self._relation is None:
            return set()
        table = self._relation.table
        tags = f"SELECT a1 FROM {table} UNION SELECT a2 FROM {table}"  # noqa: S608  ours
        texts = self._kb.query(f"SELECT symbol FROM symbols WHERE id IN ({tags})")  # noqa: S608  ours
        return {_name(text) for (text,) in texts}

    def count(self) -> int:
        """Number of stored entailments."""
        return self._kb.relations.count(self._relation) if self._relation else 0

    def _at(self, place: int, predicate: str, at_least: float) -> list[Edge]:
        if self._relation is None:
            return []
        self._kb.index_facts([INDICATOR])
        found: dict[str, list[tuple[Value, ...]]] = {}
        # A file may have a name with blanks for underscores.
        for beginning in {predicate, predicate.replace("_", " ")}:
            low = rows.VALUE.encode(beginning)
            # The text of an atom that begins like this: `"went_to(` and what follows.
            span = (str(low)[:-1], str(low)[:-1] + "\U0010ffff")
            sql = "SELECT id, symbol FROM symbols WHERE symbol >= ? AND symbol < ?"
            for tag, text in self._kb.query(sql, span):
                if _name(text) == predicate:
                    for _, fact in self._kb.relations.records(self._relation, f"WHERE r.a{place + 1} = ?", (tag,)):
                        partner = str(fact.arguments[1 - place]).partition("(")[0]
                        found.setdefault(partner, []).append(fact.arguments)
        strong: list[Edge] = []
        for same in found.values():
            # Before atoms are made, which takes longest: most entailments of a graph are weak.
            if max(float(arguments[-1] or 0) for arguments in same) >= at_least:
                strong.extend(map(stored_edge, same))
        return strongest_of(strong)


def _name(symbol: str) -> str:
    """The name of the predicate of an atom, which is given as the text of its symbol."""
    return symbol[1:].partition("(")[0].strip().replace(" ", "_")


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
