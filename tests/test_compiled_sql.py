"""The SQL of premises and aggregates of every form, for numbers of several sizes, as texts in `tests/golden/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import pytest
from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.inference.program import join_order
from hapax.engine.inference.sql import (
    MAX_CONDITIONS,
    MAX_JOINED,
    CompileContext,
    NotCompiled,
    compile_aggregate,
    compile_premise,
    conclusion_cells,
)
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Value
from hapax.kb.symbols import NumberExtent, canonical

EXTENTS = {
    "small": NumberExtent(900),
    "decimals": NumberExtent(900, places=2),
    "nothing": NumberExtent(),
    "long": NumberExtent((1 << 59) + 1),
    "fractions of 17 places": NumberExtent(3, places=17),
    "inexact": NumberExtent(900, inexact=True),
}

SHOWN = ("small", "decimals")

TYPED = "given road(Place, Place)\ngiven height(Place, Number)\ngiven owner(Place, Person)\ngiven shut(Place)\n"
DECLARED = (
    TYPED
    + "closed road/2\nclosed owner/2 by 1\nclosed shut/1\n"
    + "computed is_high(Number N) := N > 100\ncomputed half(Number N, Number M) := M = N / 2\n"
    + "computed is_ann(Person X) := X = \"ann\"\ncomputed sum_of(Number A, Number B, Number C) := C = A + B * 3\n"
    + "computed same(Person X, Person Y) := Y = X\n"
)  # fmt: skip

PREMISES = (
    "road(Place A, Place B) & owner(Place B, Person X)",
    "road(Place A, Place A)",
    "road(Place B, Place C)",
    "owner(Place A, Person X) & height(Place B, Number M) & X = M + 1",
    "owner(Place A, Person X) & height(Place B, Number M) & M * 2 \\= X",
    'road(Place A, "p2") & road("p2", Place B)',
    "height(Place A, 100)",
    "height(Place A, 0.5) & height(Place B, -3)",
    "road(Place A, Place B) & road(Place B, Place C) & road(Place C, Place A) & A \\= C",
    "road(Place A, Place B) & not shut(Place B)",
    "road(Place A, Place B) & not owner(Place B, Person X) & owner(Place A, Person X)",
    "road(Place A, Place B) & not road(Place B, Place A) & not shut(Place A)",
    "road(Place A, Place B) & not height(Place B, 3)",
    'owner(Place A, Person X) & X = "ann"',
    'owner(Place A, Person X) & X \\= "ann"',
    "owner(Place A, Person X) & owner(Place B, Person Y) & X = Y",
    *(f"height(Place A, Number M) & height(Place B, Number N) & {test}" for test in (
        "M < N", "M =< N", "M > N + 1", "M >= N * 2", "M = N", "M \\= N", "M = N - 1", "M / 4 > N", "M / -4 < N", "M / 0.5 = N",
        "M / 0 = N", 'M / "x" = N', "M / N = 2", "M * N > 10", "M * M * M > N", "0.25 * M = N / 3", "M - 0.125 < N + 1.5",
        "M > 0.1 & N < 2 & M + N = 3", "M = 3", "N = 0.50", "M + 1 = 2", "M > 10 * 10", "M < \"b\"", "\"a\" < \"b\"", "M = \"x\"",
        "1 + 1 = 2", "3 < 2",
    )),
    *(f"height(Place A, Number M) & {made}" for made in (
        "Number N = M", "Number N = M + 1", "Number N = M / 2", "Number N = M / 3", "Number N = M * 0.1", "M + 2 = N & height(Place B, Number N)", "Number N = M / 3 & N >= 0.1", "Number N = M + 1 & Number K = N * 2 & K > 9",
        "Number N = M & Number K = N + 1", "Number N = 3 & Number K = N / 4", 'Person N = "x"', "Number N = M * 1000000000000000", "N = M / 3 & height(Place B, Number N)",
        "N = M + M & height(Place B, Number N) & N > 3", "Number N = M * 2 & Number K = N",
    )),
    *(f"height(Place A, Number M) & owner(Place A, Person X) & {used}" for used in (
        "is_high(Number M)", "not is_high(Number M)", "half(Number M, Number N)", "half(Number M, 50)", "half(Number M, Number M)",
        "not half(Number M, 50)", "is_ann(Person X)", "not is_ann(Person X)", 'is_ann("bob")', "sum_of(Number M, 2, Number N)",
        "sum_of(Number M, Number M, 7)", "half(Number M, Number N) & half(Number N, Number K) & K < 3", "same(Person X, Person Y)",
        "same(Person X, Person Y) & owner(Place B, Person Y)", "half(Number M, Number N) & not is_high(Number N)",
        "half(Number M, Number N) & sum_of(Number N, Number M, Number K) & K \\= 1.5",
    )),
)  # fmt: skip

AGGREGATES = (
    "ways(Place A, Number N) := N = count(Place B: road(Place A, Place B))",
    "pairs(Number N) := N = count(Place A, Place B: road(Place A, Place B) & not shut(Place B))",
    "total(Number N) := N = sum(Number M, Place A: height(Place A, Number M))",
    "heights(Person X, Number N) := N = sum(Number M, Place A: height(Place A, Number M) & owner(Place A, Person X))",
    "top(Number N) := N = max(Number M: height(Place A, Number M))",
    "least(Person X, Number N) := N = min(Number M: height(Place A, Number M) & owner(Place A, Person X))",
    "mean(Number N) := N = avg(Number M: height(Place A, Number M))",
    "reversed(Number N, Place A, Person X) := N = count(Place B: road(Place A, Place B) & owner(Place B, Person X))",
    "halves(Place A, Number N) := N = sum(Number K: height(Place A, Number M) & K = M / 4)",
)


@dataclass
class Tagged:
    """Tags as a knowledge base gives them: odd ones to whole numbers, even ones to the others, in order."""

    symbols: list[Value] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """The decimal places for which the table of numbers was asked."""

    def tag(self, value: Value) -> int:
        value = canonical(value)
        if isinstance(value, int):
            return 2 * value + 1
        if value not in self.symbols:
            self.symbols.append(value)
        return 2 * self.symbols.index(value) + 2

    def numbers(self, places: int) -> str:
        self.asked.append(places)
        return f"numbers_{places}"

    def context(self, library: Library, extent: NumberExtent) -> CompileContext:
        names = (signature.indicator for signature in library.completed().signatures)
        return CompileContext(library, {name: name.replace("/", "_") for name in names}, self.tag, extent, self.numbers)


def told(rule: Rule, library: Library, extent: NumberExtent) -> Iterator[str]:
    """The lines of a compiled rule, or the reason why Prolog has to decide it."""
    tagged = Tagged()
    context = tagged.context(library, extent)
    premise = join_order(rule).premise
    try:
        if rule.aggregate is not None:
            aggregate = compile_aggregate(rule.aggregate, premise, context, lambda table: len(table) - 6)
            compiled, cells = aggregate.premise, aggregate.cells
            yield f"  atoms: {aggregate.select}"
        else:
            compiled = compile_premise(premise, context)
            cells = conclusion_cells(rule.conclusion.atom, compiled, context)
    except NotCompiled as reason:
        yield f"  not compiled: {reason}"
        return
    yield f"  {compiled.select(cells)}"
    values = "; ".join(f"{name} {cell.largest} {cell.places}" for name, cell in compiled.values.items())
    yield f"  values: {values}; {compiled.extent}; calculates {compiled.calculates}; {compiled.references}"
    yield from (f"  absent: {atom}" for atom in compiled.absent)
    yield f"  tables of numbers: {tagged.asked}"
    for place, table in enumerate(compiled.tables):
        for outer in (f"{table} AS t{place}", "changed AS h"):
            yield f"  from {outer}: {compiled.select_from([outer], cells, [f'h.a1 = t{place}.a1', 'h.ref > 3'])}"


def each_told(library: Library) -> str:
    """The SQL of each rule: whole for the usual sizes of numbers, a refusal or a checksum for the others."""
    lines = []
    for rule in library.rules or library.aggregate_rules:
        lines.append(f"# {' & '.join(map(str, rule.premise))}")
        for name, extent in EXTENTS.items():
            found = list(told(rule, library, extent))
            shown = found if name in SHOWN else [] if len(found) > 1 else found
            if name != "small":
                shown = [line for line in shown if not line.startswith("  from")]
            lines += [f" {name}: {checksum(found)}", *shown]
    return "\n".join(lines) + "\n"


def rules_of(premises: tuple[str, ...], head: str) -> Library:
    rules = (f"@name r{place}\n@generic none\n{premise} -> holds(Place A)" for place, premise in enumerate(premises))
    return parse_library([("f.rules", "\n".join(chain([head], rules)) + "\n")])


def test_premises_are_compiled_as_read_over() -> None:
    """The SQL of a premise, the bounds of its numbers, and the reason why Prolog decides it instead, are recorded."""
    compared("compiled_sql/premises", each_told(rules_of(PREMISES, DECLARED)))


def test_aggregates_are_compiled_as_read_over() -> None:
    """The SQL of an aggregate counts each row once and groups by the declared variables, for numbers of each size."""
    rules = []
    for aggregate in AGGREGATES:
        rules.append(f"aggregate {aggregate}")
    compared("compiled_sql/aggregates", each_told(parse_library([("f.rules", TYPED + "\n".join(rules) + "\n")])))


def chained(atoms: int) -> str:
    return " & ".join(f"road(Place P{place}, Place P{place + 1})" for place in range(atoms))


@pytest.mark.parametrize(
    ("made", "most", "reason"),
    [
        (chained, MAX_JOINED, "it joins more than 60 atoms"),
        (
            lambda size: " & ".join(["road(Place P0, Place B)", *(f'P0 \\= "n{place}"' for place in range(size))]),
            MAX_CONDITIONS,
            "it sets more than 400 conditions",
        ),
    ],
    ids=["atoms", "conditions"],
)
def test_premise_is_compiled_up_to_the_limits_of_sqlite(made: Callable[[int], str], most: int, reason: str) -> None:
    """A premise at the limit is compiled, and one larger by one is left to Prolog with the reason."""
    library = parse_library(
        [("f.rules", "".join(f"@name r{size}\n{made(size)} -> holds(Place P0)\n" for size in (most, most + 1)))]
    )
    context = Tagged().context(library, NumberExtent(9))
    largest, larger = library.rules

    assert compile_premise(largest.premise, context).select(["1"])
    with pytest.raises(NotCompiled, match=reason):
        compile_premise(larger.premise, context)
