"""The checks that every fact passes, whichever way it comes into a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hapax.grammar.writing.words import counted, short
from hapax.kb.exchange import values

MOST_ARGUMENTS = 900
"""Most arguments of a fact: SQLite limits the columns of a table, and the depth of a condition."""


class FactRefused(values.ValueRefused):
    """Something that cannot be a fact. `kind`: the fault in short, by which faults are counted."""

    def __init__(self, message: str, kind: str = "not a fact") -> None:
        super().__init__(message)
        self.kind = kind


def check_fact(predicate: object, arguments: Sequence[Any], types: object = ()) -> None:
    """Raise FactRefused unless these are a predicate's name, its arguments, and their types or none."""
    check_form(predicate, arguments, types)
    encoded_columns(str(predicate), [[argument] for argument in arguments])


def check_form(predicate: object, arguments: object, types: object = ()) -> None:
    """Like `check_fact`, without the values of the arguments."""
    if not isinstance(predicate, str) or not predicate.isidentifier():
        raise FactRefused(f"{short(predicate)} is not a predicate name; write a name like is_allergic_to")
    if not isinstance(arguments, (list, tuple)):
        raise FactRefused(f"the arguments of {predicate} are {short(arguments)}, not a list; write them as a list")
    if not arguments:
        raise FactRefused(f"{predicate} has no arguments; write at least one", "short row")
    if len(arguments) > MOST_ARGUMENTS:
        raise FactRefused(f"{predicate} has {len(arguments)} arguments; give it {MOST_ARGUMENTS} at most", "long row")
    if types != ():
        _check_types(types, f"{predicate}/{len(arguments)}", len(arguments))


def encoded_columns(predicate: str, columns: Sequence[Sequence[Any]], names: Sequence[str] = ()) -> list[list[str]]:
    """The columns of some facts' arguments as JSON texts. Raises FactRefused for the first that no fact can have.

    `names`: of the columns that they come from, for the message.
    """
    texts = []
    for place, column in enumerate(columns):
        try:
            texts.append(values.encode_fact_values(column))
        except values.ValueRefused as refused:
            where = f"column {names[place]}" if names else f"argument {place + 1} of {predicate}"
            if any(value is None for value in column):
                raise FactRefused(f"{where} is empty; fill it in, or leave the row out", "empty cell") from None
            raise FactRefused(f"{where}: {refused}", "faulty cell") from None
    return texts


def _check_types(types: object, indicator: str, arity: int) -> None:
    if not isinstance(types, (list, tuple)) or not all(isinstance(data_type, str) for data_type in types):
        raise FactRefused(f"the types of {indicator} are not a list of texts; leave them out")
    if types and len(types) != arity:
        raise FactRefused(f"{indicator} has {counted(len(types), 'type')}; give one for each argument, or none")
    for data_type in types:
        if reason := values.refusal(data_type):
            raise FactRefused(f"a type of {indicator}: {reason}")
