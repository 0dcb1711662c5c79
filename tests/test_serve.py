"""`hapax serve`: the pages of a knowledge base, met by HTTP requests."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import html5lib
import pytest
from browser_fixture import browsing
from cli_fixture import EVERY_END, invoke, run
from money_fixture import RULES, WORLD
from starlette.testclient import TestClient

import hapax
from hapax.api.agent_tools import AgentTools, AskingModels
from hapax.api.browser import serving, tables
from hapax.api.browser.app import Browser
from hapax.api.browser.guard import POLICY
from hapax.api.browser.tables import Page, Wanted
from hapax.api.browsing import browser_server
from hapax.engine.judgements import ENTAILMENT_QUESTION, SOUNDNESS_QUESTION
from hapax.evaluation.votes.items import ItemSource, subject_id
from hapax.evaluation.votes.questions import HARMFUL, SOUNDNESS_WORDING, SheetKind
from hapax.evaluation.winograd.people import annotated, item_of, schema_items
from hapax.grammar.errors import HapaxError
from hapax.kb.popularity import Measure, add_ranks
from hapax.kb.records import (
    Distribution,
    FactRecord,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase

HOSTILE = "<script>alert(1)</script>\"'&amp;</td>/../\u202etxt.exe\ufeff"
PAGES = (
    "/",
    "/statements",
    "/facts?order=-probability",
    "/claims",
    "/rules",
    "/rule/currency",
    "/predicates",
    "/predicate/uses_currency/2",
    "/entity?name=Norway",
    "/search",
    "/search?words=norw",
    "/map",
    "/ask",
    "/ask?goal=uses_currency(Country, Currency)",
    "/ask?goal=uses_currency(",
    "/why?atom=uses_currency('Norway', 'Norwegian krone')",
    "/why?atom=uses_currency('Norway', euro)",
    "/runs",
    "/judge",
    "/judge?voter=ann",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search of a small world."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency")
    run("search", folder / "money.rules", *models, "--db", folder / "kb.db", "--no-progress", *EVERY_END)
    return folder / "kb.db"


@pytest.fixture
def client(database: Path) -> Iterator[TestClient]:
    with browsing(Browser(database, judge=True)) as client:
        yield client


def shown(client: TestClient, address: str) -> str:
    """The visible text of a page, which has to be valid HTML."""
    response = client.get(address)
    assert response.status_code == 200, response.text
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(response.text)
    return " ".join("".join(tree.find("body").itertext()).split())


def data(client: TestClient, address: str) -> list[Any]:
    """The rows of a table, asked for again while their popularity is measured."""
    while (answer := client.get(f"{address}&format=json")).status_code == 503:
        assert answer.headers["Retry-After"]
    return list(answer.json())


def first_statement(client: TestClient) -> str:
    return str(client.get("/statements?format=json").json()[0]["id"])


@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_valid_and_every_link_leads_somewhere(client: TestClient, address: str) -> None:
    """Each page is valid HTML under a policy without foreign sources, and its links are answered."""
    response = client.get(address)

    shown(client, address)
    assert response.headers["Content-Security-Policy"] == POLICY
    assert "<script>" not in response.text
    for link in set(re.findall(r'(?:href|src)="(/[^"]*)"', response.text)):
        assert client.get(link.replace("&amp;", "&")).status_code == 200, link


def test_an_entity_has_its_facts_statements_and_rejected_claims(client: TestClient) -> None:
    """The page of Norway lists the currency that was accepted, the statements about it, and the euro with its reason."""
    text = shown(client, "/entity?name=Norway")

    assert "Norwegian krone" in text
    assert "Country" in text
    assert "can pay with the Norwegian krone" in text
    assert "eurocritic0.10" in text


def test_a_statement_unfolds_to_prompt_score_and_threshold(client: TestClient) -> None:
    """The page of a statement shows its proof down to the prompt of a call and the threshold of a gate."""
    text = shown(client, f"/statement/{first_statement(client)}")

    assert "[by rule currency]" in text
    assert "call" in text
    assert "threshold" in text


def test_a_statement_names_its_near_misses(client: TestClient) -> None:
    """The euro, which failed the critic where the krone passed, stands on the page and leads to the reason."""
    found = client.get("/statements?words=Norwegian&format=json").json()
    page = client.get(f"/statement/{found[0]['id']}").text
    links = re.findall(r'href="(/why[^"]*euro[^"]*)"', page)

    assert "Near misses" in page
    assert "No promise on precision" in page
    assert "critic gate" in shown(client, links[0])


def test_a_rule_shows_its_search_and_both_ends(client: TestClient) -> None:
    """The page of a rule has its text, the account of each step, and statements of head and long tail beside it."""
    text = shown(client, "/rule/currency")

    assert "lives_in(Person X, City A)" in text
    assert "Account of each step" in text
    assert "Head If PersonX" in text
    assert "Long tail If PersonX" in text


def test_statements_are_found_by_words_rule_and_end(client: TestClient, database: Path) -> None:
    """Filters narrow the table, which is the same as a page, as JSON and as CSV, and says its SQL."""
    query = urlencode({"words": "NORWEGIAN krone", "rule": "currency"})
    found = client.get(f"/statements?{query}&format=json").json()
    rows = list(csv.DictReader(io.StringIO(client.get(f"/statements?{query}&format=csv").text)))
    text = shown(client, f"/statements?{query}")

    assert found
    assert all("Norwegian krone" in row["statement"] for row in found)
    assert [row["statement"] for row in rows] == [row["statement"] for row in found]
    assert found[0]["statement"] in text
    assert client.get("/statements?words=nothing+of+it&format=json").json() == []
    with KnowledgeBase(database, read_only=True) as kb:
        sql = re.search(r"SELECT .*?;", text)
        assert sql is not None
        assert len(kb.query(sql[0].rstrip(";"))) == len(found)


@pytest.mark.parametrize(
    ("address", "column", "values"),
    [
        ("/statements?predicate=uses_currency", "rule", {"currency"}),
        ("/statements?predicate=uses", "rule", set()),
        ("/statements?judge=nobody&end=head", "end", {"head"}),
        ("/statements?judge=zed", "end", set()),
        ("/statements?least=0.96", "rule", set()),
        ("/statements?least=0.9", "rule", {"currency"}),
        ("/statements?rare=7", "rule", set()),
        ("/facts?predicate=uses_currency", "predicate", {"uses_currency"}),
        ("/facts?predicate=uses_currency/2", "predicate", {"uses_currency"}),
        ("/facts?source=model&words=DALASI", "predicate", {"uses_currency"}),
        ("/facts?source=given", "predicate", set()),
        ("/facts?most=0.5", "predicate", set()),
        ("/facts?common=3&order=-popularity", "predicate", {"is_a_city_in", "uses_currency"}),
        ("/claims?verdict=rejected", "value", {"euro"}),
        ("/claims?gate=type", "verdict", {"accepted"}),
        ("/claims?gate=critic&most=0.2", "value", {"euro"}),
        ("/claims?gate=critic&about=Norway&least=0.9", "value", {"Norway", "Norwegian krone"}),
        ("/claims?judge=nobody", "value", set()),
    ],
)
def test_tables_are_chosen_by_facets(client: TestClient, address: str, column: str, values: set[str]) -> None:
    """Statements, facts and claims by predicate, end, source, gate, verdict, judge, probability and popularity."""
    found = data(client, address)

    assert {row[column] for row in found} == values
    assert client.get(address).status_code == 200


def test_tables_are_ordered_by_columns(client: TestClient) -> None:
    """A heading leads to the order of its column, and from there to the opposite one; the SQL says the same."""
    ordered = client.get("/facts?order=predicate").text
    downwards = [row["predicate"] for row in client.get("/facts?order=-predicate&format=json").json()]
    popular = [row["popularity"] for row in data(client, "/statements?order=-popularity")]

    assert 'aria-sort="ascending"' in ordered
    assert 'href="/facts?order=-predicate&amp;page=1"' in ordered
    assert downwards == sorted(downwards, reverse=True)
    assert popular == sorted(popular, reverse=True)
    for place in ("/rules?order=-statements", "/predicates?order=facts", "/runs?order=status"):
        assert 'aria-sort="' in client.get(place).text


@pytest.mark.parametrize("facets", [{}, {"rule": "currency"}, {"end": "head"}, {"rule": "currency", "end": "head"}])
@pytest.mark.parametrize("order", ["", "likely", "unlikely", "rule", "-rule", "end", "-end", "statement", "-statement"])
def test_lists_of_statements_are_read_from_indexes(database: Path, order: str, facets: dict[str, str]) -> None:
    """SQLite sorts no list of statements, unless its order is not that of its facets: sentences, rules at an end."""
    with KnowledgeBase(database, read_only=True) as kb:
        listed = tables.statements(kb, tables.Wanted(**facets), tables.Page(order=order))
        plan = [step for *_, step in kb.query(f"EXPLAIN QUERY PLAN {listed.sql}")]

    assert listed.rows
    if not facets or order in ("", "likely", "unlikely") or order.removeprefix("-") in facets:
        assert "USE TEMP B-TREE FOR ORDER BY" not in plan
    assert "SCAN rests" not in " ".join(plan), "facts of all statements are read for the withdrawn ones"


def test_rows_without_a_value_come_last(tmp_path: Path) -> None:
    """Statements that nothing has ranked stand behind the others, whether the likelihood rises or falls."""
    scores = (None, -2.0, -1.0, None)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01"))
        kb.add_rules([RuleRecord("r", "r", None, None, None)])
        for number, score in enumerate(scores):
            values = (("A", number),)
            kb.add_statements(
                [StatementRecord("r", Distribution.HEAD, "run", values, "p", f"c {number}", "t", {}, score)]
            )
        listed = {
            order: [row[-1] for row in tables.statements(kb, tables.Wanted(), tables.Page(order=order)).rows]
            for order in ("likely", "unlikely")
        }

    assert listed == {"likely": [-1.0, -2.0, None, None], "unlikely": [-2.0, -1.0, None, None]}


def test_tables_are_readable(client: TestClient) -> None:
    """Times stand without seconds and offsets, ends without underscores, scores with their unit, numbers below theirs."""
    front, listed = client.get("/").text, client.get("/statements?order=-popularity").text

    assert re.search(r"<td>\d{4}-\d\d-\d\d \d\d:\d\d UTC</td>", front)
    assert "<dt>rule</dt>" in front
    assert "<td>long tail</td>" in listed or "<td>head</td>" in listed
    assert "long_tail</td>" not in listed
    assert "Log-likelihood in nats per token; popularity as Zipf frequency" in listed
    assert '<th scope="col" class="number"><a class="order" href="/statements?order=log-likelihood' in listed


def test_a_rule_without_statements_at_an_end_says_so(tmp_path: Path) -> None:
    """In place of a list, a link to nothing and an empty delta stands that there are none."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add_rules([RuleRecord("r", "r", None, None, None)])
        kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01"))
        values = (("A", "b"),)
        kb.add_statements([StatementRecord("r", Distribution.HEAD, "run", values, "p", "c", "t", {}, -1.0)])
    with browsing(Browser(tmp_path / "kb.db")) as client:
        page = client.get("/rule/r").text

    assert page.count("All of them") == 1
    assert "<p>None.</p>" in page
    assert "delta" not in page


def test_words_are_searched_in_values_and_sentences(client: TestClient) -> None:
    """Beginnings of words find values and statements in any case; operators of the index are words like others."""
    found = client.get("/search?words=norw&format=json").json()
    text = shown(client, "/search?words=KRONE norwegian")

    assert found["values"] == ["Norway", "Norwegian krone"]
    assert all("Norw" in row["statement"] for row in found["statements"])
    assert len(found["statements"]) == len({row["id"] for row in found["statements"]}) >= 1
    assert "Norwegian krone" in text
    for words in ("nothing of it", '"', "krone OR norw", "NEAR(", "text:krone", "*", "\x00", "\ud800"):
        assert client.get(f"/search?{urlencode({'words': words}, errors='surrogatepass')}").status_code == 200


def test_a_page_of_several_tables_is_data_too(client: TestClient, database: Path) -> None:
    """Entity, statement, rule, map and story are JSON with all their tables, each table is CSV, and its SQL gives it."""
    identity = first_statement(client)
    rule = client.get(f"/statement/{identity}?format=json").json()["statement"][0]["rule"]
    places = {
        "/?": ["counts", "rules", "runs"],
        "/entity?name=Norway": ["facts", "head", "long_tail", "derived", "rejected", "types"],
        f"/statement/{identity}?": ["statement", "proof", "facts", "votes"],
        f"/rule/{rule}?": ["head", "long_tail", "derived"],
        "/map?": ["links"],
        "/why?atom=uses_currency('Norway', 'Norwegian krone')": ["lines"],
    }
    for place, names in places.items():
        found = client.get(f"{place}&format=json").json()
        assert list(found) == names
        assert any(found.values())
        page = client.get(place).text
        for name, rows in found.items():
            text = client.get(f"{place}&format=csv&table={name}").text
            assert len(list(csv.reader(io.StringIO(text)))) == len(rows) + 1
        with sqlite3.connect(database) as connection:
            for sql in re.findall(r"<pre class=\"rule-text\"><code>(SELECT.*?;)</code></pre>", page, re.DOTALL):
                connection.execute(html.unescape(sql))
    assert client.get("/map?format=csv&table=other").status_code == 400
    assert client.get("/ask?goal=uses_currency('Norway', X)&format=csv").text.splitlines()[0] == "X"


def test_a_run_and_a_search_are_data_too(client: TestClient, database: Path) -> None:
    """Gates and costs of a run, and what has the words of a search, are CSV, and the SQL gives the same rows."""
    run_id = client.get("/runs?format=json").json()[0]["id"]
    for place, name in ((f"/run/{run_id}?", "gates"), ("/search?words=norw&", "statements")):
        page = client.get(place).text
        _, *rows = csv.reader(io.StringIO(client.get(f"{place}format=csv&table={name}").text))
        sql = re.search(r"<pre class=\"rule-text\"><code>(SELECT.*?;)</code></pre>", page, re.DOTALL)
        assert sql
        with sqlite3.connect(database) as connection:
            found = [tuple(map(str, row)) for row in connection.execute(html.unescape(sql[1]))]
        assert sorted(map(tuple, rows)) == sorted(found) != []
    assert client.get(f"/run/{run_id}?format=csv&table=costs").text.startswith("role,model,requests,")


def test_statements_are_ordered_and_paged(tmp_path: Path) -> None:
    """Pages of 50 follow each other without a gap or a repeat, in the order of their likelihood."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01"))
        kb.add_rules([RuleRecord("r", "r", None, None, None)])
        statements = []
        for number in range(120):
            ends = (Distribution.HEAD, Distribution.LONG_TAIL) if number % 10 == 0 else (Distribution.HEAD,)
            for end in ends:
                values = (("A", number),)
                statements.append(StatementRecord("r", end, "run", values, "p", f"c {number}", "t", {}, -float(number)))
        kb.add_statements(statements)
    with browsing(Browser(tmp_path / "kb.db")) as client:
        pages = [client.get(f"/statements?order=likely&page={page}").text for page in (1, 2, 3)]
        listed = [int(number) for page in pages for number in re.findall(r">If p, then c (\d+)\.<", page)]

    assert listed == list(range(120))
    assert "Next page" in pages[0]
    assert "Next page" not in pages[2]


FRUITS = ("apple", "carambola", "zzqxj", "melon")


def fruit_kb(path: Path, fruits: Sequence[str] = FRUITS, run_id: str = "run") -> None:
    """A statement about each fruit, at both ends, and a fact behind it."""
    with KnowledgeBase(path) as kb:
        kb.start_run(RunRecord(run_id, "search", {}, "f", "2026-01-01"))
        kb.add_rules([RuleRecord("r", "r", None, None, None)])
        for fruit in fruits:
            fact = FactRecord("is_sweet", (fruit,), ("Fruit",), Source.MODEL)
            kb.add_facts([fact])
            proof = {
                "steps": [{"by": "fact", "fact": fact.id, "goal": {"predicate": "is_sweet", "arguments": [fruit]}}]
            }
            for end in Distribution:
                kb.add_statements([StatementRecord("r", end, run_id, (("A", fruit),), "p", fruit, "t", proof, -1.0)])


def test_popularity_is_stored_and_follows_changes(tmp_path: Path) -> None:
    """The order by popularity is that of the words, also after rows come, go and are changed by another program."""
    database = tmp_path / "kb.db"
    fruit_kb(database)

    def conclusions(client: TestClient, order: str = "popularity") -> list[str]:
        return [row["statement"].split()[-1][:-1] for row in data(client, f"/statements?order={order}")]

    with browsing(Browser(database)) as client:
        first, downwards = conclusions(client), conclusions(client, "-popularity")
        sql = re.search(r"<code>(SELECT.*?;)</code>", client.get("/statements?order=popularity").text, re.DOTALL)
        assert sql
        with sqlite3.connect(database) as connection:
            printed = [row[3].split()[-1][:-1] for row in connection.execute(html.unescape(sql[1]))]
            connection.execute("DELETE FROM statements WHERE conclusion = 'melon'")
            connection.execute("UPDATE facts SET arguments = '[\"the\"]' WHERE arguments = '[\"zzqxj\"]'")
        fruit_kb(database, ("lemon",))
        later = conclusions(client)
        rare = data(client, "/statements?common=2")
        most = data(client, "/facts?order=-popularity")[0]

    assert first == printed == ["zzqxj", "carambola", "melon", "apple"]
    assert downwards == first[::-1]
    assert later == ["zzqxj", "carambola", "lemon", "apple"]
    assert {row["statement"].split()[-1] for row in rare} == {"zzqxj.", "carambola."}
    assert "the" in most["arguments"][0]


def test_popularity_is_measured_where_it_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that may not be written each list measures its rows, with the same result."""

    def refused(*_: object) -> None:
        raise HapaxError("The file may not be written.")

    monkeypatch.setattr("hapax.api.browser.ranking.add_ranks", refused)
    fruit_kb(tmp_path / "kb.db")
    with browsing(Browser(tmp_path / "kb.db")) as client:
        page = client.get("/statements?order=popularity").text
        rows = data(client, "/facts?order=popularity")

    assert "-- hapax_popularity()" in page
    assert [row["arguments"][0] for row in rows] == ["zzqxj", "carambola", "melon", "apple"]


def test_a_page_does_not_wait_for_the_popularity_of_a_million_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows are being measured the page says so and asks again; then it has the order."""
    begun, goes_on = threading.Event(), threading.Event()

    def slow(database: Path, measure: Measure) -> None:
        begun.set()
        goes_on.wait(30)
        add_ranks(database, measure)

    monkeypatch.setattr("hapax.api.browser.ranking.add_ranks", slow)
    monkeypatch.setattr("hapax.api.browser.app.RANKING_SECONDS", 0.1)
    fruit_kb(tmp_path / "kb.db")
    with browsing(Browser(tmp_path / "kb.db")) as client:
        before = client.get("/statements?order=popularity")
        sheet = client.get("/statements?order=popularity&format=csv")
        assert begun.is_set()
        goes_on.set()
        rows = data(client, "/statements?order=popularity")
        after = client.get("/statements?order=popularity").text

    assert (before.status_code, sheet.status_code) == (503, 503)
    assert 'http-equiv="refresh"' in before.text
    assert len(rows) == len(FRUITS)
    assert 'http-equiv="refresh"' not in after


@pytest.mark.parametrize("order", ["", "popularity", "-log-likelihood", "statement", "rule"])
def test_far_pages_have_the_rows_that_follow_the_near_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """A page far down lists what the other way of finding it lists: each statement once, none whose facts are withdrawn."""
    database = tmp_path / "kb.db"
    fruit_kb(database)
    fruit_kb(database, ("apple", "lemon"), "again")
    with KnowledgeBase(database) as kb:
        kb.withdraw([FactRecord("is_sweet", ("melon",), ("Fruit",), Source.MODEL).id], "it is not", "user")
        standing = kb.standing_count()
    with KnowledgeBase(database, read_only=True) as kb:
        tables.know_popularity(kb)
        near = [tables.statements(kb, Wanted(), Page(number, 1, order)).rows for number in range(1, 7)]
        monkeypatch.setattr(tables, "FAR", 0)
        far = [tables.statements(kb, Wanted(), Page(number, 1, order)).rows for number in range(1, 7)]

    assert near == far
    assert [len(rows) for rows in near] == [1, 1, 1, 1, 0, 0]
    assert standing == 4


def test_a_statement_with_another_proof_is_listed_by_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement of two runs, the first one's fact withdrawn, is in the list by its second row, once, near and far."""
    database, fruit = tmp_path / "kb.db", (("A", "apple"),)
    facts = [FactRecord(name, ("apple",), ("Fruit",), Source.MODEL) for name in ("is_sweet", "is_sugary")]
    with KnowledgeBase(database) as kb:
        kb.add_rules([RuleRecord("r", "r", None, None, None)])
        kb.add_facts(facts)
        for run_id, fact in zip(("first", "second"), facts, strict=True):
            kb.start_run(RunRecord(run_id, "search", {}, "f", "2026-01-01"))
            goal = {"predicate": fact.predicate, "arguments": ["apple"]}
            proof = {"steps": [{"by": "fact", "fact": fact.id, "goal": goal}]}
            kb.add_statements(
                [StatementRecord("r", end, run_id, fruit, "p", "c", "t", proof, -1.0) for end in Distribution]
            )
        kb.withdraw([facts[0].id], "it is not", "user")
        standing = kb.standing_count()
    with KnowledgeBase(database, read_only=True) as kb:
        wanted = [Wanted(), Wanted(end="head"), Wanted(rule="r")]
        near = [len(tables.statements(kb, conditions, Page()).rows) for conditions in wanted]
        monkeypatch.setattr(tables, "FAR", 0)
        far = [len(tables.statements(kb, conditions, Page()).rows) for conditions in wanted]

    assert near == far == [1, 1, 1]
    assert standing == 1


def test_goals_are_answered_and_faults_are_told(client: TestClient) -> None:
    """A goal's answers are a table, a fault is told with its place, and an atom that fails has its reason."""
    assert "1 answer" in shown(client, "/ask?goal=uses_currency('Norway', X)")
    assert "HPX070" in shown(client, "/ask?goal=shell(ls)")
    assert "euro" in shown(client, "/why?atom=uses_currency('Norway', euro)")
    assert client.get("/ask?goal=uses_currency('Norway', X)&format=json").json()["answers"] == [
        {"X": "Norwegian krone"}
    ]


def test_a_goal_asks_models_after_a_forecast(tmp_path: Path) -> None:
    """The page says what would be asked and what the budget leaves; the button asks, and the facts are stored."""
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(WORLD), "utf-8")
    KnowledgeBase(tmp_path / "kb.db").close()
    models = hapax.open_models(f"scripted:{tmp_path / 'script.json'}")
    asking = AskingModels(models, hapax.Budget(max_calls=30))
    tools = AgentTools(tmp_path / "kb.db", [tmp_path / "money.rules"], asking=asking)
    browser = Browser(tmp_path / "kb.db", (tmp_path / "money.rules",), asking=tools)
    goal = "uses_currency('Norway', Currency)"
    with browsing(browser) as client:
        before = shown(client, f"/ask?{urlencode({'goal': goal})}")
        foreign = client.post("/ask", data={"goal": goal}, headers={"Origin": "http://evil.example"})
        with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
            assert kb.row_counts()["facts"] == 0
        asked = client.post("/ask", data={"goal": goal}, headers={"Origin": "http://localhost:8001"})
        after = shown(client, f"/ask?{urlencode({'goal': goal})}")

    assert "First 1 question to scripted" in before
    assert "at most 4 calls" in before
    assert "leaves 30 calls in all" in before
    assert "In all, in one round" in before
    assert "money" in before
    assert 'uses_currency("Norway", ?)' in before
    assert foreign.status_code == 403
    assert "Norwegian krone" in asked.text
    assert "1 answer" in after
    assert "The models were asked" in after
    assert "Nothing is left to ask" in after


def test_no_model_is_asked_without_permission(client: TestClient) -> None:
    """Without --ask there is no forecast, and a form that asks is answered with the way to allow it."""
    refused = client.post("/ask", data={"goal": "x"}, headers={"Origin": "http://localhost:8001"})

    assert "Ask the models" not in client.get("/ask?goal=uses_currency(A, B)").text
    assert refused.status_code == 404
    assert "--ask" in refused.text


def test_votes_are_stored_at_once_and_each_statement_comes_once(database: Path) -> None:
    """A vote is in the knowledge base when the next statement is shown; a voter sees no statement twice."""
    seen = []
    with browsing(Browser(database, judge=True)) as client:
        while found := re.search(r'name="item" value="([^"]+)"', client.get("/judge?voter=ben").text):
            seen.append(found[1])
            form = {"voter": "ben", "item": found[1], "answer": "yes", "comment": "clear"}
            stored = client.post("/judge", data=form, headers={"Origin": "http://localhost:8001"})
            assert stored.status_code == 200
    with KnowledgeBase(database, read_only=True) as kb:
        votes = [vote for vote in kb.votes() if vote.voter == "ben"]

    assert len(seen) == len(set(seen)) == len(votes) > 1
    assert {(vote.question, vote.answer, vote.comment) for vote in votes} == {(SOUNDNESS_QUESTION, "yes", "clear")}


def answers_of(client: TestClient, voter: str, kind: str, answer: str = "") -> int:
    """Answer all questions of a sheet, with the first choice unless an answer is given; returns their number."""
    pages = 0
    fields = r'name="(?:item|question|answer)" value="([^"]+)"'
    while found := re.findall(fields, client.get(f"/judge?voter={voter}&kind={kind}").text):
        form = {"voter": voter, "kind": kind, "item": found[0], "question": found[1], "answer": answer or found[2]}
        assert client.post("/judge", data=form, headers={"Origin": "http://localhost:8001"}).status_code == 200
        pages += 1
    return pages


@pytest.mark.parametrize("kind", ["statements", "predicates", "baseline", "baseline-10"])
def test_each_question_of_a_sheet_is_asked(client: TestClient, database: Path, kind: str) -> None:
    """An item is shown until all its questions are answered, and then no more; the votes are those of its sheet."""
    pages = answers_of(client, f"kim-{kind}", kind)
    with KnowledgeBase(database, read_only=True) as kb:
        votes = [vote for vote in kb.votes() if vote.voter == f"kim-{kind}"]
        sheet, _, template = kind.partition("-")
        source = ItemSource(kb, SheetKind(sheet), (int(template or 5),))
        items = source.items(list({statement.id: statement for statement in kb.statements()}.values()))
        rejected = {vote.statement_id for vote in votes} - {subject_id(item.id) for item in items}

    asked = {(subject_id(item.id), question.key) for item in items for question in item.questions if question.required}
    assert pages == len(votes) > 1
    assert {(vote.statement_id, vote.question) for vote in votes if vote.statement_id not in rejected} == asked


def test_the_wording_of_statements_is_judged_apart_from_their_truth(client: TestClient, database: Path) -> None:
    """The question whether a statement is good English is that of the sheet of soundness, and comes once."""
    pages = answers_of(client, "vic", "wording")
    with KnowledgeBase(database, read_only=True) as kb:
        votes = [(vote.question, vote.answer) for vote in kb.votes() if vote.voter == "vic"]

    assert votes == [(SOUNDNESS_WORDING, "yes")] * pages
    assert pages > 1


def test_a_baseline_is_asked_of_labelled_statements_without_wrong_types(database: Path, tmp_path: Path) -> None:
    """As on the sheet: where people judged entailment, only those statements, none with a value of a wrong type."""
    shutil.copy(database, tmp_path / "kb.db")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.write("DELETE FROM votes", [()])
        right, wrong = sorted({statement.id for statement in kb.statements()})[:2]
        kb.add_votes([VoteRecord(identity, ENTAILMENT_QUESTION, "ann", "yes") for identity in (right, wrong)])
        kb.add_votes([VoteRecord(wrong, "data type A", "ann", "no")])
    with browsing(Browser(tmp_path / "kb.db", judge=True)) as client:
        page = client.get("/judge?voter=bob&kind=baseline").text
        pages = answers_of(client, "bob", "baseline")
    with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        votes = [(vote.statement_id, vote.question) for vote in kb.votes() if vote.voter == "bob"]

    assert "0 of 1 judged" in page
    assert pages == 1
    assert votes == [(right, "baseline 5")]


def test_schemas_of_a_file_are_judged_and_disputed_ones_by_a_third(database: Path, tmp_path: Path) -> None:
    """Votes on Winograd schemas are those of its sheets; a third annotator is shown what the first two differ on."""
    schemas = Path(__file__).parent.parent / "examples" / "schemas" / "mine.jsonl"
    shutil.copy(database, tmp_path / "kb.db")
    browser = Browser(tmp_path / "kb.db", judge=True, schemas=schema_items(schemas))
    with browsing(browser) as client:
        assert "Winograd" in client.get("/judge").text
        first = re.findall(
            r'name="(?:item|question)" value="([^"]+)"', client.get("/judge?voter=ann&kind=schemas").text
        )
        pages = answers_of(client, "ann", "schemas")
        answers_of(client, "bob", "schemas")
        form = {"voter": "bob", "kind": "schemas", "item": first[0], "question": first[1], "answer": "unclear"}
        client.post("/judge", data=form, headers={"Origin": "http://localhost:8001"})
        disputed = client.get("/judge?voter=eve&kind=schemas-disputed").text
    with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        judged = annotated(kb, schemas).judged

    assert pages == 5 * len(judged)
    assert {schema.annotators for schema in judged} == {2}
    assert [item_of(schema.pair).id for schema in judged if schema.disputed] == [first[0]]
    assert first[0] in disputed
    assert "0 of 1 judged" in disputed


def test_a_sheet_that_the_server_lacks_is_refused(client: TestClient) -> None:
    """Schemas need their file, and an unknown kind is answered with those that there are."""
    without, unknown = client.get("/judge?voter=ann&kind=schemas"), client.get("/judge?voter=ann&kind=tables")

    assert (without.status_code, unknown.status_code) == (400, 400)
    assert "--schemas" in without.text
    assert "baseline" in unknown.text
    assert "schemas" not in unknown.text
    assert "Winograd" not in client.get("/judge").text


def test_a_statement_is_marked_as_harmful_beside_its_last_question(client: TestClient, database: Path) -> None:
    """The mark that may stay open is a box beside the question on entailment; ticked it is a vote, else none."""
    item = f"statement:{first_statement(client)}"
    form = {"voter": "lea", "kind": "statements", "item": item, "question": "entailment", "answer": "yes"}
    origin = {"Origin": "http://localhost:8001"}
    client.post("/judge", data=form, headers=origin)
    with KnowledgeBase(database, read_only=True) as kb:
        before = [vote.question for vote in kb.votes() if vote.voter == "lea"]
    client.post("/judge", data={**form, "marked": HARMFUL}, headers=origin)
    with KnowledgeBase(database, read_only=True) as kb:
        votes = {(vote.question, vote.answer) for vote in kb.votes() if vote.voter == "lea"}

    assert before == ["entailment"]
    assert votes == {("entailment", "yes"), (HARMFUL, "yes")}


def test_agreement_is_that_of_the_votes(database: Path, tmp_path: Path) -> None:
    """Two voters who agree on one of two statements agree on half of the answers."""
    shutil.copy(database, tmp_path / "kb.db")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.write("DELETE FROM votes", [()])
    with browsing(Browser(tmp_path / "kb.db", judge=True)) as client:
        before = client.get("/judge?voter=amy").text
        for other in ("yes", "unsure"):
            found = re.search(r'name="item" value="([^"]+)"', client.get("/judge?voter=amy").text)
            assert found
            for voter, answer in (("amy", "yes"), ("bob", other)):
                form = {"voter": voter, "item": found[1], "answer": answer}
                client.post("/judge", data=form, headers={"Origin": "http://localhost:8001"})
        page = client.get("/judge?voter=amy").text

    assert "No item has two votes yet" in before
    assert "2 voters agree on 50 % of the answers to 2 items" in page


def test_a_replaced_vote_is_told_and_keeps_its_comment(client: TestClient, database: Path) -> None:
    """Another answer to the same item replaces the first, the page says so, and an empty comment takes nothing back."""
    item = f"statement:{first_statement(client)}"
    pages = []
    for cells in ({"answer": "yes", "comment": "clear"}, {"answer": "unsure", "comment": ""}):
        form = {"voter": "uma", "item": item, **cells}
        pages.append(client.post("/judge", data=form, headers={"Origin": "http://localhost:8001"}).text)
    with KnowledgeBase(database, read_only=True) as kb:
        votes = [(vote.answer, vote.comment) for vote in kb.votes() if vote.voter == "uma"]

    assert votes == [("unsure", "clear")]
    assert "in place of" not in pages[0]
    assert "in place of “yes”" in pages[1]


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_another_site_cannot_vote(client: TestClient, database: Path, headers: dict[str, str]) -> None:
    """A vote without this server's origin is refused, and nothing is stored."""
    item = f"statement:{first_statement(client)}"

    refused = client.post("/judge", data={"voter": "eve", "item": item, "answer": "yes"}, headers=headers)

    assert refused.status_code == 403
    with KnowledgeBase(database, read_only=True) as kb:
        assert [vote for vote in kb.votes() if vote.voter == "eve"] == []


def test_a_vote_that_is_not_on_the_sheet_is_refused(client: TestClient) -> None:
    """An unknown statement and an unknown answer are errors that say what to do."""
    origin = {"Origin": "http://localhost:8001"}
    item = f"statement:{first_statement(client)}"

    unknown = client.post("/judge", data={"voter": "ann", "item": "statement:0", "answer": "yes"}, headers=origin)
    answer = client.post("/judge", data={"voter": "ann", "item": item, "answer": "perhaps"}, headers=origin)

    assert (unknown.status_code, answer.status_code) == (400, 400)
    assert "Judge the next" in unknown.text
    assert "Choose one of" in answer.text


def test_nothing_is_written_without_judging(database: Path) -> None:
    """Without --judge the page for votes does not exist, and looking at pages changes no byte."""
    before = database.read_bytes()
    with browsing(Browser(database)) as client:
        assert client.get("/judge?voter=ann").status_code == 404
        for address in PAGES[:-2]:
            client.get(address)

    assert database.read_bytes() == before


def test_hostile_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    """Markup in names and values is text on every page, hidden characters are named, and links to them work."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("run", "search", {HOSTILE: HOSTILE}, "f", "2026-01-01", status=HOSTILE))
        kb.add_rules([RuleRecord(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)])
        kb.add_facts([FactRecord("likes", (HOSTILE, "tea"), (HOSTILE, "Thing"), Source.GIVEN)])
        step = {"goal": {"predicate": "likes", "arguments": [HOSTILE, "tea"]}, "by": "fact"}
        record = StatementRecord(
            HOSTILE, Distribution.HEAD, "run", (("A", HOSTILE),), HOSTILE, HOSTILE, HOSTILE, {"steps": [step]}, -1.0
        )
        kb.add_statements([record])
    with browsing(Browser(tmp_path / "kb.db")) as client:
        name = quote(HOSTILE, safe="")
        addresses = ("/", "/statements", f"/statement/{record.id}", f"/rule/{name}", f"/entity?name={name}", "/run/run")
        for address in addresses:
            text = shown(client, address)
            assert "<script>alert(1)</script>" in text, address
            assert "U+202E" in text, address
        goal = urlencode({"goal": HOSTILE})
        assert "<script>alert" not in client.get(f"/ask?{goal}").text


def test_tables_as_csv_hold_no_formulas(tmp_path: Path) -> None:
    """Formulas and control characters of names are JSON strings in the CSV of a page."""
    names = ("=cmd|' /C calc'!A0", "@SUM(1)", "\x1b[31mred", "nul\0", "-5")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add_facts([FactRecord("likes", (name, "tea"), ("Person", "Thing"), Source.GIVEN) for name in names])
    with browsing(Browser(tmp_path / "kb.db")) as client:
        tables = [client.get(f"/facts?predicate=likes{arity}&format=csv").text for arity in ("", "/2")]

    cells = [cell for text in tables for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any("calc" in cell for cell in cells)
    assert [cell for cell in cells if cell[:1] in "=@" and cell] == []
    assert not re.search("[\\x00-\\x09\\x0b-\\x1f]", "".join(tables))


SPOILED = {
    "rules.text": ("UPDATE rules SET text = 'this is (not a rule'", "rule currency:1"),
    "rule_texts.text": ("UPDATE rule_texts SET text = '(((( bad'", "rule_texts.checksum"),
    "predicates.kind": ("UPDATE predicates SET kind = 'x' WHERE rowid = 1", "The kind of the stored predicate"),
    "predicates.argument_types": ("UPDATE predicates SET argument_types = 'x' WHERE rowid = 1", "argument_types"),
    "facts.arguments": ("UPDATE facts SET arguments = 'spoiled' WHERE rowid = 1", "spoiled"),
    "facts.types": ("UPDATE facts SET types = 'x'", "facts.types"),
    "statements.substitution": ("UPDATE statements SET substitution = 'x' WHERE rowid = 2", "statements.substitution"),
    "statements.distribution": ("UPDATE statements SET distribution = 'x' WHERE rowid = 2", "statements.distribution"),
    "runs.settings": ("UPDATE runs SET settings = 'x'", "runs.settings"),
    "runs.summary": ("UPDATE runs SET summary = '[1]'", "runs.summary"),
    "candidates.value": ("UPDATE candidates SET value = 'x'", "candidates.value"),
    "questions.patterns": ("UPDATE questions SET patterns = 'x'", "questions.patterns"),
    "calls.request": ("UPDATE calls SET request = 'x'", "calls.request"),
    "decisions.assessment_ids": ("UPDATE decisions SET assessment_ids = 'x'", "decisions.assessment_ids"),
    "constants.constant": ("UPDATE constants SET constant = 'x'", "type_facts.constant"),
}
"""A change of a cell by another program, and the words by which a page names it."""


@pytest.mark.parametrize("cell", SPOILED)
def test_a_row_that_cannot_be_read_breaks_no_page(database: Path, tmp_path: Path, cell: str) -> None:
    """Every page, judging too, is shown without the row that another program spoiled, and pages that need it name it."""
    sql, words = SPOILED[cell]
    shutil.copy(database, tmp_path / "kb.db")
    with sqlite3.connect(tmp_path / "kb.db") as connection:
        connection.execute(sql)
    connection.close()
    with browsing(Browser(tmp_path / "kb.db", judge=True)) as client:
        texts = [shown(client, address) for address in (*PAGES, f"/statement/{first_statement(client)}")]

    assert any(words in text for text in texts)
    assert "judged" in texts[PAGES.index("/judge?voter=ann")]


@pytest.mark.parametrize(
    "address", ["/nothing", "/rule/nothing", "/statement/nothing", "/entity?name=nothing", "/predicate/nothing/2"]
)
def test_what_is_not_there_is_a_404_with_words(client: TestClient, address: str) -> None:
    """An unknown page, rule, statement, entity or predicate is told on a page."""
    response = client.get(address)

    assert response.status_code == 404
    assert 'role="alert"' in response.text


@pytest.mark.parametrize(
    "address",
    ["/statements?page=0", "/statements?page=x", "/statements?end=x", "/statements?order=x", "/facts?least=nan"],
)
def test_wrong_parameters_are_told(client: TestClient, address: str) -> None:
    """A page, end or order that does not exist is an error of the request."""
    assert client.get(address).status_code == 400


def test_the_page_of_a_number_has_its_facts_and_no_others(tmp_path: Path) -> None:
    """It has facts with the number, or with a text of its digits, but none whose values only contain the digits."""
    rooms = {"inn": 5, "hotel": 15, "flat": "5", "5 stars": 3, "loft": "5 or 6", "tent": Decimal("1.5"), "hut": 10**20}
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add_facts([FactRecord("has_rooms", (name, count), (), Source.GIVEN) for name, count in rooms.items()])
        kb.add_type_facts([TypeFact(5, "Number"), TypeFact("5", "Label")])

    with browsing(Browser(tmp_path / "kb.db")) as client:
        pages = {name: client.get(f"/entity?name={name}&format=json").json() for name in ("5", "1.5", str(10**20))}

    places = {name: [row["arguments"][0] for row in page["facts"]] for name, page in pages.items()}
    assert places == {"5": ["inn", "flat"], "1.5": ["tent"], str(10**20): ["hut"]}
    assert [row["type"] for row in pages["5"]["types"]] == ["Number", "Label"]


def test_a_taken_port_and_a_missing_file_are_told(database: Path, tmp_path: Path) -> None:
    """The command says which port is taken or which file cannot be opened, and ends."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        blocked = invoke("serve", "--db", database, "--port", port)

    assert blocked.exit_code == 1
    assert "Choose another --port" in blocked.stderr
    assert invoke("serve", "--db", tmp_path / "absent.db", "--port", 0).exit_code == 1


def test_a_half_open_connection_is_closed(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever begins a request and does not end its head is disconnected, also behind a whole request."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    browser = browser_server(database, port=0)
    server = serving.http_server(browser.app)
    thread = threading.Thread(target=server.run, args=([browser.socket],), daemon=True)
    thread.start()
    whole = b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        for begun in (b"", whole):
            with socket.create_connection(browser.socket.getsockname(), timeout=30) as connection:
                connection.sendall(begun)
                time.sleep(0.1)
                connection.sendall(b"GET / HTTP/1.1\r\nHost:")
                while connection.recv(65536):
                    pass
    finally:
        server.should_exit = True
        thread.join(10)
