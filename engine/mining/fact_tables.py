"""The facts of a knowledge base as edges between integers, in temporary tables of its connection.

Constants are numbered by `mining_nodes`, apart for types that have no value in common. `mining_facts_N (a1, a2)` has
the facts of a predicate, over which premises are compiled (`engine/logic/compile.py`), and `mining_rejected_N` the
atoms that a critic rejected. For rules of any predicates `mining_edges (s, o, p)` has each fact twice: under the code
2k of its predicate, and mirrored under 2k + 1. A predicate of one argument has NOTHING as its second. `mining_labels`
gives numbers to the predicates of one argument, and to those of two with a constant.

Forms of rules are closed and connected: a head and up to three premises without their predicates. A premise is an edge
between two variables, or a label of one: a predicate of one argument, or of two with a constant.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations, combinations_with_replacement, permutations
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeAlias

from hapax.engine.logic.compile import CompileContext
from hapax.grammar.arguments import checked
from hapax.grammar.data_types import OBJECT, type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, check_ranges
from hapax.grammar.parsing.declarations import Property
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Literal, Term, Value, Variable, connected
from hapax.kb import rows
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.facts import columns_of
from hapax.kb.atoms.symbols import MISSING_TAG
from hapax.kb.connection import translated
from hapax.kb.exchange import values
from hapax.kb.records import PATTERNS, PREDICATES
from hapax.kb.store import KnowledgeBase

NOTHING = 0
"""The second argument of predicates that have one."""

_MOST_ARGUMENTS = 2

MOST_PREMISES = 3

_CREATED = (
    "CREATE TEMP TABLE mining_nodes (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, tag INTEGER NOT NULL, "
    "UNIQUE (kind, tag))",
    "CREATE TEMP TABLE mining_edges (p INTEGER NOT NULL, s INTEGER NOT NULL, o INTEGER NOT NULL, "
    "PRIMARY KEY (s, o, p)) WITHOUT ROWID",
    "CREATE TEMP TABLE mining_labels (id INTEGER PRIMARY KEY, p INTEGER NOT NULL, o INTEGER NOT NULL, "
    "facts INTEGER NOT NULL, UNIQUE (p, o))",
    "CREATE TEMP TABLE mining_labelled (s INTEGER NOT NULL, label INTEGER NOT NULL, p INTEGER NOT NULL, "
    "o INTEGER NOT NULL, PRIMARY KEY (s, label)) WITHOUT ROWID",
    "CREATE TEMP TABLE mining_degrees (s INTEGER PRIMARY KEY, degree INTEGER NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class MinedPredicate:
    """A predicate with facts. `types`: None for an argument of which neither a rule file nor a fact gives the type."""

    indicator: str
    code: int
    types: tuple[str | None, ...]
    facts: int
    subjects: int
    objects: int
    symmetric: bool = False

    @property
    def codes(self) -> Sequence[int]:
        """The codes of its edges that differ."""
        return range(self.code, self.code + (1 if self.symmetric else len(self.types)))


@checked
@dataclass(frozen=True, slots=True)
class MiningOptions:
    """The rules to mine, and the time for it."""

    premises: Annotated[int, Option("Most premises of a rule.", least=1, most=MOST_PREMISES)] = MOST_PREMISES
    min_support: Annotated[int, Option("Fewest facts that a rule must predict.", name="support", least=1)] = 10
    min_coverage: Annotated[
        float,
        Option(
            "Least share of the facts of its conclusion that a rule predicts (head coverage).",
            name="coverage",
            least=0,
            most=1,
        ),
    ] = 0.01
    min_confidence: Annotated[
        float,
        Option(
            "Least standard confidence: the share of a rule's predictions that are facts.",
            name="confidence",
            least=0,
            most=1,
        ),
    ] = 0.1
    min_pca: Annotated[
        float,
        Option(
            "Least PCA confidence (docs/how-to/mining.md).",
            name="pca",
            least=0,
            most=1,
        ),
    ] = 0.5
    constants: Annotated[bool, Option("Mine rules with constants too.", switch=True)] = False
    sample: Annotated[
        int,
        Option("Facts of each conclusion that rules are screened by; 0: all.", least=0),
    ] = 2000
    seconds: Annotated[float, Option("Time limit; a note names what was not explored.", above=0)] = 600.0
    examples: Annotated[int, Option("Examples and counter-examples a rule.", least=0, most=100)] = 3

    def __post_init__(self) -> None:
        check_ranges(self)

    def least_support(self, facts: int) -> int:
        """The support that a rule needs where its conclusion has this many facts."""
        return max(1, self.min_support, math.ceil(self.min_coverage * facts - 1e-9))


class MiningTables:
    """The tables of one mining; close them afterwards. Raises HapaxError for a damaged fact.

    `wider`: predicates with more than two arguments, which are left out. `clashes`: those whose facts have other types
    than the library declares; the library's count. `facts` and `rejected`: tables by indicator. `context`: compiles
    premises over these facts, whose constants are numbers of nodes. `labels`: the code and node of each, by number.
    """

    def __init__(
        self, kb: KnowledgeBase, library: Library, options: MiningOptions, check_time: Callable[[], None]
    ) -> None:
        self.library = library
        self._kb = kb
        self._conn: sqlite3.Connection = kb.connection
        self._relations = Relations(kb)
        self._check_time = check_time
        self.predicates: dict[int, MinedPredicate] = {}
        self.wider: list[str] = []
        self.clashes: list[str] = []
        self.facts: dict[str, str] = {}
        self.rejected: dict[str, str] = {}
        self.labels: dict[int, tuple[int, int]] = {}
        self.context = CompileContext(Library(), self.facts, int, self._relations.arithmetic, self.rejected.__getitem__)
        self._kinds: dict[str, int] = {}
        relations = sorted(kb.relations.all(), key=attrgetter("indicator"))
        tables = {relation.indicator: relation.table for relation in relations}
        self.types = self._argument_types(tables)
        # Tables of an earlier mining on this connection.
        self.close()
        try:
            with translated(kb.place), self._relations.interruptible(check_time):
                for sql in _CREATED:
                    self._conn.execute(sql)
                self._load(tables)
                self._add_rejected()
                self._add_labels(options.min_support if options.constants else 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drop the tables."""
        found = self._conn.execute("SELECT name FROM temp.sqlite_schema WHERE type = 'table' AND name GLOB 'mining_*'")
        for (table,) in found.fetchall():
            self._conn.execute(f"DROP TABLE temp.{table}")

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement of ours; returns its rows."""
        with translated(self._kb.place), self._relations.interruptible(self._check_time):
            return self._conn.execute(sql, parameters).fetchall()

    def worded(self, rule: Rule) -> Rule:
        """The rule with constants in place of their nodes."""
        terms = chain.from_iterable(atom.arguments for atom in rule.atoms)
        constants = self.constants(term.value for term in terms if isinstance(term, Constant))

        def literal(numbered: Literal) -> Literal:
            arguments = numbered.atom.arguments
            named = (constants[term.value] if isinstance(term, Constant) else term for term in arguments)
            return Literal(Atom(numbered.atom.predicate, tuple(named)))

        return replace(rule, premise=tuple(map(literal, rule.literals)), conclusion=literal(rule.conclusion))

    def constants(self, nodes: Iterable[Value]) -> dict[Value, Constant]:
        """Constants by node."""
        marks = ", ".join(map(str, sorted(map(int, set(nodes)))))
        tags = dict(self._conn.execute(f"SELECT id, tag FROM temp.mining_nodes WHERE id IN ({marks})"))  # noqa: S608
        found = self._relations.symbols.values(tags.values())
        return {node: Constant(found[tag]) for node, tag in tags.items()}

    def edges(self, code: int) -> str:
        """A table of the edges with this code, as SQL: s is the first node, o the second."""
        predicate = self.predicates[code & ~1]
        ends = ["a1", "a2" if len(predicate.types) > 1 else str(NOTHING)]
        first, second = reversed(ends) if code & 1 else ends
        return f"(SELECT {first} AS s, {second} AS o FROM {self.facts[predicate.indicator]})"  # noqa: S608  ours

    # -- loading

    def _argument_types(self, tables: Mapping[str, str]) -> dict[str, tuple[str | None, ...]]:
        """The types of each predicate's arguments: those declared, else those of its facts."""
        observed: dict[str, list[tuple[str, ...]]] = {}
        sql = "SELECT predicate, json_array_length(arguments), types FROM facts GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        for name, arity, text in self._kb.sql(sql):
            observed.setdefault(f"{name}/{arity}", []).append(rows.NAMES.decode(text))
        recorded = {record.indicator: record.argument_types for record in self._kb.select(PREDICATES)}
        found: dict[str, tuple[str | None, ...]] = {}
        for indicator in tables:
            arity = int(indicator.rpartition("/")[2])
            if self.library.knows(indicator):
                found[indicator] = declared = self.library.signature(indicator).argument_types
                # Imported facts may have no types.
                pairs = chain.from_iterable(zip(declared, types, strict=False) for types in observed.get(indicator, ()))
                if any(self.library.most_specific(pair) is None for pair in pairs):
                    self.clashes.append(indicator)
                continue
            # The types that searches stored with the predicate, else those of its facts.
            stated = [recorded[indicator]] if indicator in recorded else observed.get(indicator, [])
            columns = zip(*(types for types in stated if len(types) == arity), strict=True)
            common = tuple(self._common(column) for column in columns)
            found[indicator] = common or (None,) * arity
        return found

    def _common(self, types: Sequence[str]) -> str | None:
        """The type that all of these are, if it is among them and a rule can name it."""
        common = (upper for upper in types if all(self.library.is_subtype(lower, upper) for lower in types))
        data_type = next(common, None)
        return data_type if data_type is not None and _is_readable(data_type) else None

    def _kinds_of_nodes(self) -> dict[str, int]:
        """A number for each type, by its key: equal for types that may have values in common, directly or by others."""
        names = list(chain.from_iterable(self.types.values()))
        keys = {type_key(name): name for name in names if name}
        if None in names:
            return {}  # a value of unknown type may be of any
        kinds = {key: number for number, key in enumerate(sorted(keys))}
        for first, second in combinations(sorted(keys), 2):
            if self.library.most_specific((keys[first], keys[second])) is not None:
                old, new = sorted((kinds[first], kinds[second]), reverse=True)
                kinds = {key: new if kind == old else kind for key, kind in kinds.items()}
        return kinds

    def _load(self, tables: Mapping[str, str]) -> None:
        # A negative size is in KiB: 200 MB.
        self._conn.execute("PRAGMA temp.cache_size = -200000")
        self._kinds = self._kinds_of_nodes()
        code = 0
        for number, indicator in enumerate(sorted(tables)):
            types = self.types[indicator]
            if not 0 < len(types) <= _MOST_ARGUMENTS:
                self.wider.append(indicator)
                continue
            table = self._new_table(f"mining_facts_{number}", indicator)
            self._add_nodes(table, indicator, tables[indicator])
            is_symmetric = self.library.has_property(indicator, Property.SYMMETRIC)
            counts = f"SELECT count(*), count(DISTINCT a1), count(DISTINCT a{len(types)}) FROM {table}"  # noqa: S608  ours
            facts, subjects, objects = self._conn.execute(counts).fetchone()
            if facts:
                self.facts[indicator] = table
                self.predicates[code] = MinedPredicate(indicator, code, types, facts, subjects, objects, is_symmetric)
                for way in (code, code + 1):
                    self._conn.execute(
                        f"INSERT INTO mining_edges SELECT {way}, s, o FROM {self.edges(way)} ORDER BY s, o"  # noqa: S608
                    )
                code += 2
        self._conn.execute("INSERT INTO mining_degrees SELECT s, count(*) FROM mining_edges GROUP BY s ORDER BY s")

    def _new_table(self, table: str, indicator: str) -> str:
        """Create an empty table for atoms of a predicate."""
        columns = ", ".join(columns_of(indicator))
        self._conn.execute(f"CREATE TEMP TABLE {table} ({columns}, PRIMARY KEY ({columns})) WITHOUT ROWID")
        return table

    def _add_nodes(self, table: str, indicator: str, source: str) -> None:
        """Fill a table of a predicate's atoms from one of their tags."""
        kinds = [self._kinds.get(type_key(data_type or ""), 0) for data_type in self.types[indicator]]
        for place, kind in enumerate(kinds, 1):
            self._conn.execute(
                f"INSERT OR IGNORE INTO mining_nodes (kind, tag) SELECT DISTINCT {kind}, a{place} FROM {source} "  # noqa: S608
                # An empty cell is no constant, and its row no edge.
                f"WHERE a{place} <> {MISSING_TAG} ORDER BY a{place}"
            )
        joined = " ".join(
            f"CROSS JOIN mining_nodes AS n{place} ON n{place}.kind = {kind} AND n{place}.tag = f.a{place}"
            for place, kind in enumerate(kinds, 1)
        )
        cells = ", ".join(f"n{place}.id" for place in range(1, len(kinds) + 1))
        self._conn.execute(f"INSERT OR IGNORE INTO {table} SELECT {cells} FROM {source} AS f {joined}")  # noqa: S608  ours
        if self.library.has_property(indicator, Property.SYMMETRIC):
            self._conn.execute(f"INSERT OR IGNORE INTO {table} SELECT a2, a1 FROM {table}")  # noqa: S608  ours
        if len(kinds) > 1:
            self._conn.execute(f"CREATE INDEX temp.{table}_by_second ON {table} (a2, a1)")
        # By the mean numbers of facts with one argument SQLite chooses where a join begins.
        self._conn.execute(f"ANALYZE temp.{table}")

    def _add_rejected(self) -> None:
        """Load the atoms that a critic rejected and that are not facts."""
        tagged: dict[str, str] = {}
        for atom in self._rejected_atoms():
            if atom.indicator in self.facts:
                if atom.indicator not in tagged:
                    tagged[atom.indicator] = self._new_table(f"mining_tags_{len(tagged)}", atom.indicator)
                tags = ", ".join(map(str, self._relations.symbols.tags(atom.values)))
                self._conn.execute(f"INSERT OR IGNORE INTO {tagged[atom.indicator]} VALUES ({tags})")  # noqa: S608  ours
        for indicator, source in tagged.items():
            self.rejected[indicator] = table = self._new_table(f"mining_rejected_{len(self.rejected)}", indicator)
            self._add_nodes(table, indicator, source)
            columns = ", ".join(columns_of(indicator))
            are_facts = f"({columns}) IN (SELECT {columns} FROM {self.facts[indicator]})"  # noqa: S608  ours
            self._conn.execute(f"DELETE FROM {table} WHERE {are_facts}")  # noqa: S608  ours

    def _rejected_atoms(self) -> Iterator[Atom]:
        """Atoms whose value the critic gate rejected by its last decision, and denials."""
        yield from (denial.ground_atom for denial in self._kb.denials())
        # SQLite takes the bare columns from the row with the greatest rowid.
        sql = (
            "SELECT questions.patterns, candidates.value FROM "
            "(SELECT subject, accepted, score, max(rowid) FROM decisions WHERE gate = 'critic' GROUP BY subject) "
            "AS judged JOIN candidates ON candidates.id = judged.subject "
            "JOIN questions ON questions.id = candidates.question_id "
            "WHERE judged.accepted = 0 AND judged.score IS NOT NULL ORDER BY candidates.rowid"
        )
        for text, value in self._conn.execute(sql):
            patterns = PATTERNS.decode(text)
            # Of several patterns, as --compat asks them, nobody knows which one the critic denied.
            if len(patterns) == 1:
                yield patterns[0].filled(Constant(values.decode_value(value)))

    def _add_labels(self, least: int) -> None:
        """Number the predicates of one argument, and constants that occur at least `least` times (0: none)."""
        for predicate in self.predicates.values():
            fewest = 1 if len(predicate.types) == 1 else least
            for code in predicate.codes if fewest else ():
                edges = self.edges(code)
                self._conn.execute(
                    f"INSERT INTO mining_labels (p, o, facts) SELECT {code} AS p, o, count(*) FROM {edges} "  # noqa: S608
                    f"GROUP BY o HAVING count(*) >= {fewest} ORDER BY o"
                )
                self._conn.execute(
                    f"INSERT INTO mining_labelled SELECT edge.s, label.id, label.p, label.o FROM {edges} AS edge "  # noqa: S608  ours
                    f"JOIN mining_labels AS label ON label.p = {code} AND label.o = edge.o"
                )
        sql = "SELECT id, p, o FROM mining_labels"
        self.labels = {label: (code, node) for label, code, node in self._conn.execute(sql)}


def _is_readable(data_type: str) -> bool:
    """True if a rule can name the type."""
    with suppress(HapaxError):
        rules = parse_library([("type", f"p({data_type} X) -> q({data_type} X)")]).rules
        return [[item.data_type for item in rule.variables] for rule in rules] == [[data_type]]
    return False


# --- forms of rules ---------------------------------------------------------------------------------------------------

PremiseForm: TypeAlias = tuple[int, ...]
"""The variables of a premise: two of an edge, the lower number first; one of a label. Those of the head come first."""


@dataclass(frozen=True, slots=True)
class RuleShape:
    """A head of one or two variables, and the premises."""

    head: int
    premises: tuple[PremiseForm, ...]

    @property
    def has_labels(self) -> bool:
        return self.head == 1 or any(len(premise) == 1 for premise in self.premises)

    def __str__(self) -> str:
        """`h(X, Y) <- p(X, Z) & q(Y, Z)`, without directions."""
        # The head's variables are X and Y, the inner ones begin with Z.
        names = "XYZW"[: self.head] + "ZWVU"
        parts = []
        for premise in self.premises:
            variables = ", ".join(names[variable] for variable in premise)
            parts.append(f"p({variables})")
        return f"h({', '.join(names[: self.head])}) <- {' & '.join(parts)}"


@lru_cache
def shapes(premises: int) -> tuple[RuleShape, ...]:
    """All shapes with this number of premises; those with edges alone come first.

    They are closed (each variable occurs twice), and their premises are connected without the head. Two shapes never
    differ only in the names of their variables.
    """
    found: dict[RuleShape, None] = {}
    for head in (2, 1):
        # A variable that is not in the head occurs twice in the premises.
        most = head + premises
        all_forms: list[PremiseForm] = [*combinations(range(most), 2), *combinations(range(most), 1)]
        for chosen in combinations_with_replacement(all_forms, premises):
            if _is_closed(head, chosen) and _is_connected(head, chosen):
                found.setdefault(RuleShape(head, _canonical(head, chosen)))
    return tuple(sorted(found, key=lambda shape: (shape.has_labels, -shape.head, shape.premises)))


def _is_closed(head: int, premises: Sequence[PremiseForm]) -> bool:
    counts = Counter(chain.from_iterable(premises))
    counts.update(range(head))
    used = max(counts) + 1
    return len(counts) == used and all(count > 1 for count in counts.values())


def _is_connected(head: int, premises: Sequence[PremiseForm]) -> bool:
    joined = connected(premises, set, premises[0])
    return len(joined) == len(premises) and set(range(head)) <= set(chain.from_iterable(joined))


def _canonical(head: int, premises: Sequence[PremiseForm]) -> tuple[PremiseForm, ...]:
    """The premises with their inner variables named so that equal shapes have equal premises."""
    inner = sorted(set(chain.from_iterable(premises)) - set(range(head)))
    ways: list[tuple[PremiseForm, ...]] = []
    for order in permutations(inner):
        names = dict(zip(inner, order, strict=True))
        renamed = []
        for premise in premises:
            renamed.append(tuple(sorted(names.get(variable, variable) for variable in premise)))
        ways.append(tuple(sorted(renamed, key=lambda premise: (-len(premise), premise))))
    return min(ways)


def ways_to_match(shape: RuleShape) -> Iterator[tuple[int, ...]]:
    """Orders of the premises in which each has a variable that the head or an earlier premise binds.

    Premises whose variables are all bound come at once. So the orders differ in how they reach inner variables.
    """

    def continued(order: tuple[int, ...], bound: frozenset[int]) -> Iterator[tuple[int, ...]]:
        waiting = [place for place in range(len(shape.premises)) if place not in order]
        if not waiting:
            yield order
            return
        # An edge filters more than a label.
        closing = [place for place in waiting if bound.issuperset(shape.premises[place])]
        for place in closing[:1] or waiting:
            if bound & set(shape.premises[place]):
                yield from continued((*order, place), bound | set(shape.premises[place]))

    yield from continued((), frozenset(range(shape.head)))


# --- rules that may have enough support -------------------------------------------------------------------------------

CONSTANT = -1
"""The variable of a label's second node, which is a constant."""

MOST_CONSTANTS = (0, 2, 2, 1)
"""Most constants of a rule by the number of its premises: with more there are too many rules to look at."""


NAMES = "XYZWVU"
"""The names of a rule's variables, those of its conclusion first."""


class MinedAtom(NamedTuple):
    """An edge from one variable to another, or to a constant: then `second` is CONSTANT, and `node` the constant."""

    code: int
    first: int
    second: int
    node: int = NOTHING


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """A rule that may have enough support, with nodes as constants. `atoms`: its edges, the conclusion first."""

    atoms: tuple[MinedAtom, ...]
    rule: Rule = field(compare=False)

    @property
    def concluded(self) -> tuple[int, int]:
        """The code of the conclusion's predicate, and the node of its constant."""
        return self.atoms[0].code & ~1, self.atoms[0].node

    @property
    def constants(self) -> int:
        """The number of constants."""
        return sum(atom.second == CONSTANT and atom.node != NOTHING for atom in self.atoms)


def candidate(head: MinedAtom, premises: Sequence[MinedAtom], tables: MiningTables) -> RuleCandidate | None:
    """The rule of these atoms in one spelling; None if its types clash or it says nothing.

    It says nothing if a premise is the conclusion, mirrored under a symmetric predicate as well, or if two premises
    are one. Rules with more constants than MOST_CONSTANTS are not mined.
    """
    # One spelling of a rule, whatever the order of its premises.
    spelled = sorted(_spelled(atom, tables) for atom in premises)
    if len(set(spelled)) < len(spelled) or _spelled(head, tables) in spelled:
        return None
    atoms = (head, *spelled)
    variables = _variables(atoms, tables)
    if variables is None:
        return None

    def literal(atom: MinedAtom) -> Literal:
        terms: list[Term] = [variables[atom.first]]
        if atom.second != CONSTANT:
            terms.append(variables[atom.second])
        elif atom.node != NOTHING:
            terms.append(Constant(atom.node))
        name = tables.predicates[atom.code & ~1].indicator.rpartition("/")[0]
        # An odd code stands for the mirrored predicate.
        return Literal(Atom(name, tuple(reversed(terms) if atom.code & 1 else terms)))

    conclusion = literal(head)
    # Each premise has a variable of an earlier one, beginning with X.
    ordered = connected(spelled, lambda atom: {atom.first, atom.second} - {CONSTANT}, {0})
    rule = Rule(f"mined_{conclusion.atom.predicate}", tuple(map(literal, ordered)), conclusion)
    made = RuleCandidate(atoms, rule)
    return made if made.constants <= MOST_CONSTANTS[len(premises)] else None


def _spelled(atom: MinedAtom, tables: MiningTables) -> MinedAtom:
    """The atom under its predicate's own code if it has two variables, and with the lower code if it is symmetric."""
    # The even code of a pair is the predicate's own, the odd one that of its mirrored edges.
    symmetric = tables.predicates[atom.code & ~1].symmetric
    if atom.second == CONSTANT:
        return atom._replace(code=atom.code & ~1) if symmetric else atom
    first, second = sorted((atom.first, atom.second))
    if symmetric:
        return MinedAtom(atom.code & ~1, first, second)
    return MinedAtom(atom.code if atom.first == first else atom.code ^ 1, first, second)


def _variables(atoms: Sequence[MinedAtom], tables: MiningTables) -> dict[int, Variable] | None:
    """The variables of the atoms; None if the types of a variable's places do not fit."""
    places: dict[int, list[str]] = {}
    for atom in atoms:
        for place, number in enumerate((atom.first, atom.second)):
            if number != CONSTANT:
                # Mirrored codes have the types the other way round.
                data_type = tables.predicates[atom.code & ~1].types[place ^ (atom.code & 1)]
                places.setdefault(number, []).extend([] if data_type is None else [data_type])
    found: dict[int, Variable] = {}
    for number, types in places.items():
        # A variable without a known type at any place may be any object.
        common = tables.library.most_specific(tuple(types)) if types else OBJECT
        if common is None:
            return None
        found[number] = Variable(NAMES[number], common)
    return found


def is_not_conclusion(atom: tuple[str, str, str], conclusion: tuple[int, str, str], symmetric: bool = False) -> str:
    """SQL that is true unless an edge (code, first and second node, as SQL) is the conclusion itself.

    An instance whose premise contains its conclusion supports nothing.
    """
    code, first, second = atom
    head, subject, value = conclusion
    # The conclusion as an edge, and mirrored.
    ways = [(head, subject, value), (head ^ 1, value, subject)]
    if symmetric:
        ways += [(head, value, subject), (head ^ 1, subject, value)]
    parts = []
    for head_code, head_first, head_second in ways:
        same = [f"{code} = {head_code}"]
        same += [f"{left} = {right}" for left, right in ((first, head_first), (second, head_second)) if left != right]
        parts.append(f"NOT ({' AND '.join(same)})")
    return " AND ".join(dict.fromkeys(parts))


def shape_atoms(shape: RuleShape, codes: Sequence[int], labels: dict[int, tuple[int, int]]) -> tuple[MinedAtom, ...]:
    """The premises of a shape with these codes of edges, or numbers of labels."""
    atoms = []
    for premise, code in zip(shape.premises, codes, strict=True):
        if len(premise) == 1:
            label, node = labels[code]
            atoms.append(MinedAtom(label, premise[0], CONSTANT, node))
        else:
            atoms.append(MinedAtom(code, *premise))
    return tuple(atoms)
