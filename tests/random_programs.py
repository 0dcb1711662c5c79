"""Random rule programs with joins, tests, arithmetic, negation, aggregates and recursion, and random facts for them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import strategies as st

from hapax.grammar.terms import Value
from hapax.kb.records import FactRecord, Source

DECLARED = """
given first(Object, Object).
given second(Object, Object).
given marked(Object).
given deduced(Object, Object).
given reached(Object, Object).
computed is_below(Number A, Number B) := A < B: "[1] is below [2]" / "[1] is not below [2]" / "is [1] below [2]?".
computed is_after(Number A, Number B) := A = B + 1: "[1] is after [2]" / "[1] is not after [2]" / "is [1] after [2]?".
"""
VALUES: Sequence[Value] = (
    "a", "b", "2", "", "caf\u00e9", "cafe\u0301", "it's \\ \"here\"\n\t", "a\0b",
    2, 3, 7, -1, 0, Decimal("2.0"), Decimal("2.50"), 2**61,
)  # fmt: skip
DECIMALS: Sequence[Value] = (
    "a", "0.1", 2, 3, -1, 0, Decimal("0.1"), Decimal("0.2"), Decimal("0.30"), Decimal("2.50"), Decimal("-0.05"), Decimal("0.125"),
)  # fmt: skip
WHOLE: Sequence[Value] = ("a", "b", "2", 2, 3, 7, -1, 0, 2**30)


THINGS, NUMBERS = ("X", "Y", "Z"), ("K", "M", "N")
TYPED = {**{name: f"Thing {name}" for name in THINGS}, **{name: f"Number {name}" for name in NUMBERS}}
constants = st.sampled_from(['"a"', '"2"', "2", "3", '"caf\u00e9"'])


@st.composite
def atoms(draw: st.DrawFn, predicates: Sequence[str]) -> tuple[str, set[str]]:
    """A positive literal and its variables."""
    predicate = draw(st.sampled_from(predicates))
    terms = []
    for _ in range(1 if predicate == "marked" else 2):
        terms.append(
            draw(
                st.sampled_from((*THINGS, *NUMBERS)) | constants
                if draw(st.integers(0, 2)) == 0
                else st.sampled_from(THINGS)
            )
        )
    written = ", ".join(TYPED.get(term, term) for term in terms)
    return f"{predicate}({written})", {term for term in terms if term in TYPED}


@st.composite
def conditions(draw: st.DrawFn, bound: Sequence[str], negatable: Sequence[str]) -> str:
    """A premise item that only tests."""
    first, second = draw(st.sampled_from(bound)), draw(st.sampled_from(bound))
    kind = draw(st.sampled_from(("order", "equal", "sum", "not", "computed", "not computed", "quotient", "square")))
    if kind == "not":
        predicate = draw(st.sampled_from(negatable))
        arguments = TYPED[first] if predicate == "marked" else f"{TYPED[first]}, {TYPED[second]}"
        return f"not {predicate}({arguments})"
    if kind.endswith("computed"):
        name = draw(st.sampled_from(("is_below", "is_after")))
        return f"{'not ' if kind != 'computed' else ''}{name}({TYPED[first]}, {TYPED[second]})"
    operator = draw(st.sampled_from(("<", "=<", ">", ">=", "=", "\\=")))
    right = draw(st.sampled_from(("2", "2.5", "-1", second)))
    if kind == "equal":
        return f"{first} {draw(st.sampled_from(('=', chr(92) + '=')))} {second}"
    if kind == "sum":
        return f"{first} + {right} * {second} {operator} {second} - 1"
    if kind == "square":
        return f"{first} * {first} + 1 {operator} {second} * {second}"
    return f"{first} / 2 {operator} {right}" if kind == "quotient" else f"{first} {operator} {right}"


@st.composite
def rules(draw: st.DrawFn, name: str, head: str, below: Sequence[str], negatable: Sequence[str]) -> str:
    drawn = draw(st.lists(atoms(below), min_size=1, max_size=3))
    bound = sorted(set().union(*(variables for _, variables in drawn)))
    items = [text for text, _ in drawn]
    if bound:
        items += draw(st.lists(conditions(bound, negatable), max_size=1 if name != "told" else 2))
        if name != "r2" and "K" not in bound and draw(st.booleans()):
            factor = draw(st.sampled_from(("2", "3", "1000000000")))
            items.append(f"Number K = {draw(st.sampled_from(bound))} {draw(st.sampled_from('+-*/'))} {factor}")
            if draw(st.booleans()):
                items.append(f"K {draw(st.sampled_from(('<', '>=', '=')))} {draw(st.sampled_from(('3', *bound)))}")
            if draw(st.booleans()):
                chained = draw(st.sampled_from(("K", "K / 4", f"K - {bound[0]}")))
                items += [f"Number L = {chained}", f"L {draw(st.sampled_from(('<', '>=', chr(92) + '=')))} 0.5"]
            is_concluded = draw(st.booleans())
            bound += ["K"] if is_concluded else []
    items = draw(st.permutations(items))
    terms = (
        [TYPED["K"]] * 2
        if "K" in bound
        else [TYPED[draw(st.sampled_from(bound))] if bound else draw(constants) for _ in range(2)]
    )
    person = head == "told" and draw(st.booleans())
    hypotheses = [f"likes(Person P, {TYPED[bound[0]]})"] if person and bound else []
    conclusion = f"told(Person P, {terms[1]})" if hypotheses else f"{head}({', '.join(terms)})"
    generic = "@generic P" if hypotheses else "@generic none"
    return f"@name {name}\n{generic}\n{' & '.join((*hypotheses, *items))} -> {conclusion}."


BASE = ("first", "second", "marked")


@st.composite
def aggregates(draw: st.DrawFn) -> str:
    """An aggregate over facts or deduced atoms, with a group or without."""
    function = draw(st.sampled_from(("count", "count", "sum", "min", "max", "avg")))
    counted = draw(st.sampled_from(("Number N", "Number N, Thing Y")))
    items = [
        draw(st.sampled_from(("first(Thing X, Number N)", "second(Number N, Thing X)", "deduced(Thing X, Number N)")))
    ]
    items += ["second(Thing X, Thing Y)"] if "Y" in counted or draw(st.booleans()) else []
    items += draw(
        st.lists(
            st.sampled_from(("not marked(Thing X)", "N > 1", "N \\= 2.5", "not deduced(Number N, Thing X)")), max_size=2
        )
    )
    premise = " & ".join(draw(st.permutations(items)))
    group = draw(st.sampled_from(("Thing X", "Thing X", "Number G")))
    premise += " & G = 2" if group == "Number G" else ""
    return f"aggregate tallied({group}, Number K) := K = {function}({counted}: {premise})."


@st.composite
def programs(draw: st.DrawFn) -> str:
    parts = [
        draw(aggregates()),
        draw(rules("d1", "deduced", BASE, BASE)),
        draw(rules("r1", "reached", (*BASE, "deduced", "tallied"), (*BASE, "deduced", "tallied"))),
        draw(rules("r2", "reached", (*BASE, "deduced", "reached", "reached"), (*BASE, "deduced"))),
        draw(rules("told", "told", (*BASE, "deduced", "reached", "tallied"), (*BASE, "deduced", "reached"))),
    ]
    if draw(st.booleans()):
        parts.append('fact first("a", 2).')
    return DECLARED + "\n".join(draw(st.permutations(parts)))


@st.composite
def facts(draw: st.DrawFn) -> list[FactRecord]:
    pool = draw(st.sampled_from((VALUES, WHOLE, DECIMALS)))
    values = st.sampled_from(draw(st.lists(st.sampled_from(pool), min_size=2, max_size=4)))
    pairs = st.tuples(st.sampled_from(("first", "second", "first", "second", "reached")), values, values)
    rows = draw(st.lists(pairs, min_size=6, max_size=16))
    found = [FactRecord(name, tuple(row), ("Thing", "Thing"), Source.MODEL, 0.9) for name, *row in rows]
    marked = draw(st.lists(values, max_size=4))
    return found + [FactRecord("marked", (value,), ("Thing",), Source.GIVEN) for value in marked]
