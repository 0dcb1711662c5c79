"""Lines of text for the stored statements of a rule, made for whole batches at once.

A rule whose premise rests on facts alone gives every statement the same line but for values and facts. Such a line is
written once, with slots, and the slots of a batch are filled column by column. Other rules' lines are written one by
one from their records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from operator import eq
from typing import Any, TypeAlias
from uuid import uuid4

from hapax.engine.answers.derivation import RUN_ID, fact_tables, read_statements
from hapax.engine.inference.derive import filled, relevant_library, rule_words
from hapax.engine.inference.proof import By, Proof
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import MISSING, Constant, Literal, Substitution, variable_names
from hapax.grammar.writing.prolog_text import definition_of
from hapax.kb.atoms.derived_relations import Relations, StoredDerivation
from hapax.kb.atoms.symbols import MISSING_TAG
from hapax.kb.exchange.values import decode_value, encode_decimal, encode_value
from hapax.kb.records import Distribution, Source, StatementRecord, canonical_text
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
        sheet = _Sheet.of(rule, relevant_library(library, rule), line_of, stored[1]) if stored else None
        # Else the statements rest on more than facts, or their lines have another form.
        if stored is not None and sheet is not None:
            yield from _filled_batches(relations, stored[0], sheet)
            return
    for record in read_statements(kb, library, rule):
        yield [line_of(record)]


@dataclass(frozen=True, slots=True)
class _Template:
    """A line as a format with `%s` for each slot. `slots` name the column of each: `json`, `inner` or `fact`, and its
    place, or `id`."""

    text: str
    slots: tuple[tuple[str, int], ...]


@dataclass
class _Sheet:
    """The templates of a rule's lines, by the facts that are the same among those of a statement."""

    rule: Rule
    library: Library
    line_of: LineWriter
    tables: Sequence[str]
    """The table that each positive literal reads."""
    valued: tuple[int, ...]
    """Places among the searched variables of those that have values."""
    identity: str = ""
    """The text from which a statement's id is computed, with `%s` for the canonical value of each variable."""
    _templates: dict[tuple[int, ...], _Template | None] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: Rule, library: Library, line_of: LineWriter, tables: Sequence[str]) -> _Sheet | None:
        """The sheet of a rule; None where `line_of` does not write the slots as they are expected."""
        constraints = [item for item in rule.premise if not rule.is_information(item)]
        bound = variable_names(constraints)
        valued = tuple(place for place, variable in enumerate(rule.searched) if variable.name in bound)
        mark = uuid4().hex
        pairs = [[rule.searched[place].name, mark] for place in valued]
        # As `StatementRecord.id` computes it.
        identity = canonical_text(["statement", rule.name, pairs]).replace("%", "%%").replace(f'"{mark}"', "%s")
        sheet = cls(rule, library, line_of, tables, valued, identity)
        return sheet if sheet.template(tuple(range(len(tables)))) is not None else None

    def template(self, same: tuple[int, ...]) -> _Template | None:
        """The template of statements whose positive literal n is the same fact as literal `same[n]`."""
        if same not in self._templates:
            self._templates[same] = self._made(same)
        return self._templates[same]

    def _made(self, same: tuple[int, ...]) -> _Template | None:
        mark = uuid4().hex  # no text of a rule or template contains it
        names = [self.rule.searched[place].name for place in self.valued]
        values = Substitution(tuple((name, Constant(f"\0v{n}{mark}\0")) for n, name in enumerate(names)))
        words = Substitution(tuple((name, Constant(f"\0w{n}{mark}\0")) for n, name in enumerate(names)))
        proof = self._proof(values, same, mark)
        pieces_of = rule_words(self.rule, self.library)
        record = StatementRecord(
            rule=self.rule.name,
            distribution=Distribution.HEAD,
            run_id=RUN_ID,
            substitution=tuple((name, constant.value) for name, constant in values.bindings),
            premise=filled(pieces_of.premise, words),
            conclusion=filled(pieces_of.conclusion, words),
            proof=proof.to_json(),
        )
        line = self.line_of(record)
        # JSON writes NUL as \u0000. v: a value alone, w: one inside a text; then a fact's number and the id.
        pattern = (
            rf'"\\u0000(v)(\d+){mark}\\u0000"|\\u0000(w)(\d+){mark}\\u0000'
            rf'|(?<="by": )"fact", "(fact)": "(\d+){mark}"|({record.id})'
        )
        pieces: list[str] = []
        slots: list[tuple[str, int]] = []
        end = 0
        for match in re.finditer(pattern, line):
            # The line becomes a format, in which a percent sign is doubled.
            pieces.append(line[end : match.start()].replace("%", "%%"))
            kind, place = [group for group in match.groups() if group is not None][:2] if not match[7] else ("id", 0)
            slots.append((str(kind), int(place)))
            end = match.end()
        pieces.append(line[end:].replace("%", "%%"))
        # A slot in another form would stay in the line.
        if any(mark in piece for piece in pieces) or ("id", 0) not in slots:
            return None
        return _Template("%s".join(pieces), tuple(slots))

    def _proof(self, values: Substitution, same: tuple[int, ...], mark: str) -> Proof:
        children: list[Proof] = []
        facts: list[Proof] = []
        for item in self.rule.premise:
            goal = item.replaced(values)
            if self.rule.is_information(item):
                children.append(Proof(goal, By.ASSUMPTION))
            elif isinstance(item, Literal) and item.negated:
                children.append(Proof(goal, By.NEGATION))
            elif not isinstance(item, Literal) or definition_of(item, self.library) is not None:
                children.append(Proof(goal, By.COMPUTED))
            else:
                number = len(facts)
                # Equal facts are one step of a proof.
                leaf = facts[same[number]] if same[number] < number else Proof(goal, By.FACT, fact_id=f"{number}{mark}")
                facts.append(leaf)
                children.append(leaf)
        head = Literal(values.apply(self.rule.conclusion.atom))
        return Proof(head, By.RULE, self.rule.name, tuple(children))


def _filled_batches(relations: Relations, derivation: StoredDerivation, sheet: _Sheet) -> Iterator[list[str]]:
    cache = _TextCache(relations)
    width = len(sheet.rule.searched)
    for batch in relations.proved_batches(derivation, width, sheet.tables, Source.GIVEN.value):
        columns = list(zip(*batch, strict=True))
        values = [cache.columns(columns[place]) for place in sheet.valued]
        refs = columns[width : width + len(sheet.tables)]
        facts = columns[width + len(sheet.tables) :]
        yield _lines(sheet, values, refs, facts)


def _lines(
    sheet: _Sheet, values: Sequence[_TextColumns], refs: Sequence[Sequence[int]], facts: Sequence[Sequence[str]]
) -> list[str]:
    """The lines of a batch, given as columns."""
    columns: dict[tuple[str, int], Sequence[str]] = {("fact", place): column for place, column in enumerate(facts)}
    canonical: list[Sequence[str]] = []
    for place, column in enumerate(values):
        columns["v", place], columns["w", place], texts = column
        canonical.append(texts)
    count = len(next(iter(columns.values()), [""]))
    rows = zip(*canonical, strict=True) if canonical else [()] * count
    identities = map(sheet.identity.__mod__, rows)
    columns["id", 0] = [sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] for text in identities]
    lines: list[str] = [""] * count
    for same, places in _by_equal_facts(sheet.tables, refs, count).items():
        template = sheet.template(same)
        assert template is not None  # noqa: S101  that of distinct facts had all its slots
        chosen = [columns[slot] for slot in template.slots]
        # All rows have this template, so that none has to be put in its place.
        if len(places) == count:
            return list(map(template.text.__mod__, zip(*chosen, strict=True)))
        for place in places:
            lines[place] = template.text % tuple(column[place] for column in chosen)
    return lines


def _by_equal_facts(
    tables: Sequence[str], refs: Sequence[Sequence[int]], count: int
) -> dict[tuple[int, ...], Sequence[int]]:
    """The rows of a batch, grouped by the literals that share a fact."""
    distinct = tuple(range(len(tables)))
    pairs = [pair for pair in combinations(distinct, 2) if tables[pair[0]] == tables[pair[1]]]
    # Most batches have no row with one fact twice, which is seen without a loop over rows in Python.
    if not any(any(map(eq, refs[first], refs[second])) for first, second in pairs):
        return {distinct: range(count)}
    groups: dict[tuple[int, ...], Any] = {}
    for place, row in enumerate(zip(*refs, strict=True)):
        facts = list(zip(tables, row, strict=True))
        # For each literal the first one that has the same fact.
        same = tuple(map(facts.index, facts))
        groups.setdefault(same, []).append(place)
    return groups


_TextColumns: TypeAlias = tuple[list[str], list[str], list[str]]
"""The texts of a column of constants: as JSON, inside a JSON text, and as identities are computed from."""


class _TextCache:
    """The texts of constants by tag, in dictionaries of texts, which Python's garbage collector need not visit."""

    def __init__(self, relations: Relations) -> None:
        self._symbols = relations.symbols
        self._json: dict[int, str] = {}
        self._inner: dict[int, str] = {}
        self._canonical: dict[int, str] = {}

    def columns(self, tags: Sequence[int]) -> _TextColumns:
        try:
            texts = list(map(self._json.__getitem__, tags))
        except KeyError:
            self._learn(tags)
            texts = list(map(self._json.__getitem__, tags))
        inner = list(map(self._inner.__getitem__, tags))
        # Only decimals have a canonical text of their own.
        return texts, inner, list(map(self._canonical.get, tags, texts))

    def _learn(self, tags: Sequence[int]) -> None:
        if len(self._json) > _KNOWN_VALUES:
            for known in (self._json, self._inner, self._canonical):
                known.clear()
        for tag, text in self._symbols.encoded(set(tags).difference(self._json)):
            self._json[tag] = text if tag != MISSING_TAG else encode_value(str(MISSING))
            self._inner[tag] = text[1:-1] if text.startswith('"') else text
            # A decimal is stored as an object; a line and an identity have its number.
            if text.startswith("{"):
                value = decode_value(text)
                self._json[tag] = json.dumps(value, default=encode_decimal)
                self._inner[tag], self._canonical[tag] = str(value), canonical_text(value)
