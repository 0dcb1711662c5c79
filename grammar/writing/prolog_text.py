"""Rules and values as Prolog text. No other module writes Prolog text, so quoting happens here alone.

Numbers are exact: integers, and rationals (`3r2`) for decimals, never floats. Equal numbers are then equal terms, as
joins on a number need, and `1.10` equals `1.1` as in Python.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from typing import Any

from hapax.grammar.data_types import NUMBER
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import AGGREGATES, BUILT_INS, Either, GoalItem, GoalPremise, PrologCall
from hapax.grammar.parsing.declarations import (
    AggregateDeclaration,
    Closedness,
    Negation,
    PredicateKind,
    PredicateSignature,
)
from hapax.grammar.rules import Library, Rule, comparison_of
from hapax.grammar.terms import (
    IS_MISSING,
    MAXIMUM_POWER,
    MISSING,
    OPERATIONS,
    TESTS,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Value,
    Variable,
    expression_variables,
    variable_names,
)
from hapax.grammar.values.functions import FUNCTIONS, LARGEST_EXPONENT, TEXT, result_type
from hapax.grammar.values.moments import DATE, DATE_TIME, DURATION, TIME, moment_of

MODULE = "hapax"

_PLAIN_ATOM = re.compile(r"[a-z][a-zA-Z0-9_]*")
# NUL, and halves of a character in UTF-16
UNSTORABLE = re.compile("[\0\ud800-\udfff]")

_SYSTEM_NAMES = """
    abolish/1 acyclic_term/1 arg/3 asserta/1 assertz/1 at_end_of_stream/1 atom/1 atom_chars/2 atom_codes/2
    atom_concat/3 atom_length/2 atomic/1 bagof/3 call/1 call/2 call/3 call/4 call/5 call/6 call/7 call/8
    callable/1 catch/3 char_code/2 char_conversion/2 clause/2 close/1 close/2 compare/3 compound/1 copy_term/2
    current_char_conversion/2 current_input/1 current_op/3 current_output/1 current_predicate/1
    current_prolog_flag/2 discontiguous/1 dynamic/1 findall/3 float/1 flush_output/1 functor/3 get_byte/1
    get_byte/2 get_char/1 get_char/2 get_code/1 get_code/2 ground/1 halt/1 initialization/1 integer/1 is/2
    keysort/2 length/2 message_queue_create/2 message_queue_destroy/1 message_queue_property/2 multifile/1
    mutex_create/2 mutex_destroy/1 mutex_lock/1 mutex_property/2 mutex_trylock/1 mutex_unlock/1 nl/1 nonvar/1
    number/1 number_chars/2 number_codes/2 numbervars/3 once/1 op/3 open/3 open/4 peek_byte/1 peek_byte/2
    peek_char/1 peek_char/2 peek_code/1 peek_code/2 phrase/2 phrase/3 predicate_property/2 put_byte/1 put_byte/2
    put_char/1 put_char/2 put_code/1 put_code/2 read/1 read/2 read_term/2 read_term/3 retract/1 retractall/1
    set_input/1 set_output/1 set_prolog_flag/2 set_stream_position/2 setof/3 sort/2 stream_property/2 sub_atom/5
    subsumes_term/2 term_variables/2 thread_create/3 thread_detach/1 thread_get_message/1 thread_get_message/2
    thread_get_message/3 thread_peek_message/1 thread_peek_message/2 thread_property/2 thread_self/1
    thread_send_message/2 thread_signal/2 throw/1 unify_with_occurs_check/2 var/1 with_mutex/2 write/1 write/2
    write_canonical/1 write_canonical/2 write_term/2 write_term/3 writeq/1 writeq/2
    at_end_of_stream/0 fail/0 false/0 flush_output/0 halt/0 nl/0 repeat/0 true/0
"""
SYSTEM_NAMES = frozenset(_SYSTEM_NAMES.split())
"""Indicators that SWI-Prolog does not let a program define."""
OWN_NAMES = "hapax_"
"""Prefix of the program's helper predicates, which goals may not call (sandbox.pl)."""


def prolog_atom(text: str) -> str:
    """The text as a Prolog atom. Raises HapaxError for NUL and lone surrogates, which Prolog cannot hold."""
    if _PLAIN_ATOM.fullmatch(text):
        return text
    unstorable = UNSTORABLE.search(text)
    if unstorable:
        raise HapaxError(
            f"The text {text[:40]!r} contains U+{ord(unstorable[0]):04X}, which Prolog cannot store. Remove it."
        )
    return "'" + "".join(map(_escaped, text)) + "'"


_BARE_NAME = re.compile(r"(?!(?:not|is|mod)$)(?![A-Z_])[^\W\d]\w*")


def goal_name(predicate: str) -> str:
    """A predicate's name as a goal has it: quoted unless it is a word that begins with a small letter."""
    return predicate if _BARE_NAME.fullmatch(predicate) else prolog_atom(predicate)


def prolog_value(value: Value) -> str:
    """A constant's value as a Prolog atom, integer or rational; `[]` for a missing one, which is no atom."""
    if value is MISSING:
        return "[]"
    if isinstance(value, str):
        return prolog_atom(value)
    if isinstance(value, int):
        return str(value)
    if not value.is_finite() or abs(value.adjusted()) > MAXIMUM_POWER:
        raise HapaxError(
            f"The number {value} has no exact Prolog form. Use one between 1e-{MAXIMUM_POWER} and 1e{MAXIMUM_POWER}."
        )
    numerator, denominator = value.as_integer_ratio()
    return str(numerator) if denominator == 1 else f"{numerator}r{denominator}"


def term_text(term: Term) -> str:
    """A term. A variable keeps its name, which is a Prolog variable's name too."""
    return term.name if isinstance(term, Variable) else prolog_value(term.value)


def atom_goal(atom: Atom) -> str:
    """An atom as a Prolog goal, head or fact."""
    arguments = ", ".join(map(term_text, atom.arguments))
    return f"{prolog_atom(atom.predicate)}({arguments})" if arguments else prolog_atom(atom.predicate)


def clause_text(rule: Rule, library: Library) -> str:
    """The rule as a Prolog clause, its goals in `evaluation_order`."""
    if rule.aggregate is not None:
        return _aggregate_text(rule, rule.aggregate, library)
    goals: list[str] = []
    bound: set[str] = set()
    for item in evaluation_order(rule.premise, library):
        if isinstance(item, Comparison):
            goals.append(comparison_goal(item, bound, library))
        else:
            goals.append(negation_goal(item.atom, library) if item.negated else atom_goal(item.atom))
            new = [variable.name for variable in present(item, library) if variable.name not in bound]
            goals += [f"{name} \\== {prolog_value(MISSING)}" for name in new]
        bound |= variable_names([item])
    body = ",\n    ".join(goals) or "true"
    return f"{atom_goal(rule.conclusion.atom)} :-\n    {body}."


def present(item: Literal, library: Library) -> tuple[Variable, ...]:
    """The variables of an atom whose arguments may be missing in a row, but then are no value of the variable."""
    if item.negated or not may_have_empty_cells(item.atom.indicator, library):
        return ()
    key = library.signature(item.atom.indicator).key
    terms = [term for place, term in enumerate(item.atom.arguments) if place not in key]
    named = (term for term in terms if isinstance(term, Variable) and not term.is_anonymous)
    return tuple(dict.fromkeys(named))


def may_have_empty_cells(indicator: str, library: Library) -> bool:
    """True for a predicate whose rows may have empty cells outside of a key: its declaration names the columns.

    The import alone may name a key, too, of a predicate whose facts come neither from the files nor from rules.
    """
    signature = library.signature(indicator)
    is_table = signature.kind is PredicateKind.GIVEN and indicator not in library.derived | library.stated
    return bool(signature.columns) or (is_table and len(signature.argument_types) > 1)


_FUNCTION_GOALS = {
    "count": "length(Hapax_rows, Hapax_value)",
    "sum": "lists:sum_list(Hapax_values, Hapax_value)",
    "min": "msort(Hapax_values, [Hapax_value|_])",
    "max": "msort(Hapax_values, Hapax_sorted), lists:last(Hapax_sorted, Hapax_value)",
    "avg": "lists:sum_list(Hapax_values, Hapax_sum), length(Hapax_values, Hapax_size), "
    "Hapax_value is Hapax_sum rdiv Hapax_size",
    "argmin": "msort(Hapax_values, [Hapax_best|_])",
    "argmax": "msort(Hapax_values, Hapax_sorted), lists:last(Hapax_sorted, Hapax_best)",
}
"""Goals that compute an aggregate's value from the sorted rows or from the cells of these that are compared."""


def _aggregate_text(rule: Rule, aggregate: AggregateDeclaration, library: Library) -> str:
    """The clauses of an aggregate, with its first case: one for the rows of each case, and one for the value.

    A smallest or largest value that depends on itself is one clause for each case: its table keeps the best answer.
    """
    first = aggregate.counted[0]
    if aggregate.function in ("min", "max") or aggregate.is_arg:
        compared = aggregate.counted[int(aggregate.is_arg)]
        _refuse_moments(Comparison("<", compared, compared), library)
    is_number = aggregate.function in ("min", "max") and library.is_numeric(first.data_type)
    guard = f",\n    number({term_text(first)})" if is_number or aggregate.function in ("sum", "avg") else ""
    if aggregate.is_improved:
        head = aggregate.atom.replaced({aggregate.result: first})
        clause = clause_text(replace(rule, conclusion=Literal(head), aggregate=None), library)
        return f"{clause.removesuffix('.')}{guard}."
    if rule.premise != aggregate.cases[0]:
        return ""
    name = prolog_atom(f"hapax_rows {aggregate}")  # a predicate may have more than one aggregate
    group = list(map(term_text, aggregate.group))
    clauses = []
    for number, case in enumerate(aggregate.cases):
        cells = list(map(term_text, aggregate.counted))
        cells += [str(number), *sorted(variable_names(case))] if aggregate.counts_derivations else []
        clause = clause_text(replace(rule, premise=case, conclusion=Literal(Atom("rows", ())), aggregate=None), library)
        row = f"row({', '.join(cells)})"
        body = clause.removeprefix("rows :-\n").removesuffix(".")
        clauses.append(f"{name}({', '.join([*group, row])}) :-\n{body}{guard}.")
    # `setof/3` removes repeated rows, and fails without any: a group without rows has no value.
    goals = [f"setof(Hapax_row, {name}({', '.join([*group, 'Hapax_row'])}), Hapax_rows)"]
    if aggregate.function != "count":
        place = 2 if aggregate.is_arg else 1
        part = f"lists:member(Hapax_each, Hapax_rows), arg({place}, Hapax_each, Hapax_cell)"
        goals.append(f"findall(Hapax_cell, ({part}), Hapax_values)")
    goals.append(_FUNCTION_GOALS[aggregate.function])
    if aggregate.is_arg:
        goals.append(
            "lists:member(Hapax_one, Hapax_rows), arg(2, Hapax_one, Hapax_best), arg(1, Hapax_one, Hapax_value)"
        )
    goals.append(f"{aggregate.result} = Hapax_value")
    value = ",\n    ".join(goals)
    return "\n".join([*clauses, f"{atom_goal(aggregate.atom)} :-\n    {value}."])


def negation_goal(atom: Atom, library: Library) -> str:
    """The goal of a negated atom: it cannot be proved and, of an oracle predicate, is known to be false.

    It is if its predicate is closed, if a fact with its first argument is known and the predicate is closed for each
    first argument, if a functional predicate has another value, or if a critic denied it.
    """
    goal, terms = f"\\+ {atom_goal(atom)}", [term_text(term) for term in atom.arguments]
    if library.is_open(atom.indicator):
        denied = atom_goal(Atom(denial_name(atom.predicate), atom.arguments))
        if library.kind(atom.indicator) is PredicateKind.FUNCTIONAL:
            return f"{goal}, ( {denied} ; {_has_fact(atom, terms[:-1])} )"
        return f"{goal}, {denied}"
    if library.closedness(atom.indicator) is Closedness.CLOSED_FOR_FIRST:
        return f"{goal}, {_has_fact(atom, terms[:1])}"
    return goal


def _has_fact(atom: Atom, first: Sequence[str]) -> str:
    """A goal that holds, once, if the predicate has a fact with these first arguments."""
    cells = [*first, *("_" for _ in atom.arguments[len(first) :])]
    # A double negation succeeds once and binds nothing.
    return f"\\+ \\+ {prolog_atom(atom.predicate)}({', '.join(cells)})"


def denial_name(predicate: str) -> str:
    """The name of the predicate whose facts are the denials of a predicate's atoms."""
    return f"hapax_denied {predicate}"


def definition_text(signature: PredicateSignature) -> str:
    """The clause of a computed predicate."""
    if signature.definition is None:
        raise HapaxError(f'The computed predicate {signature.indicator} has no definition. Add ":= comparison".')
    bound = {variable.name for variable in signature.parameters}
    assigned = assignment(signature.definition, bound)
    # In `V := expression` Prolog must compute V, so it does not count as bound.
    goal = comparison_goal(signature.definition, bound - {assigned} if assigned else bound, Library())
    return f"{atom_goal(Atom(signature.name, signature.parameters))} :-\n    {goal}."


def has_clause(signature: PredicateSignature) -> bool:
    """False for a computed predicate that needs a function that Prolog lacks."""
    try:
        return signature.definition is None or bool(definition_text(signature))
    except HapaxError:
        return False


def program_text(library: Library, module: str = MODULE) -> str:
    """The library as a Prolog module. Fact predicates are dynamic, so that facts can be added at any time.

    The negation of an open predicate needs a fact of `hapax_denied NAME`, which whoever denies an atom adds.
    """
    library = library.with_closure()
    signatures = library.completed().signatures
    taken = sorted({signature.indicator for signature in signatures} & SYSTEM_NAMES)
    if taken:
        raise HapaxError(f"Prolog reserves the name {', '.join(taken)}. Rename the predicate.")
    computed: list[PredicateSignature] = []
    indicators: dict[str, str] = {}
    for signature in signatures:
        indicators[signature.indicator] = f"{prolog_atom(signature.name)}/{len(signature.argument_types)}"
        if signature.definition is not None:
            computed.append(signature)
    # A computed predicate can also be concluded by rules; only the others need no dynamic declaration.
    only_computed = {signature.indicator for signature in computed} - library.derived
    asserted = [text for indicator, text in indicators.items() if indicator not in only_computed]
    for indicator in sorted(library.open_negations):
        name, _, arity = indicator.rpartition("/")
        asserted.append(f"{prolog_atom(denial_name(name))}/{arity}")
    # A table has each atom once, however many proofs it has, and recursion over a cycle of facts ends. An incremental
    # table follows the facts that are added.
    # A newline in a name would end the comment, and the rest of the name would be Prolog.
    clauses = [
        f"% {''.join(c if c.isprintable() else ' ' for c in rule.name)}\n{text}"
        for rule in library.rules
        if (text := clause_text(rule, library))
    ]
    # Of a smallest or largest value that depends on itself, a table keeps the best answer.
    modes = {item.atom.indicator: item for item in library.aggregates if item.is_improved}
    tabled = [indicators[indicator] for indicator in sorted(library.derived - modes.keys())]
    blocks = [
        f":- encoding(utf8).\n:- module({prolog_atom(module)}, [{', '.join(indicators.values())}]).\n"
        # Variables keep the rule's names, even one that occurs once, of which Prolog would warn.
        ":- style_check(-singleton).",
        ":- use_module(library(lists))." if library.aggregates else "",
        _directives("dynamic", asserted, " as incremental"),
        # Clauses follow the order of the facts and rules, so those of a predicate may lie apart.
        _directives("discontiguous", indicators.values()),
        _directives("table", tabled, " as incremental"),
        _directives("table", map(_moded, modes.values())),
        "\n".join(dict.fromkeys(f"{atom_goal(fact)}." for fact in library.facts)),
        _HAPAX_TEXT if any("hapax_text(" in clause for clause in clauses) else "",
        *(definition_text(signature) for signature in computed),
        *clauses,
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def evaluation_order(premise: Iterable[BodyLiteral], library: Library) -> Iterator[BodyLiteral]:
    """The premise with each test (comparison, negation, computed predicate) right after its variables are bound.

    A test whose variables are never bound, which `check` reports, comes last.
    """
    binding: list[BodyLiteral] = []
    tests: list[BodyLiteral] = []
    for item in premise:
        is_test = isinstance(item, Comparison) or item.negated or definition_of(item, library) is not None
        (tests if is_test else binding).append(item)
    bound: set[str] = set()
    while binding or tests:
        ready = next((test for test in tests if _is_ready(test, bound, library)), None)
        item = ready or (binding[0] if binding else tests[0])
        (tests if item in tests else binding).remove(item)
        bound |= variable_names([item])
        yield item


def assignment(comparison: Comparison, bound: set[str]) -> str | None:
    """The name of V in an equation `V = expression` that can give V its value, V being on either side; else None.

    V must not be in the expression, and all variables of this must be bound.
    """
    for target, source in comparison.equations:
        if bound.issuperset(variable.name for variable in expression_variables(source)):
            return target.name
    return None


def comparison_goal(comparison: Comparison, bound: set[str], library: Library) -> str:
    """The comparison as Prolog goals, false instead of an error for texts in arithmetic and for division by zero."""
    goals: list[str] = []
    if comparison.test is not None:
        test = _test_goal(comparison.test, library, goals)
        return ", ".join([*goals, f"\\+ {test}" if comparison.operator == "\\=" else f"once({test})"])
    left, right, operator = comparison.left, comparison.right, comparison.operator
    target = assignment(comparison, bound)
    if target is not None and target not in bound:
        source = right if isinstance(left, Variable) and left.name == target else left
        # A text in the place of a number has no value there, as in the tests below.
        read = _number if compares_numbers(comparison, library) and not _is_text(source, library) else _value
        value = read(source, library, goals)
        sign = "is" if isinstance(source, Arithmetic) and read is _number else "="
        return ", ".join([*dict.fromkeys(goals), f"{target} {sign} {value}"])
    # Identity of terms: a text never equals a number.
    if operator in ("=", "\\=") and not compares_numbers(comparison, library):
        sign = "==" if operator == "=" else "\\=="
        return " ".join([_value(left, library, []), sign, _value(right, library, [])])
    if any(_is_text(side, library) for side in comparison.sides):
        _refuse_moments(comparison, library)
        first, second = (_value(side, library, goals) for side in comparison.sides)
        tests = [f"atom({side})" for side in (first, second) if side[0] in "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"]
        sign = {"=": "==", "\\=": "\\=="}.get(operator, f"@{operator}")
        return ", ".join([*dict.fromkeys((*goals, *tests)), f"{first} {sign} {second}"])
    if any(isinstance(side, Arithmetic) or is_numeric(side, library) for side in comparison.sides):
        first, second = (_number(side, library, goals) for side in comparison.sides)
        sign = {"=": "=:=", "\\=": "=\\="}.get(operator, operator)
        return ", ".join([*dict.fromkeys(goals), f"{first} {sign} {second}"])
    first, second = (_value(side, library, []) for side in comparison.sides)
    numbers, texts = f"number({first}), number({second})", f"atom({first}), atom({second})"
    return f"( {numbers}, {first} {operator} {second} ; {texts}, {first} @{operator} {second} )"


def _is_text(expression: Expression, library: Library) -> bool:
    return library.kind_of(type_of(expression, library)) in (TEXT, DATE, TIME, DATE_TIME, DURATION)


def _refuse_moments(comparison: Comparison, library: Library) -> None:
    """Raise HapaxError for an order that is not that of the texts; dates have that."""
    for side in comparison.sides:
        kind = library.kind_of(type_of(side, library))
        if kind in (TIME, DATE_TIME, DURATION):
            raise HapaxError(f'"{comparison}" compares values of {kind}, which Prolog has as texts in another order.')


def _escaped(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    # SWI-Prolog 9.0.4 refuses the escape of U+D8000: it takes the digits read so far for a surrogate.
    unescaped = character.isprintable() or ord(character) > 0xFFFF
    return character if unescaped else f"\\x{ord(character):x}\\"


def definition_of(literal: Literal, library: Library) -> PredicateSignature | None:
    """The signature of a literal's computed predicate if only arithmetic decides it, else None."""
    indicator = literal.atom.indicator
    if not library.knows(indicator) or indicator in library.derived:
        return None
    signature = library.signature(indicator)
    return signature if signature.definition is not None else None


def _is_ready(test: BodyLiteral, bound: set[str], library: Library) -> bool:
    """True if the test's variables are bound, or if it is an equation that gives the only unbound one its value."""
    missing = variable_names([test]) - bound
    comparison = test if isinstance(test, Comparison) else comparison_of(test, library)
    return not missing or (comparison is not None and {assignment(comparison, bound)} == missing)


def compares_numbers(comparison: Comparison, library: Library) -> bool:
    """True for a comparison of two sides that are numbers, or of anything with a calculation."""
    sides = comparison.sides
    return any(isinstance(side, Arithmetic) for side in sides) or all(is_numeric(side, library) for side in sides)


def is_numeric(expression: Expression, library: Library) -> bool:
    """True for numbers, calculations of numbers, and variables of a numeric type."""
    return library.is_numeric(type_of(expression, library))


def type_of(expression: Expression, library: Library) -> str:
    """The type of an expression's values; "Object" where it is not known."""
    if isinstance(expression, Variable):
        return expression.data_type
    if isinstance(expression, Constant):
        if isinstance(expression.value, str):
            moment = moment_of(expression.value)
            return TEXT if moment is None else moment.kind
        return NUMBER
    operands = [type_of(operand, library) for operand in expression.operands]
    return result_type(expression.operator, operands, library.kind_of)


def _value(expression: Expression, library: Library, goals: list[str]) -> str:
    """The expression, fully bracketed, so that Prolog's operator table decides nothing.

    Adds to `goals` those that must hold before it is calculated: its operands are numbers, no divisor is zero, and
    functions of texts have given their values. Raises HapaxError for a function that Prolog lacks.
    """
    if not isinstance(expression, Arithmetic):
        text = term_text(expression)
        return f"({text})" if text.startswith("-") else text  # `1 --2` is not what is meant
    name, operands = expression.operator, expression.operands
    if name in TESTS or name in _TEXT_GOALS:
        return _text_value(expression, library, goals)
    if name not in _NUMBERS or any(_is_text(operand, library) for operand in operands):
        raise HapaxError(f'"{expression}" cannot be written in Prolog. Leave its rule out, or write it without {name}.')
    values, last = [_number(operand, library, goals) for operand in operands], operands[-1]
    if name in ("/", "//", "mod") and not (isinstance(last, Constant) and last.value):
        goals.append(f"{values[-1]} =\\= 0")
    if name == "**" and not (isinstance(last, Constant) and isinstance(last.value, int) and last.value >= 0):
        goals.append(f"integer({values[1]}), abs({values[1]}) =< {LARGEST_EXPONENT}")
        goals.append(f"( {values[0]} =\\= 0 ; {values[1]} >= 0 )")
        return f"({values[0]} ^ max({values[1]}, 0) rdiv {values[0]} ^ max(-({values[1]}), 0))"
    if name == "round" and len(values) > 1:
        return "(round({0} * 10 ^ {1}) rdiv 10 ^ {1})".format(*values)
    form = _NUMBERS[name]
    return reduce(form.format, values) if len(values) > 1 else form.format(*values)


def _number(expression: Expression, library: Library, goals: list[str]) -> str:
    """Like `_value`, of an expression whose value must be a number."""
    value = _value(expression, library, goals)
    if not isinstance(expression, Arithmetic) and not (isinstance(expression, Constant) and expression.is_number):
        goals.append(f"number({value})")
    return value


_NUMBERS = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "/": "({} rdiv {})",
    "//": "truncate({} rdiv {})",
    "mod": "({0} - {1} * floor({0} rdiv {1}))",
    "**": "({} ^ {})",
    "abs": "abs({})",
    "floor": "floor({})",
    "round": "round({})",
    "min": "min({}, {})",
    "max": "max({}, {})",
}
"""Operations and functions of numbers as Prolog expressions."""

_TEXT_GOALS = {
    "lower": "downcase_atom({0}, {value})",
    "upper": "upcase_atom({0}, {value})",
    "length": "atom_length({0}, {value})",
    "concat": "atomic_list_concat([{all}], {value})",
    "substring": (
        "integer({1}), {1} >= 1, integer({2}), {2} >= 0, atom_length({0}, {value}_all), "
        "{value}_start is min({1} - 1, {value}_all), {value}_size is min({2}, {value}_all - {value}_start), "
        "sub_atom({0}, {value}_start, {value}_size, _, {value})"
    ),
    "replace": "{1} \\== '', atomic_list_concat({value}_, {1}, {0}), atomic_list_concat({value}_, {2}, {value})",
    "starts_with": "sub_atom({0}, 0, _, _, {1})",
    "ends_with": "sub_atom({0}, _, _, 0, {1})",
    "contains": "sub_atom({0}, _, _, _, {1})",
    IS_MISSING: "fail",
}
"""Functions of texts as Prolog goals."""


def _test_goal(test: Arithmetic, library: Library, goals: list[str]) -> str:
    """The goal of a function of texts."""
    if test.operator not in _TEXT_GOALS:
        raise HapaxError(
            f'"{test}" cannot be written in Prolog. Leave its rule out, or write it without {test.operator}.'
        )
    texts = [_value(operand, library, goals) for operand in test.operands]
    for operand, text in zip(test.operands, texts, strict=True):
        if isinstance(operand, Arithmetic) and not _is_text(operand, library):
            goals.append(f"{_named(text)} is {text}")
            texts = [_named(text) if known is text else known for known in texts]
    for place, (operand, text) in enumerate(zip(test.operands, texts, strict=True)):
        if not _is_text(operand, library) and not isinstance(operand, Constant):
            texts[place] = _named(f"text {text}")
            goals.append(f"hapax_text({text}, {texts[place]})")
    return _TEXT_GOALS[test.operator].format(*texts, all=", ".join(texts), value=_named(str(test)))


_HAPAX_TEXT = """\
% A number as a text: a fraction is written with its decimals.
hapax_text(X, X) :- ( atom(X) ; integer(X) ), !.
hapax_text(X, T) :- between(1, 4300, K), N is X * 10 ^ K, integer(N), !, format(atom(T), '~*d', [K, N])."""


def _text_value(call: Arithmetic, library: Library, goals: list[str]) -> str:
    """The variable that has the value of a function of texts once the goals hold."""
    goal, variable = _test_goal(call, library, goals), _named(str(call))
    goals.append(f"( {goal} -> {variable} = true ; {variable} = false )" if call.operator in TESTS else goal)
    return variable


def _named(text: str) -> str:
    """A variable for the value of an expression: equal ones have one, because a clause has each name once."""
    return f"Hapax_{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _moded(aggregate: AggregateDeclaration) -> str:
    """The predicate with the mode of each argument: `d(_, _, min)`."""
    names = [variable.name for variable in aggregate.atom.variables]
    modes = (aggregate.function if name == aggregate.result else "_" for name in names)
    return f"{prolog_atom(aggregate.atom.predicate)}({', '.join(modes)})"


def _directives(name: str, indicators: Iterable[str], mode: str = "") -> str:
    return "\n".join(f":- {name} {indicator}{mode}." for indicator in indicators)


# Goals


@dataclass(frozen=True, slots=True)
class GoalText:
    """Writes goals, fully bracketed and quoted, with the variables' names.

    `present`: indicators of the predicates whose arguments may be missing, and then are no value of a variable.
    """

    library: Library
    present: Collection[str] = ()

    def of(self, premise: GoalPremise) -> str:
        """The goal of these items. Raises HapaxError for a function, or an order of texts, that Prolog lacks."""
        texts = list(map(self._item, premise))
        return texts[0] if len(texts) == 1 else f"({' , '.join(texts)})"

    def _item(self, item: GoalItem) -> str:
        match item:
            case Literal(atom):
                if not has_clause(self.library.signature(atom.indicator)):
                    raise _lacking()
                named = [variable.name for variable in atom.variables if not variable.is_anonymous]
                tests = [f"{name} \\== {prolog_value(MISSING)}" for name in named if atom.indicator in self.present]
                return f"({' , '.join([atom_goal(atom), *tests])})" if tests else atom_goal(atom)
            case Negation(premise):
                return f"(\\+ {self.of(premise)})"
            case Either(ways):
                return f"({' ; '.join(map(self.of, ways))})"
            case Comparison():
                return self._comparison(item)
            case PrologCall("aggregate_all", (Arithmetic("min" | "max" as end, (Variable() as cell,)), *others)) if (
                self.library.kind_of(cell.data_type) in (TEXT, DATE)
            ):
                return self._end_of_sorted(end, cell, *others)
            case PrologCall(name, arguments):
                kinds = BUILT_INS.get(item.indicator, "d" * len(arguments))
                texts = [self._argument(kind, argument) for kind, argument in zip(kinds, arguments, strict=True)]
                return f"{texts[0]} ^ {texts[1]}" if name == "^" else _applied(name, texts)

    def _end_of_sorted(self, end: str, cell: Variable, inner: Any, found: Any) -> str:
        """The first or last of the sorted values, in the place of an extreme: Prolog's are of numbers alone."""
        goal = self.of(inner)
        every = _named(f"{end} {cell.name} {goal}")
        place = "1" if end == "min" else f"{every}_size"
        return (
            f"(findall({cell.name}, {goal}, {every}) , msort({every}, {every}_sorted) , "
            f"length({every}_sorted, {every}_size) , nth1({place}, {every}_sorted, {_data(found)}))"
        )

    def _argument(self, kind: str, argument: Expression | GoalPremise) -> str:
        if isinstance(argument, tuple):
            return self.of(argument)
        if kind == "a" and isinstance(argument, Arithmetic):
            kinds = AGGREGATES[f"{argument.operator}/{len(argument.operands)}"]
            return _applied(argument.operator, list(map(self._argument, kinds, argument.operands)))
        return self._calculation(argument) if kind in "ev" else _data(argument)

    def _comparison(self, item: Comparison) -> str:
        """As Prolog has it: `=` is about terms, or calculates a value."""
        sides = sorted(item.sides, key=_is_calculated) if item.operator in ("=", "\\=") else item.sides
        if item.operator in ("=", "\\=") and not _is_calculated(sides[1]):
            return f"({_data(item.left)} {item.operator} {_data(item.right)})"
        if any(_is_text(side, self.library) for side in sides):
            raise _lacking()
        sign = {"=": "is" if isinstance(sides[0], Variable) else "=:=", "\\=": "=\\="}.get(item.operator, item.operator)
        return f"({self._calculation(sides[0])} {sign} {self._calculation(sides[1])})"

    def _calculation(self, expression: Expression) -> str:
        if not set(_operators(expression)) <= _NUMBERS.keys():
            raise _lacking()
        # Without the goals before it: in a goal, a calculation without a value is an error.
        return _value(expression, self.library, [])


def _data(term: Expression) -> str:
    if not isinstance(term, Arithmetic):
        text = term_text(term)
        return f"({text})" if text.startswith("-") else text  # else the sign could be read as an operator
    texts = list(map(_data, term.operands))
    if term.operator == "[|]":
        return f"[{', '.join(texts[:-1])}|{texts[-1]}]"
    return f"[{', '.join(texts)}]" if term.operator == "[]" else _applied(term.operator.replace("()", ","), texts)


def _applied(name: str, arguments: Sequence[str]) -> str:
    """A functor or an operator with arguments."""
    if name in (*OPERATIONS, "->", "^", ","):
        return f"({f' {name} '.join(arguments)})"
    return f"{prolog_atom(name)}({', '.join(arguments)})"


def _operators(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Arithmetic):
        yield expression.operator
        for operand in expression.operands:
            yield from _operators(operand)


def _is_calculated(expression: Expression) -> bool:
    """True for an operation on numbers, and for a function, but not for a list or a record."""
    return isinstance(expression, Arithmetic) and expression.operator in FUNCTIONS


def _lacking() -> HapaxError:
    return HapaxError(
        "Part of the goal needs a function of rules beside what only Prolog answers. Write that part as a rule, "
        "and call the predicate that it concludes."
    )
