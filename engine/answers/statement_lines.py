"""Lines of text for the stored statements of a rule, made for whole batches at once.

A rule whose premise rests on facts alone gives every statement the same line but for values and facts. Such a line is
written once, and its places are filled for each row. Other rules' lines are written one by one from their records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, combinations
from operator import itemgetter
from typing import IO, NamedTuple, TypeAlias
from uuid import uuid4

from hapax.engine.answers.derivation import RUN_ID, current_rules, fact_tables, read_statements
from hapax.engine.inference.derive import FactIndex, Prover, StatementWriter, filled, relevant_library
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import MISSING, Substitution, variable_names
from hapax.grammar.writing.prolog_text import definition_of
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.symbols import MISSING_TAG, Symbols
from hapax.kb.exchange.values import decode_value, encode_decimal, encode_value
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord, canonical_text
from hapax.kb.store import KnowledgeBase

LineWriter: TypeAlias = Callable[[StatementRecord], str]
"""A function that writes a record as a line of JSON, line feed included, as `json.dumps` does with `ensure_ascii` off
and its usual separators."""

# Constants whose texts are cached; a million takes about 300 MB.
_KNOWN_VALUES = 500_000


def statement_lines(kb: KnowledgeBase, library: Library, rule: Rule, line_of: LineWriter) -> Iterator[list[str]]:
    """Yield the lines of a rule's stored statements in batches: `line_of` of each record of `read_statements`.

    Raises as `read_statements` does.
    """
    relations = Relations(kb)
    with relations.snapshot():
        stored = fact_tables(kb, relations, library, rule)
        if stored is not None:
            derivation, tables = stored
            # Equal facts are one step of a proof, so that a statement with one twice has another form.
            pairs = combinations(enumerate(tables, 1), 2)
            same = [f"p{first[0]} = p{second[0]}" for first, second in pairs if first[1] == second[1]]
            repeated = f"SELECT 1 FROM {derivation.table} WHERE {' OR '.join(same) or '0'} LIMIT 1"  # noqa: S608  ours
            form = None if list(relations.rows(repeated)) else _form(rule, relevant_library(library, rule), line_of)
            if form is not None:
                texts: dict[int, _Texts] = {}
                for batch in relations.proved_batches(derivation, form.places, tables):
                    _learn(texts, relations.symbols, set(chain.from_iterable(row[: len(form.places)] for row in batch)))
                    yield [_filled(form, row, texts) for row in batch]
                return
    for record in read_statements(kb, library, rule):
        yield [line_of(record)]


class _Form(NamedTuple):
    """A line as a format with `%s` for each cell, which `cells` chooses from those of `_filled`.

    `places`: among the searched variables, counted from 1, those that have values. `identity`: the text from which a
    statement's id is computed, with `%s` for the canonical value of each.
    """

    text: str
    cells: itemgetter[object]
    places: Sequence[int]
    identity: str


class _Texts(NamedTuple):
    """A constant as JSON, inside a JSON text, and as identities are computed from."""

    json: str
    inner: str
    canonical: str


def _form(rule: Rule, library: Library, line_of: LineWriter) -> _Form | None:
    """The form of a rule's lines; None where `line_of` does not write the cells as they are expected."""
    constraints = [item for item in rule.premise if not rule.is_information(item)]
    bound = variable_names(constraints)
    places = [place for place, variable in enumerate(rule.searched, 1) if variable.name in bound]
    names, mark = [rule.searched[place - 1].name for place in places], uuid4().hex
    # JSON writes NUL as \u0000, and no text contains the mark. Whole values and those in a sentence differ.
    values = Substitution.of((name, f"\0{number}v{mark}\0") for number, name in enumerate(names))
    words = Substitution.of((name, f"\0{number}w{mark}\0") for number, name in enumerate(names))
    facts = []
    for literal in rule.literals:
        is_fact = not literal.negated and not rule.is_information(literal) and definition_of(literal, library) is None
        if is_fact:
            atom = values.apply(literal.atom)
            types = library.signature(atom.indicator).argument_types
            facts.append(FactRecord(atom.predicate, atom.values, types, Source.GIVEN))
    writer = StatementWriter(library, rule, Prover(library, FactIndex(library, facts), {}), RUN_ID)
    premise, conclusion = (filled(pieces, words) for pieces in (writer.words.premise, writer.words.conclusion))
    record = replace(writer.record(Distribution.HEAD, values), premise=premise, conclusion=conclusion)
    width = len(names)
    # The texts in a line that its cells replace, by the number of the cell.
    numbers = {f'"given", "fact": "{fact.id}"': 2 * width + number for number, fact in enumerate(facts)}
    numbers[record.id] = 2 * width + len(facts)
    for number in range(width):
        numbers[f'"\\u0000{number}v{mark}\\u0000"'] = number
        numbers[f"\\u0000{number}w{mark}\\u0000"] = width + number
    # The line becomes a format, in which a percent sign is doubled.
    pieces = re.split(f"({'|'.join(map(re.escape, numbers))})", line_of(record).replace("%", "%%"))
    if any(mark in piece for piece in pieces[::2]) or record.id not in pieces:
        return None
    getter = itemgetter(*(numbers[piece] for piece in pieces[1::2]))
    # As `StatementRecord.id` computes it.
    identity = canonical_text(["statement", rule.name, [[name, mark] for name in names]])
    return _Form("%s".join(pieces[::2]), getter, places, identity.replace("%", "%%").replace(f'"{mark}"', "%s"))


def _filled(form: _Form, row: Sequence[object], texts: dict[int, _Texts]) -> str:
    """The line of a row: the tags of its variables, and each fact with its source."""
    width = len(form.places)
    found = [texts[tag] for tag in row[:width] if isinstance(tag, int)]
    identity = form.identity % tuple(text.canonical for text in found)
    digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    cells = [*(text.json for text in found), *(text.inner for text in found), *row[width:], digest]
    line: str = form.text % form.cells(cells)
    return line


def _learn(texts: dict[int, _Texts], symbols: Symbols, tags: Iterable[int]) -> None:
    """Add the texts of constants, by tag."""
    if len(texts) > _KNOWN_VALUES:
        texts.clear()
    for tag, text in symbols.encoded(set(tags).difference(texts)):
        inner = text[1:-1] if text.startswith('"') else text
        texts[tag] = _Texts(text, inner, text)
        # A decimal is stored as an object; a line and an identity have its number.
        if text.startswith("{"):
            value = decode_value(text)
            texts[tag] = _Texts(json.dumps(value, default=encode_decimal), str(value), canonical_text(value))
        if tag == MISSING_TAG:
            texts[tag] = _Texts(encode_value(str(MISSING)), inner, text)


# --- export of all statements -----------------------------------------------------------------------------------------


DERIVED = "derived"
"""The end of a statement that `derive` concluded, which has no likelihood."""

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class StatementExportReport:
    """Numbers of exported statements, and of those of `derive` that are left out, since facts or rules have changed."""

    searched: int
    derived: int
    outdated: int


@checked
def export_statements(kb: KnowledgeBase, rules: Library, stream: IO[str]) -> StatementExportReport:
    """Write the statements of searches and of `derive`, with their proofs, to a text stream as JSON Lines.

    `rules`: those of `derive`, whose statements are left out where facts or rules have changed since.
    """
    searched = derived = 0
    for record in _of_searches(kb):
        stream.write(_line(record, record.distribution.value))
        searched += 1
    current = current_rules(kb, rules)
    for rule in current:
        for lines in statement_lines(kb, rules, rule, _derived_line):
            stream.write("".join(lines))
            derived += len(lines)
    stored = kb.derived_counts()
    return StatementExportReport(searched, derived, sum(stored.values()) - sum(stored[rule.name] for rule in current))


def _of_searches(kb: KnowledgeBase) -> Iterator[StatementRecord]:
    places = kb.statement_places()
    for start in range(0, len(places), _CHUNK):
        yield from kb.statements_at(places[start : start + _CHUNK])


def _derived_line(record: StatementRecord) -> str:
    return _line(record, DERIVED)


def _line(record: StatementRecord, end: str) -> str:
    tree = {
        "id": record.id,
        "rule": record.rule,
        "end": end,
        "run": record.run_id if end != DERIVED else None,
        "statement": record.text,
        "premise": record.premise,
        "conclusion": record.conclusion,
        "substitution": dict(record.substitution),
        "log_likelihood": record.log_likelihood,
        "proof": record.proof,
    }
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, default=encode_decimal) + "\n"
