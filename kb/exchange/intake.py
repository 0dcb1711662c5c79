"""Intake of given facts into the knowledge base: each is checked, all are counted, and either all are stored or none.

Facts go into their relations while the source is read, inside a transaction that a fault undoes: a file of any size
takes little memory, and a faulty row leaves nothing behind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Self

from hapax.grammar.data_types import NUMBER, TEXT
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import MISSING, Atom, Constant, Value, is_text
from hapax.grammar.values.moments import WRITTEN, is_written
from hapax.grammar.writing.words import counted, short, some
from hapax.kb import rows
from hapax.kb.exchange import values
from hapax.kb.exchange.arriving import LINES_SHOWN, ArrivingFacts, FactKey, FactKind
from hapax.kb.exchange.values import FactRefused, check_form, encoded_columns
from hapax.kb.records import PREDICATES, USER, FactRecord, LeftOutRow, Source, canonical_text, identity_cells
from hapax.kb.store import KnowledgeBase

_FAULTS_SHOWN = 20
_VALUES_SHOWN = 3

_SPELLINGS_REPORTED = 20
"""Spellings with their canonical names that the report of an import has."""

_LEFT_OUT_KEPT = 1_000
"""Rows of a file that were left out and are stored, for `why_not`."""

_REMEMBERED_NAMES = 65_536
"""Names that are looked up once for a whole file."""

# A goal reads a word that begins like this as a variable.
_VARIABLE = re.compile("[A-Z_]")

_NO_PREDICATE = "no predicate"

_REPEATED_KEY = "repeated key"

_REMEDY = Remedy("Fix these rows, or skip them with {}.", Setting("skip_faulty"))
_KEY_REMEDY = Remedy(
    "Fix these rows, or skip them with {}. The last row with a key replaces the others with {}.",
    Setting("skip_faulty"),
    Setting("same_key", "replace"),
)
_TABLE_REMEDY = Remedy(
    "{} writes a mapping and first rules for a table. Or say which columns are the arguments: {}. If the first column "
    "is the predicate, begin the file with a header such as predicate,argument1,argument2, or name the rules that have "
    "it by {}.",
    Operation("start_folder", "TABLE"),
    Setting("mapping"),
    Setting("rules", "FILE"),
)


@dataclass(frozen=True, slots=True)
class FactFault:
    """A faulty row of a file. `line` is the number of its first line, or of the record, from 1. `kind`: in short."""

    file: str
    line: int
    message: str
    kind: str = "not a fact"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class FactsRejected(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A file of facts was refused and nothing imported. `faults` has every fault, the message the first ones."""

    def __init__(self, faults: Iterable[FactFault], remedy: Remedy | str = _REMEDY) -> None:
        self.faults = tuple(faults)
        shown = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        if more := len(self.faults) - len(shown):
            kinds = Counter(fault.kind for fault in self.faults).most_common()
            shown.append(f"... and {counted(more, 'more fault')}")
            shown.append(f"In all: {', '.join(f'{number} {kind}' for kind, number in kinds)}.")
        shown.append("Nothing was imported.")
        super().__init__("\n".join(shown), remedy)


class _NotStored(Exception):  # noqa: N818  says what happened
    """Ends the transaction of facts that were only checked."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Result of an import. `promoted`: a model's facts that are now given; `known`: facts that were given before.

    `predicates`: number of facts read by indicator, most frequent first; `warnings`: possible mistakes in the file;
    `repeats`: rows that say what an earlier row said; `renamed`: rows with a value under its canonical name;
    `spellings`: the first spellings of such values with their canonical names; `fallen`, `risen`: texts of stored
    statements that the facts refute, and of those that hold again.
    """

    read: int
    added: int
    promoted: int
    known: int
    faults: tuple[FactFault, ...] = ()
    predicates: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    repeats: int = 0
    renamed: int = 0
    spellings: Mapping[str, str] = field(default_factory=dict)
    fallen: tuple[str, ...] = ()
    risen: tuple[str, ...] = ()
    empty: Mapping[str, int] = field(default_factory=dict)
    """Number of empty cells by column, as `trip.air_time`."""
    incomplete: int = 0
    """Facts that were left out for an empty cell."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Stored facts and earlier rows that gave way to a fact with the same key, as atoms."""

    def to_json(self) -> dict[str, Any]:
        """All numbers, with every faulty row."""
        mappings = {
            "predicates": self.predicates,
            "spellings": self.spellings,
            "empty": self.empty,
            "replaced": self.replaced,
        }
        return {**asdict(self), **{name: dict(mapping) for name, mapping in mappings.items()}}


@dataclass(frozen=True, slots=True)
class FactsInConflict:
    """Facts that break a declaration together, as a text. `arriving`: those of the file.

    `claimed`: some of the others are a model's, which give way to given facts.
    """

    arriving: Sequence[FactRecord]
    text: str
    claimed: bool
    row: FactRecord | None = None
    """The fact of the one row that is at fault, if it is known."""


@dataclass(frozen=True, slots=True)
class FactNames:
    """Canonical names for the values of imported facts. `title`: of the reference that has them.

    `canonical`: the name of a value of a data type; None if it is unknown or ambiguous.
    """

    title: str
    canonical: Callable[[str, str], str | None]


@dataclass(frozen=True, slots=True)
class RulesForFacts:
    """The rules that imported facts must fit; by default none.

    `strict`: refuse predicates that the rules do not have, instead of a warning. `constrained`: indicators of the
    predicates whose facts can break a declaration. `conflicts`: finds the conflicts that such facts of the file bring.
    `names`: gives values their canonical names.
    """

    library: Library | None = None
    strict: bool = False
    constrained: frozenset[str] = frozenset()
    conflicts: Callable[[Iterable[FactRecord]], Iterable[FactsInConflict]] = lambda _: ()
    names: FactNames | None = None


_MEANT = {
    NUMBER: ("a number", "write the number alone"),
    **{kind: (meaning, f"write it as {example}") for kind, (meaning, example) in WRITTEN.items()},
}
"""What a kind of type has as its values, and the remedy for a text that is none."""


def _others(column: Sequence[Value], kind: str) -> Iterator[Value]:
    """The values of a column that are not of a kind, other than "" and MISSING, of empty cells."""
    if kind == NUMBER:
        return (value for value in column if isinstance(value, str) and value and value is not MISSING)
    others = (value for value in dict.fromkeys(column) if value is not MISSING and value != "")
    return (value for value in others if not is_written(value, kind))


def _text_of(value: Any) -> Any:
    """A number that a fact can have as a text; other values as they are."""
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return str(value) if is_number and values.fact_refusal(value) is None else value


class FactIntake:
    """Facts and faults of a source being read, a context manager that stores nothing unless `store` is reached.

    All faults are collected, and reported at once.
    `file`: name of the source in messages. `rules`: those whose declarations the facts must fit.
    """

    def __init__(self, kb: KnowledgeBase, file: str, rules: RulesForFacts | None = None) -> None:
        self.file = file
        self.remedy: Remedy | str = _REMEDY
        self.names_predicates = True
        """The source says where its predicates stand; otherwise its first column may be anything."""
        self.faults: list[FactFault] = []
        self._left_out: dict[int, LeftOutRow] = {}
        self._empty: Counter[str] = Counter()
        self.incomplete = 0
        """Facts that were left out for an empty cell."""
        self.unused: dict[str, int] = {}
        """Columns or fields that an import ignores, with the line where each first occurs."""
        self.progress = kb.progress
        self._kb = kb
        self._rules = rules or RulesForFacts()
        self._arities: dict[str, set[int]] = {}
        """Numbers of arguments of the predicates of the rules, by name."""
        self._types: dict[str, tuple[str, ...]] = {}
        self._keys: dict[str, list[FactKey]] = {}
        """By indicator."""
        self._replaced: dict[str, str] = {}
        library = self._rules.library
        for signature in library.completed().signatures if library is not None else ():
            self._arities.setdefault(signature.name, set()).add(len(signature.argument_types))
            self._types[signature.indicator] = signature.argument_types
            for places, words in signature.keys:
                columns = signature.columns if places == signature.key else ()
                key = FactKey(places, words, columns, signature.tolerance, is_declared=True)
                self._keys.setdefault(signature.indicator, []).append(key)
        self._declared = {predicate.indicator: predicate.argument_types for predicate in kb.select(PREDICATES)}
        self.known = frozenset((*self._types, *self._declared, *kb.fact_indicators()))
        """Indicators of the predicates that the rules or the knowledge base declare, or that had facts before."""
        self._kinds: dict[tuple[str, int, tuple[str, ...] | None], FactKind | FactRefused] = {}
        self._counts: Counter[str] = Counter()
        self._arriving = ArrivingFacts(kb)
        self._renaming = _Renaming(self._rules.names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: Any) -> None:
        # Nothing is left to undo after `store`.
        self._arriving.transaction.__exit__(*(fault if fault[0] else (_NotStored, _NotStored(), None)))

    def add_key(self, predicate: str, columns: Sequence[str], places: Sequence[int]) -> None:
        """Follow a key of the predicate's facts that no declaration has. To be called before the first fact."""
        words = f"has the key {', '.join(columns[place] for place in places)}"
        keys = self._keys.setdefault(f"{predicate}/{len(columns)}", [])
        if all(key.places != tuple(places) for key in keys):
            keys.append(FactKey(tuple(places), words, columns))

    def row_width(self, predicate: str) -> int:
        """The number of columns of a predicate with a key; 0 without one."""
        widths = (len(key.columns) for name, keys in self._keys.items() if _name_of(name) == predicate for key in keys)
        return max(widths, default=0)

    def add_facts(
        self,
        facts: Sequence[tuple[int, Any, Any, Any]],
        values_of: Callable[[Sequence[Any]], Sequence[Any]] = lambda column: column,
    ) -> None:
        """Add facts, or the faults that keep some from being one. What a file has may be of any class.

        `facts`: line, predicate, arguments, and types or None. `values_of`: what a column of arguments means.
        """
        alike: dict[object, list[int]] = {}
        for place, (_, predicate, arguments, types) in enumerate(facts):
            is_plain = types is None and type(predicate) is str and type(arguments) in (list, tuple)
            alike.setdefault((predicate, len(arguments)) if is_plain else place, []).append(place)
        places: dict[FactKind, list[int]] = {}
        for group in alike.values():
            _, predicate, arguments, types = facts[group[0]]
            try:
                check_form(predicate, arguments, () if types is None else types)
                places.setdefault(self.kind(predicate, len(arguments), types), []).extend(group)
            except FactRefused as refused:
                for place in group:
                    self.add_fault(facts[place][0], str(refused), refused.kind)
        refs = self._arriving.numbers([line for line, *_ in facts]) if places else range(0)
        for kind, chosen in places.items():
            chosen.sort()
            columns = list(map(values_of, zip(*(facts[place][2] for place in chosen), strict=True)))
            if kind.key:
                for place in set(range(len(columns))).difference(kind.key):
                    columns[place] = [MISSING if cell is None else cell for cell in columns[place]]
            self._store([facts[place][0] for place in chosen], kind, [refs[place] for place in chosen], columns)

    def add_columns(
        self, lines: Sequence[int], kind: FactKind, columns: Sequence[Sequence[Any]], names: Sequence[str], empty: str
    ) -> None:
        """Add facts of a kind by the columns of their arguments, or the faults that keep some from being one.

        `names`: of the columns. `empty`: what becomes of facts with empty cells, which are None, see `TableMapping`.
        """
        rows: range | list[int] = range(len(lines))
        if empty != "refuse" and (holes := [place for place, column in enumerate(columns) if None in column]):
            filled = [list(column) for column in columns]
            left_out = set()
            for place in holes:
                at = [row for row in rows if columns[place][row] is None]
                self._empty[f"{kind.predicate}.{names[place]}"] += len(at)
                if empty == "skip" and (not kind.key or place in kind.key):
                    left_out.update(at)
                for row in at:
                    filled[place][row] = MISSING if empty == "skip" else ""
            self.incomplete += len(left_out)
            rows = [row for row in rows if row not in left_out]
            lines, columns = [lines[row] for row in rows], [[column[row] for row in rows] for column in filled]
        if lines:
            self._store(lines, kind, self._arriving.numbers(lines), columns, names)

    def _store(
        self,
        lines: Sequence[int],
        kind: FactKind,
        refs: Sequence[int],
        columns: Sequence[Sequence[Any]],
        names: Sequence[str] = (),
    ) -> None:
        """Store the facts that can be facts; the others become faults."""
        try:
            values_of, identities, bases = self._checked(kind, columns, names)
        except FactRefused as refused:
            half = len(lines) // 2
            if not half:
                row = [column[0] for column in columns]
                self.add_fault(lines[0], str(refused), refused.kind, (kind.predicate, row))
            for part in (slice(half), slice(half, None)) if half else ():
                self._store(lines[part], kind, refs[part], [column[part] for column in columns], names)
        else:
            self._counts[kind.indicator] += len(lines)
            self._arriving.add(kind, refs, values_of, identities, bases)

    def _checked(
        self, kind: FactKind, given: Sequence[Sequence[Any]], names: Sequence[str]
    ) -> tuple[Sequence[Sequence[Value]], list[bytes], Sequence[str | None]]:
        """Columns of values, identities and bases of facts. Raises FactRefused if one cannot be a fact.

        Only for a single row the error is that of its first faulty argument.
        """
        columns = [list(map(_text_of, column)) if at in kind.texts else column for at, column in enumerate(given)]
        texts = encoded_columns(kind.predicate, columns, names)
        for place, wanted in kind.kinds.items():
            for value in _others(columns[place], wanted):
                meaning, remedy = _MEANT[wanted]
                where = f"column {names[place]}" if names else f"argument {place + 1} of {kind.indicator}"
                raise FactRefused(
                    f"{where} is {short(value)}, where the rules have {meaning} "
                    f"({self._types[kind.indicator][place]}); {remedy}",
                    "text for a number" if wanted == NUMBER else "other value for a date or time",
                )
        bases: Sequence[str | None] = [None] * len(columns[0])
        if self._renaming.title and kind.types:
            renamed = [self._renaming.renamed(kind.predicate, row, kind.types) for row in zip(*columns, strict=True)]
            columns, bases = list(zip(*(row for row, _ in renamed), strict=True)), [basis for _, basis in renamed]
            texts = encoded_columns(kind.predicate, columns)
        cells = [f"{kind.beginning}[{text}]]" for text in map(",".join, zip(*texts, strict=True))]
        if '{"decimal"' in "".join(cells):
            # Equal decimals, such as 1.5 and 1.50, have different texts and one identity.
            rows = map(identity_cells, zip(*columns, strict=True))
            cells = [f"{kind.beginning}{canonical_text(row)}]" for row in rows]
        return columns, [sha256(cell.encode()).digest()[:16] for cell in cells], bases

    def add_fault(
        self, line: int, message: str, kind: str = "not a fact", row: tuple[str, Sequence[Any]] | None = None
    ) -> None:
        """Add a fault. `row`: predicate and arguments of the fact that the row would be."""
        self.faults.append(FactFault(self.file, line, message, kind))
        if row is not None and len(self._left_out) < _LEFT_OUT_KEPT:
            predicate, arguments = row
            cells = tuple("" if cell is None or cell is MISSING else str(cell) for cell in arguments)
            if not any(map(values.refusal, (self.file, predicate, *cells, message))):
                self._left_out[line] = LeftOutRow(self.file, line, predicate, cells, message)

    def kind(self, predicate: str, arity: int, types: Sequence[str] | None = None) -> FactKind:
        """The kind of such facts. Raises FactRefused for a predicate that does not fit the rules."""
        key = predicate, arity, None if types is None else tuple(types)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._new_kind(*key)
        if isinstance(found, FactRefused):
            raise found.with_traceback(None)
        return found

    def _new_kind(self, predicate: str, arity: int, types: tuple[str, ...] | None) -> FactKind | FactRefused:
        arities = self._arities.get(predicate)
        if arities is not None and arity not in arities:
            wanted = " or ".join(map(str, sorted(arities)))
            message = f"{predicate} has {counted(arity, 'argument')} here and {wanted} in the rules"
            return FactRefused(message, "wrong arity")
        if arities is None and self._rules.strict:
            near = get_close_matches(predicate, self._arities, n=1, cutoff=0.6)
            remedy = f"did you mean {near[0]}" if near else "declare it in the rules"
            return FactRefused(f"{predicate} is not a predicate of the rules; {remedy}", _NO_PREDICATE)
        if arities is None and _VARIABLE.match(predicate) and not self.names_predicates:
            return FactRefused(
                f"{predicate} begins with a capital letter, and no rule has a predicate of this name. "
                "Write the predicate first, such as is_allergic_to, followed by its arguments, or say which columns "
                f"are the arguments: {Setting('mapping.columns')}",
                _NO_PREDICATE,
            )
        indicator = f"{predicate}/{arity}"
        library, declared = self._rules.library, self._types.get(indicator, ())
        kinds = dict(enumerate(map(library.kind_of, declared) if library is not None else ()))
        checked = {place: kind for place, kind in kinds.items() if kind in _MEANT}
        texts = frozenset(place for place, kind in kinds.items() if kind == TEXT)
        if types is None:
            types = self._declared.get(indicator) or declared
        beginning = f'["fact",{values.encode_value(predicate)},'
        key = next((key.places for key in self._keys.get(indicator, ()) if key.columns), ())
        return FactKind(predicate, indicator, types, beginning, checked, texts, key)

    def refuse_faulty(self, remedy: Remedy | str = "") -> None:
        """Raise FactsRejected with every fault, if there is one."""
        if self.faults and self.remedy is _REMEDY and any(fault.kind == _REPEATED_KEY for fault in self.faults):
            remedy = remedy or _KEY_REMEDY
        if self.faults:
            raise FactsRejected(sorted(self.faults, key=attrgetter("line")), remedy or self.remedy)

    def store(self, skip_faulty: bool, same_key: str = "refuse") -> ImportReport:
        """Store the facts. Raises FactsRejected with every fault, and stores nothing, unless `skip_faulty`.

        `same_key`: a row with the key of a stored fact or an earlier row, and other values, is a fault (`refuse`), is
        stored beside it unless a declaration has the key (`keep`), or has it withdrawn (`replace`).
        """
        self._arriving.index()
        self._refuse_table()
        conflicts = self._refuse_conflicts(same_key)
        if self.faults and not skip_faulty:
            self.refuse_faulty()
        self._kb.set_left_out(self.file, list(self._left_out.values()))
        read, known = self._arriving.store()
        given, promoted, repeats = known[Source.GIVEN], known[Source.MODEL], self._arriving.repeats
        # A repeated row was counted when it was read, but is no further fact.
        counts = self._counts - repeats
        repeated = _repeats(repeats.total(), self._arriving.repeated_lines)
        others = (*conflicts, *repeated, *self._renaming.warnings(), *self._beside(read - promoted, given))
        return ImportReport(
            read=read,
            added=read - given - promoted,
            promoted=promoted,
            known=given,
            faults=tuple(sorted(self.faults, key=attrgetter("line"))),
            predicates=dict(counts.most_common()),
            warnings=(*self._warnings(), *(f"{self.file}: {warning}" for warning in others)),
            repeats=repeats.total(),
            renamed=self._renaming.rows,
            empty=dict(self._empty.most_common()),
            incomplete=self.incomplete,
            replaced=self._replaced,
            spellings=self._renaming.spellings,
        )

    def _refuse_table(self) -> None:
        """Raise FactsRejected for a file that does not say where its predicates stand, if none of them is known.

        Every row of such a file begins with another word, as the rows of a table do; a file of facts repeats its
        predicates.
        """
        # A single row does not show what the file is.
        is_varied = len(self._counts) + len(self.faults) > 1 and set(self._counts.values()) <= {1}
        # A header may have names of any form.
        faults = [fault for fault in self.faults if fault.line > 1]
        if self.names_predicates or not is_varied or any(fault.kind != _NO_PREDICATE for fault in faults):
            return
        if {*map(_name_of, self.known)}.isdisjoint(map(_name_of, self._counts)):
            message = "the first column holds no known predicate, so this may be a table with columns of its own"
            self.faults = [FactFault(self.file, 1, message, _NO_PREDICATE)]
            self.refuse_faulty(_TABLE_REMEDY)

    def _refuse_conflicts(self, same_key: str) -> list[str]:
        """Make faults of the rows whose facts break declarations, and return warnings about models' facts that do.

        A conflict may hide behind another one, so the rest is looked through again.
        """
        warnings: dict[str, None] = {}
        kept: list[str] = []
        for indicator in sorted(self._keys.keys() & self._counts.keys()):
            for key in self._keys[indicator]:
                for facts in list(self._arriving.with_same_key(indicator, key)):
                    conflicts = _key_conflicts(f"{indicator} {key.words}", key, facts)
                    if same_key == "replace":
                        self._replace(facts)
                    elif same_key == "keep" and not key.is_declared:
                        kept += (f"line {line}: {conflict.text}" for line, conflict in conflicts)
                    else:
                        kind = _REPEATED_KEY if key.columns else "second value"
                        self._refuse((conflict for _, conflict in conflicts), kind, warnings)
        constrained = self._rules.constrained & self._counts.keys()
        refused = bool(constrained)
        # It ends, since each further round follows the withdrawal of at least one fact from the file.
        while refused:
            found = self._rules.conflicts(self._arriving.facts(constrained))
            refused = self._refuse(found, "broken declaration", warnings)
        return [*warnings, *_same_keys(kept)]

    def _replace(self, facts: Sequence[tuple[int, FactRecord]]) -> None:
        """Withdraw all facts but the last of those with one key."""
        *others, (_, last) = facts
        for _, indicator in self._arriving.withdraw(fact for _, fact in others):
            self._counts[indicator] -= 1
        # Those that were stored before.
        self._kb.withdraw((fact for _, fact in others), f"replaced by {last.ground_atom} of {self.file}", USER)
        self._replaced.update({str(fact.ground_atom): str(last.ground_atom) for _, fact in others})

    def _refuse(self, found: Iterable[FactsInConflict], kind: str, warnings: dict[str, None]) -> bool:
        """Make faults of the rows of conflicts, or warnings where a model's facts are in them. False without faults."""
        refused = False
        for conflict in found:
            if conflict.claimed:
                listing = f"Run {Operation('check_rules', kb=True)} to list them."
                warnings[f"{conflict.text}, by facts of a model. {listing}"] = None
                continue
            for line, indicator in self._arriving.withdraw(conflict.arriving):
                refused = True
                self._counts[indicator] -= 1
                row = None if conflict.row is None else (conflict.row.predicate, conflict.row.arguments)
                self.add_fault(line, conflict.text, kind, row)
        return refused

    def _beside(self, read: int, known: int) -> Iterator[str]:
        """The warning about rows of a file that was imported before, of which some may be corrected ones."""
        keyless = [name for name in self._counts if name in self.known and name not in self._keys]
        if keyless and known and read > known:
            stored, new = counted(known, "row is", "rows are"), counted(read - known, "is", "are")
            yield (
                f"{stored} stored already, and {new} new. {some(keyless)} has no key: of a row that was corrected, the "
                "old one stays as well. Name the key in the mapping, and import with "
                f"{Setting('same_key', 'replace')}, or withdraw the old row: {Operation('retract', 'FACT')}."
            )

    def _warnings(self) -> Iterator[str]:
        """Possible mistakes in the file: ignored columns, and predicates that no rule has."""
        if self.unused:
            yield (
                f"{self.file}:{min(self.unused.values())}: ignored: {some(map(short, self.unused))}. "
                "An import reads the predicate, its arguments and, in JSONL, their types."
            )
        if self._arities and (others := [name for name in self._counts if _name_of(name) not in self._arities]):
            yield f"{self.file}: no rule uses {some(others)}. Check the spelling, or declare them in the rules."
        if unnamed := [name for name in self._counts if _VARIABLE.match(name)]:
            yield (
                f"{self.file}: {some(unnamed)} are taken as predicates, although they begin with a capital letter. If "
                "they are values, write the predicate first, such as is_allergic_to, followed by its arguments."
            )


def _key_conflicts(
    label: str, key: FactKey, facts: Sequence[tuple[int, FactRecord]]
) -> Iterator[tuple[int, FactsInConflict]]:
    """The conflicts of facts with the same key, which stand by line and have 0 for one that is stored, with a line."""
    arriving = [(line, fact) for line, fact in facts if line]
    given = [(line, fact) for line, fact in facts if line or fact.source is Source.GIVEN]
    claimed = len(given) == 1
    if not key.columns:
        in_order = sorted((fact for _, fact in facts), key=lambda fact: str(rows.VALUES.encode(fact.arguments)))
        text = (
            f"{label}, but has {len(facts)} values: {some((str(fact.ground_atom) for fact in in_order), _VALUES_SHOWN)}"
        )
        yield arriving[0][0], FactsInConflict([fact for _, fact in arriving], text, claimed)
        return
    (first_line, first), *others = facts if claimed else given
    names = ", ".join(f"{key.columns[place]} {short(first.arguments[place])}" for place in key.places)
    for line, fact in others:
        pairs = zip(key.columns, first.arguments, fact.arguments, strict=True)
        column, value, stated = next((column, mine, theirs) for column, mine, theirs in pairs if mine != theirs)
        owner = f"line {first_line}" if first_line else "a stored fact"
        text = f"{label}, but {owner} has {names}, too, and there {column} is {short(value)} and not {short(stated)}"
        yield line, FactsInConflict([fact], text, claimed, fact)


def _name_of(indicator: str) -> str:
    return indicator.rpartition("/")[0]


def _same_keys(rows: Sequence[str]) -> Iterator[str]:
    """The warning about rows with the key of an earlier row, of which the first few are named."""
    if rows:
        more = f"; and {counted(len(rows) - LINES_SHOWN, 'more row')}" if len(rows) > LINES_SHOWN else ""
        yield f"{counted(len(rows), 'row has', 'rows have')} a key twice: {'; '.join(rows[:LINES_SHOWN])}{more}"


def _repeats(count: int, lines: Sequence[int]) -> Iterator[str]:
    if count:
        more = f" and {count - len(lines)} more" if count > len(lines) else ""
        verb = "repeats" if count == 1 else "repeat"
        yield f"{counted(count, 'fact')} {verb} an earlier one: line {some(map(str, lines))}{more}."


class _Renaming:
    """Values of an import under their canonical names, and their numbers. A fact's basis keeps what the user wrote."""

    def __init__(self, names: FactNames | None) -> None:
        self.title = names.title if names else ""
        """Title of the reference that has the names; empty without one."""
        self._canonical = lru_cache(_REMEMBERED_NAMES)(names.canonical if names else lambda value, _: value)
        self.rows = 0
        """Rows with a value that was renamed."""
        self.spellings: dict[str, str] = {}
        self._known_types: set[str] = set()
        """Data types of which some value of the file is known."""
        self._unknown: dict[str, dict[str, None]] = {}
        """By data type, the first values that are not known."""

    def renamed(
        self, predicate: str, arguments: Sequence[Value], types: Sequence[str]
    ) -> tuple[Sequence[Value], str | None]:
        """The arguments under canonical names, and the basis of a fact that they change."""
        named = list(map(self._named, arguments, types))
        if named == [*arguments]:
            return arguments, None
        self.rows += 1
        written = Atom(predicate, tuple(map(Constant, arguments)))
        return named, f"written {written}; names by {self.title}"

    def _named(self, value: Value, data_type: str) -> Value:
        if not is_text(value):
            return value
        name: str | None = self._canonical(value, data_type)
        if name is None or values.fact_refusal(name):
            unknown = self._unknown.setdefault(data_type, {})
            if len(unknown) < _VALUES_SHOWN:
                unknown[value] = None
            return value
        self._known_types.add(data_type)
        if name != value and len(self.spellings) < _SPELLINGS_REPORTED:
            self.spellings[value] = name
        return name

    def warnings(self) -> Iterator[str]:
        """Values without a canonical name, of types of which other values have one."""
        for data_type in sorted(self._known_types & self._unknown.keys()):
            shown = ", ".join(map(short, self._unknown[data_type]))
            meanings = f"no {data_type}, or more than one, of the name {shown}"
            yield f"{self.title} has {meanings}; such values stay as they are."
