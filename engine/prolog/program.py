"""Generate the Prolog program of answers over which a goal runs (`engine/prolog/session.py` loads it).

All quoting is done by `grammar/writing/prolog_text.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.grammar.writing.prolog_text import (
    OWN_NAMES,
    SYSTEM_NAMES,
    definition_text,
    has_clause,
    prolog_atom,
    prolog_value,
)


def answers_program(library: Library, answers: Iterable[tuple[str, tuple[Value, ...]]]) -> str:
    """The text of a program whose predicates have these answers as facts, and the computed ones their definitions.

    A predicate of the library without answers fails. Raises HapaxError for a name that Prolog reserves.
    """
    return "\n".join([*_declarations(library), *map(_fact, answers)]) + "\n"


def _declarations(library: Library) -> Iterator[str]:
    signatures = library.completed().signatures
    # Prolog lets no program define the former; the latter begin the names of the program's helpers.
    names = [signature.name for signature in signatures]
    if taken := sorted(name for name in names if name in SYSTEM_NAMES or name.startswith(OWN_NAMES)):
        raise HapaxError(f"Prolog reserves the name {', '.join(taken)}. Rename the predicate.")
    # The clauses of a predicate need not be adjacent.
    yield ":- style_check(-discontiguous)."
    for signature in signatures:
        yield f":- dynamic {prolog_atom(signature.name)}/{len(signature.argument_types)}."
        # Goals call the others by rules.
        if signature.kind is PredicateKind.COMPUTED and signature.definition and has_clause(signature):
            yield definition_text(signature)


def _fact(answer: tuple[str, tuple[Value, ...]]) -> str:
    name, values = answer
    # `p()` is another term than `p` in SWI-Prolog.
    return f"{prolog_atom(name)}({', '.join(map(prolog_value, values))})." if values else f"{prolog_atom(name)}."
