"""Messages about premises: comparisons without a value, such as a division by zero, and misspelt negations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from hapax.engine.logic.compile import CompileContext, PremiseCompiler
from hapax.engine.logic.goal_rules import GOAL
from hapax.grammar.errors import Place
from hapax.grammar.rules import Library, Rule, comparison_of
from hapax.grammar.terms import Arithmetic, BodyLiteral, Comparison, Literal, Value, variable_names
from hapax.grammar.writing.prolog_text import assignment, compares_numbers, definition_of
from hapax.grammar.writing.words import counted, short
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.sql_arithmetic import Calculated

_SHOWN = 6
"""Variables of a row that are shown."""


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A comparison of a rule, the number of rows for which it has no value, and the first of these with the reason."""

    rule: str
    place: Place
    comparison: str
    rows: int
    values: tuple[tuple[str, Value], ...]
    reason: str

    def __str__(self) -> str:
        subject = GOAL if self.rule.startswith(GOAL) else f"{self.place}: rule {self.rule}"
        shown = ", ".join(f"{name} = {short(value)}" for name, value in self.values[:_SHOWN])
        rows = f"{counted(self.rows, 'row')}, such as {shown}" if shown else "its only row"
        return f'{subject}: "{self.comparison}" has no value for {rows}: {self.reason}'


def failures(rules: Iterable[Rule], context: CompileContext, relations: Relations) -> tuple[str, ...]:
    """Messages about the rules; to be called where a calculation has failed."""
    found: dict[str, None] = {}
    for rule in rules:
        for item in rule.premise:
            comparison = item if isinstance(item, Comparison) else comparison_of(item, context.library)
            if comparison is not None and (failure := _failure(rule, item, comparison, context, relations)):
                found[str(failure)] = None
    return tuple(found)


def idle_negations(rules: Iterable[Rule], library: Library, has_facts: Callable[[str], bool]) -> Iterator[str]:
    """Messages about negated atoms and exceptions of undeclared predicates that nothing states or concludes.

    `has_facts`: true for the indicator of a predicate that has stored facts.
    """
    known = library.derived | library.stated
    others = (signature for signature in library.completed().signatures if signature.indicator not in library.excepted)
    names = {signature.name: signature.indicator for signature in others}
    for rule in rules:
        clauses = [(clause.premise, str(clause)) for clause in rule.whole_exceptions]
        denied = [((replace(item, negated=False),), str(item)) for item in rule.literals if item.negated]
        for premise, text in (*denied, *clauses):
            for item in premise if len(premise) == 1 else ():
                if not isinstance(item, Literal) or item.negated:
                    continue
                indicator = item.atom.indicator
                is_known = indicator in known | library.excepted or library.signature(indicator).declared
                # What a model may supply is not known to be false.
                if is_known or library.is_open(indicator) or has_facts(indicator):
                    continue
                written = item.atom.predicate
                near = get_close_matches(written, [name for name in names if name != written], n=1, cutoff=0.6)
                question = f" Did you mean {names[near[0]]}?" if near else ""
                yield f'{rule.place}: {indicator} has neither facts nor rules, so "{text}" excludes nothing.{question}'


def _failure(
    rule: Rule, item: BodyLiteral, comparison: Comparison, context: CompileContext, relations: Relations
) -> MissingValue | None:
    """The failure of one comparison over the rows that the rest of the premise has."""
    is_calculated = any(isinstance(side, Arithmetic) for side in comparison.sides)
    if comparison.operator in ("=", "\\=") and not is_calculated and not compares_numbers(comparison, context.library):
        return None  # terms are the same or not
    compiler = PremiseCompiler(context).read(_evaluable(rule, item, context.library))
    bound = set(compiler.values)
    target = assignment(comparison, bound)
    if target is not None and target not in bound:
        (source,) = (source for variable, source in comparison.equations if variable.name == target)
        whole = compiler.operand(source)
    elif variable_names([comparison]) <= bound:
        whole = Calculated(comparison.operator, tuple(map(compiler.operand, comparison.sides)))
    else:
        return None
    if not isinstance(whole, Calculated):
        return None
    own = variable_names([comparison])
    names = sorted((name for name in bound if not name.startswith("_")), key=lambda name: (name not in own, name))
    reason = context.arithmetic.fails(whole)
    body = compiler.compiled()
    conditions = [f"{reason} IS NOT NULL"]
    # An empty cell has no value, and that is no failure.
    (empty,) = relations.symbols.known([""])
    if empty is not None:
        conditions += [f"{body.values[name]} <> {empty}" for name in names if name in own]
    select = body.select([reason, *(body.values[name] for name in names)], conditions)
    rows = relations.rows(select.replace("SELECT ", "SELECT DISTINCT ", 1))
    first = next(rows, None)
    if first is None:
        return None
    known = relations.symbols.values(first[1:])
    values = tuple((name, known[tag]) for name, tag in zip(names, first[1:], strict=True))
    return MissingValue(
        rule.name, rule.at(comparison.place), str(comparison), 1 + sum(1 for _ in rows), values, first[0]
    )


def _evaluable(rule: Rule, left_out: BodyLiteral, library: Library) -> list[BodyLiteral]:
    """The premise without an item, and without those that need the value that it gives."""
    others = [item for item in rule.premise if item is not left_out]
    sources = (item for item in others if isinstance(item, Literal) and not item.negated)
    bound = variable_names(item for item in sources if definition_of(item, library) is None)
    comparisons = [item if isinstance(item, Comparison) else comparison_of(item, library) for item in others]
    for _ in comparisons:  # an equation may need the value that another one gives
        bound |= {name for item in comparisons if item is not None and (name := assignment(item, bound))}
    return [item for item in others if variable_names([item]) <= bound]
