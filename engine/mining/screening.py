"""Screening: the rules of a shape that may have enough support, from a sample of the facts of their conclusion.

One SELECT finds the predicates of all rules of a shape at once: it starts at facts of the conclusion, follows edges of
any predicate, and counts the facts by the codes of the edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hapax.engine.mining.candidates import (
    CONSTANT,
    MinedAtom,
    RuleCandidate,
    candidate,
    is_not_conclusion,
    shape_atoms,
)
from hapax.engine.mining.shapes import RuleShape, ways_to_match
from hapax.engine.mining.tables import MiningTables

MOST_LOOKUPS = 1_000_000
"""Edges looked up for one conclusion and shape, in about two seconds; the sample shrinks where there are more."""

_MOST_LOOKUPS_OF_A_FACT = 100_000
"""A fact with more is left out of the sample: its values are hubs, such as a country."""

_DEVIATIONS = 3.0
"""A rule passes with this many standard deviations fewer hits than the least support lets expect: of the rules with
just enough support fewer than two in a thousand are lost."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The predicate, or the predicate with each of its constants, that rules are mined for: one of a round."""

    code: int
    is_label: bool

    def text(self, tables: MiningTables) -> str:
        """The predicate's indicator, with `constant` for one that is concluded with constants."""
        predicate = tables.predicates[self.code & ~1]
        return (
            f"{predicate.indicator} with a constant"
            if self.is_label and len(predicate.types) > 1
            else predicate.indicator
        )


@dataclass(frozen=True, slots=True)
class LeastSupport:
    """The support that a rule needs: a number of facts, and a share of the facts of its conclusion."""

    facts: int
    coverage: float

    def of(self, facts: int) -> int:
        """The support needed where the conclusion has this many facts."""
        return max(1, self.facts, math.ceil(self.coverage * facts - 1e-9))


@dataclass(frozen=True, slots=True)
class SampledShape:
    """The outcome of a screening. `facts`: of the conclusion; `sampled`: those looked at; `hubs`: left out as hubs."""

    candidates: tuple[RuleCandidate, ...]
    facts: int
    sampled: int
    hubs: int


class Screening:
    """Screens the shapes of one conclusion. `sample`: most facts to look at; 0: all."""

    def __init__(self, tables: MiningTables, conclusion: Conclusion, least: LeastSupport, sample: int) -> None:
        self._tables, self._conclusion, self._least = tables, conclusion, least
        self._is_symmetric = tables.predicates[conclusion.code & ~1].symmetric
        self._labels: dict[int, tuple[int, int]] = {
            label: (code, node) for label, code, node in tables.rows("SELECT id, p, o FROM mining_labels")
        }
        self._fill(sample)

    def _fill(self, sample: int) -> None:
        """Write the sample: its facts in an order that depends on nothing but their numbers."""
        code, tables = self._conclusion.code, self._tables
        tables.run("DROP TABLE IF EXISTS temp.mining_sample")
        # Scatters neighbouring numbers over 32 bits (2654435761 is Knuth's factor of multiplicative hashing).
        mixed = "((edge.s * 2654435761 + edge.o * 40503) % 4294967296)"
        label, joined, part = "0", "", "1"
        if self._conclusion.is_label:
            label, part = "label.id", "label.id"
            joined = "JOIN mining_labels AS label ON label.p = edge.p AND label.o = edge.o "
        order = f"row_number() OVER (PARTITION BY {part} ORDER BY {mixed}, edge.s, edge.o)"
        tables.run(
            "CREATE TEMP TABLE mining_sample AS SELECT * FROM "  # noqa: S608  ours
            f"(SELECT {order} AS place, {label} AS label, edge.s AS v0, edge.o AS v1 FROM mining_edges AS edge {joined}"
            f"WHERE edge.p = {code}) {f'WHERE place <= {sample}' if sample else ''}"
        )
        if self._conclusion.is_label:
            self._facts = tables.pairs("SELECT id, facts FROM mining_labels WHERE p = ?", (code,))
        else:
            self._facts = {0: tables.predicates[code & ~1].facts}
        # The degree of each node, and the sum of those of its neighbours, say how many edges a way looks up.
        nodes = "SELECT v0 FROM mining_sample"
        if not self._conclusion.is_label:
            nodes += " UNION SELECT v1 FROM mining_sample"
        tables.run("DROP TABLE IF EXISTS temp.mining_reach")
        tables.run(
            "CREATE TEMP TABLE mining_reach AS SELECT near.s AS s, near.degree AS degree, "  # noqa: S608  ours
            "(SELECT total(more.degree) FROM mining_edges AS edge JOIN mining_degrees AS more ON more.s = edge.o "
            "WHERE edge.s = near.s AND edge.o > 0) AS two FROM mining_degrees AS near WHERE near.s IN "
            f"({nodes})"
        )
        tables.run("CREATE UNIQUE INDEX temp.mining_reach_by_node ON mining_reach (s)")

    def screened(self, shape: RuleShape) -> SampledShape:
        """The rules of this shape that may have the least support."""
        ways = list(ways_to_match(shape))
        sampled, hubs = self._choose(shape, ways)
        totals: dict[tuple[int, ...], int] = {}
        for number, way in enumerate(ways):
            for row in self._tables.rows(self._select(shape, way, number)):
                *key, hits = row
                # A fact is looked up in one way, so that the hits of all ways add up.
                totals[tuple(key)] = totals.get(tuple(key), 0) + hits
        found: dict[RuleCandidate, None] = {}
        for (label, *codes), hits in totals.items():
            if hits >= self._needed(self._facts[label], sampled[label]):
                head = self._head(label)
                made = candidate(head, shape_atoms(shape, codes, self._labels), self._tables)
                if made is not None:
                    found.setdefault(made)
        return SampledShape(
            tuple(sorted(found, key=lambda rule: (rule.head, rule.premises))),
            sum(self._facts.values()),
            sum(sampled.values()),
            hubs,
        )

    def _head(self, label: int) -> MinedAtom:
        if self._conclusion.is_label:
            code, node = self._labels[label]
            return MinedAtom(code, 0, CONSTANT, node)
        return MinedAtom(self._conclusion.code, 0, 1)

    def _needed(self, facts: int, sampled: int) -> int:
        """Hits that a rule with the least support has in the sample, almost always."""
        least = self._least.of(facts)
        if sampled == facts:
            return least
        expected = least * sampled / facts
        # The standard deviation of so rare hits is about the root of their expected number (Poisson).
        return max(1, math.floor(expected - _DEVIATIONS * math.sqrt(expected)))

    def _choose(self, shape: RuleShape, ways: Sequence[Sequence[int]]) -> tuple[dict[int, int], int]:
        """Choose the facts of the sample that are looked at, and for each the cheapest way to match the shape.

        Returns the number of facts for each label, and the number of hubs.
        """
        costs = [_lookups(shape, way) for way in ways]
        cheapest = f"min({', '.join(costs)})" if len(costs) > 1 else costs[0]
        chosen = " ".join(f"WHEN {cost} THEN {number}" for number, cost in enumerate(costs))
        reach = "LEFT JOIN mining_reach AS r{0} ON r{0}.s = h.v{0}"
        self._tables.run("DROP TABLE IF EXISTS temp.mining_chosen")
        self._tables.run(
            "CREATE TEMP TABLE mining_chosen AS SELECT h.label, h.v0, h.v1, h.place, "  # noqa: S608  ours
            f"{cheapest} AS lookups, CASE {cheapest} {chosen} END AS way "
            f"FROM mining_sample AS h {reach.format(0)} {reach.format(1)}"
        )
        hubs = self._tables.run(f"DELETE FROM mining_chosen WHERE lookups > {_MOST_LOOKUPS_OF_A_FACT}")  # noqa: S608
        # In the order of their places, the facts whose lookups together stay within the limit are kept.
        self._tables.run(
            "DELETE FROM mining_chosen WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, "  # noqa: S608  ours
            f"sum(lookups) OVER (ORDER BY place, label) AS so_far FROM mining_chosen) WHERE so_far > {MOST_LOOKUPS})"
        )
        counts = self._tables.pairs("SELECT label, count(*) FROM mining_chosen GROUP BY label")
        return {label: counts.get(label, 0) for label in self._facts}, hubs

    def _select(self, shape: RuleShape, way: Sequence[int], number: int) -> str:
        """SELECT of label, codes and number of facts for one way of matching."""
        columns = {variable: f"h.v{variable}" for variable in range(shape.head)}
        conclusion = (self._conclusion.code, "h.v0", "h.v1")
        tables, conditions = ["mining_chosen AS h"], [f"h.way = {number}"]
        for place in way:
            premise, name = shape.premises[place], f"e{place}"
            if len(premise) == 1:
                tables.append(f"mining_labelled AS {name}")
                conditions += [f"{name}.s = {columns[premise[0]]}"]
                tables.append(f"mining_labels AS t{place}")
                conditions += [f"t{place}.id = {name}.label"]
                edge = (f"t{place}.p", columns[premise[0]], f"t{place}.o")
            else:
                conditions += self._edge_conditions(premise, name, columns)
                tables.append(f"mining_edges AS {name}")
                edge = (f"{name}.p", f"{name}.s", f"{name}.o")
            conditions.append(is_not_conclusion(edge, conclusion, self._is_symmetric))
        codes = [self._code(shape.premises[place], f"e{place}", columns) for place in range(len(shape.premises))]
        # Equal premises in another order are the same rule: one order is enough.
        conditions += [
            f"{codes[place]} < {codes[place + 1]}"
            for place in range(len(shape.premises) - 1)
            if shape.premises[place] == shape.premises[place + 1]
        ]
        listed = ", ".join(["h.label", *codes])
        groups = ", ".join(str(place) for place in range(1, len(codes) + 2))
        return (
            f"SELECT {listed}, count(DISTINCT h.rowid) FROM {' CROSS JOIN '.join(tables)} "  # noqa: S608
            f"WHERE {' AND '.join(conditions)} GROUP BY {groups}"
        )

    def _edge_conditions(self, premise: Sequence[int], name: str, columns: dict[int, str]) -> Iterator[str]:
        """Conditions by which an edge of any predicate is looked up; its new variable gets a column."""
        first, second = premise
        start = first if first in columns else second
        end = second if start == first else first
        yield f"{name}.s = {columns[start]}"
        if end in columns:
            yield f"{name}.o = {columns[end]}"
        else:
            # Predicates of one argument have nothing above. The plus keeps SQLite from looking for this range, here and
            # in the edges that are equal to this one, in place of the equality.
            yield f"+{name}.o > 0"
            # As in measuring, a value of its own.
            yield from [f"{name}.o <> {column}" for column in columns.values()]
            columns[end] = f"{name}.o"

    def _code(self, premise: Sequence[int], name: str, columns: dict[int, str]) -> str:
        """The number of a label, or the code of an edge from its first variable to its second."""
        if len(premise) == 1:
            return f"{name}.label"
        # SQLite has no exclusive or: this is p ^ 1.
        is_mirrored = columns[premise[0]] == f"{name}.o"
        return f"({name}.p + 1 - 2 * ({name}.p & 1))" if is_mirrored else f"{name}.p"


def _lookups(shape: RuleShape, way: Sequence[int]) -> str:
    """SQL of the number of edges that a way looks up for a fact of the sample, with its nodes in r0 and r1."""
    degrees = {variable: f"coalesce(r{variable}.degree, 0)" for variable in range(shape.head)}
    reached: dict[int, str] = {}
    factors: dict[str, str] = {}
    for place in way:
        premise = shape.premises[place]
        new = [variable for variable in premise if variable not in degrees and variable not in reached]
        if not new:
            continue
        (start,) = set(premise) - set(new)
        if start in reached:
            # The sum over the neighbours takes the place of their number.
            factors[reached[start]] = factors[reached[start]].replace(".degree", ".two")
            reached[new[0]] = reached[start]
        else:
            key = f"{start}:{place}"
            factors[key] = degrees[start]
            reached[new[0]] = key
    return " * ".join(["1.0", *factors.values()])
