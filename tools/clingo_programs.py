"""Random programs of `tools.differential` by clingo, where it is installed: `pip install clingo`.

clingo calculates with 32-bit integers, so numbers are hundredths there. Programs with averages, and those in which a
hundredth is not exact or a product too large, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from hapax.grammar.terms import MISSING
from tools.drawn_programs import (
    Call,
    Cell,
    DrawnProgram,
    DrawnRule,
    Facts,
    Item,
    Operand,
    Order,
    Quoted,
    Sum,
    cell,
    variables_of,
)

Instances = dict[str, set[frozenset[tuple[str, Cell]]]]

_MISSING = "missing"
HUNDREDTHS = 100
LARGEST = 46_340
"""Hundredths whose product is below two to the power of 31."""

_MIRRORED = {"=<": "<=", "\\=": "!="}


def has_clingo() -> bool:
    """True if clingo is installed."""
    return find_spec("clingo") is not None


def by_clingo(program: DrawnProgram, facts: Facts) -> tuple[Facts, Instances] | None:
    """All atoms that hold and all instances of each rule; None if clingo cannot calculate the program exactly."""
    import clingo

    translation = ClingoTranslation(program)
    text = translation.text(facts)
    if text is None:
        return None
    control = clingo.Control(["--warn=none"])
    control.add("base", [], text)
    control.ground([("base", [])])
    shown: list[Any] = []
    control.solve(on_model=lambda model: shown.extend(model.symbols(atoms=True)))
    return translation.read(shown)


class ClingoTranslation:
    """A program as text for clingo: integers are hundredths, texts are terms `t(N)`."""

    def __init__(self, program: DrawnProgram) -> None:
        self.program = program
        self.texts: dict[str, int] = {}

    def text(self, facts: Facts) -> str | None:
        """The program with its facts; None if a number has no exact hundredths, or for an average."""
        rules = [rule for layer in self.program.layers for rule in layer]
        if any(rule.function == "avg" for rule in rules):
            return None
        lines = []
        for predicate, rows in facts.items():
            for row in rows:
                cells = [self._constant(value) for value in row]
                if None in cells:
                    return None
                lines.append(f"{predicate}({','.join(map(str, cells))}).")
        for name, place in self.program.closed_by.items():
            blanks = ["_"] * len(self.program.signatures[name])
            blanks[place - 1] = "X"
            lines.append(f"covered_{name}(X) :- {name}({','.join(blanks)}).")
        for number, rule in enumerate(rules):
            lines += self._aggregate(number, rule) if rule.function else self._rule(number, rule)
        return "\n".join(lines)

    def read(self, symbols: Iterable[Any]) -> tuple[Facts, Instances] | None:
        """Atoms and instances of a model; None if something in it was not exact."""
        texts = {number: text for text, number in self.texts.items()}
        rules = [rule for layer in self.program.layers for rule in layer]
        facts: Facts = {name: set() for name in self.program.signatures}
        instances: Instances = {rule.name: set() for rule in self.program.rules}
        for symbol in symbols:
            if symbol.name == "inexact":
                return None
            row: list[Cell] = []
            for argument in symbol.arguments:
                if str(argument) == _MISSING:
                    row.append(MISSING)
                elif "t(" in str(argument):
                    row.append(texts[argument.arguments[0].number])
                elif abs(argument.number) > LARGEST:
                    return None
                else:
                    row.append(Fraction(argument.number, HUNDREDTHS))
            if symbol.name in facts:
                facts[symbol.name].add(tuple(row))
            elif (found := re.fullmatch("instance_([0-9]+)", symbol.name)) and rules[int(found[1])].name:
                rule = rules[int(found[1])]
                instances[rule.name].add(frozenset(zip(_names(rule), row, strict=True)))
        return facts, instances

    def _constant(self, value: Cell) -> str | None:
        if value is MISSING:
            return _MISSING
        if isinstance(value, str):
            return f"t({self.texts.setdefault(value, len(self.texts))})"
        scaled = value * HUNDREDTHS
        return str(scaled.numerator) if scaled.denominator == 1 and abs(scaled) <= LARGEST else None

    def _term(self, term: str | Quoted) -> str:
        if isinstance(term, str):
            return term
        constant = self._constant(cell(term.value))
        assert constant is not None  # noqa: S101  constants of programs are small and have few digits
        return constant

    def _rule(self, number: int, rule: DrawnRule) -> list[str]:
        names, head = _names(rule), self._call(rule.head)
        instance = _atom(f"instance_{number}", names)
        body, inexact = self._body(rule.premise)
        lines = [f"inexact :- {', '.join([*body, wrong])}." for wrong in inexact]
        excepted = []
        for place, items in enumerate(rule.exceptions):
            more, _ = self._body(items)
            exception = _atom(f"exception_{number}_{place}", names)
            lines.append(f"{exception} :- {', '.join([*body, *more])}.")
            excepted.append(f"not {exception}")
        return [*lines, f"{instance} :- {', '.join([*body, *excepted])}.", f"{head} :- {instance}."]

    def _aggregate(self, number: int, rule: DrawnRule) -> list[str]:
        body, inexact = self._body(rule.premise)
        lines = [f"inexact :- {', '.join([*body, wrong])}." for wrong in inexact]
        if rule.function != "count":
            body.append(_is_number(rule.counted[0]))
        group = [self._term(term) for term in rule.head.terms[:-1]]
        lines.append(f"{_atom(f'group_{number}', group)} :- {', '.join(body)}.")
        result = f"K = #{rule.function} {{ {','.join(rule.counted)} : {', '.join(body)} }}"
        value = f"K*{HUNDREDTHS}" if rule.function == "count" else "K"
        head = _atom(rule.head.predicate, [*group, value])
        return [*lines, f"{head} :- {result}, {_atom(f'group_{number}', group)}."]

    def _body(self, items: Sequence[Item]) -> tuple[list[str], list[str]]:
        """The literals of a premise, and conditions under which a calculation is not exact."""
        body: list[str] = []
        inexact: list[str] = []
        for item in items:
            if isinstance(item, Order):
                literals, wrong = self._order(item)
                body += literals
                inexact += wrong
                continue
            body.append(("not " if item.negated else "") + self._call(item))
            if not item.negated:
                body += [f"{name} != {_MISSING}" for name in variables_of([item])]
            place = self.program.closed_by.get(item.predicate)
            if item.negated and place is not None:
                body.append(f"covered_{item.predicate}({self._term(item.terms[place - 1])})")
        return body, inexact

    def _call(self, call: Call) -> str:
        return _atom(call.predicate, [self._term(term) for term in call.terms])

    def _order(self, item: Order) -> tuple[list[str], list[str]]:
        """A comparison of both sides in ten-thousandths, or the value that an equation gives, in hundredths."""
        sign = _MIRRORED.get(item.sign, item.sign)
        if item.sign == "\\=" and not isinstance(item.left, Sum) and not isinstance(item.right, Sum):
            return [f"{self._term(item.left)} {sign} {self._term(item.right)}"], []
        operands = [item.right] if item.gives else [item.left, item.right]
        numbers = [_is_number(name) for operand in operands for name in _operand_names(operand)]
        if item.gives:
            value, divisor = self._calculated(item.right)
            return [*numbers, f"{item.gives} = ({value}) / {divisor}"], [f"({value}) \\ {divisor} != 0"]
        (left, below), (right, under) = map(self._calculated, operands)
        return [*numbers, f"({left}) * {under} {sign} ({right}) * {below}"], []

    def _calculated(self, operand: Operand) -> tuple[str, int]:
        """An expression and the number that it is to be divided by, for a result in hundredths."""
        if not isinstance(operand, Sum):
            return self._term(operand), 1
        assert not isinstance(operand.left, Sum) and not isinstance(operand.right, Sum)  # noqa: S101, PT018  one operator
        left, right = self._term(operand.left), self._term(operand.right)
        if operand.sign == "*":
            return f"{left} * {right}", HUNDREDTHS
        if operand.sign in ("/", "//", "mod"):
            assert isinstance(operand.right, Quoted)  # noqa: S101  only constants divide
            divisor = int(operand.right.value)
            if operand.sign == "/":
                return left, divisor
            # clingo's remainder has the sign of the dividend.
            divisor *= HUNDREDTHS
            if operand.sign == "mod":
                return f"(({left} \\ {divisor}) + {divisor}) \\ {divisor}", 1
            return f"({left} / {divisor}) * {HUNDREDTHS}", 1
        return f"{left} {operand.sign} {right}", 1


def _names(rule: DrawnRule) -> list[str]:
    return variables_of(rule.premise)


def _operand_names(operand: Operand) -> list[str]:
    if isinstance(operand, Sum):
        return [*_operand_names(operand.left), *_operand_names(operand.right)]
    return [operand] if isinstance(operand, str) else []


def _is_number(name: str) -> str:
    """All integers come before all terms."""
    return f"{name} < t(0)"


def _atom(name: str, arguments: Sequence[str]) -> str:
    return f"{name}({','.join(arguments)})" if arguments else name
