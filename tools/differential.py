"""Random programs by the evaluator, by Prolog and by loops: `python -m tools.differential --programs 2000`.

A program has up to four layers of rules over random facts: joins, recursion, negation, `closed` predicates, arithmetic,
`unless`, `symmetric` and `transitive` declarations, and aggregates. Facts are then added, withdrawn and restored three
times. After each change `derive`, which follows it, has to give what `conclusions` gives: loops over the facts, which
share no code with the evaluator and do not read the program's text. Goals over all derived predicates, and goals that
count, add up and list their atoms, have to agree with both; after the last change statements and proofs that are
derived by demand, too, and the atoms of the compiled library that plain SWI-Prolog consults.
"""

from __future__ import annotations

import operator
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hapax.engine.answers.derivation import RUN_ID, derive_all, read_statements
from hapax.engine.answers.query import run_query
from hapax.engine.inference.derive import KeptSubstitutions
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.proofs import derive_statements
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import AnswerCell, PrologSession, PrologTerm
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import MISSING, Substitution
from hapax.grammar.writing.prolog_text import program_text, prolog_atom, prolog_value
from hapax.kb.records import Distribution, FactRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from tools.drawn_programs import (
    ANY,
    Call,
    Cell,
    Compared,
    Drawing,
    DrawnProgram,
    DrawnRule,
    Facts,
    Item,
    Operand,
    Order,
    Quoted,
    Sum,
    accepted,
    cell,
    compare_drawn,
    drawn_fact,
)

Instances = dict[str, set[frozenset[tuple[str, Cell]]]]

_SHOW = """
show(Name, Arity) :-
    length(Cells, Arity),
    Goal =.. [Name|Cells],
    forall(hapax:Goal, ( atom_codes(Name, Codes), line(Codes, Arity, Cells) )).
line(Codes, Arity, Cells) :- format("~w/~w", [Codes, Arity]), forall(member(Cell, Cells), cell(Cell)), nl.
cell(Cell) :- rational(Cell, N, D), !, format(" ~w/~w", [N, D]).
cell(Cell) :- atom_codes(Cell, Codes), format(" ~w", [Codes]).
"""


def consulted_atoms(
    library: Library, facts: Iterable[FactRecord], indicators: Sequence[str]
) -> dict[str, set[tuple[str | Fraction, ...]]]:
    """All atoms of predicates, by indicator. Numbers are fractions."""
    clauses = [f":- assertz(hapax:{_fact(fact)})." for fact in facts]
    goals = ", ".join(f"show({prolog_atom(name.rpartition('/')[0])}, {name.rpartition('/')[2]})" for name in indicators)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "library.pl").write_text(program_text(library), "utf-8")
        text = "\n".join([":- encoding(utf8).", *clauses, _SHOW])
        Path(folder, "facts.pl").write_text(text, "utf-8")
        command = ["swipl", "-q", "-f", "none", "-g", f"{goals}, halt", "library.pl", "facts.pl"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    if ended.stderr:
        raise AssertionError(f"SWI-Prolog says: {ended.stderr}")
    found: dict[str, set[tuple[str | Fraction, ...]]] = {indicator: set() for indicator in indicators}
    for line in ended.stdout.splitlines():
        codes, *cells = line.split(" ")
        name, _, arity = codes.rpartition("/")
        found[f"{_text(name)}/{arity}"].add(tuple(map(_cell, cells)))
    return found


def _fact(fact: FactRecord) -> str:
    return f"{prolog_atom(fact.predicate)}({', '.join(map(prolog_value, fact.arguments))})"


def _cell(written: str) -> str | Fraction:
    return _text(written) if written.startswith("[") else Fraction(written)


def _text(codes: str) -> str:
    return "".join(chr(int(code)) for code in codes[1:-1].split(",") if code)


CHANGES = 3
ORDERS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "\\=": operator.ne,
}  # fmt: skip
SUMS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": lambda left, right: Fraction(int(left / right)), "mod": operator.mod,
}  # fmt: skip

Binding = dict[str, Cell]
Collected = Cell | tuple[Cell, ...]
"""A cell of an answer, or a list of cells in an order that does not matter."""


# --- loops over the facts -------------------------------------------------------------------------------------------


def conclusions(program: DrawnProgram, found: Iterable[FactRecord]) -> tuple[Facts, Instances]:
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
    instances = {rule.name: {frozenset(binding.items()) for binding in loops.instances(rule)} for rule in program.rules}
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
        if any(_matched(item.terms, row, binding) is not None for row in self.facts[item.predicate]):
            return False
        by = self.closed_by.get(item.predicate)
        if by is None:
            return True
        value = _value(item.terms[by - 1], binding)
        return any(known[by - 1] == value for known in self.facts[item.predicate])


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
        if term == ANY:
            continue
        if value is MISSING and isinstance(term, str):
            return None
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


def compare_program(seed: str, session: PrologSession, found: Compared) -> None:
    """Draw the program of a seed and compare all engines over it; a difference is told with the program."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    program, library = accepted(lambda: Drawing(rng), found)
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


class ChangingFacts:
    """Random facts in a knowledge base, and beside it those that stand."""

    def __init__(self, kb: KnowledgeBase, program: DrawnProgram, rng: random.Random) -> None:
        self.kb, self.program, self.rng = kb, program, rng
        self.facts: dict[str, FactRecord] = {}

    def change(self, first: bool) -> None:
        """Add facts; after the first time also withdraw a few, and bring some of these back."""
        rng, few = self.rng, (0, 1, 2, 4)
        gone = [] if first else rng.sample(sorted(self.facts), min(len(self.facts), rng.choice(few)))
        self.kb.withdraw([self.facts[identity] for identity in gone], "wrong", "user")
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

    def differences(self, facts: Iterable[FactRecord], found: Compared, change: int) -> Iterator[str]:
        """Derive, and compare statements, and at the first and last change goals, with loops over the facts."""
        atoms, instances = conclusions(self.program, facts)
        rules = [self.library.rule(rule.name) for rule in self.program.rules]
        derive_all(self.kb, self.library, rules)
        for rule in rules:
            records = list(read_statements(self.kb, self.library, rule))
            found.counts["statements"] += len(records)
            yield from _compared_sets(f"derive, {rule.name}", _instances(records), instances[rule.name])
            if change == CHANGES:
                proved = self._by_demand(rule)
                yield from _compared_sets(f"demand, {rule.name}", _instances(proved), instances[rule.name])
                yield from _compared_sets(f"proofs, {rule.name}", set(map(repr, records)), set(map(repr, proved)))
        if change in (0, CHANGES):
            for predicate in sorted({rule.head.predicate for layer in self.program.layers for rule in layer}):
                found.counts["goals"] += 1
                right = atoms[predicate]
                yield from _compared_sets(f"query {predicate}", self._answers(self._call(predicate)), right)
                yield from self._collected_differences(predicate, right)
        if change == CHANGES:
            names = {rule.head.predicate for layer in self.program.layers for rule in layer}
            indicators = {f"{name}/{len(self.program.signatures[name])}": name for name in sorted(names)}
            for indicator, rows in consulted_atoms(self.library, facts, list(indicators)).items():
                yield from _compared_sets(f"consulted {indicator}", rows, atoms[indicators[indicator]])

    def _by_demand(self, rule: Rule) -> list[StatementRecord]:
        kept = KeptSubstitutions(rule, {Distribution.HEAD: [Substitution()]}, RUN_ID)
        facts = Theory(self.library, self.kb).relevant_to(rule).facts()
        return derive_statements(self.kb, self.library, facts, kept)

    def _collected_differences(self, predicate: str, right: set[tuple[Cell, ...]]) -> Iterator[str]:
        """Compare counts, lists, groups, sums and greatest values of a predicate's atoms."""
        call, rows = self._call(predicate), list(right)
        first, size = _listed(row[0] for row in rows), Fraction(len(rows))
        groups: dict[tuple[Cell, ...], list[Cell]] = {}
        for row in rows:
            groups.setdefault(row[1:], []).append(row[0])
        goals: dict[str, set[tuple[Collected, ...]]] = {
            f"aggregate_all(count, {call}, N), findall(A0, {call}, L), length(L, M)": {(size, first, size)},
            f"aggregate_all(bag(A0), ({call} ; {call}), L)": {(first,)},
            f"bagof(A0, {call}, L)": {(*key, _listed(found)) for key, found in groups.items()},
        }
        numbers = [row[-1] for row in rows if isinstance(row[-1], Fraction)]
        if numbers and len(numbers) == len(rows):
            last, added = f"A{len(rows[0]) - 1}", (sum(numbers, Fraction(0)), max(numbers))
            goals[f"aggregate_all(sum({last}), {call}, S), aggregate_all(max({last}), {call}, M)"] = {added}
        for goal, answers in goals.items():
            yield from _compared_sets(f"query {goal}", self._answers(goal), answers)

    def _call(self, predicate: str) -> str:
        return f"{predicate}({', '.join(f'A{place}' for place, _ in enumerate(self.program.signatures[predicate]))})"

    def _answers(self, goal: str) -> set[tuple[Collected, ...]]:
        rows = run_query(Theory(self.library, self.kb), goal, QueryLimits(seconds=60), session=self.session).rows
        return {tuple(map(_collected, row)) for row in rows}


def _collected(value: AnswerCell) -> Collected:
    return _listed(map(cell, value.arguments)) if isinstance(value, PrologTerm) else cell(value)  # type: ignore[arg-type]


def _listed(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """A list whose order does not matter, but in which a cell may be repeated."""
    return tuple(sorted(cells, key=repr))


def _instances(records: Iterable[StatementRecord]) -> set[frozenset[tuple[str, Cell]]]:
    """The values of the variables, without those of `_`."""
    return {
        frozenset((name, cell(value)) for name, value in record.substitution if not name.startswith(ANY))
        for record in records
    }


def _compared_sets(subject: str, got: set, right: set) -> Iterator[str]:  # type: ignore[type-arg]
    if got != right:
        missing, excess = (sorted(map(repr, rows))[:3] for rows in (right - got, got - right))
        yield f"{subject}: missing {missing}, too many {excess}"


if __name__ == "__main__":
    with PrologSession() as prolog:
        raise SystemExit(compare_drawn(__doc__, 2_000, lambda seed, found: compare_program(seed, prolog, found)))
