"""Random programs by SQL, by Prolog and by loops over the facts: `python -m tools.differential --programs 2000`.

A program has up to four layers of rules over random facts: joins, recursion, negation, `closed` predicates, arithmetic,
`unless`, `symmetric` and `transitive` declarations, and aggregates. Facts are then added, withdrawn and restored three
times. After each change `derive`, which follows it, has to give what `conclusions` gives: loops over the facts, which
share no code with the engines and do not read the program's text. Goals over all derived predicates have to agree with
both, and after the last change Prolog's statements with those of SQL, proofs included.
"""

from __future__ import annotations

import argparse
import operator
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain, count
from typing import NamedTuple

from hapax.engine.inference.bulk_derivation import RUN_ID, derive_all, read_statements
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.session import PrologSession, QueryLimits
from hapax.engine.inference.theory import Theory, run_query
from hapax.grammar.checks import library_errors
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase

CHANGES = 3
THINGS, NUMBERS = ("X", "Y", "Z", "U"), ("K", "M", "N")
SIGNATURES = {
    "edge": "TT", "link": "TT", "mark": "T", "weighs": "TN", "sold": "TTN", "known": "TT", "seen": "TT",
}  # fmt: skip
TEXTS: Sequence[Value] = ("a", "b", "c", "d", 2, Decimal("2.0"), "2", 'it\'s \\ "it"\n', "caf\u00e9", "cafe\u0301", "")
SIZES: Sequence[Value] = (0, 1, 2, 3, 7, -4, Decimal("2.0"), Decimal("0.5"), Decimal("2.50"), Decimal("-0.1"), "light")
ORDERS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "\\=": operator.ne,
}  # fmt: skip
SUMS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip

Cell = str | Fraction
Facts = dict[str, set[tuple[Cell, ...]]]
Binding = dict[str, Cell]


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
        terms = (_typed(term) if isinstance(term, str) else _written(term) for term in item.terms)
        return f"{'not ' if item.negated else ''}{item.predicate}({', '.join(terms)})"


def _typed(name: str) -> str:
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


# --- drawing --------------------------------------------------------------------------------------------------------


class Drawing:
    """Draws a program, layer by layer."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.program = DrawnProgram()
        self.usable = [name for name in SIGNATURES if name != "seen"]
        self.countable = [name for name in self.usable if name != "known"]
        self._numbers = count(1)

    def drawn(self) -> DrawnProgram:
        program, rng = self.program, self.rng
        program.declarations += [
            f"given {name}({', '.join('Thing' if kind == 'T' else 'Number' for kind in kinds)})."
            for name, kinds in SIGNATURES.items()
            if name not in ("known", "seen")
        ]
        for name, by in (("known", 1), ("seen", 0)):
            program.declarations.append(
                f'oracle {name}(Thing, Thing): "[1] has {name} [2]" / "[1] has not {name} [2]".'
            )
            program.declarations.append(f"closed {name}/2{' by 1' if by else ''}.")
            if by:
                program.closed_by[name] = by
        self.usable.append("seen")
        self.countable.append("seen")
        if rng.random() < 0.25:
            program.declarations.append("symmetric link/2.")
            program.layers.append([DrawnRule("", Call("link", ("Y", "X")), (Call("link", ("X", "Y")),))])
        if rng.random() < 0.15:
            program.declarations.append("transitive edge/2.")
            both = (Call("edge", ("X", "Y")), Call("edge", ("Y", "Z")))
            program.layers.append([DrawnRule("", Call("edge", ("X", "Z")), both)])
        for number in range(1, rng.randint(2, 4) + 1):
            kind = rng.choice(("relation", "relation", "number", "aggregate"))
            layer = {"relation": self._relation, "number": self._number, "aggregate": self._aggregate}[kind](number)
            program.layers.append(layer)
            names = {rule.head.predicate for rule in layer}
            self.usable += sorted([*names, *names])
            premises = chain.from_iterable((rule.premise, *rule.exceptions) for rule in layer)
            if set().union(*map(_predicates, premises)) <= names | set(self.countable):
                self.countable += sorted([*names, *names])
        program.layers.append([self._rule(f"top_{rng.choice('pq')}", "TT", recursive=())])
        return program

    def _name(self, name: str, kinds: str) -> str:
        self.program.signatures[name] = kinds
        return name

    def _relation(self, number: int) -> list[DrawnRule]:
        """One or two predicates of things, recursive through each other in any way."""
        names = [f"r{number}"] + [f"s{number}"] * (self.rng.random() < 0.4)
        own = [self._name(name, self.rng.choice(("TT", "TT", "T"))) for name in names]
        if self.rng.random() < 0.3:
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
            names = _variables(premise)
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
            names = _variables(premise)
            things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
            if ("T" in kinds and not things) or ("N" in kinds and not numbers):
                continue
            terms = tuple(rng.choice(things) if kind == "T" else numbers[-1] for kind in kinds)
            if Call(name, terms) in premise:
                continue
            most = 0 if recursive else rng.choice((0, 0, 0, 1, 1, 2))
            exceptions = tuple(self._exception(names) for _ in range(most))
            number = next(self._numbers)
            return DrawnRule(
                f"rule_{number}", Call(self._name(name, kinds), terms), premise, tuple(filter(None, exceptions))
            )

    def _call(self, predicate: str, things: Sequence[str], numbers: Sequence[str], negated: bool = False) -> Call:
        terms: list[str | Quoted] = []
        for kind in self.program.signatures[predicate]:
            chosen = (things or THINGS) if kind == "T" else numbers
            if not chosen or self.rng.random() < 0.08:
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
                if not items or set(_variables(items)) & set(_variables([call])):
                    break
            items.append(call)
        names = _variables(items)
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
        sign = self.rng.choice("++-*/")
        right = (
            self.rng.choice(numbers) if self.rng.random() < 0.5 and sign != "/" else Quoted(self.rng.choice((2, 4, 5)))
        )
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
            return [Order(left, rng.choice(("<", "=<", ">", ">=")), right)]
        if len(things) > 1 and rng.random() < 0.3:
            left, right = rng.sample(things, 2)
            return [Order(left, "\\=", right)]
        if not things:
            return []
        call = self._call(rng.choice(self.usable), things, numbers, negated=True)
        return [call] if _variables([call._replace(negated=False)]) else []

    def _exception(self, names: Sequence[str]) -> tuple[Item, ...]:
        """A premise that shares a variable with its rule and may have another one of its own."""
        things, numbers = [n for n in names if n in THINGS], [n for n in names if n in NUMBERS]
        if numbers and self.rng.random() < 0.2:
            return (Order(self.rng.choice(numbers), self.rng.choice(("<", ">")), Quoted(self.rng.choice((0, 2, 4)))),)
        if not things:
            return ()
        own = [name for name in THINGS if name not in names][:1]
        items: list[Item] = [self._call(self.rng.choice(self.usable), [*things, *own], numbers)]
        if not set(_variables(items)) & set(names):
            return ()
        if self.rng.random() < 0.3:
            items += self._condition(_variables(items))
        return tuple(items)


def _variables(items: Iterable[Item]) -> list[str]:
    """The variables of positive atoms and of calculations, in order."""
    found: dict[str, None] = {}
    for item in items:
        if isinstance(item, Call) and not item.negated:
            found |= dict.fromkeys(term for term in item.terms if isinstance(term, str))
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
    types = tuple("Thing" if kind == "T" else "Number" for kind in program.signatures[name])
    return FactRecord(name, values, types, Source.GIVEN, 1.0)


# --- loops over the facts -------------------------------------------------------------------------------------------


def cell(value: Value | Fraction) -> Cell:
    """A value with which equal numbers are equal, whatever their digits."""
    return value if isinstance(value, str) else Fraction(value)


def conclusions(
    program: DrawnProgram, found: Iterable[FactRecord]
) -> tuple[Facts, dict[str, set[frozenset[tuple[str, Cell]]]]]:
    """All atoms that hold, by predicate, and all instances of each rule, by loops over the facts."""
    facts: Facts = {name: set() for name in program.signatures}
    for record in found:
        facts[record.predicate].add(tuple(map(cell, record.arguments)))
    loops = FactLoops(program, facts)
    for layer in program.layers:
        grown = True
        while grown:
            grown = False
            for rule in layer:
                new = set(loops.concluded(rule)) - facts[rule.head.predicate]
                facts[rule.head.predicate] |= new
                grown = grown or bool(new)
    instances = {
        rule.name: {
            frozenset((name, printed(value)) for name, value in binding.items()) for binding in loops.instances(rule)
        }
        for rule in program.rules
    }
    return facts, instances


class FactLoops:
    """Rules by loops over facts, without an index and without the project's parser, SQL or Prolog."""

    def __init__(self, program: DrawnProgram, facts: Facts) -> None:
        self.closed_by = program.closed_by
        self.facts = facts

    def concluded(self, rule: DrawnRule) -> Iterator[tuple[Cell, ...]]:
        if rule.function:
            yield from self._aggregated(rule)
            return
        for binding in self.instances(rule):
            yield tuple(_value(term, binding) for term in rule.head.terms)

    def instances(self, rule: DrawnRule) -> Iterator[Binding]:
        for binding in self._solved(_ordered(rule.premise), {}):
            if not any(next(self._solved(_ordered(items), binding), None) is not None for items in rule.exceptions):
                yield binding

    def _aggregated(self, rule: DrawnRule) -> Iterator[tuple[Cell, ...]]:
        group = rule.head.terms[:-1]
        rows: dict[tuple[Cell, ...], set[tuple[Cell, ...]]] = {}
        for binding in self.instances(rule):
            key = tuple(_value(term, binding) for term in group)
            rows.setdefault(key, set()).add(tuple(binding[name] for name in rule.counted))
        for key, counted in rows.items():
            if rule.function == "count":
                yield (*key, Fraction(len(counted)))
                continue
            numbers = [row[0] for row in counted if isinstance(row[0], Fraction)]
            if numbers:
                total = sum(numbers, Fraction(0))
                results = {"sum": total, "min": min(numbers), "max": max(numbers), "avg": total / len(numbers)}
                yield (*key, results[rule.function])

    def _solved(self, items: Sequence[Item], binding: Binding) -> Iterator[Binding]:
        if not items:
            yield binding
            return
        item, rest = items[0], items[1:]
        if isinstance(item, Order):
            following = _compared(item, binding)
            if following is not None:
                yield from self._solved(rest, following)
        elif item.negated:
            if self._is_false(item, binding):
                yield from self._solved(rest, binding)
        else:
            for row in self.facts[item.predicate]:
                matched = _matched(item.terms, row, binding)
                if matched is not None:
                    yield from self._solved(rest, matched)

    def _is_false(self, item: Call, binding: Binding) -> bool:
        row = tuple(_value(term, binding) for term in item.terms)
        if row in self.facts[item.predicate]:
            return False
        by = self.closed_by.get(item.predicate)
        return by is None or any(known[by - 1] == row[by - 1] for known in self.facts[item.predicate])


def _ordered(items: Sequence[Item]) -> list[Item]:
    """Atoms, then equations that give values, then conditions."""
    atoms = [item for item in items if isinstance(item, Call) and not item.negated]
    given = [item for item in items if isinstance(item, Order) and item.gives]
    return [*atoms, *given, *(item for item in items if item not in atoms and item not in given)]


def _value(term: str | Quoted, binding: Binding) -> Cell:
    return binding[term] if isinstance(term, str) else cell(term.value)


def _matched(terms: Sequence[str | Quoted], row: Sequence[Cell], binding: Binding) -> Binding | None:
    found = dict(binding)
    for term, value in zip(terms, row, strict=True):
        wanted = found.setdefault(term, value) if isinstance(term, str) else cell(term.value)
        if wanted != value:
            return None
    return found


def _compared(item: Order, binding: Binding) -> Binding | None:
    """The binding with the value that an equation gives; None if the comparison is false."""
    if item.sign == "\\=":
        return binding if _value(item.left, binding) != _value(item.right, binding) else None  # type: ignore[arg-type]
    right = _calculated(item.right, binding)
    if item.gives and item.gives not in binding:
        return None if right is None else {**binding, item.gives: right}
    left = _calculated(item.left, binding)
    return binding if left is not None and right is not None and ORDERS[item.sign](left, right) else None


def _calculated(operand: Operand, binding: Binding) -> Fraction | None:
    """A number; None for texts, and for a division by zero."""
    if isinstance(operand, Sum):
        left, right = _calculated(operand.left, binding), _calculated(operand.right, binding)
        if left is None or right is None or (operand.sign == "/" and right == 0):
            return None
        return SUMS[operand.sign](left, right)
    value = _value(operand, binding)
    return None if isinstance(value, str) else value


# --- comparing ------------------------------------------------------------------------------------------------------


@dataclass
class ComparedPrograms:
    """Counts of what was compared, and the differences."""

    programs: int = 0
    rejected: int = 0
    statements: int = 0
    goals: int = 0
    engines: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rules = ", ".join(f"{number} {engine}" for engine, number in sorted(self.engines.items()))
        return (
            f"{self.programs} programs ({self.rejected} drawn again): {self.statements} statements, "
            f"{self.goals} goals; derivations of rules: {rules}; {len(self.differences)} differences"
        )


def compare_program(seed: str, session: PrologSession, found: ComparedPrograms) -> None:
    """Draw the program of a seed and compare all engines over it; a difference is told with the program."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    while (accepted := _accepted(Drawing(rng).drawn())) is None:
        found.rejected += 1
    program, library = accepted
    found.programs += 1
    with KnowledgeBase() as kb:
        changing = ChangingFacts(kb, program, rng)
        for change in range(CHANGES + 1):
            changing.change(first=change == 0)
            trial = ProgramRun(program, library, kb, session)
            try:
                reports = list(trial.differences(changing.facts.values(), found, change))
            except HapaxError as fault:
                reports = [f"{type(fault).__name__}: {fault}"]
            stored = "\n".join(f"  {record.predicate}{record.arguments}" for record in changing.facts.values())
            for line in reports:
                found.differences.append(f"seed {seed}, change {change}: {line}\n{program.text}{stored}")


def _accepted(program: DrawnProgram) -> tuple[DrawnProgram, Library] | None:
    """The program as a library; None if `check` finds an error in it."""
    try:
        library = parse_library([("f.rules", program.text)])
    except RulesRejected:
        return None
    return None if library_errors(library) else (program, library)


class ChangingFacts:
    """Random facts in a knowledge base, and beside it those that stand."""

    def __init__(self, kb: KnowledgeBase, program: DrawnProgram, rng: random.Random) -> None:
        self.kb, self.program, self.rng = kb, program, rng
        self.facts: dict[str, FactRecord] = {}

    def change(self, first: bool) -> None:
        """Add facts; after the first time also withdraw a few, and bring some of these back."""
        rng, few = self.rng, (0, 1, 2, 4)
        gone = [] if first else rng.sample(sorted(self.facts), min(len(self.facts), rng.choice(few)))
        self.kb.withdraw(gone, "wrong", "user")
        restored = [identity for identity in gone if rng.random() < 0.2]
        self.kb.restore(restored)
        for identity in set(gone) - set(restored):
            del self.facts[identity]
        withdrawn = {item.fact.id for item in self.kb.withdrawals()}
        new = [drawn_fact(rng, self.program) for _ in range(rng.randint(10, 50) if first else rng.choice(few))]
        new = [record for record in new if record.id not in withdrawn]
        self.kb.add_facts(new)
        self.facts |= {record.id: record for record in new}


@dataclass(frozen=True)
class ProgramRun:
    """A program over the facts of a knowledge base, by all engines."""

    program: DrawnProgram
    library: Library
    kb: KnowledgeBase
    session: PrologSession

    def differences(self, facts: Iterable[FactRecord], found: ComparedPrograms, change: int) -> Iterator[str]:
        """Derive, and compare statements, and at the first and last change goals, with loops over the facts."""
        atoms, instances = conclusions(self.program, facts)
        rules = [self.library.rule(rule.name) for rule in self.program.rules]
        for report in derive_all(self.kb, self.library, rules, session=self.session).rules:
            found.engines[report.engine] = found.engines.get(report.engine, 0) + 1
        for rule in rules:
            records = list(read_statements(self.kb, self.library, rule, self.session))
            found.statements += len(records)
            yield from _compared_sets(f"derive, {rule.name}", _instances(records), instances[rule.name])
            if change == CHANGES:
                proved = self._by_prolog(rule)
                yield from _compared_sets(f"Prolog, {rule.name}", _instances(proved), instances[rule.name])
                yield from _compared_sets(f"proofs, {rule.name}", set(map(repr, records)), set(map(repr, proved)))
        if change in (0, CHANGES):
            for predicate in sorted({rule.head.predicate for layer in self.program.layers for rule in layer}):
                found.goals += 1
                right = {tuple(map(printed, row)) for row in atoms[predicate]}
                yield from _compared_sets(f"query {predicate}", self._answers(predicate), right)

    def _by_prolog(self, rule: Rule) -> list[StatementRecord]:
        kept = KeptSubstitutions(rule, {Distribution.HEAD: [Substitution()]}, RUN_ID)
        facts = Theory(self.library, self.kb).relevant_to(rule).facts()
        return derive_statements(self.session, self.library, facts, kept)

    def _answers(self, predicate: str) -> set[tuple[Cell, ...]]:
        goal = f"{predicate}({', '.join(f'A{place}' for place, _ in enumerate(self.program.signatures[predicate]))})"
        rows = run_query(Theory(self.library, self.kb), goal, QueryLimits(seconds=60), session=self.session).rows
        return {tuple(cell(value) for value in row) for row in rows}  # type: ignore[arg-type]


def _instances(records: Iterable[StatementRecord]) -> set[frozenset[tuple[str, Cell]]]:
    return {frozenset((name, cell(value)) for name, value in record.substitution) for record in records}


def printed(value: Cell) -> Cell:
    """A value as it is printed: a fraction that has no end, to 28 digits."""
    if isinstance(value, str) or 10**400 % value.denominator == 0:
        return value
    return Fraction(Decimal(value.numerator) / Decimal(value.denominator))


def _compared_sets(subject: str, got: set, right: set) -> Iterator[str]:  # type: ignore[type-arg]
    if got != right:
        missing, excess = (sorted(map(repr, rows))[:3] for rows in (right - got, got - right))
        yield f"{subject}: missing {missing}, too many {excess}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare programs; the exit code is 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--programs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    options = parser.parse_args(arguments)
    found = ComparedPrograms()
    with PrologSession() as session:
        for number in range(options.first, options.first + options.programs):
            before = len(found.differences)
            compare_program(f"{options.seed}-{number}", session, found)
            for difference in found.differences[before:]:
                print(difference, flush=True)
            if sys.stderr.isatty() or (number + 1) % 100 == 0:
                print(f"\r{found}", file=sys.stderr)
    print(found)
    return 1 if found.differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
