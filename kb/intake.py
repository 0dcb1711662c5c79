"""Intake of given facts into the knowledge base: each is checked, all are counted, and either all are stored or none.

Facts wait in a temporary table on disk until the last row is read, so that a file of any size takes little memory and a
faulty row leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import compress, groupby, repeat
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, PredicateKind, Tolerance
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.words import counted
from hapax.kb import rows, values
from hapax.kb.connection import translated
from hapax.kb.records import FactRecord, Source, canonical_text
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase

_FAULTS_SHOWN = 20
_REPEATS_SHOWN = 5
_VALUES_SHOWN = 3

_SPELLINGS_REPORTED = 20
"""Spellings with their canonical names that the report of an import has."""

_REMEMBERED_NAMES = 65_536
"""Names that are looked up once for a whole file."""

_BATCH = 10_000
"""Facts that go into the temporary table at once."""

_STAGED = ("id", "predicate", "arguments", "types", "basis")
"""Columns of a fact that the temporary table has."""

# A goal reads a word that begins like this as a variable.
_VARIABLE = re.compile("[A-Z_]")

_REMEDY = Remedy("Fix these rows, or skip them with {}.", Setting("skip_faulty"))
_TABLE_REMEDY = Remedy(
    "Say which columns are the arguments: {}. If the first column is the predicate, "
    "begin the file with a header such as predicate,argument1,argument2, or name the rules that have it "
    "by {}.",
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


class RowRefused(ValueError):  # noqa: N818  named after the situation, as all our errors are
    """A row that is not a fact. `kind`: the fault in short, by which faults are counted."""

    def __init__(self, message: str, kind: str = "not a fact") -> None:
        super().__init__(message)
        self.kind = kind


class FactsRejected(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A file of facts was refused and nothing imported. `faults` has every fault, the message the first ones."""

    def __init__(self, faults: Iterable[FactFault], remedy: Remedy | str = _REMEDY) -> None:
        self.faults = tuple(faults)
        shown = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        if more := len(self.faults) - len(shown):
            shown.append(f"... and {counted(more, 'more fault')}")
            shown.append(f"In all: {kinds_text(self.faults)}.")
        shown.append("Nothing was imported.")
        super().__init__("\n".join(shown), remedy)


def kinds_text(faults: Iterable[FactFault]) -> str:
    """The number of faults of each kind: `3 short row, 1 text for a number`."""
    numbers: dict[str, int] = {}
    for fault in faults:
        numbers[fault.kind] = numbers.get(fault.kind, 0) + 1
    return ", ".join(f"{number} {kind}" for kind, number in sorted(numbers.items(), key=lambda pair: -pair[1]))


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

    def to_json(self) -> dict[str, Any]:
        """All numbers, with every faulty row."""
        return {**asdict(self), "predicates": dict(self.predicates), "spellings": dict(self.spellings)}


@dataclass(frozen=True, slots=True)
class FactsInConflict:
    """Facts that break a declaration together, as a text. `arriving`: identities of those of the file.

    `claimed`: some of the others are a model's, which give way to given facts.
    """

    arriving: frozenset[str]
    text: str
    claimed: bool


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


class FactIntake:
    """Facts and faults of a file being read. Both are collected, so that all faults are reported at once.

    `rules`: those whose declarations the facts must fit.
    """

    def __init__(self, kb: KnowledgeBase, file: str, rules: RulesForFacts | None = None) -> None:
        self.file = file
        self._rules = rules or RulesForFacts()
        self.remedy: Remedy | str = _REMEDY
        self.faults: list[FactFault] = []
        self.unused: dict[str, int] = {}
        """Columns or fields that an import ignores, with the line where each first occurs."""
        self.names_predicates = False
        """True if the file itself says where its predicates stand. Otherwise its first column may be anything."""
        self._kb = kb
        self._checks = _Checks(self._rules.library, self._rules.strict)
        self._declared = {predicate.indicator: predicate.argument_types for predicate in kb.predicates()}
        self._waiting: list[tuple[object, ...]] = []
        self._waiting_bases: dict[int, str] = {}
        """The file's own spelling of renamed facts, by their places in `_waiting`."""
        self._counts: dict[str, int] = {}
        self._table = _TemporaryFacts(kb)
        self._renaming = _Renaming(self._rules.names) if self._rules.names else None

    @cached_property
    def known(self) -> frozenset[str]:
        """Indicators with facts or declarations, of the rules and of the knowledge base.

        Few files need them, so they are read when a row asks.
        """
        return frozenset((*self._checks.indicators, *self._declared, *self._kb.fact_indicators()))

    def add_fact(self, line: int, predicate: object, arguments: object, types: object = None) -> None:
        """Add the fact, or the fault that keeps it from being a fact."""
        try:
            fact = self._fact(predicate, arguments, types)
        except RowRefused as refused:
            self.add_fault(line, str(refused), refused.kind)
        except ValueError as error:
            self.add_fault(line, str(error))
        else:
            if self._renaming is not None:
                fact = self._renaming.renamed_fact(fact)
            self._add(line, fact)

    def add_rows(self, predicate: str, lines: Sequence[int], columns: Sequence[EncodedColumn]) -> None:
        """Add the rows of a table as facts of one predicate, given by a column of cells for each argument."""
        indicator = f"{predicate}/{len(columns)}"
        if arity := self._checks.other_arity(predicate, len(columns)):
            raise HapaxError(f"{self.file}: {arity}. Name as many columns as the predicate has arguments.")
        if unknown := self._checks.unknown(predicate):
            raise HapaxError(f"{self.file}: {unknown}.")
        columns = [self._numbers_only(indicator, place, column) for place, column in enumerate(columns)]
        faulty: dict[int, tuple[str, str]] = {}
        for column in columns:
            # Of a row with several faulty cells the first gives the message.
            faulty = {**column.faults, **faulty}
        for row, (message, kind) in sorted(faulty.items()):
            self.add_fault(lines[row], message if kind == TEXT_FOR_NUMBER else f"{indicator}: {message}", kind)
        types = self._types(indicator)
        bases: list[str | None] = []
        if self._renaming is not None and types:
            columns, bases = self._renaming.renamed_columns(predicate, columns, types, faulty)
        stored = list(map(",".join, zip(*(column.texts for column in columns), strict=True)))
        # Identities are those of canonical values. Mostly every cell is canonical, and one list serves for both.
        canonical = stored
        if any(column.canonical is not column.texts for column in columns):
            canonical = list(map(",".join, zip(*(column.canonical for column in columns), strict=True)))
        if faulty:
            sound = [row not in faulty for row in range(len(lines))]
            lines = list(compress(lines, sound))
            # Compressed lists are new ones, so it is noted before whether both are one list.
            same = canonical is stored
            stored = list(compress(stored, sound))
            canonical = stored if same else list(compress(canonical, sound))
            bases = list(compress(bases, sound))
        # As `content_id` of the fact, but the part that all rows share is hashed once.
        beginning = hashlib.sha256(f'["fact",{values.encode_value(predicate)},'.encode())
        texts = [f"[{arguments}]" for arguments in stored]
        identities = []
        for arguments in texts if canonical is stored else [f"[{arguments}]" for arguments in canonical]:
            digest = beginning.copy()
            digest.update(f"{arguments}]".encode())
            identities.append(digest.hexdigest()[:32])
        self._counts[indicator] = self._counts.get(indicator, 0) + len(lines)
        # Facts that came before must be numbered before these.
        self._flush()
        number = self._table.kind(predicate, types)
        renamed = {place: basis for place, basis in enumerate(bases) if basis is not None}
        # Not strict: `repeat` has no end.
        self._table.add(list(zip(lines, identities, repeat(number), texts, strict=False)), renamed)

    def _numbers_only(self, indicator: str, place: int, column: EncodedColumn) -> EncodedColumn:
        """The column, with a fault for each text where the rules have a number."""
        if place not in self._checks.numeric(indicator):
            return column
        faults = dict(column.faults)
        for row in column.text_rows:
            message = self._checks.number_wanted(place, indicator, values.decode_value(column.texts[row]))
            faults.setdefault(row, (message, TEXT_FOR_NUMBER))
        return replace(column, faults=faults)

    def add_fault(self, line: int, message: str, kind: str = "not a fact") -> None:
        self.faults.append(FactFault(self.file, line, message, kind))

    def refuse_faulty(self) -> None:
        """Raise FactsRejected if a fact has a fault of its own. Nothing is stored."""
        self._table.drop()
        if self.faults:
            raise FactsRejected(self.faults, self.remedy)

    def store(self, skip_faulty: bool) -> ImportReport:
        """Store the facts. Raises FactsRejected with every fault, and stores nothing, unless `skip_faulty`."""
        self._flush()
        self._refuse_table()
        # As a list at once, since the generator adds the faults that are looked at next.
        claimed = list(self._refuse_conflicts())
        self.faults.sort(key=lambda fault: fault.line)
        if self.faults and not skip_faulty:
            self._table.drop()
            raise FactsRejected(self.faults, self.remedy)
        with self._kb.transaction():
            stored = self._table.store(renamed=self._renaming is not None)
        warnings = [*self._warnings(), *claimed, *self._repeats(stored)]
        renaming = self._renaming or _Renaming(FactNames("", lambda _value, _type: None))
        warnings += [f"{self.file}: {line}" for line in renaming.warnings()]
        self._table.drop()
        # A repeated row was counted when it was read, but is no further fact.
        distinct = Counter(self._counts)
        distinct.subtract(Counter(indicator for _, indicator in stored.repeats))
        counts = {indicator: count for indicator, count in distinct.most_common() if count}
        return ImportReport(
            read=stored.read,
            added=stored.read - stored.given - stored.by_model,
            promoted=stored.by_model,
            known=stored.given,
            faults=tuple(self.faults),
            predicates=counts,
            warnings=tuple(warnings),
            repeats=len(stored.repeats),
            renamed=renaming.rows,
            spellings=renaming.spellings,
        )

    def _refuse_conflicts(self) -> Iterator[str]:
        """Make faults of the rows whose facts break declarations, and yield warnings about models' facts that do.

        A conflict may hide behind another one, so that the rest is looked through again.
        """
        constrained = self._rules.constrained & self._counts.keys()
        warned: dict[str, None] = {}
        functional = self._checks.functional.keys() & self._counts.keys()
        for indicator in sorted(functional):
            contradictions = list(self._table.contradictions(indicator, self._checks.functional[indicator]))
            self._refuse(contradictions, "second value", warned)
        # It ends, since each further round follows the withdrawal of at least one fact from the file.
        while constrained:
            found = self._rules.conflicts(self._table.facts(constrained))
            if not self._refuse(found, "broken declaration", warned):
                break
        yield from warned

    def _refuse(self, found: Iterable[FactsInConflict], kind: str, warned: dict[str, None]) -> bool:
        """Make faults of the rows of conflicts, or warnings where a model's facts are in them. False without faults."""
        refused = False
        for conflict in found:
            if conflict.claimed:
                warning = (
                    f"{self.file}: {conflict.text}, by facts of a model. Run {Operation('check_rules', kb=True)} "
                    "to list them."
                )
                warned[warning] = None
                continue
            for line, indicator in self._table.withdraw(conflict.arriving):
                refused = True
                self._counts[indicator] -= 1
                self.add_fault(line, conflict.text, kind)
        return refused

    def _add(self, line: int, fact: FactRecord) -> None:
        indicator = f"{fact.predicate}/{len(fact.arguments)}"
        self._counts[indicator] = self._counts.get(indicator, 0) + 1
        if fact.basis is not None:
            self._waiting_bases[len(self._waiting)] = fact.basis
        kind = self._table.kind(fact.predicate, fact.types)
        self._waiting.append((line, fact.id, kind, rows.VALUES.encode(fact.arguments)))
        if len(self._waiting) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._table.add(self._waiting, self._waiting_bases)
        self._waiting, self._waiting_bases = [], {}

    def _fact(self, predicate: object, arguments: object, types: object) -> FactRecord:
        if not isinstance(predicate, str) or not predicate.isidentifier():
            raise ValueError(f"{short(predicate)} is not a predicate name; write a name like is_allergic_to")
        if not isinstance(arguments, list):
            raise RowRefused(f"the arguments of {predicate} are {short(arguments)}, not a list; write them as a list")
        if not arguments:
            raise RowRefused(f"{predicate} has no arguments; write at least one", "short row")
        for position, argument in enumerate(arguments, 1):
            if argument is None:
                raise RowRefused(f"argument {position} of {predicate} is empty; {_EMPTY_REMEDY}", EMPTY_CELL)
            if reason := values.fact_refusal(argument):
                raise ValueError(f"argument {position} of {predicate}: {reason}")
        indicator = f"{predicate}/{len(arguments)}"
        self._checks.refuse(predicate, arguments)
        if _VARIABLE.match(predicate) and not self.names_predicates and predicate not in self._checks.names:
            raise RowRefused(
                f"{predicate} begins with a capital letter, and no rule has a predicate of this name. Write "
                "the predicate first, such as is_allergic_to, followed by its arguments, or say which "
                f"columns are the arguments: {Setting('mapping.columns')}",
                NO_PREDICATE,
            )
        types = self._types(indicator) if types is None else types
        return FactRecord(predicate, tuple(arguments), _checked_types(types, indicator), Source.GIVEN)

    def _types(self, indicator: str) -> tuple[str, ...]:
        return self._declared.get(indicator) or self._checks.types(indicator)

    def _refuse_table(self) -> None:
        """Raise FactsRejected for a file that does not say where its predicates stand, if none of them is known.

        Every row of such a file begins with another word, as the rows of a table do; a file of facts repeats its
        predicates.
        """
        if self.names_predicates or not (self._checks.indicators or self._declared):
            return
        # With fewer than two different first words nothing can be said.
        if any(fault.kind != NO_PREDICATE for fault in self.faults) or len(self._counts) + len(self.faults) < 2:
            return  # a single row does not show what the file is
        if any(count > 1 for count in self._counts.values()):
            return
        known = set(map(name_of, self.known))
        if any(name_of(indicator) in known for indicator in self._counts):
            return
        message = "the first column holds no predicate of the rules, so this may be a table with columns of its own"
        self._table.drop()
        raise FactsRejected([FactFault(self.file, 1, message, NO_PREDICATE)], _TABLE_REMEDY)

    def _warnings(self) -> Iterator[str]:
        """Possible mistakes in the file: ignored columns, and predicates that no rule has."""
        if self.unused:
            yield (
                f"{self.file}:{min(self.unused.values())}: ignored: {some(map(short, self.unused))}. "
                "An import reads the predicate, its arguments and, in JSONL, their types."
            )
        known = self._checks.names
        if known and (others := [name for name in self._counts if name_of(name) not in known]):
            yield f"{self.file}: no rule uses {some(others)}. Check the spelling, or declare them in the rules."
        if unnamed := [name for name in self._counts if _VARIABLE.match(name)]:
            yield (
                f"{self.file}: {some(unnamed)} are taken as predicates, although they begin with a capital letter. If "
                "they are values, write the predicate first, such as is_allergic_to, followed by its arguments."
            )

    def _repeats(self, stored: _Stored) -> Iterator[str]:
        if stored.repeats:
            lines = some((str(line) for line, _ in stored.repeats), _REPEATS_SHOWN)
            verb = "repeats" if len(stored.repeats) == 1 else "repeat"
            yield f"{self.file}: {counted(len(stored.repeats), 'fact')} {verb} an earlier one: line {lines}."


TEXT_FOR_NUMBER = "text for a number"
EMPTY_CELL = "empty cell"
_EMPTY_REMEDY = "fill it in, or leave the row out"
NO_PREDICATE = "no predicate"


class _Checks:
    """Declarations that facts must fit; none without a library."""

    def __init__(self, library: Library | None, strict: bool) -> None:
        self._strict = strict and library is not None
        self._library = library
        self._arities: dict[str, set[int]] = {}
        self._numeric: dict[str, tuple[int, ...]] = {}
        self._types: dict[str, tuple[str, ...]] = {}
        self.functional: dict[str, Tolerance | None] = {}
        """Tolerances of the functional predicates."""
        for signature in library.completed().signatures if library is not None else ():
            self._arities.setdefault(signature.name, set()).add(len(signature.argument_types))
            self._types[signature.indicator] = signature.argument_types
            if signature.kind is PredicateKind.FUNCTIONAL:
                self.functional[signature.indicator] = signature.tolerance

    @property
    def indicators(self) -> frozenset[str]:
        """The predicates of the rules."""
        return frozenset(self._types)

    @property
    def names(self) -> frozenset[str]:
        """Names of the predicates of the rules."""
        return frozenset(self._arities)

    def types(self, indicator: str) -> tuple[str, ...]:
        """The argument types that the rules declare; none for another predicate."""
        return self._types.get(indicator, ())

    def numeric(self, indicator: str) -> tuple[int, ...]:
        """Places, from 0, of the arguments that must be numbers."""
        if indicator not in self._numeric:
            library, types = self._library, self._types.get(indicator, ())
            places = [place for place, name in enumerate(types) if library is not None and library.is_numeric(name)]
            self._numeric[indicator] = tuple(places)
        return self._numeric[indicator]

    def other_arity(self, predicate: str, count: int) -> str:
        """A message if the rules have this predicate with other numbers of arguments only; else empty."""
        arities = self._arities.get(predicate)
        if arities is None or count in arities:
            return ""
        wanted = " or ".join(map(str, sorted(arities)))
        return f"{predicate} has {counted(count, 'argument')} here and {wanted} in the rules"

    def unknown(self, predicate: str) -> str:
        """A message if the facts must be of predicates of the rules and this one is not; else empty."""
        if not self._strict or predicate in self._arities:
            return ""
        near = get_close_matches(predicate, self._arities, n=1, cutoff=0.6)
        remedy = f"did you mean {near[0]}" if near else "declare it in the rules"
        return f"{predicate} is not a predicate of the rules; {remedy}"

    def number_wanted(self, place: int, indicator: str, text: object) -> str:
        """The message about a text in the place of a number."""
        name = self._types[indicator][place]
        return (
            f"argument {place + 1} of {indicator} is {short(text)}, where the rules have a number ({name}); "
            "write the number alone"
        )

    def refuse(self, predicate: str, arguments: Sequence[Value]) -> None:
        """Raise RowRefused for a fact that does not fit the declarations."""
        indicator = f"{predicate}/{len(arguments)}"
        if arity := self.other_arity(predicate, len(arguments)):
            raise RowRefused(arity, "wrong arity")
        if unknown := self.unknown(predicate):
            raise RowRefused(unknown, NO_PREDICATE)
        for place in self.numeric(indicator):
            if isinstance(arguments[place], str):
                raise RowRefused(self.number_wanted(place, indicator, arguments[place]), TEXT_FOR_NUMBER)


class _Renaming:
    """Values of an import under their canonical names, and their numbers. A fact's basis keeps what the user wrote."""

    def __init__(self, names: FactNames) -> None:
        self._title = names.title
        self._canonical = lru_cache(_REMEMBERED_NAMES)(names.canonical)
        self.rows = 0
        """Rows with a value that was renamed."""
        self.spellings: dict[str, str] = {}
        self._known_types: set[str] = set()
        """Data types of which some value of the file is known."""
        self._unknown: dict[str, dict[str, None]] = {}
        """By data type, the first values that are not known."""

    def renamed_fact(self, fact: FactRecord) -> FactRecord:
        """The fact under canonical names; a fact without types stays as it is."""
        if len(fact.types) != len(fact.arguments):
            return fact
        arguments = tuple(map(self._named, fact.arguments, fact.types))
        if arguments == fact.arguments:
            return fact
        self.rows += 1
        return replace(fact, arguments=arguments, basis=self._basis(fact.predicate, fact.arguments))

    def renamed_columns(
        self, predicate: str, columns: Sequence[EncodedColumn], types: Sequence[str], faulty: Container[int]
    ) -> tuple[list[EncodedColumn], list[str | None]]:
        """The columns under canonical names, and the basis of each row, None where nothing changes.

        `faulty`: rows that are left out.
        """
        found = [self._renamed_column(column, types[place]) for place, column in enumerate(columns)]
        bases: list[str | None] = []
        before = [column.texts for column in columns]
        after = [column.texts for column in found]
        for row, (written, stored) in enumerate(zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)):
            changed = written != stored and row not in faulty
            self.rows += changed
            bases.append(self._basis(predicate, tuple(map(values.decode_value, written))) if changed else None)
        return found, bases

    def _renamed_column(self, column: EncodedColumn, data_type: str) -> EncodedColumn:
        texts, canonical = list(column.texts), list(column.canonical)
        for row in column.text_rows:
            if row in column.faults:
                continue
            written = values.decode_value(texts[row])
            name = self._named(written, data_type)
            if name != written:
                texts[row], canonical[row] = values.encode_value(name), canonical_text(name)
        return replace(column, texts=texts, canonical=canonical)

    def _named(self, value: Value, data_type: str) -> Value:
        if not isinstance(value, str):
            return value
        name = self._canonical(value, data_type)
        if name is None:
            unknown = self._unknown.setdefault(data_type, {})
            if len(unknown) < _VALUES_SHOWN:
                unknown[value] = None
            return value
        self._known_types.add(data_type)
        if name != value and len(self.spellings) < _SPELLINGS_REPORTED:
            self.spellings[value] = name
        return name

    def _basis(self, predicate: str, arguments: tuple[Value, ...]) -> str:
        written = Atom(predicate, tuple(map(Constant, arguments)))
        return f"written {written}; names by {self._title}"

    def warnings(self) -> Iterator[str]:
        """Values that have no canonical name, of the types of which others have."""
        for data_type in sorted(self._known_types & self._unknown.keys()):
            shown = ", ".join(map(short, self._unknown[data_type]))
            meanings = f"no {data_type}, or more than one, of the name {shown}"
            yield f"{self._title} has {meanings}; such values stay as they are."


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """Cells of a table, encoded: as the knowledge base stores them, and as they are in a fact's identity.

    `text_rows`: rows whose value is a text; `faults`: by row, why a cell is not a value, and the kind of fault.
    """

    texts: Sequence[str]
    canonical: Sequence[str]
    text_rows: Sequence[int]
    faults: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of_plain_texts(cls, cells: Sequence[str]) -> EncodedColumn:
        """A column of texts without line breaks and without characters that JSON escapes."""
        # One join and one split for the whole column instead of a call for each cell.
        encoded = ('"' + '"\n"'.join(cells) + '"').split("\n")
        return cls(encoded, encoded, range(len(cells)))

    @classmethod
    def of_integers(cls, cells: Sequence[str]) -> EncodedColumn:
        """A column of integers, as they are written."""
        return cls(cells, cells, ())

    @classmethod
    def of(cls, cells: Sequence[object]) -> EncodedColumn:
        """A column of values, with a ValueError for each cell without a valid value."""
        texts, canonical, text_rows = [], [], []
        faults: dict[int, tuple[str, str]] = {}
        for row, cell in enumerate(cells):
            fault = _cell_fault(cell)
            if fault:
                faults[row] = fault
            # A stand-in keeps the columns of equal length; `add_rows` leaves the row out.
            known: Any = "" if fault else cell
            texts.append(values.encode_value(known))
            canonical.append(canonical_text(known))
            if isinstance(cell, str):
                text_rows.append(row)
        return cls(texts, canonical, text_rows, faults)


def _cell_fault(cell: object) -> tuple[str, str] | None:
    """Why a cell is not a value, and the kind of fault; None for a value."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return f"an argument is empty; {_EMPTY_REMEDY}", EMPTY_CELL
    reason = str(cell) if isinstance(cell, ValueError) else values.fact_refusal(cell)
    return (reason, "faulty cell") if reason else None


@dataclass(frozen=True, slots=True)
class _Stored:
    """Numbers of an import: distinct facts; those that were known, given or by a model.

    `repeats`: line and indicator of each fact that an earlier row gave.
    """

    read: int
    given: int
    by_model: int
    repeats: tuple[tuple[int, str], ...]


class _TemporaryFacts:
    """Facts with their lines in temporary tables.

    Each row has few and short columns, which halves the time of filling the table: predicate and types are stored once
    by kind, and the basis of renamed facts in a table of its own.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.drop()  # of an import that failed
        kb.query("PRAGMA temp.secure_delete = OFF")  # else dropping the table overwrites all of it
        kb.query("CREATE TEMP TABLE imported (line, id, kind, arguments)")
        kb.query("CREATE TEMP TABLE imported_kinds (kind INTEGER PRIMARY KEY, predicate, types)")
        kb.query("CREATE TEMP TABLE imported_bases (ref INTEGER PRIMARY KEY, basis)")
        # CROSS JOIN keeps the order of the tables, and so that of the file.
        kb.query(
            "CREATE TEMP VIEW imported_facts AS SELECT i.rowid AS ref, line, id, predicate, arguments, types, basis "
            "FROM imported AS i CROSS JOIN imported_kinds USING (kind) LEFT JOIN imported_bases AS b ON b.ref = i.rowid"
        )
        self._kinds: dict[tuple[str, tuple[str, ...]], int] = {}
        self._count = 0

    def kind(self, predicate: str, types: tuple[str, ...]) -> int:
        """The number of facts of this predicate with these types."""
        number = self._kinds.get((predicate, types))
        if number is None:
            number = self._kinds[predicate, types] = len(self._kinds) + 1
            row = (number, predicate, rows.NAMES.encode(types))
            self._kb.query("INSERT INTO temp.imported_kinds VALUES (?, ?, ?)", row)
        return number

    def add(self, facts: Sequence[tuple[object, ...]], bases: Mapping[int, str]) -> None:
        """Add facts: line, identity, kind and arguments. `bases`: bases of renamed facts, by index in `facts`."""
        with translated(self._kb.place), self._kb.database.atomic():
            insert = self._kb.database.conn.executemany
            insert("INSERT INTO temp.imported VALUES (?, ?, ?, ?)", facts)
            # SQLite numbers the rows of the temporary table from 1, in the order of insertion.
            numbered = [(self._count + place + 1, basis) for place, basis in bases.items()]
            insert("INSERT INTO temp.imported_bases VALUES (?, ?)", numbered)
        self._count += len(facts)

    def facts(self, indicators: Iterable[str]) -> Iterator[FactRecord]:
        """The facts of these predicates."""
        for indicator in sorted(indicators):
            name, _, arity = indicator.rpartition("/")
            selection = "SELECT arguments, types FROM temp.imported_facts WHERE predicate = ? ORDER BY ref"
            for arguments, types in self._kb.query(selection, (name,)):
                decoded = rows.VALUES.decode(arguments)
                if len(decoded) == int(arity):
                    yield FactRecord(name, decoded, rows.NAMES.decode(types), Source.GIVEN)

    def contradictions(self, indicator: str, tolerance: Tolerance | None) -> Iterator[FactsInConflict]:
        """Facts of a functional predicate that differ in their last argument alone, those that are stored included."""
        name, _, arity = indicator.rpartition("/")
        self._index()
        # Grouped by SQLite, which sorts on disk. A stranger's file may hold arguments that are no JSON.
        # `$[#-1]` is the last argument, so a key is a fact without its value, as a JSON list.
        selection = (
            "WITH imports AS (SELECT DISTINCT json_remove(arguments, '$[#-1]') AS key, id, arguments, 'file' AS source "
            "FROM temp.imported_facts WHERE predicate = ?1 AND json_array_length(arguments) = ?2), "
            "known AS (SELECT CASE WHEN json_valid(arguments) AND json_array_length(arguments) = ?2 "
            "THEN json_remove(arguments, '$[#-1]') END AS key, id, arguments, source FROM facts WHERE predicate = ?1 "
            "AND id NOT IN (SELECT id FROM temp.imported)), "
            "together AS (SELECT * FROM imports UNION ALL "
            "SELECT * FROM known WHERE key IN (SELECT key FROM imports)) "
            "SELECT key, id, arguments, source FROM together WHERE key IN "
            "(SELECT key FROM together GROUP BY key HAVING count(*) > 1) ORDER BY key, arguments"
        )
        found = self._kb.query(selection, (name, int(arity)))
        for _, group in groupby(found, lambda row: row[0]):
            entries = [(identity, rows.VALUES.decode(cells), source) for _, identity, cells, source in group]
            results = [arguments[-1] for _, arguments, _ in entries]
            if tolerance is not None and tolerance.covers_all(results):
                continue
            atoms = [str(Atom(name, tuple(map(Constant, arguments)))) for _, arguments, _ in entries]
            arriving = frozenset(identity for identity, _, source in entries if source == "file")
            # All but the file's own fact are a model's.
            claimed = sum(source != Source.MODEL.value for _, _, source in entries) == 1
            text = f"{indicator} is functional, but has {len(atoms)} values: {some(atoms, _VALUES_SHOWN)}"
            yield FactsInConflict(arriving, text, claimed)

    def _index(self) -> None:
        self._kb.query("CREATE INDEX IF NOT EXISTS temp.imported_by_id ON imported (id)")

    def withdraw(self, identities: Iterable[str]) -> list[tuple[int, str]]:
        """Remove facts, and return the lines of their rows and their indicators."""
        self._index()
        withdrawn = []
        for identity in identities:
            selection = "SELECT line, predicate, arguments FROM temp.imported_facts WHERE id = ? ORDER BY line"
            for line, predicate, arguments in self._kb.query(selection, (identity,)):
                withdrawn.append((line, f"{predicate}/{len(rows.VALUES.decode(arguments))}"))
            self._kb.query("DELETE FROM temp.imported WHERE id = ?", (identity,))
        return sorted(withdrawn)

    def store(self, renamed: bool) -> _Stored:
        """Copy the facts, in the order of the file. `renamed`: their values got canonical names."""
        query = self._kb.query
        ((count,),) = query("SELECT count(*) FROM temp.imported")
        known: dict[str, int] = {}
        if query("SELECT 1 FROM facts LIMIT 1"):
            known = dict(
                query(
                    "SELECT f.source, count(*) FROM (SELECT DISTINCT id FROM temp.imported) AS i "
                    "JOIN facts AS f ON f.id = i.id GROUP BY f.source"
                )
            )
        before = self._kb.database.conn.total_changes
        with self._without_renumbering():
            if len(self._kinds) == 1 and not renamed:
                kind = query("SELECT predicate, types FROM temp.imported_kinds")
                query(_insertion(one_kind=True), kind[0])
            else:
                query(_insertion(one_kind=False))
        # In a knowledge base without facts each distinct fact is a change.
        read = self._kb.database.conn.total_changes - before
        # Withdrawn facts that are given again stand again. Without any, the list of identities is never sorted.
        if query("SELECT 1 FROM withdrawals WHERE restored IS NULL LIMIT 1"):
            query(
                "UPDATE withdrawals SET restored = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now') "
                "WHERE restored IS NULL AND fact_id IN (SELECT id FROM temp.imported)"
            )
        if known or renamed:  # a fact that has several spellings in the file may change more than once
            ((read,),) = query("SELECT count(DISTINCT id) FROM temp.imported")
        repeats: Iterable[tuple[int, str]] = ()
        if count > read:
            # Of equal facts the first row is the fact, and the others repeat it.
            repeats = query(
                "SELECT line, predicate || '/' || json_array_length(arguments) FROM temp.imported_facts "
                "WHERE ref NOT IN (SELECT min(rowid) FROM temp.imported GROUP BY id) ORDER BY ref"
            )
        given, by_model = known.get(Source.GIVEN.value, 0), known.get(Source.MODEL.value, 0)
        return _Stored(read, given, by_model, tuple(repeats))

    @contextmanager
    def _without_renumbering(self) -> Iterator[None]:
        """Leave out the trigger for facts with a number given up before, if no fact was ever numbered for `derive`.

        Else it is evaluated for each row, to no effect, in a tenth of the time of an insertion. The transaction of the
        import brings it back whatever happens.
        """
        selection = "SELECT sql FROM main.sqlite_master WHERE type = 'trigger' AND name = 'fact_numbered_again'"
        triggers = [] if self._kb.query("SELECT 1 FROM relation_state LIMIT 1") else self._kb.query(selection)
        if triggers:
            self._kb.query("DROP TRIGGER fact_numbered_again")
        yield
        for (sql,) in triggers:
            self._kb.query(sql)

    def drop(self) -> None:
        self._kb.query("DROP VIEW IF EXISTS temp.imported_facts")
        for table in ("imported", "imported_kinds", "imported_bases"):
            self._kb.query(f"DROP TABLE IF EXISTS temp.{table}")


def _insertion(one_kind: bool) -> str:
    """The SQL that stores facts, with the temporary table in the place of parameters.

    `one_kind`: predicate and types are parameters, which saves the joins of the view, and no fact has a basis.
    """
    # The SQL of `add` with its list of values replaced, so that columns and treatment of conflicts are the same.
    sql = rows.FACTS.insert(OnConflict.BEST)
    # Matches `(id, predicate, ...) VALUES (?, ?, ...)`.
    found = re.search(r"\(([\w, ]+)\) VALUES \([?, ]+\)", sql)
    if found is None:
        raise AssertionError(f"no list of values in {sql}")
    names = found[1].split(", ")
    constants = {"source": f"'{Source.GIVEN.value}'"}
    constants.update({name: name for name in _STAGED})
    origin = "temp.imported_facts WHERE true ORDER BY ref"
    if one_kind:
        constants.update(predicate="?1", types="?2", basis="NULL")
        origin = "temp.imported WHERE true ORDER BY rowid"
    selected = ", ".join(constants.get(name, "NULL") for name in names)
    selection = f"({found[1]}) SELECT {selected} FROM {origin}"  # noqa: S608  ours
    return sql.replace(found[0], selection, 1)


def _checked_types(types: object, indicator: str) -> tuple[str, ...]:
    """Checked argument types: either none, or one for each argument. Raises ValueError."""
    if not isinstance(types, list | tuple) or not all(isinstance(data_type, str) for data_type in types):
        raise ValueError(f"the types of {indicator} are not a list of texts; leave them out")
    if types and len(types) != int(indicator.rpartition("/")[2]):
        raise ValueError(f"{indicator} has {counted(len(types), 'type')}; give one for each argument, or none")
    for data_type in types:
        if reason := values.refusal(data_type):
            raise ValueError(f"a type of {indicator}: {reason}")
    return tuple(types)


def name_of(indicator: str) -> str:
    """The name of `name/arity`."""
    return indicator.rpartition("/")[0]


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few names, for a message."""
    listed = list(names)
    return ", ".join(listed[:most]) + (" ..." if len(listed) > most else "")


def short(item: object) -> str:
    """The item as Python writes it, cut to 40 characters."""
    text = repr(item)
    return text if len(text) <= 40 else text[:37] + "..."
