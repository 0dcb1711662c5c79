"""Random rules and facts as texts: joins, recursion, negation, comparisons and equations."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import hapax

BASE = {"edge": "TT", "link": "TT", "mark": "T", "known": "TT", "size": "TN"}
LAYERS = ("low", "far", "high")
TYPES = {"T": "Thing", "N": "Number"}
VALUES: Mapping[str, tuple[Any, ...]] = {"T": ("a", "b", "it's", "2"), "N": (1, 2, -3, "2.5", "0.1")}
NAMES = {"T": ("A", "B", "C", "D"), "N": ("M", "N")}
DECLARED = "\n".join(
    f"given {name}({', '.join(TYPES[kind] for kind in kinds)})"
    for name, kinds in {**BASE, **dict.fromkeys(LAYERS, "TT"), "scaled": "TN"}.items()
)
SIGNS = ("<", "=<", ">", ">=", "=", "\\=")
Atom = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Term:
    """A variable, or a constant as rule text and as a value."""

    text: str
    kind: str

    def __str__(self) -> str:
        return f"{TYPES[self.kind]} {self.text}" if self.text.isupper() else self.text


@dataclass(frozen=True)
class Drawn:
    """A rule: positive atoms, negated ones, comparisons of a sum or product, an equation for K, and the conclusion."""

    name: str
    atoms: tuple[tuple[str, tuple[Term, ...]], ...]
    negated: tuple[tuple[str, tuple[Term, ...]], ...]
    comparisons: tuple[tuple[Term, str, Fraction, str, Term], ...]
    equation: tuple[Term, str, Fraction] | None
    head: tuple[str, tuple[Term, ...]]

    def __str__(self) -> str:
        items = [written(*atom) for atom in self.atoms] + [f"not {written(*atom)}" for atom in self.negated]
        items += [
            f"{left.text} {sign} {digits(number)} {operator} {right.text}"
            for left, sign, number, operator, right in self.comparisons
        ]
        if self.equation:
            left, sign, number = self.equation
            items.append(f"Number K = {left.text} {sign} {digits(number)}")
        return f"@generic none\n@name {self.name}\n{' & '.join(items)} -> {written(*self.head)}"


def digits(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else str(float(number))


def written(name: str, terms: tuple[Term, ...]) -> str:
    return f"{name}({', '.join(map(str, terms))})"


def drawn_rule(rng: random.Random, name: str, positive: list[str], negative: list[str], head: str) -> Drawn:
    kinds = {**BASE, **dict.fromkeys(LAYERS, "TT"), "scaled": "TN"}

    def term(kind: str, names: tuple[str, ...]) -> Term:
        if not names or rng.random() < 0.1:
            constant = rng.choice(VALUES[kind])
            return Term(f'"{constant}"' if kind == "T" else str(constant), kind)
        return Term(rng.choice(names), kind)

    atoms: list[tuple[str, tuple[Term, ...]]] = []
    seen: dict[str, list[str]] = {"T": [], "N": []}
    for _ in range(rng.randint(1, 3)):
        predicate = rng.choice(positive)
        terms = [term(kind, NAMES[kind][: len(seen[kind]) + 2]) for kind in kinds[predicate]]
        if seen["T"] and not any(item.text in seen["T"] for item in terms):
            terms[0] = Term(rng.choice(seen["T"]), "T")
        atoms.append((predicate, tuple(terms)))
        for item in terms:
            if item.text.isupper() and item.text not in seen[item.kind]:
                seen[item.kind].append(item.text)
    things, numbers = tuple(seen["T"]), tuple(seen["N"])
    negated = [
        (predicate, tuple(term(kind, things if kind == "T" else numbers) for kind in kinds[predicate]))
        for predicate in rng.choices(negative, k=rng.choice((0, 0, 1, 2)))
    ]
    constants = (Fraction(2), Fraction(1, 2), Fraction(-3), Fraction(5, 2))
    comparisons, equation, result = [], None, (term("T", things), term("T", things))
    if numbers and rng.random() < 0.5:
        operands = [Term(rng.choice(numbers), "N") for _ in range(2)]
        comparisons.append(
            (operands[0], rng.choice("+-*/"), rng.choice(constants), rng.choice(list(SIGNS)), operands[1])
        )
    if head == "scaled":
        equation = (
            (Term(rng.choice(numbers), "N"), rng.choice("+-*/"), rng.choice((*constants, Fraction(3))))
            if numbers
            else None
        )
        result = (result[0], Term("K", "N") if equation else Term("1", "N"))
    return Drawn(name, tuple(atoms), tuple(negated), tuple(comparisons), equation, (head, result))


def drawn_program(rng: random.Random) -> list[Drawn]:
    """Rules in layers: joins, recursion of each kind, arithmetic, and negation of what lies below."""
    below, drawn = list(BASE), []
    for layer in (*LAYERS, "scaled"):
        for _ in range(rng.randint(1, 2)):
            positive = [*below, layer, layer] if layer != "scaled" and rng.random() < 0.6 else below
            drawn.append(drawn_rule(rng, f"r{len(drawn)}", positive, below, layer))
        below = [*below, layer, layer]
    drawn.append(drawn_rule(rng, "top", below, below, "top"))
    return drawn


def sound(drawn: list[Drawn]) -> tuple[list[Drawn], hapax.Library]:
    """The rules without those that `check` objects to, such as a premise that can never hold."""
    while True:
        text = "\n".join([DECLARED, "given top(Thing, Thing)", "closed known/2 by 1", *map(str, drawn)])
        starts = {rule.name: text[: text.index(f"@name {rule.name}\n")].count("\n") for rule in drawn}
        try:
            rules = hapax.parse_rules(text)
            faults = list(hapax.check_rules(rules))
        except hapax.RulesRejected as rejected:
            faults = list(rejected.diagnostics)
        lines = {item.place.line for item in faults if str(item.severity) == "error"}
        left = [rule for rule in drawn if not lines & {starts[rule.name] + offset for offset in range(3)}]
        if len(left) == len(drawn):
            return drawn, rules
        drawn = left


def exact(value: Any) -> Any:
    return value if isinstance(value, str) else Fraction(value)


def drawn_facts(rng: random.Random, count: int) -> dict[Atom, Atom]:
    """Facts as they are written, by their exact values."""
    found = {}
    for _ in range(count):
        name = rng.choice(("edge", "edge", "link", "mark", "known", "size", "size", "low", "far"))
        row = tuple(rng.choice(VALUES[kind]) for kind in {**BASE, "low": "TT", "far": "TT"}[name])
        kinds = {**BASE, "low": "TT", "far": "TT"}[name]
        found[
            name, tuple(value if kind == "T" else Fraction(value) for value, kind in zip(row, kinds, strict=True))
        ] = (
            name,
            tuple(value if kind == "T" else number(value) for value, kind in zip(row, kinds, strict=True)),
        )
    return found


def number(value: Any) -> Any:
    from decimal import Decimal

    return Decimal(value) if isinstance(value, str) else value


def statements(derivation: Any) -> set[Any]:
    return {
        (item.rule, frozenset((name, exact(value)) for name, value in item.values.items()))
        for item in derivation.statements
    }
