"""Random programs of `tools.differential` and `tools.probable_programs`: layers of rules, and how they are compared."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain, count
from typing import NamedTuple

from hapax.grammar.checking.library_checks import library_errors
from hapax.grammar.errors import RulesRejected
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import MISSING, Value
from hapax.kb.records import FactRecord, Source

THINGS, NUMBERS = ("X", "Y", "Z", "U"), ("K", "M", "N")
SIGNATURES = {
    "edge": "TT", "link": "TT", "mark": "T", "weighs": "TN", "sold": "TTN", "known": "TT", "seen": "TT",
    "row": "TTN",
}  # fmt: skip
TEXTS: Sequence[Value] = ("a", "b", "c", "d", 2, Decimal("2.0"), "2", 'it\'s \\ "it"\n', "caf\u00e9", "cafe\u0301", "")
PROBABLE = {"edge": "TT", "link": "TT", "near": "TT", "seen": "TT", "mark": "T", "shut": "T"}
"""Predicates with uncertain facts."""
DOUBTED = "doubted"
"""An open predicate of programs with probabilities, whose negation needs a denial."""
SIZES: Sequence[Value] = (0, 1, 2, 3, 7, -4, Decimal("2.0"), Decimal("0.5"), Decimal("2.50"), Decimal("-0.1"), "light")

ANY = "_"
"""The term that matches everything, and a missing cell; a variable does not match one."""

Cell = str | Fraction
Facts = dict[str, set[tuple[Cell, ...]]]


class Quoted(NamedTuple):
    """A constant of a program; variables are bare names."""

    value: Value


class Sum(NamedTuple):
    """A calculation of two operands."""

    left: Operand
    sign: str
    right: Operand


Operand = str | Quoted | Sum


class Call(NamedTuple):
    """An atom of a premise, possibly negated."""

    predicate: str
    terms: tuple[str | Quoted, ...]
    negated: bool = False


class Order(NamedTuple):
    """A comparison; `gives` names the variable that an equation gives its value."""

    left: Operand
    sign: str
    right: Operand
    gives: str = ""


Item = Call | Order


class DrawnRule(NamedTuple):
    """A random rule, a declaration's rule (without a name), or an aggregate (with a function)."""

    name: str
    head: Call
    premise: tuple[Item, ...]
    exceptions: tuple[tuple[Item, ...], ...] = ()
    function: str = ""
    counted: tuple[str, ...] = ()


@dataclass
class DrawnProgram:
    """Rules in layers, each of which may use its own predicates without negation, and declarations."""

    signatures: dict[str, str] = field(default_factory=lambda: dict(SIGNATURES))
    declarations: list[str] = field(default_factory=list)
    layers: list[list[DrawnRule]] = field(default_factory=list)
    closed_by: dict[str, int] = field(default_factory=dict)

    @property
    def rules(self) -> list[DrawnRule]:
        """The rules with statements, which are neither aggregates nor a declaration's."""
        return [rule for layer in self.layers for rule in layer if rule.name]

    @property
    def text(self) -> str:
        lines = list(self.declarations)
        for rule in (rule for layer in self.layers for rule in layer):
            premise = " & ".join(map(self._item, rule.premise))
            if rule.function:
                counted = ", ".join(map(_typed, rule.counted))
                lines.append(f"aggregate {self._item(rule.head)} := K = {rule.function}({counted}: {premise}).")
            elif rule.name:
                excepted = "".join(f"\n  unless {' & '.join(map(self._item, items))}" for items in rule.exceptions)
                lines.append(f"@name {rule.name}\n@generic none\n{premise} -> {self._item(rule.head)}{excepted}.")
        return "\n".join(lines) + "\n"

    def _item(self, item: Item) -> str:
        if isinstance(item, Order):
            return f"{_typed(item.gives) if item.gives else _written(item.left)} {item.sign} {_written(item.right)}"
        terms, tests = [], []
        for place, term in enumerate(item.terms):
            if isinstance(term, Quoted) and term.value is MISSING:
                tests.append(f" & is_missing(Missing{place})")
                terms.append(f"Missing{place}")
            else:
                terms.append(_typed(term) if isinstance(term, str) else _written(term))
        text = f"{item.predicate}({', '.join(terms)}){''.join(tests)}"
        return f"not ({text})" if item.negated and tests else f"{'not ' if item.negated else ''}{text}"


def _typed(name: str) -> str:
    if name == ANY:
        return name
    return f"{'Thing' if name in THINGS else 'Number'} {name}"


def _written(operand: Operand) -> str:
    if isinstance(operand, str):
        return operand
    if isinstance(operand, Sum):
        return f"{_written(operand.left)} {operand.sign} {_written(operand.right)}"
    if not isinstance(operand.value, str):
        return str(operand.value)
    escaped = operand.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class Drawing:
    """Draws a program, layer by layer; `probable`: of two layers about things alone, without exceptions."""

    def __init__(self, rng: random.Random, probable: bool = False) -> None:
        self.rng, self.probable = rng, probable
        self.program = DrawnProgram({**SIGNATURES, **PROBABLE, DOUBTED: "T"} if probable else {**SIGNATURES})
        self.usable = [name for name in (PROBABLE if probable else SIGNATURES) if name != "seen"]
        self.countable = [name for name in self.usable if name != "known"]
        self.open = [DOUBTED] if probable else []
        self._numbers = count(1)

    def drawn(self) -> DrawnProgram:
        program, rng = self.program, self.rng
        program.declarations += [
            f"given {name}({', '.join('Thing' if kind == 'T' else 'Number' for kind in kinds)})."
            for name, kinds in program.signatures.items()
            if name not in ("known", "seen", "row", DOUBTED)
        ]
        program.declarations.append("given row(first: Thing, second: Thing, third: Number) key first, third.")
        for name, by in (("known", 1), ("seen", 0)):
            program.declarations.append(
                f'oracle {name}(Thing, Thing): "[1] has {name} [2]" / "[1] has not {name} [2]".'
            )
            program.declarations.append(f"closed {name}/2{' by 1' if by else ''}.")
            if by:
                program.closed_by[name] = by
        self.usable.append("seen")
        self.countable.append("seen")
        if self.probable:
            program.declarations.append(f'oracle {DOUBTED}(Thing): "[1] is doubted" / "[1] is not doubted".')
            kinds: Sequence[str] = ("relation",)
            last = rng.randint(1, 2)
        else:
            self._declared_rules()
            kinds, last = ("relation", "relation", "number", "aggregate"), rng.randint(2, 4)
        for number in range(1, last + 1):
            kind = rng.choice(kinds)
            layer = {"relation": self._relation, "number": self._number, "aggregate": self._aggregate}[kind](number)
            program.layers.append(layer)
            names = {rule.head.predicate for rule in layer}
            self.usable += sorted([*names, *names])
            premises = chain.from_iterable((rule.premise, *rule.exceptions) for rule in layer)
            if set().union(*map(_predicates, premises)) <= names | set(self.countable):
                self.countable += sorted([*names, *names])
        program.layers.append([self._rule(f"top_{rng.choice('pq')}", "TT", recursive=())])
        return program

    def _declared_rules(self) -> None:
        program, rng = self.program, self.rng
        if rng.random() < 0.25:
            program.declarations.append("symmetric link/2.")
            program.layers.append([DrawnRule("", Call("link", ("Y", "X")), (Call("link", ("X", "Y")),))])
        if rng.random() < 0.15:
            program.declarations.append("transitive edge/2.")
            both = (Call("edge", ("X", "Y")), Call("edge", ("Y", "Z")))
            program.layers.append([DrawnRule("", Call("edge", ("X", "Z")), both)])

    def _name(self, name: str, kinds: str) -> str:
        self.program.signatures[name] = kinds
        return name

    def _relation(self, number: int) -> list[DrawnRule]:
        """One or two predicates of things, recursive through each other in any way."""
        names = [f"r{number}"] + [f"s{number}"] * (self.rng.random() < 0.4)
        own = [self._name(name, self.rng.choice(("TT", "TT", "T"))) for name in names]
        if not self.probable and self.rng.random() < 0.3:
            self.program.declarations.append(
                f"given {own[0]}({', '.join('Thing' for _ in self.program.signatures[own[0]])})."
            )
        found = [self._rule(name, self.program.signatures[name], recursive=()) for name in own]
        for name in own:
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                recursive = own if self.rng.random() < 0.75 else ()
                found.append(self._rule(name, self.program.signatures[name], recursive))
        return found

    def _number(self, number: int) -> list[DrawnRule]:
        name = self._name(f"n{number}", "TN")
        return [self._rule(name, "TN", recursive=()) for _ in range(self.rng.randint(1, 2))]

    def _aggregate(self, number: int) -> list[DrawnRule]:
        """An aggregate by groups of a thing, or of everything."""
        while True:
            premise = self._premise(self.rng.sample(self.countable, 1) + self.rng.choices(self.countable, k=1), "")
            names = variables_of(premise)
            things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
            if things and _predicates(premise) <= set(self.countable):
                break
        group = (self.rng.choice(things),) if self.rng.random() < 0.75 else ()
        rest = [name for name in things if name not in group]
        function = self.rng.choice(("sum", "min", "max", "avg", "count")) if numbers else "count"
        first = numbers[:1] if function != "count" or (numbers and not rest) else []
        counted = tuple(first + rest[: self.rng.randint(0 if first else 1, 2)])
        if not counted:
            return self._relation(number)
        name = self._name(f"g{number}", "T" * len(group) + "N")
        return [DrawnRule("", Call(name, (*group, "K")), premise, function=function, counted=counted)]

    def _rule(self, name: str, kinds: str, recursive: Sequence[str]) -> DrawnRule:
        rng = self.rng
        while True:
            predicates = rng.choices(self.usable, k=rng.randint(1, 3))
            if recursive:
                predicates[0] = rng.choice(recursive)
            premise = self._premise(predicates, kinds if not recursive else "")
            names = variables_of(premise)
            things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
            if ("T" in kinds and not things) or ("N" in kinds and not numbers):
                continue
            terms = tuple(rng.choice(things) if kind == "T" else numbers[-1] for kind in kinds)
            if Call(name, terms) in premise:
                continue
            most = 0 if recursive or self.probable else rng.choice((0, 0, 0, 1, 1, 2))
            exceptions = tuple(self._exception(names) for _ in range(most))
            number = next(self._numbers)
            return DrawnRule(
                f"rule_{number}", Call(self._name(name, kinds), terms), premise, tuple(filter(None, exceptions))
            )

    def _call(self, predicate: str, things: Sequence[str], numbers: Sequence[str], negated: bool = False) -> Call:
        terms: list[str | Quoted] = []
        for kind in self.program.signatures[predicate]:
            chosen = (things or THINGS) if kind == "T" else numbers
            if predicate == "row" and self.rng.random() < 0.3:
                terms.append(self.rng.choice((ANY, ANY, Quoted(MISSING))) if terms else ANY)
            elif not chosen or self.rng.random() < 0.08:
                values = [
                    v for v in (TEXTS[:5] if kind == "T" else SIZES[:6]) if isinstance(v, str if kind == "T" else int)
                ]
                terms.append(Quoted(self.rng.choice(values)))
            else:
                terms.append(self.rng.choice(chosen))
        return Call(predicate, tuple(terms), negated)

    def _premise(self, predicates: Sequence[str], kinds: str) -> tuple[Item, ...]:
        """Atoms, then negations and comparisons of their variables, and calculations of new numbers."""
        rng = self.rng
        free = NUMBERS[1:]
        items: list[Item] = []
        for place, predicate in enumerate(predicates):
            for _ in range(5):  # the second time if it shares no variable with the others
                call = self._call(predicate, THINGS[: place + 2], free[: place + 1])
                if not items or set(variables_of(items)) & set(variables_of([call])):
                    break
            items.append(call)
        names = variables_of(items)
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            items += [
                item
                for item in self._condition(names)
                if not isinstance(item, Call) or item._replace(negated=False) not in items
            ]
        numbers = [name for name in names if name in NUMBERS]
        if "N" in kinds and numbers and rng.random() < 0.6:
            right = self._sum(numbers)
            items.append(Order("K", "=", right, "K"))
        rng.shuffle(items)
        return tuple(items)

    def _sum(self, numbers: Sequence[str]) -> Sum:
        sign = self.rng.choice(("+", "+", "-", "*", "/", "//", "mod"))
        is_variable = self.rng.random() < 0.5 and sign in "+-*"
        right = self.rng.choice(numbers) if is_variable else Quoted(self.rng.choice((2, 4, 5)))
        return Sum(self.rng.choice(numbers), sign, right)

    def _condition(self, names: Sequence[str]) -> list[Item]:
        rng = self.rng
        things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
        left: Operand
        right: Operand
        if numbers and rng.random() < 0.4:
            left = self._sum(numbers) if rng.random() < 0.4 else rng.choice(numbers)
            others = [name for name in numbers if name != left]
            right = rng.choice(others) if others else Quoted(rng.choice((0, 2, 5)))
            # A number may be a text, and of equal texts the loops know no order.
            signs = ("<", ">") if others and isinstance(left, str) else ("<", "=<", ">", ">=")
            return [Order(left, rng.choice(signs), right)]
        if len(things) > 1 and rng.random() < 0.3:
            left, right = rng.sample(things, 2)
            return [Order(left, "\\=", right)]
        if not things:
            return []
        call = self._call(rng.choice([*self.usable, *self.open]), things, numbers, negated=True)
        return [call] if variables_of([call._replace(negated=False)]) else []

    def _exception(self, names: Sequence[str]) -> tuple[Item, ...]:
        """A premise that shares a variable with its rule and may have another one of its own."""
        things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
        if numbers and self.rng.random() < 0.2:
            return (Order(self.rng.choice(numbers), self.rng.choice(("<", ">")), Quoted(self.rng.choice((0, 2, 4)))),)
        if not things:
            return ()
        own = [name for name in THINGS if name not in names][:1]
        items: list[Item] = [self._call(self.rng.choice(self.usable), [*things, *own], numbers)]
        if not set(variables_of(items)) & set(names):
            return ()
        if self.rng.random() < 0.3:
            items += self._condition(variables_of(items))
        return tuple(items)


def variables_of(items: Iterable[Item]) -> list[str]:
    """The variables of positive atoms and of calculations, in order."""
    found: dict[str, None] = {}
    for item in items:
        if isinstance(item, Call) and not item.negated:
            found |= dict.fromkeys(term for term in item.terms if isinstance(term, str) and term != ANY)
        elif isinstance(item, Order) and item.gives:
            found[item.gives] = None
    return list(found)


def _predicates(items: Iterable[Item]) -> set[str]:
    return {item.predicate for item in items if isinstance(item, Call)}


def drawn_fact(rng: random.Random, program: DrawnProgram) -> FactRecord:
    """A random fact of a given or oracle predicate, sometimes of a derived one."""
    given = [line.split()[1].partition("(")[0] for line in program.declarations if line.startswith("given")]
    name = rng.choice([*given, "known", "seen", "edge"])
    few = TEXTS[: rng.choice((4, 4, len(TEXTS)))]
    values = tuple(rng.choice(few if kind == "T" else SIZES) for kind in program.signatures[name])
    if name == "row":
        values = (values[0], MISSING if rng.random() < 0.3 else values[1], values[2])  # outside of the key
    types = tuple("Thing" if kind == "T" else "Number" for kind in program.signatures[name])
    return FactRecord(name, values, types, Source.GIVEN, 1.0)


def cell(value: Value | Fraction) -> Cell:
    """A value with which equal numbers are equal, whatever their digits."""
    return value if isinstance(value, str) else Fraction(value)


@dataclass
class Compared:
    """Counts of what was compared, and the differences, each with its program."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return f"{len(self.differences)} differences; {counts}"


def accepted(drawing: Callable[[], Drawing], found: Compared) -> tuple[DrawnProgram, Library]:
    """A drawn program, and the library that it is read as; a program that `check` rejects is drawn again."""
    while True:
        program = drawing().drawn()
        try:
            library = parse_library([("f.rules", program.text)])
        except RulesRejected:
            library = None
        if library is not None and not library_errors(library):
            found.counts["programs"] += 1
            return program, library
        found.counts["drawn again"] += 1


def compare_drawn(description: str, programs: int, compare: Callable[[str, Compared], object]) -> int:
    """Compare random programs as the command line says; the exit code is 1 if there is a difference.

    `programs`: how many by default; `compare` draws the program of a seed and compares it.
    """
    parser = argparse.ArgumentParser(description=description.partition(":")[0])
    parser.add_argument("--programs", type=int, default=programs)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    options = parser.parse_args()
    found = Compared()
    for number in range(options.first, options.first + options.programs):
        before = len(found.differences)
        compare(f"{options.seed}-{number}", found)
        for difference in found.differences[before:]:
            print(difference, flush=True)
        if sys.stderr.isatty() or (number + 1) % 100 == 0:
            print(f"\r{found}", file=sys.stderr, flush=True)
    print(found)
    return 1 if found.differences else 0
