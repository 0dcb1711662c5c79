"""Export of facts to CSV, JSONL and Prolog. `kb/exchange/tables.py` imports the first two unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from typing import IO, Annotated

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.terms import MISSING
from hapax.grammar.writing.prolog_text import SYSTEM_NAMES, prolog_atom, prolog_value
from hapax.grammar.writing.words import short, some
from hapax.kb.exchange import values
from hapax.kb.exchange.csv_text import text_cell, value_cell, write_rows
from hapax.kb.records import PREDICATES, FactRecord
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class UnexportableFact:
    """A fact that the format cannot represent, with the reason."""

    fact: FactRecord
    reason: str


@dataclass(frozen=True, slots=True)
class FactExportReport:
    """Result of an export: number of facts written, and facts that the format cannot represent."""

    written: int
    left_out: tuple[UnexportableFact, ...] = ()


@checked
def export_facts(
    kb: KnowledgeBase,
    stream: IO[str],
    *,
    form: Annotated[str, Option("Form of the facts.", name="format", choices=("prolog", "csv", "jsonl"))] = "prolog",
    predicate: Annotated[str | None, Option("Export only the facts of this predicate.")] = None,
) -> FactExportReport:
    """Write facts to a text stream, ordered by predicate, as `prolog` (loads in SWI-Prolog), `csv` or `jsonl`.

    A fact that the format cannot represent is left out and reported.
    """
    writers: dict[str, Callable[[FactRecord, int], str]] = {
        "prolog": _prolog_line,
        "csv": _csv_line,
        "jsonl": _jsonl_line,
    }
    if form not in writers:
        raise HapaxError(
            f"{kb.place}: facts are exported as {', '.join(writers)}, not as {form!r}. Choose one of these."
        )
    # Prolog requires the clauses of a predicate to be adjacent.
    facts = sorted(kb.facts(predicate), key=lambda fact: (fact.predicate, len(fact.arguments)))
    if predicate is not None and not facts:
        _refuse_unknown(kb, predicate)
    arity = max((len(fact.arguments) for fact in facts), default=0)
    stream.write(_first_line(form, arity))
    written, left_out = 0, []
    for fact in facts:
        try:
            line = writers[form](fact, arity)
        except HapaxError as error:
            left_out.append(UnexportableFact(fact, str(error)))
            continue
        stream.write(line + "\n")
        written += 1
    return FactExportReport(written, tuple(left_out))


def _refuse_unknown(kb: KnowledgeBase, predicate: str) -> None:
    """Raise HapaxError for a predicate without facts, unless a rule file declared it and it merely has none yet."""
    if any(predicate in (declared.name, declared.indicator) for declared in kb.select(PREDICATES)):
        return
    counts = kb.fact_counts()
    # Reversed, so that of several arities of a name the smallest stays.
    names = {indicator.rpartition("/")[0]: indicator for indicator in reversed(counts)}
    near = get_close_matches(predicate.rpartition("/")[0] or predicate, names, n=3, cutoff=0.6)
    if near:
        remedy = f"Did you mean {' or '.join(names[name] for name in near)}?"
    elif counts:
        remedy = f"It has facts of {some(counts)}."
    else:
        remedy = "It has no facts at all; search or import some first."
    raise HapaxError(f"{kb.place}: there are no facts of {short(predicate)}. {remedy}")


def _first_line(form: str, arity: int) -> str:
    if form == "csv":
        return ",".join(["predicate", *(f"argument{position}" for position in range(1, arity + 1))]) + "\n"
    return ":- encoding(utf8).\n" if form == "prolog" else ""


def _prolog_line(fact: FactRecord, _: int) -> str:
    indicator = fact.indicator
    if indicator in SYSTEM_NAMES:
        raise HapaxError(f"{indicator} is built into Prolog and cannot be redefined. Rename the predicate.")
    return f"{prolog_atom(fact.predicate)}({', '.join(map(prolog_value, fact.arguments))})."


def _csv_line(fact: FactRecord, arity: int) -> str:
    cells = [text_cell(fact.predicate), *map(value_cell, fact.arguments), *[""] * (arity - len(fact.arguments))]
    line = StringIO()
    write_rows(line, [cells], cell=str, end="")
    return line.getvalue()


def _jsonl_line(fact: FactRecord, _: int) -> str:
    return json.dumps(
        {
            "predicate": fact.predicate,
            "arguments": [None if value is MISSING else value for value in fact.arguments],
            "types": list(fact.types),
            "source": fact.source.value,
            "probability": fact.probability,
        },
        ensure_ascii=False,
        default=values.encode_decimal,
    )
