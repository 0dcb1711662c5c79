"""Intake of given facts into the knowledge base: each is checked, all are counted, and either all are stored or none.

Facts wait in a temporary table on disk until the last row is read, so that a file of any size takes little memory and a
faulty row leaves nothing behind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, PredicateKind, Tolerance
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.words import counted, short, some
from hapax.kb import rows, values
from hapax.kb.connection import translated
from hapax.kb.fact_checks import FactRefused, check_form, encoded_arguments
from hapax.kb.records import FACTS, PREDICATES, FactRecord, Source, canonical_text
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase

_FAULTS_SHOWN = 20
_REPEATS_SHOWN = 5
_VALUES_SHOWN = 3

_SPELLINGS_REPORTED = 20
"""Spellings with their canonical names that the report of an import has."""

_REMEMBERED_NAMES = 65_536
"""Names that are looked up once for a whole file."""

_BATCH = 500
"""Facts that go into the temporary table at once: fewer than 700, from which on Python's collector would walk them."""

_BATCH_LENGTH = 16 << 20
"""Characters of the facts of a batch from which on it takes no more."""

# A goal reads a word that begins like this as a variable.
_VARIABLE = re.compile("[A-Z_]")

_NO_PREDICATE = "no predicate"

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


@dataclass(frozen=True, slots=True)
class _FactKind:
    """Facts of one predicate with the same types. `beginning`: what their identities are hashed from first.

    `numeric`: places, from 0, of the arguments that the rules have as numbers.
    """

    number: int
    indicator: str
    types: tuple[str, ...]
    beginning: str
    numeric: tuple[int, ...]


class FactIntake:
    """Facts and faults of a source being read. All faults are collected, and reported at once.

    `file`: name of the source in messages. `rules`: those whose declarations the facts must fit.
    """

    def __init__(self, kb: KnowledgeBase, file: str, rules: RulesForFacts | None = None) -> None:
        self.file = file
        self.remedy: Remedy | str = _REMEDY
        self.names_predicates = True
        """The source says where its predicates stand; otherwise its first column may be anything."""
        self.faults: list[FactFault] = []
        self.unused: dict[str, int] = {}
        """Columns or fields that an import ignores, with the line where each first occurs."""
        self._kb = kb
        self._rules = rules or RulesForFacts()
        self._arities: dict[str, set[int]] = {}
        """Numbers of arguments of the predicates of the rules, by name."""
        self._types: dict[str, tuple[str, ...]] = {}
        self._functional: dict[str, Tolerance | None] = {}
        library = self._rules.library
        for signature in library.completed().signatures if library is not None else ():
            self._arities.setdefault(signature.name, set()).add(len(signature.argument_types))
            self._types[signature.indicator] = signature.argument_types
            if signature.kind is PredicateKind.FUNCTIONAL:
                self._functional[signature.indicator] = signature.tolerance
        self._declared = {predicate.indicator: predicate.argument_types for predicate in kb.select(PREDICATES)}
        self._kinds: dict[tuple[str, int, tuple[str, ...] | None], _FactKind | FactRefused] = {}
        self._counts: Counter[str] = Counter()
        self._staged = _StagedFacts(kb)
        self._renaming = _Renaming(self._rules.names)

    @cached_property
    def known(self) -> frozenset[str]:
        """Indicators of the predicates that the rules or the knowledge base declare, or that have facts.

        Few files need them, so they are read when a row asks.
        """
        return frozenset((*self._types, *self._declared, *self._kb.fact_indicators()))

    def add_fact(
        self, line: int, predicate: str, arguments: Sequence[Any], types: Any = None, columns: Sequence[str] = ()
    ) -> None:
        """Add the fact, or the fault that keeps it from being a fact. `columns`: names of the arguments' columns.

        What a file has may be of any class.
        """
        basis = None
        try:
            check_form(predicate, arguments, () if types is None else types)
            kind = self.kind(predicate, len(arguments), types)
            texts = encoded_arguments(predicate, arguments, columns)
            for place in kind.numeric:
                if isinstance(arguments[place], str):
                    raise FactRefused(
                        f"argument {place + 1} of {kind.indicator} is {short(arguments[place])}, where the rules have "
                        f"a number ({self._types[kind.indicator][place]}); write the number alone",
                        "text for a number",
                    )
            if self._renaming.title and kind.types:
                arguments, basis = self._renaming.renamed(predicate, arguments, kind.types)
                texts = encoded_arguments(predicate, arguments)
        except FactRefused as refused:
            self.add_fault(line, str(refused), refused.kind)
            return
        text = canonical = f"[{','.join(texts)}]"
        if '{"decimal"' in text:
            # Equal decimals, such as 1.5 and 1.50, have different texts and one identity.
            canonical = canonical_text(list(arguments))
        identity = sha256(f"{kind.beginning}{canonical}]".encode()).hexdigest()[:32]
        self._counts[kind.indicator] += 1
        self._staged.add(line, identity, kind.number, text, basis)

    def add_fault(self, line: int, message: str, kind: str = "not a fact") -> None:
        self.faults.append(FactFault(self.file, line, message, kind))

    def kind(self, predicate: str, arity: int, types: Sequence[str] | None = None) -> _FactKind:
        """The kind of such facts. Raises FactRefused for a predicate that does not fit the rules."""
        key = predicate, arity, None if types is None else tuple(types)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._new_kind(*key)
        if isinstance(found, FactRefused):
            raise found.with_traceback(None)
        return found

    def _new_kind(self, predicate: str, arity: int, types: tuple[str, ...] | None) -> _FactKind | FactRefused:
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
        numeric = [place for place, name in enumerate(declared) if library is not None and library.is_numeric(name)]
        if types is None:
            types = self._declared.get(indicator) or declared
        number = self._staged.add_kind(indicator, types)
        return _FactKind(number, indicator, types, f'["fact",{values.encode_value(predicate)},', tuple(numeric))

    def refuse_faulty(self, remedy: Remedy | str = "") -> None:
        """Raise FactsRejected with every fault, if there is one, and forget the facts otherwise. Nothing is stored."""
        self._staged.drop()
        if self.faults:
            raise FactsRejected(sorted(self.faults, key=attrgetter("line")), remedy or self.remedy)

    def store(self, skip_faulty: bool) -> ImportReport:
        """Store the facts. Raises FactsRejected with every fault, and stores nothing, unless `skip_faulty`."""
        self._refuse_table()
        conflicts = self._refuse_conflicts()
        if self.faults and not skip_faulty:
            self.refuse_faulty()
        with self._kb.transaction():
            read, known, repeats = self._staged.store(renamed=bool(self._renaming.title))
        self._staged.drop()
        given, promoted = known.get(Source.GIVEN.value, 0), known.get(Source.MODEL.value, 0)
        # A repeated row was counted when it was read, but is no further fact.
        counts = self._counts - Counter(indicator for _, indicator in repeats)
        others = (*conflicts, *_repeats(repeats), *self._renaming.warnings())
        return ImportReport(
            read=read,
            added=read - given - promoted,
            promoted=promoted,
            known=given,
            faults=tuple(sorted(self.faults, key=attrgetter("line"))),
            predicates=dict(counts.most_common()),
            warnings=(*self._warnings(), *(f"{self.file}: {warning}" for warning in others)),
            repeats=len(repeats),
            renamed=self._renaming.rows,
            spellings=self._renaming.spellings,
        )

    def _refuse_table(self) -> None:
        """Raise FactsRejected for a file that does not say where its predicates stand, if none of them is known.

        Every row of such a file begins with another word, as the rows of a table do; a file of facts repeats its
        predicates.
        """
        if self.names_predicates or not (self._types or self._declared):
            return
        # A single row does not show what the file is.
        is_varied = len(self._counts) + len(self.faults) > 1 and set(self._counts.values()) <= {1}
        if not is_varied or any(fault.kind != _NO_PREDICATE for fault in self.faults):
            return
        if {*map(_name_of, self.known)}.isdisjoint(map(_name_of, self._counts)):
            message = "the first column holds no predicate of the rules, so this may be a table with columns of its own"
            self.faults = [FactFault(self.file, 1, message, _NO_PREDICATE)]
            self.refuse_faulty(_TABLE_REMEDY)

    def _refuse_conflicts(self) -> list[str]:
        """Make faults of the rows whose facts break declarations, and return warnings about models' facts that do.

        A conflict may hide behind another one, so the rest is looked through again.
        """
        warnings: dict[str, None] = {}
        for indicator in sorted(self._functional.keys() & self._counts.keys()):
            contradictions = list(self._staged.contradictions(indicator, self._functional[indicator]))
            self._refuse(contradictions, "second value", warnings)
        constrained = self._rules.constrained & self._counts.keys()
        refused = bool(constrained)
        # It ends, since each further round follows the withdrawal of at least one fact from the file.
        while refused:
            found = self._rules.conflicts(self._staged.facts(constrained))
            refused = self._refuse(found, "broken declaration", warnings)
        return list(warnings)

    def _refuse(self, found: Iterable[FactsInConflict], kind: str, warnings: dict[str, None]) -> bool:
        """Make faults of the rows of conflicts, or warnings where a model's facts are in them. False without faults."""
        refused = False
        for conflict in found:
            if conflict.claimed:
                listing = f"Run {Operation('check_rules', kb=True)} to list them."
                warnings[f"{conflict.text}, by facts of a model. {listing}"] = None
                continue
            for line, indicator in self._staged.withdraw(conflict.arriving):
                refused = True
                self._counts[indicator] -= 1
                self.add_fault(line, conflict.text, kind)
        return refused

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


def _name_of(indicator: str) -> str:
    return indicator.rpartition("/")[0]


def _repeats(repeats: Sequence[tuple[int, str]]) -> Iterator[str]:
    if repeats:
        lines = some((str(line) for line, _ in repeats), _REPEATS_SHOWN)
        verb = "repeats" if len(repeats) == 1 else "repeat"
        yield f"{counted(len(repeats), 'fact')} {verb} an earlier one: line {lines}."


class _Renaming:
    """Values of an import under their canonical names, and their numbers. A fact's basis keeps what the user wrote."""

    def __init__(self, names: FactNames | None) -> None:
        self.title = names.title if names else ""
        """Of the reference that has the names; empty without one."""
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
        if not isinstance(value, str):
            return value
        name: str | None = self._canonical(value, data_type)
        if name is None:
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


class _StagedFacts:
    """Facts with their lines in temporary tables. Predicate and types are stored once a kind, which saves half."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.drop()  # of an import that failed
        self._kb.query("PRAGMA temp.secure_delete = OFF")  # else dropping the table overwrites all of it
        self._kb.query("CREATE TEMP TABLE staged (line, id, kind, arguments, basis)")
        self._kb.query("CREATE TEMP TABLE staged_kinds (kind INTEGER PRIMARY KEY, indicator, predicate, types)")
        # The columns of `facts`. CROSS JOIN keeps the order of the tables, and so that of the file.
        self._kb.query(
            "CREATE TEMP VIEW staged_facts AS SELECT staged.rowid AS rowid, line, id, indicator, predicate, arguments, "
            "types, 'given' AS source, NULL AS probability, NULL AS candidate_id, NULL AS run_id, basis "
            "FROM staged CROSS JOIN staged_kinds USING (kind)"
        )
        self._kinds = 0
        self._count = 0
        """Facts in the table, without those that were withdrawn."""
        self._waiting: list[tuple[object, ...]] = []
        self._length = 0

    def add_kind(self, indicator: str, types: tuple[str, ...]) -> int:
        """The number of a new kind of facts: of this predicate, with these types."""
        self._kinds += 1
        row = self._kinds, indicator, _name_of(indicator), rows.NAMES.encode(types)
        self._kb.query("INSERT INTO temp.staged_kinds VALUES (?, ?, ?, ?)", row)
        return self._kinds

    def add(self, line: int, identity: str, kind: int, arguments: str, basis: str | None) -> None:
        """Add a fact with its encoded arguments."""
        self._waiting.append((line, identity, kind, arguments, basis))
        self._length += len(arguments)
        if len(self._waiting) == _BATCH or self._length > _BATCH_LENGTH:
            self._flush()

    def _flush(self) -> None:
        with translated(self._kb.place), self._kb.transaction():
            self._kb.connection.executemany("INSERT INTO temp.staged VALUES (?, ?, ?, ?, ?)", self._waiting)
        self._count += len(self._waiting)
        self._waiting, self._length = [], 0

    def facts(self, indicators: Iterable[str]) -> Iterator[FactRecord]:
        """The facts of these predicates."""
        self._flush()
        for indicator in sorted(indicators):
            selection = "SELECT predicate, arguments, types FROM temp.staged_facts WHERE indicator = ? ORDER BY rowid"
            for predicate, arguments, types in self._kb.query(selection, (indicator,)):
                yield FactRecord(predicate, rows.VALUES.decode(arguments), rows.NAMES.decode(types), Source.GIVEN)

    def contradictions(self, indicator: str, tolerance: Tolerance | None) -> Iterator[FactsInConflict]:
        """Facts of a functional predicate that differ in their last argument alone, those that are stored included."""
        name, _, arity = indicator.rpartition("/")
        self._index()
        # Grouped by SQLite, which sorts on disk. A stranger's file may hold arguments that are no JSON.
        # `$[#-1]` is the last argument, so a key is a fact without its value, as a JSON list.
        selection = (
            "WITH imports AS (SELECT DISTINCT json_remove(arguments, '$[#-1]') AS key, id, arguments, 'file' AS source "
            "FROM temp.staged_facts WHERE indicator = ?3), "
            "known AS (SELECT CASE WHEN json_valid(arguments) AND json_array_length(arguments) = ?2 "
            "THEN json_remove(arguments, '$[#-1]') END AS key, id, arguments, source FROM facts WHERE predicate = ?1 "
            "AND id NOT IN (SELECT id FROM temp.staged)), "
            "together AS (SELECT * FROM imports UNION ALL "
            "SELECT * FROM known WHERE key IN (SELECT key FROM imports)) "
            "SELECT key, id, arguments, source FROM together WHERE key IN "
            "(SELECT key FROM together GROUP BY key HAVING count(*) > 1) ORDER BY key, arguments"
        )
        found = self._kb.query(selection, (name, int(arity), indicator))
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
        self._flush()
        self._kb.query("CREATE INDEX IF NOT EXISTS temp.staged_by_id ON staged (id)")

    def withdraw(self, identities: Iterable[str]) -> list[tuple[int, str]]:
        """Remove facts, and return the lines of their rows and their indicators."""
        self._index()
        withdrawn = []
        for identity in identities:
            withdrawn += self._kb.query("SELECT line, indicator FROM temp.staged_facts WHERE id = ?", (identity,))
            self._kb.query("DELETE FROM temp.staged WHERE id = ?", (identity,))
        self._count -= len(withdrawn)
        return sorted(withdrawn)

    def store(self, renamed: bool) -> tuple[int, dict[str, int], list[tuple[int, str]]]:
        """Copy the facts, in the order of the file. `renamed`: their values got canonical names.

        Returns the number of distinct facts, how many of them were known before by their source, and line and indicator
        of each fact that repeats an earlier one.
        """
        self._flush()
        query = self._kb.query
        known: dict[str, int] = {}
        if query("SELECT 1 FROM facts LIMIT 1"):
            known = dict(
                query(
                    "SELECT f.source, count(*) FROM (SELECT DISTINCT id FROM temp.staged) AS staged "
                    "JOIN facts AS f ON f.id = staged.id GROUP BY f.source"
                )
            )
        with self._without_renumbering():
            read = self._kb.write(FACTS.insert(OnConflict.BEST, "temp.staged_facts"), [()])
        # Withdrawn facts that are given again stand again. Without any, the list of identities is never sorted.
        if query("SELECT 1 FROM withdrawals WHERE restored IS NULL LIMIT 1"):
            query(
                "UPDATE withdrawals SET restored = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now') "
                "WHERE restored IS NULL AND fact_id IN (SELECT id FROM temp.staged)"
            )
        if known or renamed:  # a fact that has several spellings in the file may change more than once
            ((read,),) = query("SELECT count(DISTINCT id) FROM temp.staged")
        repeats: list[tuple[int, str]] = []
        if self._count > read:
            # Of equal facts the first row is the fact, and the others repeat it.
            repeats = query(
                "SELECT line, indicator FROM temp.staged_facts "
                "WHERE rowid NOT IN (SELECT min(rowid) FROM temp.staged GROUP BY id) ORDER BY rowid"
            )
        return read, known, repeats

    @contextmanager
    def _without_renumbering(self) -> Iterator[None]:
        """Leave out the trigger for facts with a number given up before, if no fact was ever numbered for `derive`.

        Else it takes a quarter of the time of an insertion, to no effect. The transaction of the import brings it back
        whatever happens.
        """
        selection = "SELECT sql FROM main.sqlite_master WHERE type = 'trigger' AND name = 'fact_numbered_again'"
        triggers = [] if self._kb.query("SELECT 1 FROM relation_state LIMIT 1") else self._kb.query(selection)
        if triggers:
            self._kb.query("DROP TRIGGER fact_numbered_again")
        yield
        for (sql,) in triggers:
            self._kb.query(sql)

    def drop(self) -> None:
        """Remove the temporary tables."""
        self._kb.query("DROP VIEW IF EXISTS temp.staged_facts")
        for table in ("staged", "staged_kinds"):
            self._kb.query(f"DROP TABLE IF EXISTS temp.{table}")
