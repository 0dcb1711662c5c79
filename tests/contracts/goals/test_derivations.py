"""`derive` on the command line: what it prints, stores and writes, and its limits."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run

import hapax

ROUTES = """
given road(Place, Place)
given closed(Place)
given age(Thing, Number)
@name onward
@generic none
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A & not closed(Place C) -> serves(Place A, Place C)
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
reaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name next
@generic none
age(Thing X, Number N) & Number M = N - 3 & M / 2 < 1.5 -> was(Thing X, Number M)
"""
ONWARD = ("--rule", "onward")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rules and a knowledge base with a ring of three places, in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("routes.rules").write_text(ROUTES, "utf-8")
    rules = hapax.load_rules("routes.rules")
    with hapax.KnowledgeBase("hapax.db") as kb:
        hapax.add_facts(kb, "road", [tuple(pair) for pair in ("ab", "bc", "ca")], rules)
        hapax.add_facts(kb, "age", [("tom", 5), ("eve", -7), ("old", 50)], rules)
    return tmp_path


def test_a_derivation_is_printed_stored_and_written(world: Path) -> None:
    """`derive` counts the statements of each rule, writes them with proofs to both formats, and `stats` counts them."""
    from pyarrow import parquet

    for ending in ("jsonl", "parquet"):
        shown = run("derive", "routes.rules", *ONWARD, "-o", f"out.{ending}").stdout
        assert shown.splitlines()[1].split()[:2] == ["onward", "6"]
    lines = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    rows = parquet.read_table("out.parquet").to_pylist()

    assert sorted(line["statement"] for line in lines)[0] == "If road(a, b) and b reaches b, then a serves b."
    assert all(line["proof"]["steps"][0]["premises"] for line in lines)
    assert [json.loads(line["proof"]) for line in rows] == [line["proof"] for line in lines]
    assert json.loads(run("data", "stats", "--json").stdout)["derived"] == {"onward": 6}
    as_json = json.loads(run("derive", "routes.rules", *ONWARD, "--json").stdout)
    assert as_json["atoms"] == {"reaches/2": 9}
    assert [(rule["rule"], rule["statements"]) for rule in as_json["rules"]] == [("onward", 6)]


def test_a_full_disk_keeps_the_earlier_file(world: Path) -> None:
    """Where a file cannot be written whole the earlier one stays; with space the new one takes its place."""
    file = world / "written" / "out.jsonl"
    file.parent.mkdir()
    Path("far.rules").write_text(
        "given road(Place, Place)\n@generic none\nroad(Place A, Place B) -> far(Place A, Place B)\n"
    )
    arguments = ["derive", "far.rules", "-o", str(file)]
    run(*arguments)
    before = file.read_bytes()
    names = [hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(2000)]
    with hapax.KnowledgeBase("hapax.db") as kb:
        hapax.add_facts(kb, "road", [("b", name) for name in names], hapax.load_rules("far.rules"))
    run("derive", "far.rules")
    # A limit of the size of files stands for a full disk.
    ended = limited(arguments, 40_000)

    assert ended.returncode == 1, ended.stderr
    assert file.name in ended.stderr.replace("\n", "")
    assert "Traceback" not in ended.stderr
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    run(*arguments)
    assert file.read_bytes() != before


def limited(arguments: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """A command in a process that may write no file larger than this."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-m", "hapax.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, preexec_fn=limit)


def test_a_rule_that_tests_only_what_is_assumed_is_left_out(world: Path) -> None:
    """A test of a value that no fact gives leaves the rule without statements, with the reason, and no error."""
    Path("age.rules").write_text(
        "given is_of_age(Person, Age)\ngiven needs(Thing, Age)\n@name grown\n@generic A\n"
        "is_of_age(Person A, Age X) & needs(Thing B, Age Y) & X < Y -> cannot_use(Person A, Thing B)\n"
    )
    ended = run("derive", "age.rules", "-o", "none.jsonl")

    assert "grown" in ended.stderr
    assert Path("none.jsonl").read_bytes() == b""


# --- limits -----------------------------------------------------------------------------------------------------------

COUNTING = """
given starts(Thing, Number)
fact starts("a", 1)
@generic none
starts(Thing A, Number N) -> counts(Thing A, Number N)
@generic none
counts(Thing A, Number N) & Number M = N + 1 -> counts(Thing A, Number M)
@name many
@generic none
counts(Thing A, Number N) & N > 9 -> has_many(Thing A, Number N)
"""
CLIQUE = """
given n(Thing, Thing)
@generic none
n(Thing A, Thing G) & n(Thing B, Thing G) & n(Thing C, Thing G) & n(Thing D, Thing G) -> four(Thing A, Thing B, Thing C, Thing D)
"""


@pytest.mark.parametrize("text", [COUNTING, CLIQUE])
def test_a_time_limit_ends_a_derivation(text: str) -> None:
    """Recursion that counts for ever, and a join too large, end with LimitExceeded and leave what was derived before."""
    rules = hapax.parse_rules(f"given p(Thing)\n@name own\n@generic none\np(Thing X) -> q(Thing X)\n{text}")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "p", [("x",)], rules)
        hapax.derive(rules, kb, only="own")
        if text is CLIQUE:
            hapax.add_facts(kb, "n", [(f"v{number}", "g") for number in range(300)], rules)
        with pytest.raises(hapax.LimitExceeded) as ended:
            hapax.derive(rules, kb, seconds=0.3)
        if text is COUNTING:
            for asked in (hapax.why, hapax.why_not):
                with pytest.raises(hapax.LimitExceeded):
                    asked("counts(a, 0.5)", rules, kb, seconds=0.3)

        assert ended.value.limit == "seconds"
        assert "0.3" in str(ended.value)
        assert hapax.stats(kb).derived == {"own": 1}


LIMITS: dict[str, Callable[[], Any]] = {
    "inferences": lambda: hapax.QueryLimits(inferences=100_000),
    "seconds": lambda: hapax.QueryLimits(seconds=0.2, inferences=10**12),
    "memory": lambda: hapax.QueryLimits(seconds=100, memory_mb=150, inferences=10**12),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_goal_ends_at_its_limits(limit: str) -> None:
    """Inferences, time and memory end a goal with the name of its limit, and the next goal is answered."""
    pairs = "findall([X, Y], (between(1, 100000, X), between(1, 100000, Y)), L)"
    goal = pairs if limit == "memory" else "between(1, 1000000000000, X), X < 0"
    rules = hapax.parse_rules("given p(Thing)\n")
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.LimitExceeded) as ended:
            hapax.query(goal, rules, kb, options=hapax.QueryOptions(limits=LIMITS[limit]()))

        assert ended.value.limit == limit
        assert hapax.query("X = 1", rules, kb).rows == [(1,)]


@pytest.mark.parametrize(
    ("goal", "word"),
    [
        ("X = f(X)", "itself"),
        ("X = " + "[" * 1001 + "]" * 1001, "100 "),
        ("true".ljust(100_001), "100000"),
        ("X is 10 ** 1000 * 10 ** 1000 * 10 ** 1000 * 10 ** 1000 * 10 ** 1000", "10000 bits"),
    ],
)
def test_goals_and_answers_without_measure_are_refused(goal: str, word: str) -> None:
    """Endless terms, brackets, characters, digits and exponents: the limit is named."""
    rules = hapax.parse_rules("given p(Thing)\n")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match=word):
        hapax.query(goal, rules, kb)


def test_answers_are_sorted_typed_and_cut_at_their_limit() -> None:
    """Numbers before texts; whole numbers, decimals, the first digits of a third, lists and terms are told apart."""
    rules = hapax.parse_rules("given p(Thing)\n")
    options = hapax.QueryOptions(limits=hapax.QueryLimits(answers=5))
    with hapax.KnowledgeBase() as kb:
        found = hapax.query("member(X, [b, 3, '3', a, 2.5, [a, 1]])", rules, kb).rows
        third = hapax.query("X is 1 / 3, Y is 1.1 ** 3", rules, kb).rows[0]
        cut, whole = (hapax.query(f"between(1, {most}, X)", rules, kb, options=options) for most in (9, 5))

    assert found == [(Decimal("2.5"),), (3,), ("3",), ("a",), ("b",), (["a", 1],)]
    assert (str(third[0]), third[1]) == ("0." + "3" * 28, Decimal("1.331"))
    assert (len(cut), cut.truncated, whole.truncated) == (5, True, False)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("X is N + 1", ["variable", "N"]),
        ("N is -1, length(L, N)", ["length/2", "-1"]),
        ("q(L), sum_list(L, N)", ["sum_list/2", "list"]),
        ("nth1(a, [a], N)", ["nth1/3", "whole number"]),
    ],
)
def test_a_goal_that_cannot_calculate_says_with_what(goal: str, words: list[str]) -> None:
    """Unbound variables and wrong values are named, and the next goal is answered."""
    rules = hapax.parse_rules('given p(Number)\ngiven q(Thing)\nfact p(0)\nfact q("it\'s")\n')
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError) as refused:
            hapax.query(goal, rules, kb)

        assert [word for word in words if word not in str(refused.value)] == [], refused.value
        assert hapax.query("p(N)", rules, kb).rows == [(0,)]


@pytest.mark.parametrize("goal", ["p(N), X is 1 / N", "q(N), X is N + 1", "q(N), N > 1"])
def test_a_goal_calculates_as_rules_do(goal: str) -> None:
    """With a text, and by zero, nothing is calculated or compared: there is no answer, and no error."""
    rules = hapax.parse_rules('given p(Number)\ngiven q(Thing)\nfact p(0)\nfact q("it\'s")\n')
    with hapax.KnowledgeBase() as kb:
        assert hapax.query(goal, rules, kb).rows == []


CHANGED_FACTS_ROUTES = """
given road(Place, Place)
given closed(Place)
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
reaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name onward
@generic none
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A & not closed(Place C) -> serves(Place A, Place C)
"""
SQUARES = """
given size(Thing, Number)
@name square
@generic none
size(Thing X, Number N) & Number M = N * N & M > 3 -> square_of(Thing X, Number M)
"""


@pytest.fixture
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        yield opened


def give(kb: hapax.KnowledgeBase, rules: hapax.Library, predicate: str, *rows: Any) -> None:
    hapax.add_facts(kb, predicate, [tuple(row) for row in rows], rules)


def take(kb: hapax.KnowledgeBase, rules: hapax.Library, *atoms: str) -> None:
    hapax.retract(atoms, rules, kb, reason="wrong")


def texts(rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, list[str]]:
    """The statements of each rule after a derivation."""
    found: dict[str, list[str]] = {rule.name: [] for rule in rules.rules}
    for statement in hapax.derive(rules, kb, only=list(found)).statements:
        found[statement.rule].append(str(statement.proof.to_json()) + statement.text)
    return {name: sorted(lines) for name, lines in found.items()}


def assert_as_anew(rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, int]:
    """Fail unless the statements and proofs are those of a knowledge base that never had other facts."""
    followed = texts(rules, kb)
    with hapax.KnowledgeBase() as fresh:
        fresh.add_facts(kb.facts())
        assert followed == texts(rules, fresh)
    return {name: len(lines) for name, lines in followed.items()}


def test_recursion_follows_the_last_fact_of_a_closed_key(kb: hapax.KnowledgeBase) -> None:
    """Closed by its first argument, a predicate denies no pair of `b` once no fact about `b` is left."""
    free = "road(Place A, Place B) & not toll(Place A, Place B)"
    rules = hapax.parse_rules(
        "given road(Place, Place)\noracle toll(Place, Place)\nclosed toll/2 by 1\n"
        f"@name one\n@generic none\n{free} -> reaches(Place A, Place B)\n"
        f"@name more\n@generic none\nreaches(Place Z, Place A) & {free} -> reaches(Place Z, Place B)\n"
    )
    give(kb, rules, "road", "ab", "bc", "cd")
    give(kb, rules, "toll", "ax", "bx", "cx")
    assert assert_as_anew(rules, kb) == {"one": 3, "more": 3}

    take(kb, rules, "toll(b, x)")
    assert assert_as_anew(rules, kb) == {"one": 2, "more": 0}


def test_a_negated_atom_with_open_places_follows_each_row_that_denies_it(kb: hapax.KnowledgeBase) -> None:
    """`not landed(plane: P)` fails while any row names the plane, a stored or a concluded one, and empty cells name none."""
    rules = hapax.parse_rules(
        "given took_off(Plane, Day)\ngiven landed(day: Day, plane: Plane, place: Place) key day\ngiven seen(Plane)\n"
        "@name found\nseen(P) -> landed(99, P, nowhere)\n"
        "@name missed\ntook_off(P, D) & not landed(plane: P) -> is_missed(P)\n"
        "@name unmissed\ntook_off(P, _) & not is_missed(P) -> is_back(P)\n"
    )
    give(kb, rules, "took_off", ("a", 1), ("b", 2), ("c", 3))
    give(kb, rules, "landed", (1, "a", "oslo"), (2, "a", "rome"), (3, None, "rome"))
    assert assert_as_anew(rules, kb)["missed"] == 2

    take(kb, rules, "landed(1, a, oslo)")
    give(kb, rules, "seen", "c")
    assert assert_as_anew(rules, kb)["missed"] == 1

    take(kb, rules, "landed(2, a, rome)", "seen(c)")
    assert assert_as_anew(rules, kb) == {"found": 0, "missed": 3, "unmissed": 0}


def test_an_atom_that_a_rule_file_states_outlives_what_it_followed_from(kb: hapax.KnowledgeBase) -> None:
    """A derived predicate keeps the facts that a file states of it, also those that rules concluded as well."""
    rules = hapax.parse_rules(
        'given road(Place, Place)\nfact reaches("a", "b")\n'
        "@name one\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@name more\n@generic none\nreaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C)\n"
    )
    give(kb, rules, "road", "ab", "bc", "xy")
    assert assert_as_anew(rules, kb) == {"one": 3, "more": 1}

    take(kb, rules, "road(a, b)")
    assert assert_as_anew(rules, kb) == {"one": 2, "more": 1}


def test_of_equal_numbers_the_proof_names_one_that_is_there(kb: hapax.KnowledgeBase) -> None:
    """2 and 2.0 give one statement; when the fact in its proof is withdrawn, the other takes its place."""
    rules = hapax.parse_rules(
        "given a(Thing, Number)\ngiven b(Number, Thing)\n"
        "@name join\n@generic none\na(Thing X, Number Y) & b(Number Y, Thing Z) -> c(Thing X, Thing Z)"
    )
    give(kb, rules, "a", ("x", 2), ("x", Decimal("2.0")))
    give(kb, rules, "b", (2, "z"))
    while facts := [fact for fact in kb.facts() if fact.predicate == "a"]:
        (statement,) = hapax.derive(rules, kb).statements
        named = set(statement.proof.fact_ids()) & {fact.id for fact in facts}
        assert len(named) == 1
        take(kb, rules, *named)
    assert not hapax.derive(rules, kb).statements


@pytest.mark.parametrize("huge", [2**40, 2**61, Decimal("1e-20")])
def test_a_number_too_large_for_a_column_comes_and_goes(huge: Any, kb: hapax.KnowledgeBase) -> None:
    """While it is there its square is exact, and afterwards nothing of it is left."""
    rules = hapax.parse_rules(SQUARES)
    give(kb, rules, "size", ("a", 1), ("b", 2), ("huge", huge))
    before = assert_as_anew(rules, kb)["square"]
    take(kb, rules, *(fact.id for fact in kb.facts() if fact.arguments[0] == "huge"))

    assert before == (2 if isinstance(huge, int) else 1)
    assert assert_as_anew(rules, kb)["square"] == 1


def test_statements_belong_to_the_rules_that_derived_them(kb: hapax.KnowledgeBase) -> None:
    """A rule derived alone leaves those of others; after facts or rules have changed these are out of date, not wrong."""
    text = CHANGED_FACTS_ROUTES + "@name far\n@generic none\nroad(Place A, Place B) -> is_far_from(Place A, Place B)"
    rules = hapax.parse_rules(text)
    other = hapax.parse_rules(text.replace("road(Place A, Place B) -> reaches", "road(Place B, Place A) -> reaches"))
    give(kb, rules, "road", "ab", "bc", "ca")
    onward = hapax.derive(rules, kb, only="onward")
    before = len(list(onward.read()))
    hapax.derive(rules, kb, only="far")
    assert len(list(onward.read())) == before

    give(kb, rules, "road", "cd")
    hapax.derive(rules, kb, only="far")
    with pytest.raises(hapax.HapaxError, match=r"onward.*hapax\.derive"):
        list(onward.read())
    first = hapax.derive(rules, kb, only="onward")
    hapax.derive(other, kb, only="onward")
    with pytest.raises(hapax.HapaxError, match=r"hapax\.derive"):
        list(first.read())
    assert_as_anew(rules, kb)


# --- other programs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    """A file of rules beside a knowledge base with a chain of nine places."""
    (tmp_path / "routes.rules").write_text(CHANGED_FACTS_ROUTES, "utf-8")
    rules = hapax.parse_rules(CHANGED_FACTS_ROUTES)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(8)))
    run("derive", tmp_path / "routes.rules", "--db", tmp_path / "kb.db")
    return tmp_path / "kb.db"


def test_other_programs_change_no_facts(routes: Path) -> None:
    """The `facts` that they read are a view, which SQLite does not change; a file that was copied or packed answers as before."""
    with closing(sqlite3.connect(routes, isolation_level=None)) as connection:
        for sql in ("DELETE FROM facts", "UPDATE facts SET predicate = 'owns'"):
            with pytest.raises(sqlite3.OperationalError, match="view"):
                connection.execute(sql)
        connection.execute("VACUUM")
    rules = hapax.parse_rules(CHANGED_FACTS_ROUTES)
    with hapax.KnowledgeBase(routes) as kb:
        roads = len(kb.facts())
        assert len(hapax.query("road(X, Y)", rules, kb)) == roads == 8
        assert assert_as_anew(rules, kb)["step"] == roads


def test_a_large_table_is_asked_as_it_is_now(tmp_path: Path) -> None:
    """Goals with a known argument find what came and went since the last goal, at each argument, numbers by value."""
    rules = hapax.parse_rules("given road(Place, Place)\ngiven trip(Place, Place, Place, Place, Number)\n")
    path = tmp_path / "large.db"
    with hapax.KnowledgeBase(path) as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(3000)))
        give(kb, rules, "trip", *(("a", "b", "c", f"d{n}", n) for n in range(2500)))
        assert hapax.query("road(p5, Y)", rules, kb).rows == [("p6",)]
        give(kb, rules, "road", ("p5", "x"))
        take(kb, rules, "road(p5, p6)")
        give(kb, rules, "trip", ("a", "b", "c", "e", Decimal("9.0")))
        assert hapax.query("road(p5, Y)", rules, kb).rows == [("x",)]
        assert {row[0] for row in hapax.query("trip(A, B, C, D, 9), D \\= A", rules, kb).rows} == {"a"}
        assert {row[3] for row in hapax.query("trip(A, B, C, D, 9)", rules, kb).rows} == {"d9", "e"}
        kb.connection.execute("VACUUM")
        assert hapax.query("road(X, x)", rules, kb).rows == [("p5",)]
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        assert hapax.query("road(X, p9)", rules, kb).rows == [("p8",)]


def test_an_open_base_answers_by_what_another_connection_left(tmp_path: Path) -> None:
    """Goals, also of a first predicate's facts and of stored conclusions, follow another connection, and an undone write not."""
    rules, path = hapax.parse_rules(CHANGED_FACTS_ROUTES), tmp_path / "kb.db"
    with hapax.KnowledgeBase(path) as reader, hapax.KnowledgeBase(path) as writer:
        assert not hapax.query("road(a, b)", rules, reader).holds
        with suppress(ZeroDivisionError), writer.transaction():
            give(writer, rules, "road", ("a", "b"))
            assert hapax.query("serves(X, Y) ; road(X, Y)", rules, writer).rows == [("a", "b")]
            _ = 1 / 0
        for kb in (reader, writer):
            assert not hapax.query("road(X, Y)", rules, kb).holds
        give(writer, rules, "closed", ("z",))
        give(writer, rules, "road", ("a", "b"), ("b", "c"))
        for kb in (reader, writer):
            assert hapax.query("reaches(a, X)", rules, kb).rows == [("b",), ("c",)]
        hapax.derive(rules, writer)
        assert hapax.query("serves(a, X)", rules, reader).rows == [("c",)]
        give(writer, rules, "closed", ("c",))
        assert not hapax.query("serves(a, X)", rules, reader).holds
        take(writer, rules, "closed(c)")
        assert hapax.query("serves(a, X)", rules, reader).rows == [("c",)]


RULES = """
given n(Thing, Number)
given bad(Thing)
@name pairs
@generic none
n(Thing X, Number A) & n(Thing Y, Number B) & A + B = 7 -> sevens(Thing X, Thing Y)
@name good
@generic none
sevens(Thing X, Thing Y) & not bad(Thing X) -> good(Thing X)
@name third
@generic none
n(Thing X, Number A) & Number K = A / 3 -> third(Thing X, Number K)
aggregate size(Number K) := K = count(Thing X: good(Thing X))
"""
FEW = ("--inferences", "60000")
"""A limit under which 90,000 pairs of numbers cannot be compared."""


def write(folder: Path, text: str, name: str = "my.rules") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def stored_conclusions_rules(tmp_path: Path) -> Path:
    return write(tmp_path, RULES)


@pytest.fixture
def stored_conclusions_database(tmp_path: Path, stored_conclusions_rules: Path) -> Path:
    """A knowledge base with 300 numbered things and all that follows."""
    path = tmp_path / "kb.db"
    lines = "".join(f"n,t{number},{number}\n" for number in range(300))
    with hapax.KnowledgeBase(path) as kb:
        hapax.import_facts(kb, write(tmp_path, f"predicate,a1,a2\n{lines}bad,t1,\n".replace(",\n", "\n"), "facts.csv"))
    run("derive", stored_conclusions_rules, "--db", path)
    return path


def answers(goal: str, stored_conclusions_database: Path, *options: object) -> list[Any]:
    found: list[Any] = json.loads(run("query", goal, "--db", stored_conclusions_database, "--json", *options).stdout)[
        "answers"
    ]
    return found


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("aggregate_all(count, sevens(X, Y), N)", [{"N": 8}]),
        ("sevens(t3, Y)", [{"Y": "t4"}]),
        ("sevens(X, Y), good(Y), X = t1", [{"X": "t1", "Y": "t6"}]),
        ("good(t1)", []),
        ("sevens(nobody, Y)", []),
        ("size(N)", [{"N": 7}]),
        ("findall(X, good(X), L), length(L, N)", None),
    ],
)
def test_stored_conclusions_answer_goals(
    stored_conclusions_database: Path, goal: str, expected: list[Any] | None
) -> None:
    """Derived atoms are read instead of proved again, within the limits of a goal."""
    found = answers(goal, stored_conclusions_database, *FEW)

    assert found[0]["N"] == 7 if expected is None else found == expected


def test_conclusions_are_proved_again_where_facts_have_changed(
    tmp_path: Path, stored_conclusions_rules: Path, stored_conclusions_database: Path
) -> None:
    """After an import and after a withdrawal the answers are those of the facts as they are, before and after derive."""
    run("import", write(tmp_path, "predicate,a1,a2\nn,new,5\n", "more.csv"), "--db", stored_conclusions_database)

    assert answers("sevens(new, Y)", stored_conclusions_database) == [{"Y": "t2"}]
    run("derive", stored_conclusions_rules, "--db", stored_conclusions_database)
    assert answers("sevens(new, Y)", stored_conclusions_database, *FEW) == [{"Y": "t2"}]
    assert answers("size(N)", stored_conclusions_database, *FEW) == [{"N": 8}]
    run("data", "retract", "n(new, 5)", "--reason", "wrong", "--db", stored_conclusions_database)
    assert answers("sevens(new, Y)", stored_conclusions_database) == []
    assert answers("size(N)", stored_conclusions_database) == [{"N": 7}]


def test_assumptions_and_other_rules_change_what_follows(tmp_path: Path, stored_conclusions_database: Path) -> None:
    """Stored conclusions follow from the stored facts and by the rules that derived them, and from nothing else."""
    other = write(tmp_path, RULES.replace("A + B = 7", "A + B = 3"), "other.rules")

    assert answers("size(N)", stored_conclusions_database, "--assume", "bad(t2)") == [{"N": 6}]
    assert answers("sevens(X, fresh)", stored_conclusions_database, "--assume", "n(fresh, 4)") == [{"X": "t3"}]
    assert answers("aggregate_all(count, sevens(X, Y), N)", stored_conclusions_database, "--rules", other) == [{"N": 4}]


MENU = hapax.parse_rules("""
given is_in(Ingredient, Dish)
given has_price(Dish, Number)
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))
aggregate cost(Ingredient Z, Number K) := K = sum(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate least(Ingredient Z, Number K) := K = min(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate dishes(Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D) & not has_price(Dish D, 2))
@generic none
dishes_with(Ingredient Z, Number K) & cost(Ingredient Z, Number C) -> is_common(Ingredient Z, Number C, Number K)
""")
BIRDS = hapax.parse_rules("""
given is_bird(Animal)
given is_penguin(Animal)
@generic none
is_bird(Animal X) -> can_fly(Animal X) unless is_penguin(Animal X)
""")
NEAR = hapax.parse_rules("""
given near(Node, Node)
symmetric near/2
@generic none
near(Node A, Node B) -> goes(Node A, Node B)
""")


def test_a_group_without_rows_has_no_value() -> None:
    """Not even 0; a dish without a price counts, and adds nothing."""
    with hapax.KnowledgeBase() as kb:
        assert hapax.query("dishes(K)", MENU, kb).rows == []
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "gift")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3)], MENU)

        assert hapax.query("dishes_with(salt, K), cost(salt, C)", MENU, kb).rows == [(2, 3)]


def test_a_proof_has_every_row_of_its_group_and_names_declarations_and_exceptions() -> None:
    """`why` shows the facts of the group and no others, the declaration by which a fact follows, and what excepts nothing."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "pie"), ("leek", "tart")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3), ("pie", 2), ("tart", 9)], MENU)
        hapax.add_facts(kb, "near", [("a", "b")], NEAR)
        hapax.add_facts(kb, "is_bird", [("tit",), ("auk",)], BIRDS)
        hapax.add_facts(kb, "is_penguin", [("auk",)], BIRDS)

        least = str(hapax.why("least(salt, 2)", MENU, kb))
        goes = str(hapax.why("goes(b, a)", NEAR, kb))
        flies = str(hapax.why("can_fly(tit)", BIRDS, kb))
        stays = str(hapax.why_not("can_fly(auk)", BIRDS, kb))

    assert all(row in least for row in ('is_in("salt", "pie")', 'has_price("soup", 3)', "aggregate least/2"))
    assert "tart" not in least
    assert "symmetric near/2" in goes
    assert 'near("a", "b")' in goes
    assert 'unless is_penguin("tit")' in flies
    assert 'is_penguin("auk")' in stays


OPEN = """
oracle is_ill(Animal)
given is_bird(Animal)
@generic none
is_bird(Animal X) -> flies(Animal X) unless is_ill(Animal X)
@generic none
is_bird(Animal X) & not is_ill(Animal X) -> is_fit(Animal X)
"""


def test_an_exception_that_becomes_known_overturns_a_default() -> None:
    """An unknown fact is no exception, and no denial either; `why-not` names the unknown fact and both remedies."""
    rules = hapax.parse_rules(OPEN)
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_bird", [("tit",)], rules)
        before = [hapax.query(goal, rules, kb).holds for goal in ("flies(tit)", "is_fit(tit)")]
        unknown = str(hapax.why_not("is_fit(tit)", rules, kb))
        statements = len(list(hapax.derive(rules, kb).statements))
        hapax.add_facts(kb, "is_ill", [("tit",)], rules)

        assert (before, statements) == ([True, False], 1)
        assert 'is_ill("tit") is unknown' in unknown
        assert "closed is_ill/1" in unknown
        assert not hapax.query("flies(tit)", rules, kb).holds
        assert len(list(hapax.derive(rules, kb).statements)) == 0


def test_there_are_no_probabilities_of_aggregates() -> None:
    """The value differs from world to world, so that a probability is refused instead of given wrongly."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("salt", "soup")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3)], MENU)
        with pytest.raises(hapax.HapaxError, match="aggregate"):
            list(hapax.derive(MENU, kb, probability=hapax.ProbabilityOptions()).statements)
