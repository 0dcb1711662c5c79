"""Which arguments are bound when goals, atoms and premises call predicates, as texts in `tests/golden/`."""

from __future__ import annotations

import random
from collections.abc import Iterator

from derived_programs import PROGRAMS, without_generic
from drawn_rules import drawn_library
from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.inference.call_patterns import CallPatterns
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.prolog_text import evaluation_order
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Variable

SHOWN = 3
"""Programs whose patterns are shown; of the others the file has a checksum."""

GOALS = (
    "{0}({1})", "\\+ {0}({1})", "findall(X, {0}({1}), L), member(X, L)", "({0}({1}) -> {0}({2}) ; {0}({1}))",
    "{0}({1}), {0}({2})", "forall({0}({1}), {0}({2}))", "aggregate_all(count, {0}({2}), N), {0}({1})",
    "setof(X, Y^{0}({1}), L)", "once({0}({2})), {0}({1})", "A = b, {0}({1}), B is 1 + 1",
)  # fmt: skip


def patterns_text(patterns: CallPatterns) -> str:
    places = {name: sorted(map(sorted, found)) for name, found in sorted(patterns.places.items())}
    return f"{places}; open {sorted(patterns.open)}; looked up {sorted(patterns.looked_up)}"


def told(library: Library) -> Iterator[str]:
    heads = {rule.conclusion.atom.indicator: rule.conclusion.atom for rule in library.rules}
    for proofs in (False, True):
        for indicator, head in heads.items():
            patterns = CallPatterns(library, proofs=proofs)
            terms = [Constant("a") if place % 2 else Variable(f"V{place}", "T") for place in range(len(head.arguments))]
            patterns.add_atom(Atom(head.predicate, tuple(terms)))
            yield f"{indicator} {proofs}: {patterns_text(patterns)}"
            yield f"  {[sorted(map(sorted, patterns.bound_variables(rule))) for rule in library.rules]}"
            names = [f"A{place}" for place in range(len(head.arguments))]
            bound = ["a", *names[1:]]
            for form in GOALS:
                text = form.format(head.predicate, ", ".join(names), ", ".join(bound))
                asked = CallPatterns(library, proofs=proofs)
                asked.add_goal(parse_goal(text, library))
                yield f"  {text}: {patterns_text(asked)}"
    for rule in library.rules:
        for count in range(3):
            patterns = CallPatterns(library)
            names = [variable.name for variable in rule.variables][:count]
            patterns.add_premise(evaluation_order(rule.premise, library), names)
            yield f"{rule.name} after {names}: {patterns_text(patterns)}"


def test_calls_have_the_patterns_read_over() -> None:
    """Goals of every form, atoms and premises reach the predicates below them with these places bound."""
    libraries = {name: parse_library([("f.rules", without_generic(name))]) for name in sorted(PROGRAMS)}
    libraries |= {f"drawn {seed}": drawn_library(random.Random(f"calls {seed}"))[1] for seed in range(8)}
    lines = []
    for number, (name, library) in enumerate(libraries.items()):
        found = list(told(library))
        lines.append(f"# {name}: {len(found)} lines, {checksum(found)}")
        lines += found if number < SHOWN else ()
    compared("call_patterns", "\n".join(lines) + "\n")


def test_a_predicate_with_many_patterns_counts_as_called_with_nothing_bound() -> None:
    """Sixteen patterns of a predicate are followed; the next one stands for all others."""
    signature = f"wide({', '.join(['Place'] * 6)})"
    library = parse_library(
        [
            (
                "f.rules",
                f"given {signature}\n@generic none\nwide(Place A, Place B, Place C, Place D, Place E, Place F) & road(Place A, Place B) -> far(Place A, Place B)\n",
            )
        ]
    )
    patterns = CallPatterns(library)
    for number in range(17):
        terms = [Constant("a") if number + 1 >> place & 1 else Variable(f"V{place}", "Place") for place in range(6)]
        patterns.add_atom(Atom("wide", tuple(terms)))
        assert ("wide/6" in patterns.open) == (number >= 16)
    assert len(patterns.places["wide/6"]) == 17
