"""Goals, exports and checks of a knowledge base with values of every kind are in `tests/golden/`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal

import pytest
from golden_fixture import compared

from hapax.engine.inference.conflicts import conflicts, settlement
from hapax.engine.inference.session import PrologSession, QueryLimits
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.kb_checks import check_kb
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Value
from hapax.kb.argument_index import ArgumentIndex
from hapax.kb.exchange import export_facts
from hapax.kb.records import DenialRecord, FactRecord, RuleRecord, RunRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.kb.symbols import Symbols, canonical, decimal_places, exact_extent, extent_of

RULES = """
type Isle < Place
given near(Place, Place)
functional size(Place, Number) within 1
functional founded(Place, Year)
given port(Place)
given inland(Place)
asymmetric near/2
irreflexive near/2
closed port/1
disjoint Isle, City
opposite dry wet
never port(Place A) & inland(Place A)
never size(Place A, Number N) & N < 0
computed is_large(Number N) := N > 100
@generic none
@name reach
near(Place A, Place B) -> reaches(Place A, Place B)
@generic none
@name reach_on
near(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@generic none
@name harbour
reaches(Place A, Place B) & port(Place B) & size(Place B, Number N) & is_large(Number N) -> serves(Place B, Place A)
@generic none
@name dry
size(Place A, Number N) & N > 5 -> dry(Place A)
@generic none
@name wet
port(Place A) -> wet(Place A)
"""
FACTS: list[tuple[str, tuple[Value, ...], tuple[str, ...], Source, float | None]] = [
    ("near", ("capri", "napoli"), ("Isle", "City"), Source.GIVEN, None),
    ("near", ("napoli", "capri"), (), Source.MODEL, 0.9),
    ("near", ("ischia", "ischia"), ("Isle", "Isle"), Source.MODEL, 0.8),
    ("near", ("napoli", "roma"), ("City", "City"), Source.GIVEN, None),
    ("near", ("roma", "capri"), ("Place", "City"), Source.MODEL, 0.7),
    ("size", ("capri", 10), (), Source.GIVEN, None),
    ("size", ("capri", Decimal("10.5")), (), Source.MODEL, 0.6),
    ("size", ("napoli", 117), (), Source.GIVEN, None),
    ("size", ("napoli", 119), (), Source.MODEL, 0.5),
    ("size", ("roma", Decimal("1285.3")), (), Source.GIVEN, None),
    ("size", ("void", -3), (), Source.MODEL, 0.95),
    ("size", ("ischia", "forty-six"), (), Source.GIVEN, None),
    ("founded", ("roma", -753), (), Source.GIVEN, None),
    ("founded", ("napoli", -600), (), Source.MODEL, 0.9),
    ("founded", ("napoli", -470), (), Source.MODEL, 0.8),
    ("port", ("napoli",), (), Source.GIVEN, None),
    ("port", ("capri",), (), Source.MODEL, 0.99),
    ("inland", ("roma",), (), Source.GIVEN, None),
    ("inland", ("capri",), (), Source.MODEL, 0.4),
    ("inland", ('Zoë\'s "town"\n',), (), Source.GIVEN, None),
    ("visited", ("X", "_", "1876"), (), Source.GIVEN, None),
    ("visited", ("x", 1876, Decimal("0.10")), (), Source.GIVEN, None),
]
GOALS = [
    "near(A, B)", "near(capri, B)", "near(A, A)", "reaches(capri, B)", "serves(A, B)", "size(A, N), N > 100",
    "size(A, N), N * 2 =< 20.0", "size(A, N), M is N / 3", "founded(A, Y), Y < -600", "port(A), \\+ inland(A)",
    "\\+ port(roma)", "port(roma)", "port(napoli)", "findall(A, port(A), L)", "setof(A-B, near(A, B), L)",
    "bagof(A, near(A, B), L)", "aggregate_all(count, near(_, _), N)", "aggregate_all(max(N), size(_, N), M)",
    "aggregate_all(sum(N), size(_, N), M)", "forall(port(A), near(A, _))", "member(A, [capri, roma]), port(A)",
    "near(A, B), A @< B", "near(A, B) ; port(A)", "(port(A) -> true ; inland(A))", "between(1, 3, N)", "A = f(B, capri)",
    "inland(A)", "visited(A, B, C)", "visited(\"X\", B, C)", "visited('X', B, C)", "size(A, \"10\")", "size(A, 10)",
    "size(A, 10.0)", "dry(A), wet(A)", "near(A, B), size(A, N), size(B, M), N < M", "once(near(A, B))", "limit(2, near(A, B))",
    "order_by([desc(N)], size(A, N))", "unknown(A)", "near(A)", "near(A, B", "shell(ls)", "assertz(port(x))", "near(A, B), !",
    "atom_length(capri, N)", "size(A, N), N > x", "X is 1 / 0", "length(L, 3)", "true", "fail", "port(A), port(A)",
    "near(A,B), not(port(B))", "string_concat(A, B, \"ab\")", "sort(0, @>=, [1, 2], L)", "msort([b, a], L)", "nb_getval(a, B)",
    "size(A, N), N =:= 117", "size(A, N), N =\\= 117", "size(A, N), N == 117", "near(A, B), near(B, C), near(C, A)", "",
    "dif(A, B), near(A, B)", "X = \"it's\"", "port(A) , A \\= capri", "near(_, _)", "call(port, A)", "A", "1", "near(A, B).",
]  # fmt: skip


@pytest.fixture
def isles(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    fresh_kb.add_facts(FactRecord(name, *rest) for name, *rest in FACTS)
    fresh_kb.add_denials([DenialRecord("near", ("capri", "roma"), 0.02)])
    return fresh_kb


def test_goals_have_these_answers(isles: KnowledgeBase, prolog: PrologSession) -> None:
    """Answers, their order and the errors of goals of every form are those read over."""
    theory = Theory(parse_library([("isles.rules", RULES)]), isles)
    limits = [QueryLimits(), QueryLimits(answers=1), QueryLimits(answers=2)]
    lines = []
    for goal in GOALS:
        lines.append(f"# {goal}")
        for limit in limits:
            try:
                found = run_query(theory, goal, limit, session=prolog)
                lines.append(f"{found.columns} {found.rows} {found.truncated} {found.holds}")
            except HapaxError as refusal:
                lines.append(f"{type(refusal).__name__}: {refusal}")
                break

    compared("queries/goals", "\n".join(lines) + "\n")


def test_facts_are_exported_alike(isles: KnowledgeBase) -> None:
    """Each form has these lines, for all facts and for those of a predicate."""
    lines = []
    for form in ("prolog", "csv", "jsonl", "xml"):
        for predicate in (None, "size", "size/2", "visited", "nothing", "near/3"):
            stream = io.StringIO()
            try:
                report = export_facts(isles, form, stream, predicate)
                lines.append(f"# {form}, {predicate}: {report}\n{stream.getvalue()}")
            except HapaxError as refusal:
                lines.append(f"# {form}, {predicate}: {refusal}")

    compared("queries/exported_facts", "\n".join(lines) + "\n")


def test_a_knowledge_base_is_checked_alike(isles: KnowledgeBase, prolog: PrologSession) -> None:
    """Broken declarations, second values, odd types and settlements of conflicts are those read over."""
    library = parse_library([("isles.rules", RULES)])
    isles.add_rules([RuleRecord("dry", "gone(Place A) -> dry(Place A)")])
    isles.start_run(RunRecord("run", "search", {}, "run", "2026-01-01"))
    lines = [str(finding) for finding in check_kb(library, isles, prolog)]
    found = conflicts(prolog, library, isles.facts(), isles.denials())
    lines += [f"{conflict.text}; {sorted(fact.id for fact in conflict.facts)}" for conflict in found]
    given = {fact.id for fact in isles.facts() if fact.predicate == "inland"}
    for scores in ({}, {fact.id: 0.3 for fact in isles.facts()}):
        for covered in (set(), given):
            lines += [str(settlement(conflict, scores, covered)) for conflict in found]
    about = conflicts(prolog, library, isles.facts(), isles.denials(), ["port/1"])
    lines += [conflict.text for conflict in about]

    compared("queries/checked_kb", "\n".join(lines) + "\n")


def index_lines(kb: KnowledgeBase) -> Iterator[str]:
    index = ArgumentIndex(kb)
    names = ["near/2", "size/2", "visited/3", "port/1", "nothing/2"]
    for ready in (False, True):
        if ready:
            index.prepare(names)
        for name in names:
            yield f"{name}: {index.is_small(name)}, {index.is_looked_up(name)}, {index.is_ready(name)}"
        for name, bound in (
            ("near/2", {0: "napoli"}), ("near/2", {1: "capri"}), ("near/2", {0: "roma", 1: "capri"}), ("near/2", {}),
            ("size/2", {1: 10}), ("size/2", {1: Decimal("10.0")}), ("size/2", {1: Decimal("10.5")}), ("size/2", {1: "10"}),
            ("visited/3", {1: 1876}), ("visited/3", {2: "1876"}), ("visited/3", {2: Decimal("0.1")}), ("nothing/2", {0: "x"}),
        ):  # fmt: skip
            yield f"  {name} {bound}: {index.rows(name, bound)}; given {index.rows(name, bound, given=True)}"
        for name, value in (("near/2", "capri"), ("size/2", 10), ("port/1", "capri"), ("near/2", "void")):
            yield f"  types {name} {value}: {sorted(index.types_of(name, value))}"
        yield f"  typed {sorted(index.typed_values('near/2', lambda data_type: data_type != 'Place'), key=str)}"


def symbol_lines(kb: KnowledgeBase) -> Iterator[str]:
    numbers: list[Value] = [
        0,
        1,
        -1,
        10**18,
        2**60,
        -(2**60),
        2**59 - 1,
        2**62,
        Decimal("0.1"),
        Decimal("-2.50"),
        Decimal("1E+3"),
    ]
    numbers += [Decimal("1E-30"), "a", "", "1", Decimal(10), "é", 'q"', Decimal("123456789.123456789")]
    symbols = Symbols(kb.database.conn)
    tags = symbols.tags(numbers)
    for number, tag in zip(numbers, tags, strict=True):
        places = "" if isinstance(number, str) else decimal_places(number)
        yield f"{number!r}: {canonical(number)!r}, {tag}, {symbols.tag(number)}, {extent_of(number)}, {places}"
    yield f"{symbols.values(tags)}; {list(symbols.encoded(sorted(set(tags))))}; {symbols.last_tag}"
    yield f"{symbols.numbers()}; {symbols.numbers(after=tags[0])}"
    yield f"{exact_extent([])}, {exact_extent(numbers)}, {exact_extent([1, 2])}, {exact_extent([Decimal('0.5'), 3])}"
    yield f"{extent_of(1) | extent_of('a')}, {extent_of(5) | extent_of(-7)}, {extent_of(*numbers)}"


def test_symbols_and_the_index_of_arguments_are_alike(isles: KnowledgeBase) -> None:
    """Tags of values, and facts found by their arguments, are those read over, with and without the index."""
    compared("queries/index_and_symbols", "\n".join([*index_lines(isles), *symbol_lines(isles)]) + "\n")
