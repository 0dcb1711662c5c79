"""Support and confidence of a rule, as AMIE defines them, and facts that show it at work or against it.

The definitions are those of Galárraga, Teflioudi, Hose and Suchanek, "AMIE: Association Rule Mining under Incomplete
Evidence in Ontological Knowledge Bases" (WWW 2013), section "Mining model", and "Fast Rule Mining in Ontological
Knowledge Bases with AMIE+" (VLDB Journal 2015). For a rule with premise B and conclusion r(x, y):

- support: number of pairs (x, y) with B and r(x, y)
- head coverage: support / number of facts r(x', y')
- standard confidence: support / number of pairs (x, y) with B
- PCA confidence: support / number of pairs (x, y) with B and some fact r(x, y'), or with r(x, y) rejected by a critic

The second half of the last line is Hapax's own: a rejected value is known to be false. x is the argument that
determines the other one more nearly (functionality). A conclusion of one argument has no y', so its PCA confidence is
the standard one.

Two kinds of instances support nothing, because a shorter rule, or the fact itself, says the same: those whose premise
contains their own conclusion, which do not count at all, and those in which a variable of the premise alone has the
value of another one, which count as predictions.

Screening comes before: one SELECT finds the predicates of all rules of a shape at once, from a sample of the facts of
their conclusion. It follows edges of any predicate, and counts the facts by the codes of the edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from hapax.engine.mining.fact_tables import (
    CONSTANT,
    MinedAtom,
    MinedPredicate,
    MiningOptions,
    MiningTables,
    RuleCandidate,
    RuleShape,
    candidate,
    is_not_conclusion,
    shape_atoms,
    ways_to_match,
)

# --- screening --------------------------------------------------------------------------------------------------------

MOST_LOOKUPS = 1_000_000
"""Edges looked up for one conclusion and shape, in about two seconds; the sample shrinks where there are more."""

_MOST_LOOKUPS_OF_A_FACT = 100_000
"""A fact with more is left out of the sample: its values are hubs, such as a country."""

_DEVIATIONS = 3.0
"""A rule passes with this many standard deviations fewer hits than the least support lets expect: of the rules with
just enough support fewer than two in a thousand are lost."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The predicate, or the predicate with each of its constants, that rules are mined for: one of a round.

    `code`: of its edges, in the direction from the argument that determines the other one.
    """

    predicate: MinedPredicate
    code: int
    is_label: bool

    def __str__(self) -> str:
        with_constant = self.is_label and len(self.predicate.types) > 1
        return self.predicate.indicator + (" with a constant" if with_constant else "")


@dataclass(frozen=True, slots=True)
class SampledShape:
    """The outcome of a screening. `facts`: of the conclusion; `sampled`: those looked at; `hubs`: left out as hubs."""

    candidates: tuple[RuleCandidate, ...]
    facts: int
    sampled: int
    hubs: int


class Screening:
    """Screens the shapes of one conclusion."""

    def __init__(self, tables: MiningTables, conclusion: Conclusion, options: MiningOptions) -> None:
        self._tables, self._conclusion, self._options = tables, conclusion, options
        self._labels: dict[int, tuple[int, int]] = {
            label: (code, node) for label, code, node in tables.rows("SELECT id, p, o FROM mining_labels")
        }
        self._fill(options.sample)

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
            self._facts = {0: self._conclusion.predicate.facts}
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
        least = self._options.least_support(facts)
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
            conditions.append(is_not_conclusion(edge, conclusion, self._conclusion.predicate.symmetric))
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


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleMeasures:
    """Counts of a rule's predictions. `predictions`: all pairs; `counted`: those of the PCA confidence."""

    support: int
    facts: int
    """Facts of the conclusion's predicate, with its constant if it has one."""
    predictions: int
    counted: int
    rejected: int
    """Predictions that a critic rejected."""

    @property
    def head_coverage(self) -> float:
        return self.support / self.facts

    @property
    def confidence(self) -> float:
        return self.support / self.predictions

    @property
    def pca_confidence(self) -> float:
        return self.support / self.counted


Instance = tuple[int, ...]
"""The nodes of a rule's variables."""


class RuleMeasuring:
    """Measures rules, exactly, over all facts. `check_time` raises an exception when a SELECT may take no longer."""

    def __init__(self, tables: MiningTables, options: MiningOptions, check_time: Callable[[], None]) -> None:
        self._tables, self._options, self._check_time = tables, options, check_time

    def measured(self, rule: RuleCandidate) -> RuleMeasures | None:
        """The measures of a rule; None, as early as that is clear, if one of them is too low."""
        options, of_head = self._options, self._facts_of(rule.head)
        facts = self._count(f"SELECT count(*) FROM {of_head}")  # noqa: S608  ours
        pairs = _Join(rule, self._tables)
        selected = ", ".join(f"{pairs.columns[name]} AS {name}" for name in _head_names(rule))

        def count(condition: str, predicted: int, threshold: float) -> int | None:
            # One more than a rule that predicts so many facts with enough confidence has, after which it is clear.
            # -2 makes LIMIT -1, which is no limit to SQLite.
            most = math.floor(predicted / threshold + 1e-9) if threshold else -2
            distinct = f"SELECT DISTINCT {selected} {pairs.text(condition)} LIMIT {most + 1}"
            number = self._count(f"SELECT count(*) FROM ({distinct})")  # noqa: S608  ours
            return None if -1 < most < number else number

        counts = self._counts(rule, pairs)
        # A rule that predicts too much even if it predicts all facts is seen faster than its support is counted.
        if count(counts, facts, options.min_pca) is None:
            return None
        known = _Join(rule, self._tables, {"v0": "h.v0", "v1": "h.v1"})
        support = self._count(
            f"SELECT count(*) FROM {of_head} AS h WHERE EXISTS (SELECT 1 {known.text(known.distinct)})"  # noqa: S608
        )
        if support < options.least_support(facts):
            return None
        counted = count(counts, support, options.min_pca)
        predictions = None if counted is None else count("true", support, options.min_confidence)
        if counted is None or predictions is None:
            return None
        rejected = 0
        if rule.head.code in self._tables.rejected:
            rejected = count(self._is_in("mining_rejected", rule, pairs), support, 0.0) or 0
        return RuleMeasures(support, facts, predictions, counted, rejected)

    def examples(self, rule: RuleCandidate, most: int) -> list[Instance]:
        """Instances of the rule whose conclusion is a fact, at most one for each conclusion."""
        pairs = _Join(rule, self._tables)
        return self._instances(rule, pairs, f"{self._is_in('mining_edges', rule, pairs)} AND {pairs.distinct}", most)

    def predicts_more(self, rule: RuleCandidate, rival: RuleCandidate) -> bool:
        """True if a rule predicts anything that a rival with the same conclusion does not."""
        parts = []
        for item in (rule, rival):
            pairs = _Join(item, self._tables)
            parts.append(f"SELECT {', '.join(pairs.columns[name] for name in _head_names(item))} {pairs.text()}")
        return bool(self._rows(f"{' EXCEPT '.join(parts)} LIMIT 1"))

    def counter_examples(self, rule: RuleCandidate, most: int) -> list[Instance]:
        """Instances that count against the rule, those that a critic rejected first."""
        pairs = _Join(rule, self._tables)
        is_fact = self._is_in("mining_edges", rule, pairs)
        found: list[Instance] = []
        if rule.head.code in self._tables.rejected:
            found = self._instances(rule, pairs, self._is_in("mining_rejected", rule, pairs), most)
        if len(found) < most:
            against = f"NOT {is_fact} AND {self._counts(rule, pairs)}"
            # The second SELECT may find the rejected ones again.
            known = {instance[: len(_head_names(rule))] for instance in found}
            more = self._instances(rule, pairs, against, most)
            found += [instance for instance in more if instance[: len(_head_names(rule))] not in known]
        return found[:most]

    def _instances(self, rule: RuleCandidate, pairs: _Join, condition: str, most: int) -> list[Instance]:
        names = [f"v{number}" for number in range(rule.variables)]
        head = [pairs.columns[name] for name in _head_names(rule)]
        listed = ", ".join(pairs.columns[name] for name in names)
        sql = f"SELECT {listed} {pairs.text(condition)} GROUP BY {', '.join(head)} LIMIT {most}"
        return [tuple(row) for row in self._rows(sql)]

    def _rows(self, sql: str) -> list[tuple[int, ...]]:
        return self._tables.rows(sql, check_time=self._check_time)

    def _count(self, sql: str) -> int:
        return self._rows(sql)[0][0]

    def _facts_of(self, head: MinedAtom) -> str:
        """A table of the facts of a conclusion, with v0 and v1."""
        if head.second == CONSTANT:
            # By the mirrored edges, which are in the order of the constants.
            return f"(SELECT o AS v0, s AS v1 FROM mining_edges WHERE p = {head.code ^ 1} AND s = {head.node})"  # noqa: S608
        return f"(SELECT s AS v0, o AS v1 FROM mining_edges WHERE p = {head.code})"  # noqa: S608

    def _counts(self, rule: RuleCandidate, pairs: _Join) -> str:
        """SQL of the condition under which a prediction counts for the PCA confidence."""
        if rule.head.second == CONSTANT and len(self._tables.predicates[rule.head.code & ~1].types) == 1:
            return "true"
        subject = pairs.columns["v0"]
        known = f"EXISTS (SELECT 1 FROM mining_edges AS k WHERE k.p = {rule.head.code} AND k.s = {subject})"  # noqa: S608
        if rule.head.code not in self._tables.rejected:
            return known
        return f"({known} OR {self._is_in('mining_rejected', rule, pairs)})"

    @staticmethod
    def _is_in(table: str, rule: RuleCandidate, pairs: _Join) -> str:
        value = str(rule.head.node) if rule.head.second == CONSTANT else pairs.columns["v1"]
        return (
            f"EXISTS (SELECT 1 FROM {table} AS k WHERE k.p = {rule.head.code} "  # noqa: S608
            f"AND k.s = {pairs.columns['v0']} AND k.o = {value})"
        )


def _head_names(rule: RuleCandidate) -> tuple[str, ...]:
    return ("v0",) if rule.head.second == CONSTANT else ("v0", "v1")


class _Join:
    """The premises of a rule as a join. `bound`: SQL columns of the variables that an outer SELECT binds.

    `columns` has a column for each variable afterwards.
    """

    def __init__(self, rule: RuleCandidate, tables: MiningTables, bound: dict[str, str] | None = None) -> None:
        self._tables = tables
        has_constant = rule.head.second == CONSTANT
        self.columns = {name: column for name, column in (bound or {}).items() if name in _head_names(rule)}
        self._head = _head_names(rule)
        self._names: list[str] = []
        self._conditions: list[str] = []
        edges: list[tuple[int | str, str, str]] = []
        waiting = list(rule.premises)
        while waiting:
            # The atom that gives the fewest edges for each row so far comes next.
            atom = min(waiting, key=lambda premise: (self._fan_out(premise), premise))
            waiting.remove(atom)
            edges.append(self._add(atom))
        value = str(rule.head.node) if has_constant else self.columns["v1"]
        conclusion = (rule.head.code, self.columns["v0"], value)
        symmetric = tables.predicates[rule.head.code & ~1].symmetric
        self._conditions += [is_not_conclusion(edge, conclusion, symmetric) for edge in edges]

    def text(self, condition: str = "true") -> str:
        """FROM and WHERE of the join."""
        conditions = [item for item in (*self._conditions, condition) if item != "true"]
        return f"FROM {' CROSS JOIN '.join(self._names)} WHERE {' AND '.join(conditions) or 'true'}"

    @property
    def distinct(self) -> str:
        """SQL that is true if each variable of the premises alone has a value of its own."""
        pairs = combinations(self.columns, 2)
        parts = [f"{self.columns[a]} <> {self.columns[b]}" for a, b in pairs if {a, b} - {*self._head}]
        return " AND ".join(parts) or "true"

    def _fan_out(self, atom: MinedAtom) -> float:
        """The mean number of edges that a lookup of the atom gives, larger than all for one that nothing binds."""
        predicate = self._tables.predicates[atom.code & ~1]
        first, second = predicate.facts / predicate.subjects, predicate.facts / predicate.objects
        # A mirrored edge starts at what is the second argument of the fact.
        if atom.code & 1:
            first, second = second, first
        is_bound = [f"v{variable}" in self.columns or variable == CONSTANT for variable in (atom.first, atom.second)]
        if all(is_bound):
            return 0.0
        if not any(is_bound):
            # After the first atom, one that nothing binds would multiply the rows by all its facts.
            return 1e6 * predicate.facts if self.columns else float(predicate.facts)
        # A constant does not connect the atom with those before.
        if atom.second == CONSTANT and self.columns:
            return 1e6 * second
        return first if is_bound[0] else second

    def _add(self, atom: MinedAtom) -> tuple[int, str, str]:
        """Join an atom; returns its code and the columns of its nodes."""
        name = f"e{len(self._names)}"
        self._names.append(f"mining_edges AS {name}")
        first = self.columns.get(f"v{atom.first}")
        second = str(atom.node) if atom.second == CONSTANT else self.columns.get(f"v{atom.second}")
        code, start, end = atom.code, first, second
        # If only its second node is bound, an edge is looked up by its mirror.
        is_mirrored = first is None and second is not None
        if is_mirrored:
            code, start, end = atom.code ^ 1, second, first
        self._conditions.append(f"{name}.p = {code}")
        self._conditions += [f"{name}.s = {start}"] if start is not None else []
        self._conditions += [f"{name}.o = {end}"] if end is not None else []
        ends = (f"{name}.o", f"{name}.s") if is_mirrored else (f"{name}.s", f"{name}.o")
        for variable, column in zip((atom.first, atom.second), ends, strict=True):
            if variable != CONSTANT:
                self.columns.setdefault(f"v{variable}", column)
        return atom.code, *ends
