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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from hapax.engine.logic.compile import AbsentAtom, PremiseCompiler, conclusion_cells, conjunction
from hapax.engine.mining.fact_tables import (
    CONSTANT,
    NAMES,
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
from hapax.grammar.parsing.declarations import Property
from hapax.grammar.rules import Rule
from hapax.grammar.terms import Constant, Variable

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


class Screening:
    """Screens the shapes of one conclusion.

    `facts`: number of the conclusion's facts; of the last shape `sampled`: those looked at; `hubs`: left out as hubs.
    """

    def __init__(self, tables: MiningTables, conclusion: Conclusion, options: MiningOptions) -> None:
        self._tables, self._conclusion, self._options = tables, conclusion, options
        self._fill(options.sample)
        self.facts, self.sampled, self.hubs = sum(self._facts.values()), 0, 0

    def _fill(self, sample: int) -> None:
        """Write the sample: its facts in an order that depends on nothing but their numbers."""
        code, tables = self._conclusion.code, self._tables
        tables.run("DROP TABLE IF EXISTS temp.mining_sample")
        # Scatters neighbouring numbers over 32 bits (2654435761 is Knuth's factor of multiplicative hashing).
        mixed = "((edge.s * 2654435761 + edge.o * 40503) % 4294967296)"
        label, joined, part = "0", "", "1"
        if self._conclusion.is_label:
            label, part = "label.id", "label.id"
            joined = f"JOIN mining_labels AS label ON label.p = {code} AND label.o = edge.o "
        order = f"row_number() OVER (PARTITION BY {part} ORDER BY {mixed}, edge.s, edge.o)"
        tables.run(
            "CREATE TEMP TABLE mining_sample AS SELECT * FROM "  # noqa: S608  ours
            f"(SELECT {order} AS place, {label} AS label, edge.s AS v0, edge.o AS v1 FROM {tables.edges(code)} AS edge "
            f"{joined}) {f'WHERE place <= {sample}' if sample else ''}"
        )
        if self._conclusion.is_label:
            self._facts = dict(tables.run("SELECT id, facts FROM mining_labels WHERE p = ?", (code,)))
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

    def screened(self, shape: RuleShape) -> list[RuleCandidate]:
        """The rules of this shape that may have the least support."""
        ways = list(ways_to_match(shape))
        sampled, self.hubs = self._choose(shape, ways)
        self.sampled = sum(sampled.values())
        totals: Counter[tuple[int, ...]] = Counter()
        for number, way in enumerate(ways):
            for *key, hits in self._tables.run(self._select(shape, way, number)):
                # A fact is looked up in one way, so that the hits of all ways add up.
                totals[tuple(key)] += hits
        found: dict[tuple[MinedAtom, ...], RuleCandidate] = {}
        for (label, *codes), hits in totals.items():
            if hits >= self._needed(self._facts[label], sampled[label]):
                head = MinedAtom(self._conclusion.code, 0, 1)
                if self._conclusion.is_label:
                    code, node = self._tables.labels[label]
                    head = MinedAtom(code, 0, CONSTANT, node)
                made = candidate(head, shape_atoms(shape, codes, self._tables.labels), self._tables)
                if made is not None:
                    found[made.atoms] = made
        return [found[atoms] for atoms in sorted(found)]

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
        hubs = self._tables.run(f"DELETE FROM mining_chosen WHERE lookups > {_MOST_LOOKUPS_OF_A_FACT} RETURNING 1")  # noqa: S608
        # In the order of their places, the facts whose lookups together stay within the limit are kept.
        self._tables.run(
            "DELETE FROM mining_chosen WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, "  # noqa: S608  ours
            f"sum(lookups) OVER (ORDER BY place, label) AS so_far FROM mining_chosen) WHERE so_far > {MOST_LOOKUPS})"
        )
        counts = dict(self._tables.run("SELECT label, count(*) FROM mining_chosen GROUP BY label"))
        return {label: counts.get(label, 0) for label in self._facts}, len(hubs)

    def _select(self, shape: RuleShape, way: Sequence[int], number: int) -> str:
        """SELECT of label, codes and number of facts for one way of matching."""
        columns = {variable: f"h.v{variable}" for variable in range(shape.head)}
        conclusion = (self._conclusion.code, "h.v0", "h.v1")
        tables, conditions = ["mining_chosen AS h"], [f"h.way = {number}"]
        for place in way:
            premise, name = shape.premises[place], f"e{place}"
            tables.append(f"{'mining_labelled' if len(premise) == 1 else 'mining_edges'} AS {name}")
            conditions += self._edge_conditions(premise, name, columns)
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
        """Conditions by which a label, or an edge of any predicate, is looked up; its new variable gets a column."""
        first, second = premise[0], premise[-1]
        start = first if first in columns else second
        end = second if start == first else first
        yield f"{name}.s = {columns[start]}"
        if len(premise) == 1:
            return
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


Instance = Mapping[str, Constant]
"""The values of a rule's variables, by name."""


class RuleMeasuring:
    """Measures rules, exactly, over all facts."""

    def __init__(self, tables: MiningTables, options: MiningOptions) -> None:
        self._tables, self._options = tables, options

    def measured(self, rule: Rule) -> RuleMeasures | None:
        """The measures of a rule; None, as early as that is clear, if one of them is too low."""
        options, atom, predicted = self._options, rule.conclusion.atom, _Predictions(rule, self._tables)
        of_head, columns = f"SELECT count(*) FROM {self._tables.facts[atom.indicator]} AS h", {}  # noqa: S608  ours
        given = []
        for place, term in enumerate(atom.arguments, 1):
            if isinstance(term, Variable):
                columns[term.name] = f"h.a{place}"
            else:
                given.append(f"h.a{place} = {term.value}")
        facts = self._count(f"{of_head} WHERE {conjunction(given)}")

        def count(condition: str, supported: int, threshold: float) -> int | None:
            # One more than a rule that predicts so many facts with enough confidence has, after which it is clear.
            # -2 makes LIMIT -1, which is no limit to SQLite.
            most = math.floor(supported / threshold + 1e-9) if threshold else -2
            number = self._count(f"SELECT count(*) FROM ({predicted.select(condition)} LIMIT {most + 1})")  # noqa: S608
            return None if -1 < most < number else number

        # A rule that predicts too much even if it predicts all facts is seen faster than its support is counted.
        if count(predicted.counts, facts, options.min_pca) is None:
            return None
        known = _Predictions(rule, self._tables, columns)
        instance = known.body.select(["1"], [*known.own, *known.distinct])
        support = self._count(f"{of_head} WHERE {conjunction([*given, f'EXISTS ({instance})'])}")
        if support < options.least_support(facts):
            return None
        counted = count(predicted.counts, support, options.min_pca)
        predictions = None if counted is None else count("1", support, options.min_confidence)
        if counted is None or predictions is None:
            return None
        rejected = count(predicted.is_rejected, support, 0.0) if predicted.is_rejected else 0
        return RuleMeasures(support, facts, predictions, counted, rejected or 0)

    def examples(self, rule: Rule) -> tuple[list[Instance], list[Instance]]:
        """Instances of the rule, at most one for each conclusion: first those whose conclusion is a fact.

        Then those that count against the rule; ones that a critic rejected come first.
        """
        predicted = _Predictions(rule, self._tables)
        return (
            self._instances(predicted, [predicted.is_fact, *predicted.distinct]),
            self._instances(predicted, [f"NOT {predicted.is_fact}", predicted.counts]),
        )

    def predicts_more(self, rule: Rule, rival: Rule) -> bool:
        """True if a rule predicts anything that a rival with the same conclusion does not."""
        selects = [_Predictions(item, self._tables).select("1") for item in (rule, rival)]
        return bool(self._tables.run(f"{' EXCEPT '.join(selects)} LIMIT 1"))

    def _instances(self, predicted: _Predictions, conditions: Sequence[str]) -> list[Instance]:
        values = predicted.body.values
        select = predicted.body.select([*values.values()], [*predicted.own, *conditions])
        order = f" ORDER BY {predicted.is_rejected} DESC" if predicted.is_rejected else ""
        rows = self._tables.run(f"{select} GROUP BY {', '.join(predicted.cells)}{order} LIMIT {self._options.examples}")
        constants = self._tables.constants(chain.from_iterable(rows))
        return [dict(zip(values, map(constants.__getitem__, row), strict=True)) for row in rows]

    def _count(self, sql: str) -> int:
        return int(self._tables.run(sql)[0][0])


class _Predictions:
    """The compiled premise of a rule, and conditions of its instances as SQL. `bound`: variables of an outer SELECT.

    `own`: no premise is the conclusion. `distinct`: each variable of the premises alone has a value of its own.
    `counts`: the prediction counts for the PCA confidence. `is_rejected` is empty if no critic rejected such an atom.
    """

    def __init__(self, rule: Rule, tables: MiningTables, bound: Mapping[str, str] | None = None) -> None:
        head = rule.conclusion.atom
        self.body = PremiseCompiler(tables.context, values=dict(bound or {})).read(rule.premise).compiled()
        values = self.body.values
        arguments = conclusion_cells(head, self.body, tables.context)
        places = {term.name: place for place, term in enumerate(head.arguments, 1) if isinstance(term, Variable)}
        self.cells = [values[name] for name in places]
        ways = [arguments]
        if tables.library.has_property(head.indicator, Property.SYMMETRIC):
            ways.append(arguments[::-1])
        self.own = []
        for literal in rule.literals:
            cells = conclusion_cells(literal.atom, self.body, tables.context)
            for way in ways if literal.atom.indicator == head.indicator else ():
                equal = [f"{cell} = {argument}" for cell, argument in zip(cells, way, strict=True)]
                self.own.append(f"NOT ({conjunction(equal)})")
        pairs = combinations(values, 2)
        self.distinct = [f"{values[a]} <> {values[b]}" for a, b in pairs if not {a, b} <= places.keys()]

        facts, rejected = tables.facts[head.indicator], tables.rejected.get(head.indicator)
        same = AbsentAtom(head.indicator, arguments).matches("k")
        exists = f"EXISTS (SELECT 1 FROM {{}} AS k WHERE {same})"  # noqa: S608  ours
        self.is_fact = exists.format(facts)
        self.is_rejected = exists.format(rejected) if rejected else ""
        self.counts = "1"
        if len(arguments) > 1:
            subject = NAMES[0]
            known = f"EXISTS (SELECT 1 FROM {facts} AS k WHERE k.a{places[subject]} = {values[subject]})"  # noqa: S608
            self.counts = f"({known} OR {self.is_rejected})" if rejected else known

    def select(self, condition: str) -> str:
        """The SELECT of the predictions under a condition, each once."""
        return self.body.select([f"DISTINCT {', '.join(self.cells)}"], [*self.own, condition])
