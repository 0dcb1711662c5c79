"""One store: what searches and `derive` concluded is listed together, and goes together when a fact is withdrawn."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browser_fixture import browsing
from cli_fixture import EVERY_END, invoke, run
from money_fixture import RULES, WORLD

from hapax.api.browser.app import Browser

HOME = """
@name home
@generic none
is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> is_spent_in(Currency B, City A)
"""
SPENT = "If Oslo is a city in Norway and Norway uses the Norwegian krone, then Norwegian krone is spent in Oslo."
OSLO = "uses_currency('Norway', 'Norwegian krone')"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base after a search and `derive` with the same rules."""
    (tmp_path / "money.rules").write_text(RULES + HOME, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{tmp_path / 'script.json'}", "--evaluator", "frequency")
    found = tmp_path / "kb.db"
    run("search", tmp_path / "money.rules", "--rule", "currency", *models, "--db", found, "--no-progress", *EVERY_END)
    run("derive", tmp_path / "money.rules", "--rule", "home", "--db", found)
    return found


def visible(page: str) -> str:
    """The text of a page."""
    return html.unescape(re.sub("<[^>]*>", "", page))


def exported(database: Path) -> dict[str, set[str]]:
    """Exported sentences by end."""
    found: dict[str, set[str]] = {}
    for line in run("export", "--statements", "--db", database).stdout.splitlines():
        found.setdefault(json.loads(line)["end"], set()).add(json.loads(line)["statement"])
    return found


def test_export_report_dataset_and_pages_list_what_searches_and_derive_concluded(database: Path) -> None:
    """One export has both with their proofs; the report, the dataset and the pages of the browser have them as well."""
    sentences = exported(database)
    assert set(sentences) == {"head", "long_tail", "derived"}
    assert SPENT in sentences["derived"]

    run("report", "-o", database.parent / "page.html", "--db", database)
    page = visible((database.parent / "page.html").read_text("utf-8"))
    assert "Derived statements" in page
    assert SPENT in page

    run("dataset", database.parent / "dataset", "--format", "jsonl", "--in-both", "keep", "--db", database)
    rows = map(json.loads, (database.parent / "dataset" / "derived.jsonl").read_text("utf-8").splitlines())
    assert {row["statement"] for row in rows} == sentences["derived"]

    with browsing(Browser(database)) as client:
        listed = client.get("/statements?format=json").json()
        everything = set.union(*sentences.values())
        assert {row["statement"] for row in listed} == everything
        derived = client.get("/statements?format=json&end=derived&words=Oslo").json()
        assert [row["statement"] for row in derived] == [SPENT]
        assert "by hapax derive" in visible(client.get(f"/statement/{derived[0]['id']}").text)
        assert SPENT in visible(client.get("/rule/home").text)


def test_what_derive_alone_concluded_has_a_report_and_a_dataset(tmp_path: Path) -> None:
    """Without any search the report has their section, and the dataset their file; an unknown rule is refused."""
    (tmp_path / "home.rules").write_text(
        "given is_a_city_in(City, Country)\ngiven uses_currency(Country, Currency)\n" + HOME, "utf-8"
    )
    (tmp_path / "f.csv").write_text("is_a_city_in,Oslo,Norway\nuses_currency,Norway,krone\n", "utf-8")
    database = tmp_path / "kb.db"
    run("import", tmp_path / "f.csv", "--rules", tmp_path / "home.rules", "--db", database)
    run("derive", tmp_path / "home.rules", "--db", database)
    sentences = exported(database)["derived"]
    assert len(sentences) == 1

    run("report", "-o", tmp_path / "page.html", "--rule", "home", "--db", database)
    assert sentences.pop() in visible((tmp_path / "page.html").read_text("utf-8"))
    assert "no rule nosuch" in invoke("report", "-o", tmp_path / "p.html", "--rule", "nosuch", "--db", database).stderr

    told = run("dataset", tmp_path / "dataset", "--db", database)
    assert "head and long tail are empty" in " ".join(told.stderr.split())
    names = {path.name for path in (tmp_path / "dataset").iterdir()}
    assert names == {"derived.jsonl", "metadata.json", "rules.rules"}
    assert json.loads((tmp_path / "dataset" / "derived.jsonl").read_text("utf-8"))["rule"] == "home"


SHARES = """
given weighs(Thing, Number): "[1] weighs [2] kg" / "[1] does not weigh [2] kg" / "does [1] weigh [2] kg?"
given share(Thing, Number): "a third of [1] is [2] kg" / "a third of [1] is not [2] kg" / "is a third of [1] [2] kg?"
@name third
@generic none
weighs(Thing T, Number X) & Y = X / 3 -> share(Thing T, Number Y)
"""


def test_a_third_is_listed_the_same_everywhere(tmp_path: Path) -> None:
    """Its digits are in every list and page, its exact number in JSON, and its statement is found by the listed id."""
    database, rules, digits = tmp_path / "kb.db", tmp_path / "share.rules", f"0.{'3' * 28}"
    rules.write_text(SHARES, "utf-8")
    (tmp_path / "f.csv").write_text("weighs,stone,1\n", "utf-8")
    text = f"If stone weighs 1 kg, then a third of stone is {digits} kg."
    run("import", tmp_path / "f.csv", "--rules", rules, "--db", database)
    run("derive", rules, "--db", database, "-o", tmp_path / "derived.jsonl")

    def written(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def check() -> None:
        run("report", "-o", tmp_path / "page.html", "--db", database)
        assert text in visible((tmp_path / "page.html").read_text("utf-8"))
        run("dataset", tmp_path / "dataset", "--force", "--db", database)
        (exported,) = map(json.loads, run("export", "--statements", "--db", database).stdout.splitlines())
        rows = [*written(tmp_path / "derived.jsonl"), *written(tmp_path / "dataset" / "derived.jsonl"), exported]
        with browsing(Browser(database)) as client:
            (listed,) = client.get("/statements?format=json").json()
            assert text in visible(client.get(f"/statement/{listed['id']}").text)
        assert {row["statement"] for row in (*rows, listed)} == {text}
        assert {row["id"] for row in (*rows, listed)} == {exported["id"]}
        assert [row["substitution"]["Y"] for row in rows] == [{"decimal": digits, "exact": "1/3"}] * 3
        assert text in run("why", exported["id"], "--db", database).stdout

    check()
    # An earlier version left the number out; the next derivation has it.
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE _instances_1 SET v3 = NULL")
    run("derive", rules, "--db", database)
    check()


def test_pages_of_statements_go_on_from_those_of_searches_to_those_of_derive(database: Path) -> None:
    """Each statement is on one page, whatever page the statements of searches end on."""
    from hapax.api.browser import tables
    from hapax.kb.store import KnowledgeBase

    with KnowledgeBase(database, read_only=True) as kb:
        whole = tables.statements(kb, tables.Wanted(), tables.Page())
        for rows in (1, 2, 3, 4):
            found, number = [], 1
            while True:
                table = tables.statements(kb, tables.Wanted(), tables.Page(number, rows))
                found += table.rows
                number += 1
                if not table.more:
                    break
            assert found == whole.rows


def test_a_withdrawn_fact_takes_derived_statements_with_it_everywhere_and_why_tells_their_story(database: Path) -> None:
    """The statement leaves export and pages; `why` names fact and reason, by text and by id; undoing brings it back."""
    identity = next(
        json.loads(line)["id"]
        for line in run("export", "--statements", "--db", database).stdout.splitlines()
        if json.loads(line)["statement"] == SPENT
    )
    run("retract", OSLO, "--reason", "they use shells", "--db", database)

    assert SPENT not in exported(database)["derived"]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        listed = {
            f"If {p}, then {c}." for p, c in connection.execute("SELECT premise, conclusion FROM derived_statements")
        }
    assert listed == exported(database)["derived"]
    for named in (SPENT, SPENT.replace("If", "if").rstrip("."), identity):
        told = invoke("why", named, "--db", database)
        assert told.exit_code == 1
        assert "no longer holds" in told.stderr
        assert "they use shells" in told.stderr

    run("retract", "--undo", OSLO, "--db", database)
    assert SPENT in exported(database)["derived"]
    assert "[derived, statement" in run("why", SPENT, "--db", database).stdout


def test_statements_of_derive_are_listed_only_while_they_are_up_to_date(database: Path) -> None:
    """After an import nothing of `derive` is shown as true, and what is left out is said with the remedy."""
    (database.parent / "more.csv").write_text("uses_currency,Peru,sol\n", "utf-8")
    run("import", database.parent / "more.csv", "--db", database)

    assert "derived" not in exported(database)
    assert "Run `hapax derive` again." in " ".join(invoke("export", "--statements", "--db", database).stderr.split())
    run("dataset", database.parent / "dataset", "--format", "jsonl", "--in-both", "keep", "--db", database)
    assert not (database.parent / "dataset" / "derived.jsonl").exists()


def test_values_of_derived_statements_are_words_as_derive_writes_them(tmp_path: Path) -> None:
    """Quotation marks, backslashes, line breaks, decimals and negative numbers are the same in the view and in files."""
    (tmp_path / "r.rules").write_text(
        "given holds(Thing, Number).\n@name twice\n@generic none\n"
        "holds(Thing X, Number N) & Number K = N * 2 -> doubles(Thing X, Number K).\n",
        "utf-8",
    )
    things = ['a "b" \\n \\\\', "line\nbreak", "d'e", "\u00e9\u0301\ttab", "[X]", "\x1b"]
    numbers = ["4.50", "-3", "0", "1" + "0" * 30, "-0.125", "7"]
    lines = [
        f'{{"predicate": "holds", "arguments": [{json.dumps(thing)}, {number}]}}'
        for thing, number in zip(things, numbers, strict=True)
    ]
    (tmp_path / "f.jsonl").write_text("\n".join(lines), "utf-8")
    run("import", tmp_path / "f.jsonl", "--rules", tmp_path / "r.rules", "--db", tmp_path / "kb.db")
    run("derive", tmp_path / "r.rules", "--db", tmp_path / "kb.db", "-o", tmp_path / "out.jsonl")

    written = {json.loads(line)["id"]: json.loads(line)["statement"] for line in (tmp_path / "out.jsonl").open()}
    with browsing(Browser(tmp_path / "kb.db")) as client:
        listed = {row["id"]: row["statement"] for row in client.get("/statements?format=json").json()}
    assert listed == written
    assert len(listed) == len(things)
