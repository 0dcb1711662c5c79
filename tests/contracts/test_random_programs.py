"""Random programs against loops over the facts: statements, answers and proofs, while facts come and go."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from random_cases import cases

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
Atom = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Term:
    """A variable, or a constant as rule text and as a value."""

    text: str
    kind: str

    def value(self, bound: Mapping[str, Any]) -> Any:
        if self.text in bound:
            return bound[self.text]
        return self.text.strip('"') if self.kind == "T" else Fraction(self.text)

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

    def instances(self, model: Mapping[str, set[tuple[Any, ...]]]) -> Iterator[dict[str, Any]]:
        """Every assignment of the variables under which the premise holds."""
        bindings: list[dict[str, Any]] = [{}]
        for name, terms in self.atoms:
            bindings = [
                found for bound in bindings for row in model[name] if (found := matched(terms, row, bound)) is not None
            ]
        for bound in bindings:
            denied = all(
                is_denied(name, tuple(term.value(bound) for term in terms), model) for name, terms in self.negated
            )
            compared = all(
                COMPARED[operator](calculated(left.value(bound), sign, number), right.value(bound))
                for left, sign, number, operator, right in self.comparisons
            )
            if denied and compared:
                if self.equation:
                    left, sign, number = self.equation
                    yield {**bound, "K": calculated(left.value(bound), sign, number)}
                else:
                    yield bound


COMPARED: Mapping[str, Any] = {
    "<": lambda a, b: a < b, "=<": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "\\=": lambda a, b: a != b,
}  # fmt: skip


def calculated(left: Fraction, sign: str, number: Fraction) -> Fraction:
    return {"+": left + number, "-": left - number, "*": left * number, "/": left / number}[sign]


def digits(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else str(float(number))


def written(name: str, terms: tuple[Term, ...]) -> str:
    return f"{name}({', '.join(map(str, terms))})"


def matched(terms: tuple[Term, ...], row: tuple[Any, ...], bound: dict[str, Any]) -> dict[str, Any] | None:
    bound = dict(bound)
    for term, value in zip(terms, row, strict=True):
        if (bound.setdefault(term.text, value) if term.text.isupper() else term.value({})) != value:
            return None
    return bound


def is_denied(name: str, row: tuple[Any, ...], model: Mapping[str, set[tuple[Any, ...]]]) -> bool:
    """`known` is closed by its first argument: of a value without facts nothing is denied."""
    is_closed = name != "known" or any(other[0] == row[0] for other in model[name])
    return is_closed and row not in model[name]


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
            (operands[0], rng.choice("+-*/"), rng.choice(constants), rng.choice(list(COMPARED)), operands[1])
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


def evaluated(drawn: list[Drawn], facts: set[Atom]) -> tuple[dict[str, set[tuple[Any, ...]]], set[Any]]:
    """The model by loops, layer after layer to the fixpoint, and the instances of each rule."""
    model: dict[str, set[tuple[Any, ...]]] = {name: set() for name in (*BASE, *LAYERS, "scaled", "top")}
    for name, row in facts:
        model[name].add(row)
    for layer in (*LAYERS, "scaled", "top"):
        size = -1
        while size != len(model[layer]):
            size = len(model[layer])
            for rule in drawn:
                if rule.head[0] == layer:
                    rows = [tuple(term.value(bound) for term in rule.head[1]) for bound in rule.instances(model)]
                    model[layer].update(rows)
    found = {(rule.name, frozenset(bound.items())) for rule in drawn for bound in rule.instances(model)}
    return model, found


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


def atom_text(name: str, row: tuple[Any, ...]) -> str:
    cells = ["'" + cell.replace("'", "\\'") + "'" if isinstance(cell, str) else str(cell) for cell in row]
    return f"{name}({', '.join(cells)})"


def statements(derivation: Any) -> set[Any]:
    return {
        (item.rule, frozenset((name, exact(value)) for name, value in item.values.items()))
        for item in derivation.statements
    }


def check_proofs(
    derivation: Any, drawn: list[Drawn], facts: set[Atom], model: Mapping[str, set[tuple[Any, ...]]]
) -> None:
    """Every step follows from its premises by an instance of its rule, and leaves are facts or hold in the model."""
    instances = {}
    for rule in drawn:
        for bound in rule.instances(model):
            conclusion = (rule.head[0], tuple(term.value(bound) for term in rule.head[1]))
            premises = frozenset((name, tuple(term.value(bound) for term in terms)) for name, terms in rule.atoms)
            instances.setdefault((rule.name, conclusion), set()).add(premises)
    for statement in derivation.statements:
        parts = statement.proof.parts()
        for part in parts:
            by = part.by.value
            if by == "rule":
                premises = frozenset(
                    atom_of(child) for child in part.children if child.by.value in ("rule", "fact", "given")
                )
                assert premises in instances[part.rule, atom_of(part)], str(statement)
            elif by in ("fact", "given"):
                assert atom_of(part) in facts
            else:
                assert by in ("negation", "computed")


def atom_of(part: Any) -> Atom:
    atom = part.goal.atom
    return atom.predicate, tuple(exact(term.value) for term in atom.arguments)


@pytest.mark.parametrize("seed", range(cases(10)))
def test_conclusions_are_those_of_loops_after_each_change(seed: int) -> None:
    """Facts come, go and come back below joins, recursion, negation and arithmetic; nothing of before is left."""
    rng = random.Random(seed)
    drawn, rules = sound(drawn_program(rng))
    stored: dict[Atom, Atom] = {}
    names = [rule.name for rule in drawn]
    with hapax.KnowledgeBase() as kb:
        for step in range(4):
            gone = dict(
                rng.sample(sorted(stored.items(), key=repr), min(len(stored), rng.choice((0, 1, 2, 4)) if step else 0))
            )
            if gone:
                hapax.retract([atom_text(*fact) for fact in gone.values()], rules, kb, reason="wrong")
                back = dict(list(gone.items())[: rng.choice((0, 0, 1))])
                if back:
                    hapax.restore([atom_text(*fact) for fact in back.values()], rules, kb)
                stored = {key: fact for key, fact in stored.items() if key not in gone or key in back}
            new = drawn_facts(rng, rng.randint(1, 3) if step else rng.randint(8, 24))
            for key, (name, row) in new.items():
                if key not in stored:
                    hapax.add_facts(kb, name, [row], rules)
            stored |= {key: fact for key, fact in new.items() if key not in stored}
            model, expected = evaluated(drawn, set(stored))
            derivation = hapax.derive(rules, kb, only=names)

            assert statements(derivation) == expected
            check_proofs(derivation, drawn, set(stored), model)
        for name in ("low", "high", "scaled"):
            rows = {tuple(map(exact, row)) for row in hapax.query(f"{name}(X, Y)", rules, kb).rows}
            assert rows == model[name]
        with hapax.KnowledgeBase() as fresh:
            for name, row in stored.values():
                hapax.add_facts(fresh, name, [row], rules)
            assert statements(hapax.derive(rules, fresh, only=names)) == expected
            for name, (first, second) in product(("far", "high"), list(model["far"])[:2]):
                asked = hapax.query(atom_text(name, (first, second)), rules, fresh)
                assert asked.holds == ((first, second) in model[name])
