"""The atoms of a compiled library as plain SWI-Prolog finds them: a new process consults it, and asserts the facts."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from hapax.grammar.prolog_text import program_text, prolog_atom, prolog_value
from hapax.grammar.rules import Library
from hapax.kb.records import FactRecord

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
