"""Answers leave as tables: all of them, in bounded memory, with the types that data frames and files have."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_fixture import run
from papers_fixture import fill_csv
from pyarrow import parquet

import hapax

RULES = hapax.parse_rules("""
given weighs(Number)
given event(Thing, Date, DateTime, Time, Duration, Number)
""")
MANY = 25_000
OSLO = dt.timezone(dt.timedelta(hours=1))
EVENTS = pa.table(
    {
        "X": ["a", "b"],
        "D": [dt.date(2012, 12, 1), dt.date(2013, 1, 2)],
        "S": [dt.datetime(2012, 12, 1, 8, 30, tzinfo=OSLO), dt.datetime(2012, 12, 1, 8, 30, 1, 500_000, tzinfo=OSLO)],
        "T": [dt.time(8, 30), dt.time(9)],
        "U": [dt.timedelta(days=1, hours=2), dt.timedelta(seconds=-5)],
        "N": [1.5, 2.0],
    }
)
EVENT = "event(X, D, S, T, U, N)"


@pytest.fixture
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as kb:
        yield kb


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments for a knowledge base of many facts and its rules."""
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "n.rules").write_text("given weighs(Number)\n", "utf-8")
    with hapax.KnowledgeBase(folder / "n.db") as kb:
        hapax.add_facts(kb, "weighs", [(number,) for number in range(MANY)], RULES)
    return [str(folder / "n.rules"), "--db", str(folder / "n.db")]


# -- many answers


def test_python_has_all_answers_while_the_knowledge_base_is_open(tmp_path: Path) -> None:
    """Many answers are read as one goes through them; few are there at once, and sorted."""
    with hapax.KnowledgeBase(tmp_path / "n.db") as kb:
        hapax.add_facts(kb, "weighs", [(number,) for number in range(MANY)], RULES)
        many = kb.query("weighs(N)", RULES)
        few = kb.query("weighs(N), N < 3", RULES)
        calculated = kb.query("weighs(N), M = N / 8", RULES)

        assert (len(many), many.truncated) == (MANY, False)
        assert sorted(row["N"] for row in many) == list(range(MANY))
        assert many[-1]["N"] == many.rows[MANY - 1][0]
        assert calculated.df()["M"].sum() == sum(range(MANY)) / 8

    assert list(few) == [{"N": 0}, {"N": 1}, {"N": 2}]
    with pytest.raises(hapax.HapaxError, match="closed"):
        many.df()


def test_a_file_gets_all_answers_and_the_screen_the_first(numbers: list[str], tmp_path: Path) -> None:
    """Without --limit a file has all answers, and 10,000 are printed; the table's parts are aligned."""
    target = tmp_path / "all.csv"

    written = run("query", "weighs(N)", *numbers, "-o", target)
    printed = run("query", "weighs(N), M = N + 1", *numbers)

    assert f"{MANY} answers in" in written.stderr
    assert len(target.read_text("utf-8").splitlines()) == MANY + 1
    lines = printed.stdout.splitlines()
    assert len(lines) == 10_001
    assert "Only the first 10000 answers are shown" in printed.stderr
    assert len({line.rindex("  ") for line in lines[2_000:]}) <= 2


def test_a_limit_ends_the_work(numbers: list[str]) -> None:
    """The first answers of a product of 625 million rows come at once."""
    started = time.process_time()
    found = run("query", "weighs(A), weighs(B), A \\= B", *numbers, "--limit", "5", "--csv")

    assert len(found.stdout.splitlines()) == 6
    assert time.process_time() - started < 8


def test_memory_stays_flat(kb: hapax.KnowledgeBase) -> None:
    """Four times the answers take few bytes more a row while they are written."""
    hapax.add_facts(kb, "weighs", [(number,) for number in range(4 * MANY)], RULES)

    def peak(goal: str) -> int:
        tracemalloc.start()
        with io.StringIO() as nowhere:
            nowhere.write = lambda text: 0  # type: ignore[method-assign]
            kb.query(goal, RULES).write_csv(nowhere)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few = peak(f"weighs(N), N < {MANY}")
    many = peak("weighs(N)")

    assert many - few < 3 * MANY * 30


# -- types


def imported(kb: hapax.KnowledgeBase, path: Path) -> None:
    hapax.import_facts(kb, path, mapping=hapax.TableMapping.of("event", list(EVENTS.column_names)), rules=RULES)


def by_csv(kb: hapax.KnowledgeBase, folder: Path) -> None:
    """By the CSV that answers are written as."""
    with hapax.KnowledgeBase() as other, (folder / "events.csv").open("w", encoding="utf-8") as stream:
        hapax.add_facts(other, "event", EVENTS, RULES)
        other.query(EVENT, RULES).write_csv(stream)
    imported(kb, folder / "events.csv")


def by_parquet(kb: hapax.KnowledgeBase, folder: Path) -> None:
    parquet.write_table(EVENTS, folder / "events.parquet")
    imported(kb, folder / "events.parquet")


def by_own_parquet(kb: hapax.KnowledgeBase, folder: Path) -> None:
    with hapax.KnowledgeBase() as other:
        hapax.add_facts(other, "event", EVENTS, RULES)
        other.query(EVENT, RULES).parquet(folder / "own.parquet")
    imported(kb, folder / "own.parquet")


def by_pandas(kb: hapax.KnowledgeBase, _: Path) -> None:
    hapax.add_facts(kb, "event", EVENTS.to_pandas(date_as_object=False), RULES)


def by_rows(kb: hapax.KnowledgeBase, _: Path) -> None:
    hapax.add_facts(kb, "event", [tuple(row.values()) for row in EVENTS.to_pylist()], RULES)


@pytest.mark.parametrize("way", [by_csv, by_parquet, by_own_parquet, by_pandas, by_rows])
def test_dates_come_back_with_their_types(
    kb: hapax.KnowledgeBase, tmp_path: Path, way: Callable[[hapax.KnowledgeBase, Path], None]
) -> None:
    """Dates, date-times with a zone, times, durations and numbers go in and come out as such."""
    way(kb, tmp_path)
    answers = kb.query(EVENT, RULES)

    assert answers.arrow() == EVENTS
    assert [answers.df()[name].dtype.kind for name in ("D", "U", "N")] == ["M", "m", "f"]
    assert str(answers.df()["S"].dt.tz) == "UTC+01:00"
    assert answers[0]["S"] == "2012-12-01T08:30:00+01:00"


def test_calculated_dates_have_their_types(kb: hapax.KnowledgeBase) -> None:
    """A value that a goal calculates from dates is a date, a date-time or a number."""
    hapax.add_facts(kb, "event", EVENTS, RULES)
    goal = f"{EVENT}, E = D + 30 days, H = D + 1 hour, Y = year(D), W = days(E - D), L = E - D"

    table = kb.query(goal, RULES).arrow()

    types = {name: str(table.schema.field(name).type) for name in ("E", "H", "Y", "W", "L")}
    assert types == {"E": "date32[day]", "H": "timestamp[us]", "Y": "int64", "W": "int64", "L": "duration[us]"}
    assert table["H"][0].as_py() == dt.datetime(2012, 12, 1, 1)


def test_no_type_loses_anything(kb: hapax.KnowledgeBase) -> None:
    """A column of values that no type of Arrow holds together stays exact, as texts."""
    rules = hapax.parse_rules("given at(Thing, DateTime)\ngiven clock(Thing, Time)\ngiven size(Thing, Number)")
    hapax.add_facts(kb, "at", [("a", "2012-12-01"), ("b", "2012-12-01T08:30:00.1234567")], rules)
    hapax.add_facts(kb, "at", [("c", "2012-12-01T08:30:00"), ("d", "2012-12-01T08:30:00-05:00")], rules)
    hapax.add_facts(kb, "clock", [("a", "08:30:00+01:00")], rules)
    hapax.add_facts(kb, "size", [("a", 2**53 + 1), ("b", 1.5), ("c", 10**30)], rules)

    def column(goal: str) -> list[object]:
        table = kb.query(goal, rules).arrow()
        cells: list[object] = table[table.column_names[-1]].to_pylist()
        return cells

    assert column("at(X, T), (X = a ; X = b)") == ["2012-12-01T00:00:00", "2012-12-01T08:30:00.1234567"]
    assert column("clock(X, T)") == ["08:30:00+01:00"]
    assert column("size(X, N), X \\= c") == ["9007199254740993", "1.5"]
    assert column("size(X, N), X = c") == [str(10**30)]
    noon, later = column("at(X, T), (X = c ; X = d)")
    assert isinstance(noon, dt.datetime)
    assert isinstance(later, dt.datetime)
    assert later - noon == dt.timedelta(hours=5)


def test_answers_are_written_to_no_other_kind_of_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name such as x.xlsx is refused before the goal runs: no spreadsheet could open CSV under it."""
    monkeypatch.chdir(tmp_path)
    Path("n.rules").write_text("n(1).\n", "utf-8")

    assert "answers.xlsx" in run("query", "n(X)", "n.rules", "-o", "answers.xlsx", code=2).stderr
    assert not Path("answers.xlsx").exists()


def test_a_command_writes_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-o` with a name that ends in .parquet writes the table that `arrow` gives; CSV has ISO 8601."""
    monkeypatch.chdir(tmp_path)
    Path("e.rules").write_text("given event(Thing, Date, DateTime, Time, Duration, Number)\n", "utf-8")
    with hapax.KnowledgeBase("e.db") as kb:
        hapax.add_facts(kb, "event", EVENTS, RULES)

    run("query", EVENT, "e.rules", "--db", "e.db", "-o", "e.parquet")
    shown = run("query", EVENT, "e.rules", "--db", "e.db", "--csv").stdout

    assert parquet.read_table("e.parquet") == EVENTS
    assert next(csv.DictReader(shown.splitlines())) == {
        "X": "a",
        "D": "2012-12-01",
        "S": "2012-12-01T08:30:00+01:00",
        "T": "08:30:00",
        "U": "P1DT2H",
        "N": "1.5",
    }


TABLES_OUT_RULES = """
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]"
given cannot_eat(Person, Dish): "[2] is nothing for [1]" / "[2] is for [1]" / "is [2] for [1]?"
given is_made_from(Dish, Allergen): "[1] is made from [2]"

@name lodging
@domain locational
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> cannot_eat(Person X, Dish B).
"""
HOSTILE = (
    '=HYPERLINK("http://x")',
    "@SUM(1,2)",
    "+1 egg",
    "-2+3+cmd|' /C calc'!A0",
    "＝1+1",
    "\x1b[31mred",
    "a\u202eb",
    '"Heroes" pie',
    '"quoted"',
    "two\nlines",
    "nul\0",
    "egg;=1+1;",
    "egg; @SUM(1,2)",
    "\x9bC1",
)
PLAIN = ("pie", "-5", "2020", "Crème brûlée", "می\u200cخواهم", "a, b; c")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with facts about hostile names, and what a rule concludes from them."""
    monkeypatch.chdir(tmp_path)
    Path("kitchen.rules").write_text(TABLES_OUT_RULES, "utf-8")
    facts = [{"predicate": "is_allergic_to", "arguments": ["=cmd|calc", "milk"]}]
    facts += [{"predicate": "is_made_from", "arguments": [dish, "milk"]} for dish in (*HOSTILE, *PLAIN)]
    Path("facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts), "utf-8")
    run("import", "facts.jsonl", "--rules", "kitchen.rules")
    return tmp_path


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row]


def dangerous(text: str) -> list[str]:
    """Cells that a spreadsheet would run, or with characters that a terminal obeys."""
    found = []
    # Where a comma is the decimal sign, spreadsheets part cells at semicolons.
    for cell in (*cells(text), *next(csv.reader([text.replace("\n", ";")], delimiter=";"))):
        is_formula = re.match(r"\s*[=+@＝＋－＠-]", cell) and not re.fullmatch(r"-?[\d.]+", cell)
        if is_formula or re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", cell):
            found.append(cell)
    return found


@pytest.mark.usefixtures("folder")
def test_exported_facts_are_harmless_and_come_back() -> None:
    """A file of `export --format csv` has no dangerous cell, and an import of it gives the same facts."""
    text = run("export", "--format", "csv").stdout
    Path("facts.csv").write_text(text, "utf-8")
    run("import", "facts.csv", "--rules", "kitchen.rules", "--db", "again.db")

    assert dangerous(text) == []
    assert run("export", "--db", "again.db").stdout == run("export").stdout


@pytest.mark.usefixtures("folder")
def test_voting_sheets_are_harmless_and_keep_their_checksums() -> None:
    """A sheet has no dangerous cell, not even the voter's name, and its filled rows are accepted."""
    run("derive", "kitchen.rules")

    run("votes", "export", "statements", "--derived", "--sample", "0", "--out", "sheets", "--voter", "=ann")
    (sheet,) = Path("sheets").glob("*.csv")
    fill_csv(sheet, lambda row: "" if row["question"] == "harmful" else "yes")
    imported = run("votes", "import", sheet)

    assert dangerous(sheet.read_text("utf-8-sig")) == []
    assert "0 faulty rows" in imported.output
    assert not re.search(r"\b0 votes", imported.output)


LIBRARY = hapax.parse_rules("""
given falls_under(Ingredient, Allergen)
oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"
given is_recalled(Ingredient)
given was_made_in(Thing, Year)
given was_born_in(Person, Year)
given weighs(Thing, Number)
functional has_height(Mountain, Height)
type Year < Number
type Height < Number
computed is_before(Year A, Year B) := A < B
computed is_older(Year A, Year B) := A + 10 < B * 1
@name century
@generic none
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & is_before(Year D, Year Y) -> could_have_seen(Person Q, Thing A)
@name decade
@generic none
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & D + 10 < Y -> may_have_seen(Person Q, Thing A)
@name allergy
is_allergic_to(Person X, Allergen A) & falls_under(Ingredient Z, Allergen A) & is_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B)
@name shared
@generic none
falls_under(Ingredient Z, Allergen B) & falls_under(Ingredient Z, Allergen C) & B \\= C -> resembles(Allergen B, Allergen C)
oracle borders(Place, Place)
@name direct
@generic none
borders(Place A, Place B) -> reaches(Place A, Place B)
@name onward
@generic none
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name third
@generic none
weighs(Thing T, Number X) & Number Y = X / 3 -> share(Thing T, Number Y)
@name nothing
@generic none
weighs(Thing A, Number M) & Number N = M / 0 & Number K = N + 1 -> tends_to(Thing A, Number K)
aggregate is_weighed(Number X, Number N) := N = count(Thing T: weighs(Thing T, Number X))
fact has_height("Ararat", 5137)
""")
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "falls_under": [("shrimp", "shellfish"), ("crab", "shellfish")],
    "is_in": [("shrimp", "paella")],
    "was_made_in": [("pager", 1989)],
    "was_born_in": [("Burns", 1796)],
    "weighs": [("stone", 1)],
    "has_height": [("Elbrus", 5642)],
    "borders": [("a", "b"), ("b", "c"), ("c", "a")],
}
ALLERGIC = "is_allergic_to(tom, shellfish)"


@pytest.fixture(scope="module")
def explanations_kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        for predicate, rows in FACTS.items():
            hapax.add_facts(opened, predicate, rows, LIBRARY)
        yield opened


def test_a_derived_atom_is_proved_down_to_its_facts(explanations_kb: hapax.KnowledgeBase) -> None:
    """On cyclic data, too: two steps by a rule, three facts, and no step that rests on itself."""
    told = str(hapax.why("reaches(a, a)", LIBRARY, explanations_kb))

    assert told.count("[by rule onward]") == 2
    assert told.count("[given]") == 3


def test_a_proof_names_assumptions_facts_and_what_was_not_provable(explanations_kb: hapax.KnowledgeBase) -> None:
    """Each premise has its reason; the assumption is stored nowhere."""
    told = str(hapax.why("is_not_able_to_eat(tom, paella)", LIBRARY, explanations_kb, assume=ALLERGIC))

    assert 'is_allergic_to("tom", "shellfish")  [assumed]' in told
    assert 'is_recalled("shrimp") was not provable' in told
    assert told.count("[given]") == 2
    assert not hapax.query(ALLERGIC, LIBRARY, explanations_kb).holds


@pytest.mark.parametrize(
    ("atom", "words"),
    [
        ("is_in(chalk, paella)", ["no model was asked", "hapax.query"]),
        ("is_recalled(shrimp)", ["given facts"]),
        ("is_before(1989, 1796)", ["1989 < 1796 is false"]),
        ("is_older(1989, 1796)", ["1989 + 10 < 1796 * 1", "1999 < 1796"]),
        (ALLERGIC, ["`assume`"]),
        ("has_height('Elbrus', 5000)", ["another value", 'has_height("Elbrus", 5642)']),
        ("has_height('Ararat', 5000)", ["another value", 'has_height("Ararat", 5137)']),
        ("has_height('Kazbek', 5642)", ["no model was asked"]),
        ("could_have_seen('Burns', pager)", ["rule century", "is_before(Year D, Year Y) is false", "1989 < 1796"]),
        ("may_have_seen('Burns', pager)", ["rule decade", "D + 10 < Y is false", "1999 < 1796"]),
        ("resembles(shellfish, shellfish)", ["rule shared", '"shellfish" \\= "shellfish" is false']),
        ("tends_to(stone, 5)", ["rule nothing", "1 / 0"]),
        ("is_not_able_to_eat(tom, paella)", ["is_allergic_to(Person X, Allergen A) has no fact", "`assume`"]),
    ],
)
def test_the_reason_why_an_atom_does_not_hold(
    atom: str, words: list[str], explanations_kb: hapax.KnowledgeBase
) -> None:
    """The premise, comparison, value or option at which it fails is named, with the values so far."""
    told = str(hapax.why_not(atom, LIBRARY, explanations_kb))

    assert [word for word in words if word not in told] == [], told


def test_what_holds_and_what_is_missing_is_named_with_its_values() -> None:
    """A recalled ingredient keeps the rule from its conclusion; of another dish the atom that nobody knows is named."""
    with hapax.KnowledgeBase() as own:
        for predicate, rows in FACTS.items():
            hapax.add_facts(own, predicate, rows, LIBRARY)
        hapax.add_facts(own, "is_recalled", [("shrimp",)], LIBRARY)
        recalled, unknown = (
            str(hapax.why_not(f"is_not_able_to_eat(tom, {dish})", LIBRARY, own, assume=ALLERGIC))
            for dish in ("paella", "bisque")
        )

    assert 'is_recalled("shrimp") holds' in recalled
    assert 'is_in("shrimp", "bisque")' in unknown


@pytest.mark.parametrize(
    "assumption",
    ["is_allergic_to(tom, X)", "is_allergic_to(tom, a), true", "is_unheard_of(tom)", "3", "", "weighs(a, -b)"],
)
def test_an_assumption_is_a_ground_atom_of_a_known_predicate(
    assumption: str, explanations_kb: hapax.KnowledgeBase
) -> None:
    """Everything else is refused; a negative number is a value."""
    with pytest.raises(hapax.HapaxError):
        hapax.query("is_in(X, Y)", LIBRARY, explanations_kb, assume=assumption)
    assert hapax.query("weighs(a, X)", LIBRARY, explanations_kb, assume="weighs(a, -0.5)").rows == [(Decimal("-0.5"),)]


# --- after a search ---------------------------------------------------------------------------------------------------


@pytest.fixture
def world(searched: Path) -> Path:
    return searched.parent


def test_a_statement_is_told_down_to_its_calls(world: Path) -> None:
    """Statement, gate, rule, assumption, prompt, reply, P(yes), threshold and evaluator, with and without the rule file."""
    with hapax.KnowledgeBase(world / "kb.db") as explanations_kb:
        statement = next(iter(explanations_kb.statements()))
        for rules in (hapax.load_rules(world / "money.rules"), hapax.parse_rules("given p(Thing)\n")):
            told = str(hapax.why(statement.id, rules, explanations_kb))
            for word in (
                statement.text, "likelihood", "[by rule currency]", "[assumed]", "call", "proposed as", "critic",
                "0.950", "threshold", "log-likelihood", "frequency", "scripted",
            ):  # fmt: skip
                assert word in told, word
            # Case, blanks and the full stop do not matter.
            assert str(hapax.why(f"  {statement.text.upper().rstrip('.')}", rules, explanations_kb)) == told


# --- values -----------------------------------------------------------------------------------------------------------


def test_many_rows_and_deep_proofs_are_short() -> None:
    """Of a group of 1,000 rows ten are shown and the others counted, and a deep line begins with its depth."""
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "weighs", [(f"stone {number}", 3) for number in range(1000)], LIBRARY)
        hapax.add_facts(own, "borders", [(f"p{number}", f"p{number + 1}") for number in range(300)], LIBRARY)
        group = hapax.why("is_weighed(3, 1000)", LIBRARY, own)
        deep = str(hapax.why("reaches(p0, p300)", LIBRARY, own)).splitlines()

    assert [line["more"] for line in group.to_json() if "more" in line] == [990]
    assert (len(group.to_json()), "and 990 more rows of the group" in str(group)) == (12, True)
    assert (len(deep), max(map(len, deep)) < 150) == (600, True)
    assert deep[-1].lstrip().startswith("[depth 300]")
