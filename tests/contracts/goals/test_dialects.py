"""`compile --to` as SQL: databases that run the text find the same rows as `derive`, or a rule is refused by name."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from random_cases import cases

import hapax

# --- programs ---------------------------------------------------------------------------------------------------------


BASE = {"edge": "TT", "link": "TT", "mark": "T", "known": "TT", "size": "TN"}
LAYERS = ("low", "far", "high")
TYPES = {"T": "Thing", "N": "Number"}
VALUES: Mapping[str, tuple[Any, ...]] = {"T": ("a", "b", "it's", "2"), "N": (1, 2, -3, "2.5", "0.1")}
NAMES = {"T": ("A", "B", "C", "D"), "N": ("M", "N")}
DECLARED = "\n".join(
    f"given {name}({', '.join(TYPES[kind] for kind in kinds)})"
    for name, kinds in {**BASE, **dict.fromkeys(LAYERS, "TT"), "scaled": "TN"}.items()
)
SIGNS = ("<", "=<", ">", ">=", "=", "\\=")
Atom = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Term:
    """A variable, or a constant as rule text and as a value."""

    text: str
    kind: str

    def __str__(self) -> str:
        return f"{TYPES[self.kind]} {self.text}" if self.text.isupper() else self.text


@dataclass(frozen=True)
class Drawn:
    """A rule: positive atoms, negated ones, comparisons of a sum or product, an equation for K, and the conclusion."""

    name: str
    atoms: tuple[tuple[str, tuple[Term, ...]], ...]
    negated: tuple[tuple[str, tuple[Term, ...]], ...]
    comparisons: tuple[tuple[Term, str, Fraction, str, Term], ...]
    equation: tuple[Term, str, Fraction] | None
    head: tuple[str, tuple[Term, ...]]

    def __str__(self) -> str:
        items = [written(*atom) for atom in self.atoms] + [f"not {written(*atom)}" for atom in self.negated]
        items += [
            f"{left.text} {sign} {digits(number)} {operator} {right.text}"
            for left, sign, number, operator, right in self.comparisons
        ]
        if self.equation:
            left, sign, number = self.equation
            items.append(f"Number K = {left.text} {sign} {digits(number)}")
        return f"@generic none\n@name {self.name}\n{' & '.join(items)} -> {written(*self.head)}"


def digits(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else str(float(number))


def written(name: str, terms: tuple[Term, ...]) -> str:
    return f"{name}({', '.join(map(str, terms))})"


def drawn_rule(rng: random.Random, name: str, positive: list[str], negative: list[str], head: str) -> Drawn:
    kinds = {**BASE, **dict.fromkeys(LAYERS, "TT"), "scaled": "TN"}

    def term(kind: str, names: tuple[str, ...]) -> Term:
        if not names or rng.random() < 0.1:
            constant = rng.choice(VALUES[kind])
            return Term(f'"{constant}"' if kind == "T" else str(constant), kind)
        return Term(rng.choice(names), kind)

    atoms: list[tuple[str, tuple[Term, ...]]] = []
    seen: dict[str, list[str]] = {"T": [], "N": []}
    for _ in range(rng.randint(1, 3)):
        predicate = rng.choice(positive)
        terms = [term(kind, NAMES[kind][: len(seen[kind]) + 2]) for kind in kinds[predicate]]
        if seen["T"] and not any(item.text in seen["T"] for item in terms):
            terms[0] = Term(rng.choice(seen["T"]), "T")
        atoms.append((predicate, tuple(terms)))
        for item in terms:
            if item.text.isupper() and item.text not in seen[item.kind]:
                seen[item.kind].append(item.text)
    things, numbers = tuple(seen["T"]), tuple(seen["N"])
    negated = [
        (predicate, tuple(term(kind, things if kind == "T" else numbers) for kind in kinds[predicate]))
        for predicate in rng.choices(negative, k=rng.choice((0, 0, 1, 2)))
    ]
    constants = (Fraction(2), Fraction(1, 2), Fraction(-3), Fraction(5, 2))
    comparisons, equation, result = [], None, (term("T", things), term("T", things))
    if numbers and rng.random() < 0.5:
        operands = [Term(rng.choice(numbers), "N") for _ in range(2)]
        comparisons.append(
            (operands[0], rng.choice("+-*/"), rng.choice(constants), rng.choice(list(SIGNS)), operands[1])
        )
    if head == "scaled":
        equation = (
            (Term(rng.choice(numbers), "N"), rng.choice("+-*/"), rng.choice((*constants, Fraction(3))))
            if numbers
            else None
        )
        result = (result[0], Term("K", "N") if equation else Term("1", "N"))
    return Drawn(name, tuple(atoms), tuple(negated), tuple(comparisons), equation, (head, result))


def drawn_program(rng: random.Random) -> list[Drawn]:
    """Rules in layers: joins, recursion of each kind, arithmetic, and negation of what lies below."""
    below, drawn = list(BASE), []
    for layer in (*LAYERS, "scaled"):
        for _ in range(rng.randint(1, 2)):
            positive = [*below, layer, layer] if layer != "scaled" and rng.random() < 0.6 else below
            drawn.append(drawn_rule(rng, f"r{len(drawn)}", positive, below, layer))
        below = [*below, layer, layer]
    drawn.append(drawn_rule(rng, "top", below, below, "top"))
    return drawn


def sound(drawn: list[Drawn]) -> tuple[list[Drawn], hapax.Library]:
    """The rules without those that `check` objects to, such as a premise that can never hold."""
    while True:
        text = "\n".join([DECLARED, "given top(Thing, Thing)", "closed known/2 by 1", *map(str, drawn)])
        starts = {rule.name: text[: text.index(f"@name {rule.name}\n")].count("\n") for rule in drawn}
        try:
            rules = hapax.parse_rules(text)
            faults = list(hapax.check_rules(rules))
        except hapax.RulesRejected as rejected:
            faults = list(rejected.diagnostics)
        lines = {item.place.line for item in faults if str(item.severity) == "error"}
        left = [rule for rule in drawn if not lines & {starts[rule.name] + offset for offset in range(3)}]
        if len(left) == len(drawn):
            return drawn, rules
        drawn = left


def exact(value: Any) -> Any:
    return value if isinstance(value, str) else Fraction(value)


def drawn_facts(rng: random.Random, count: int) -> dict[Atom, Atom]:
    """Facts as they are written, by their exact values."""
    found = {}
    for _ in range(count):
        name = rng.choice(("edge", "edge", "link", "mark", "known", "size", "size", "low", "far"))
        row = tuple(rng.choice(VALUES[kind]) for kind in {**BASE, "low": "TT", "far": "TT"}[name])
        kinds = {**BASE, "low": "TT", "far": "TT"}[name]
        found[
            name, tuple(value if kind == "T" else Fraction(value) for value, kind in zip(row, kinds, strict=True))
        ] = (
            name,
            tuple(value if kind == "T" else number(value) for value, kind in zip(row, kinds, strict=True)),
        )
    return found


def number(value: Any) -> Any:
    from decimal import Decimal

    return Decimal(value) if isinstance(value, str) else value


def statements(derivation: Any) -> set[Any]:
    return {
        (item.rule, frozenset((name, exact(value)) for name, value in item.values.items()))
        for item in derivation.statements
    }


# --- dialects ---------------------------------------------------------------------------------------------------------


pytest.importorskip("sqlglot", reason="needs the extra `sql`")

Facts = Mapping[str, Iterable[tuple[Any, ...]]]
"""Rows of facts by indicator."""

RULES = r"""
given road(Place, Place)
given closed(Place)
given age(Thing, Number)
given grew(Thing, Number, Number)
given knows(Thing, Thing)
given is_allergic_to(Person, Food)
oracle is_in(Food, Dish) : "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"
closed knows/2 by 1
computed is_older_by(Number A, Number B, Number D) := D = A - B
fact age("it's \\ \"old\"", 2.5)
fact age("-- ö; DROP", -7)
@name onward
@generic none
road(Place A, Place B) & A \= B & not closed(Place B) -> serves(Place A, Place B)
@name near
@generic none
road(Place A, "b") & serves(Place A, Place B) -> near(Place B)
@name next
@generic none
age(Thing X, Number N) & Number M = N * 1.5 - 3 & M / 2 < 1.5 & M \= 0 -> was(Thing X, Number M)
@name older
@generic none
age(Thing X, Number N) & age(Thing Y, Number M) & is_older_by(Number N, Number M, Number D) & D > 0 -> older(Thing X, Thing Y, Number D)
@name rate
@generic none
grew(Thing X, Number N, Number M) & Number R = N / M -> rate(Thing X, Number R)
@name strange
@generic none
age(Thing X, Number N) & age(Thing Y, Number M) & X \= Y & not knows(Thing X, Thing Y) -> strange(Thing X, Thing Y)
@name safe
is_allergic_to(Person X, Food F) & is_in(Food F, Dish D) & is_in(Food G, Dish E) & not is_in(Food G, Dish D) -> can_eat(Person X, Dish E)
aggregate degree(Place A, Number K) := K = count(Place B: road(Place A, Place B))
aggregate mean(Number K) := K = avg(Number N, Thing X: age(Thing X, Number N))
aggregate oldest(Number K) := K = max(Number N, Thing X: age(Thing X, Number N))
aggregate total(Thing X, Number K) := K = sum(Number N: grew(Thing X, Number N, Number M))
@name busy
@generic none
degree(Place A, Number K) & K >= 2 -> busy(Place A)
@name aged
@generic none
age(Thing X, Number K) & oldest(Number K) & mean(Number L) & L < K -> aged(Thing X, Number L)
@name grown
@generic none
total(Thing X, Number T) & age(Thing X, Number N) & T < N -> grown(Thing X, Number T)
"""
RECURSIVE = (
    RULES
    + r"""
given edge(Place, Place)
given touches(Place, Place)
transitive above/2
given above(Place, Place)
@name step
@generic none
edge(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
edge(Place A, Place B) & reaches(Place B, Place C) & not closed(Place C) -> reaches(Place A, Place C)
@name back
@generic none
reaches(Place A, Place B) & touches(Place A, Place B) -> reaches(Place B, Place A)
@name joined
@generic none
reaches(Place A, Place B) & above(Place B, Place C) -> joined(Place A, Place C)
@name counts
@generic none
age(Thing X, Number N) & N < 9 -> ages(Thing X, Number N)
@name on
@generic none
M < 9 & Number M = K + 0.5 & Number K = N + 2 & ages(Thing X, Number N) -> ages(Thing X, Number M)
@name late
@generic none
ages(Thing X, Number N) & N > 6 -> late(Thing X, Number N)
"""
)
MIXED = """
type Year < Time.
given seen(Thing, Time)
given made(Thing, Year)
@name both
@generic none
seen(Thing X, Time T) & made(Thing Y, Year T) -> both(Thing X, Thing Y)
@name apart
@generic none
seen(Thing X, Time T) & made(Thing Y, Year U) & T \\= U & made(Thing X, Year U) -> apart(Thing X, Thing Y)
@name marked
@generic none
made(Thing X, Year U) -> marked(Thing X, Time U)
@name again
@generic none
marked(Thing X, Time T) & seen(Thing Y, Time T) -> again(Thing X, Thing Y)
"""
MIXED_FACTS: Facts = {
    "seen/2": [("a", 1990), ("b", "long ago"), ("c", 1880), ("d", "1e3x")],
    "made/2": [("a", 1990), ("b", 1990), ("c", 1870), ("d", 500)],
}
FACTS: Facts = {
    "road/2": [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a"), ("a", "c"), ("it's", "b")],
    "closed/1": [("c",)],
    "age/2": [("tom", 5), ("eve", -7), ("old", Decimal("50.25")), ("2", 2)],
    "grew/3": [("tom", 7, 2), ("eve", 1, 0), ("old", Decimal("123456.1"), Decimal("0.8")), ("tom", -3, Decimal("2.5"))],
    "knows/2": [("tom", "eve"), ("eve", "eve"), ("2", "tom")],
    "is_in/2": [("nut", "cake"), ("egg", "cake"), ("nut", "pie"), ("egg", "flan")],
}
MORE_FACTS: Facts = {
    **FACTS,
    "edge/2": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("x", "a")],
    "touches/2": [("a", "b"), ("x", "b")],
    "above/2": [("b", "d"), ("d", "e"), ("e", "f"), ("f", "g"), ("g", "h"), ("h", "d")],
    "reaches/2": [("y", "x")],
}


def fact_tables(text: str) -> dict[str, str]:
    """The table of each predicate's facts, by indicator, as the text says."""
    return dict(re.findall(r'^-- facts of (\S+): .*\nCREATE TABLE ["`](\w+)', text, re.MULTILINE))


class DuckDB:
    """A database in memory."""

    def __init__(self) -> None:
        self._connection = pytest.importorskip("duckdb", reason="needs the extra `sql`").connect()

    def run(self, text: str, facts: Facts) -> None:
        self._connection.execute(text)
        tables = fact_tables(text)
        # Rules may need fewer predicates than there are facts of.
        for indicator in facts.keys() & tables:
            marks = ", ".join("?" * int(indicator[-1]))
            for row in facts[indicator]:
                self._connection.execute(f"INSERT INTO {tables[indicator]} VALUES ({marks})", row)  # noqa: S608

    def rows(self, view: str) -> list[dict[str, Any]]:
        found = self._connection.execute(f'SELECT * FROM "{view}"')  # noqa: S608
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


class PostgreSQL:
    """A server of its own in a folder, which a socket reaches."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _psql(self, *arguments: str, text: str) -> str:
        command = ["psql", "-h", str(self._folder), "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt", *arguments]
        done = subprocess.run([*command, "postgres"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, text: str, facts: Facts) -> None:
        self._psql(text="DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n" + text)
        for indicator, rows in facts.items():
            lines = io.StringIO()
            csv.writer(lines).writerows(rows)
            self._psql("-c", f"COPY {fact_tables(text)[indicator]} FROM STDIN (FORMAT csv)", text=lines.getvalue())

    def rows(self, view: str) -> list[dict[str, Any]]:
        shown = self._psql("-c", f'SELECT json_agg(row_to_json(v)) FROM "{view}" AS v', text="")  # noqa: S608
        return json.loads(shown.strip() or "[]", parse_float=Decimal)


class Spark:
    """Spark on two processors of this machine."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, text: str, facts: Facts) -> None:
        self._session.sql("CREATE DATABASE IF NOT EXISTS rules")
        self._session.sql("DROP DATABASE rules CASCADE")
        self._session.sql("CREATE DATABASE rules")
        self._session.sql("USE rules")
        # Spark runs one statement at a time, and none of these texts ends a line with a semicolon otherwise.
        for statement in text.split(";\n"):
            if re.search(r"^[A-Z]", statement, re.MULTILINE):
                self._session.sql(statement)
        for indicator, rows in facts.items():
            marks = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in rows)
            # Spark does not put numbers and texts into one column, as the other databases do.
            mixed = [len({isinstance(cell, str) for cell in column}) > 1 for column in zip(*rows, strict=True)]
            cells = [str(cell) if is_mixed else cell for row in rows for cell, is_mixed in zip(row, mixed, strict=True)]
            self._session.sql(f"INSERT INTO {fact_tables(text)[indicator]} VALUES {marks}", args=cells)  # noqa: S608

    def rows(self, view: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self._session.table(view).collect()]


@contextmanager
def postgresql(folder: Path) -> Iterator[PostgreSQL]:
    """A server that runs inside the block; skips the test where there is none."""
    programs = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found = shutil.which("initdb")
    if not found and not programs:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    binaries = Path(found).parent if found else programs[-1]
    # The server refuses to run as root; the path of a socket must be short.
    place = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    if user:
        shutil.chown(place, "postgres")
    settings = f"-k {place} -c listen_addresses=''"
    control = [*user, str(binaries / "pg_ctl"), "-D", str(place / "data"), "-w", "-l", str(place / "log")]
    initial = "-A trust -U postgres -E UTF8 --locale=C.UTF-8"
    try:
        subprocess.run([*control, "init", "-o", initial], check=True, capture_output=True, cwd=place)
        subprocess.run([*control, "start", "-o", settings], check=True, stdout=subprocess.DEVNULL, cwd=place)
        yield PostgreSQL(place)
    finally:
        subprocess.run([*control, "stop", "-m", "immediate"], check=False, capture_output=True, cwd=place)
        shutil.rmtree(place)


@contextmanager
def spark(folder: Path) -> Iterator[Spark]:
    """A session inside the block; skips the test without pyspark or Java."""
    sql = pytest.importorskip("pyspark.sql", reason="needs the extra `databases`")
    if not shutil.which("java"):
        pytest.skip("needs Java: apt-get install default-jre-headless")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        yield Spark(session)
    finally:
        session.stop()


def dialects_exact(value: Any) -> Any:
    return value if isinstance(value, str) else Fraction(value)


def table(rows: Iterable[Iterable[Any]]) -> set[tuple[Any, ...]]:
    return {tuple(map(dialects_exact, row)) for row in rows}


def derivation(
    rules: hapax.Library, facts: Facts, only: Iterable[str] = ()
) -> tuple[set[Any], dict[str, set[tuple[Any, ...]]]]:
    """The statements of `derive`, and the atoms of each derived predicate by its table."""
    with hapax.KnowledgeBase() as kb:
        for indicator, rows in facts.items():
            hapax.add_facts(kb, indicator[:-2], list(rows), rules)
        found = statements(hapax.derive(rules, kb, only=list(only)))
        goals = {}
        for indicator in () if only else sorted(rules.with_closure().derived):
            variables = ", ".join(f"X{place}" for place in range(int(indicator[-1])))
            goal = f"{indicator[:-2]}({variables})"
            goals[indicator.replace("/", "_")] = table(hapax.query(goal, rules, kb).rows)
    return found, goals


def statement_rows(database: DuckDB | PostgreSQL | Spark, names: Iterable[str]) -> set[Any]:
    """The statements in the views of these rules, as `derivation` gives them."""
    found = set()
    for name in names:
        rows = database.rows(f"rule_{name}")
        for row in rows:
            row.pop("holds", None)  # of a rule without variables
        assert len({frozenset(row.items()) for row in rows}) == len(rows)
        found |= {(name, frozenset((key, dialects_exact(value)) for key, value in row.items())) for row in rows}
    return found


def check(database: DuckDB | PostgreSQL | Spark, rules: hapax.Library, dialect: str, facts: Facts) -> None:
    """The database has the statements and the atoms of `derive`."""
    mixed = hapax.parse_rules(MIXED)
    database.run(hapax.compile_rules(mixed, dialect), MIXED_FACTS)
    _, atoms = derivation(mixed, MIXED_FACTS)
    del atoms["marked_2"]  # its numbers come back as texts

    assert {name: table(row.values() for row in database.rows(name)) for name in atoms} == atoms

    text = hapax.compile_rules(rules, dialect)
    if isinstance(database, DuckDB):
        database = DuckDB()
    database.run(text, facts)
    expected, atoms = derivation(rules, facts)
    views = re.findall(r"^-- statements of rule (\w+)", text, re.MULTILINE)

    assert statement_rows(database, views) == expected
    assert {name: table(row.values() for row in database.rows(name)) for name in atoms} == atoms


def test_duckdb_finds_what_derive_finds() -> None:
    """Joins, recursion, negation, exact decimals, computed predicates and aggregates; quotes and dashes stay values."""
    check(DuckDB(), hapax.parse_rules(RECURSIVE), "duckdb", MORE_FACTS)


@pytest.mark.databases
def test_postgresql_finds_what_derive_finds(tmp_path: Path) -> None:
    """PostgreSQL runs its text with the rows of `derive`, recursion with several rules included."""
    with postgresql(tmp_path) as database:
        check(database, hapax.parse_rules(RECURSIVE), "postgres", MORE_FACTS)


@pytest.mark.databases
def test_spark_finds_what_derive_finds(tmp_path: Path) -> None:
    """Spark runs its text with the rows of `derive`; recursion is refused for it."""
    with spark(tmp_path) as database:
        check(database, hapax.parse_rules(RULES), "spark", FACTS)


def test_the_same_rows_of_random_programs() -> None:
    """DuckDB finds what `derive` finds; only rules that have their own conclusion twice in the premise are refused."""
    refused: list[str] = []
    for seed in range(cases(30)):
        rng = random.Random(seed)
        drawn = [rule for rule in drawn_program(rng) if not has_thirds(rule)]
        facts: dict[str, list[tuple[Any, ...]]] = {}
        for name, row in drawn_facts(rng, rng.randint(8, 24)).values():
            facts.setdefault(f"{name}/{len(row)}", []).append(row)
        rules, names, text, found = without_refused(drawn)
        refused += (f"{rule} of seed {seed}" for rule in found)
        database = DuckDB()
        database.run(text, facts)
        assert statement_rows(database, names) == derivation(rules, facts, names)[0]

    assert len(refused) < cases(30), refused


def has_thirds(rule: Drawn) -> bool:
    """Of a third SQL keeps only the first digits."""
    quotients = [(sign, number) for _, sign, number, _, _ in rule.comparisons]
    quotients += [rule.equation[1:]] if rule.equation else []
    return any(sign == "/" and number.numerator % 3 == 0 for sign, number in quotients)


def without_refused(drawn: list[Drawn]) -> tuple[hapax.Library, list[str], str, list[str]]:
    """The rules that DuckDB can run, their names and their SQL, and the names of the others."""
    refused: list[str] = []
    while True:
        drawn, rules = sound([rule for rule in drawn if rule.name not in refused])
        names = [rule.name for rule in drawn]
        try:
            return rules, names, hapax.compile_rules(rules, "duckdb", only=names), refused
        except hapax.HapaxError as error:
            named = re.findall(r"rule (r\d+)", str(error))
        twice = {rule.name for rule in drawn if [name for name, _ in rule.atoms].count(rule.head[0]) > 1}
        assert set(named) & twice
        assert set(named) <= twice
        refused += named


REFUSED = {
    "mutual": (
        "given n(Thing, Thing)\n@generic none\nn(Thing A, Thing B) & odd(Thing B, Thing C) -> even(Thing A, Thing C)\n"
        "@generic none\neven(Thing A, Thing B) & n(Thing B, Thing C) -> odd(Thing A, Thing C)\n",
        "duckdb",
        ["even/2", "odd/2"],
    ),
    "twice": (
        "given n(Thing, Thing)\n@generic none\nn(Thing A, Thing B) -> r(Thing A, Thing B)\n@name double\n@generic none\n"
        "r(Thing A, Thing B) & r(Thing C, Thing B) & n(Thing A, Thing C) -> r(Thing A, Thing C)\n",
        "postgres",
        ["r/2", "double"],
    ),
    "recursion in Spark": ("given n(Thing, Thing)\ntransitive n/2\n", "spark", ["n/2", "Spark"]),
    "digits": ('given n(Thing, Number)\nfact n("a", 0.1234567890123)\n', "duckdb", ["0.1234567890123", "12"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_database_cannot_do_is_refused_by_name(case: str) -> None:
    """Mutual recursion, two recursive atoms, recursion in Spark and too many digits are named, and nothing is written."""
    text, dialect, words = REFUSED[case]
    with pytest.raises(hapax.HapaxError) as refused:
        hapax.compile_rules(hapax.parse_rules(text), dialect)

    assert [word for word in words if word not in str(refused.value)] == []


def test_a_negation_of_an_open_predicate_needs_a_denial() -> None:
    """A model's silence is no denial: a row of the table of denials, or another value, says that an atom is false."""
    rules = hapax.parse_rules(
        'oracle is_in(Food, Dish) : "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"\n'
        'functional made_in(Dish, Year) : "[1] was made in [2]" / "[1] was not made in [2]" / "was [1] made in [2]?"\n'
        "given asked(Food, Dish, Year)\n@name without\n@generic none\n"
        "asked(Food F, Dish D, Year Y) & not is_in(Food F, Dish D) & not made_in(Dish D, Year Y) -> w(Food F, Dish D)\n"
    )
    database = DuckDB()
    asked = [("nut", "pie", 1990), ("egg", "pie", 1990), ("nut", "pie", 1991), ("nut", "flan", 1990)]
    database.run(hapax.compile_rules(rules, "duckdb"), {"asked/3": asked, "made_in/2": [("pie", 1991)]})

    assert database.rows("w_2") == []
    database.run("INSERT INTO is_in_2_denied VALUES ('nut', 'pie'), ('nut', 'flan')", {})
    assert [tuple(row.values()) for row in database.rows("w_2")] == [("nut", "pie")]


def test_names_do_not_collide() -> None:
    """Predicates that differ in case, arity or letters that a database lacks have tables of their own."""
    rules = hapax.parse_rules(
        "given p(Thing)\ngiven p(Thing, Thing)\ngiven P_2(Thing, Thing)\ngiven größer(Thing)\ngiven gr_ßer(Thing)\n"
        f"given {'long_' * 20}a(Thing)\ngiven {'long_' * 20}b(Thing)\n".replace("P_2", "p_P")
    )
    tables = fact_tables(hapax.compile_rules(rules, "spark"))

    assert len({name.casefold() for name in tables.values()}) == len(tables) == 7
    assert all(re.fullmatch("[A-Za-z0-9_]{1,63}", name) for name in tables.values())


def test_the_head_of_the_text_names_the_loss_and_what_is_left_out() -> None:
    """Comments before the first statement say how numbers are kept, and which rules have errors."""
    rules = hapax.parse_rules(
        "given p(Thing)\n@name wrong\n@generic none\np(Thing A) -> q(Thing A, Thing B)\n"
        "@name right\n@generic none\np(Thing A) & p(Thing B) & A \\= B -> q(Thing A, Thing B)\n"
    )
    head = hapax.compile_rules(rules, "duckdb").partition("CREATE")[0]

    assert "DECIMAL(38, 12)" in head
    assert "wrong" in head
    assert all(line.startswith("--") for line in head.splitlines() if line)


def test_the_text_is_the_same_each_time(tmp_path: Path) -> None:
    """`compile --to` prints the same text in processes with other hash seeds."""
    (tmp_path / "my.rules").write_text(RECURSIVE, "utf-8")
    command = [sys.executable, "-m", "hapax.cli", "rules", "compile", str(tmp_path / "my.rules"), "--to", "postgres"]
    texts = [
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]

    assert b"CREATE VIEW" in texts[0]
    assert texts[0] == texts[1]


def test_the_shipped_rules_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compile --to duckdb` writes all the shipped rules, and DuckDB takes them; `derive` applies them all."""
    monkeypatch.chdir(tmp_path)
    DuckDB().run(run("rules", "compile", "--to", "duckdb").stdout, {})
    hapax.KnowledgeBase("hapax.db").close()
    run("derive", "shipped")
    assert invoke("rules", "compile", "--to", "oracle").exit_code == 2
