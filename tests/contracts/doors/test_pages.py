"""The pages of `hapax serve` as a browser gets them: what they show, their tables as data, votes, and strange values."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import html5lib
import pytest
from cli_fixture import invoke, run
from money_fixture import RULES, WORLD, copied
from served import Served, serving

import hapax

HOSTILE = "<script>alert(1)</script>\"'&amp;</td>/../\u202etxt.exe\ufeff"
NORWAY = "uses_currency('Norway', 'Norwegian krone')"
PAGES = (
    "/",
    "/statements",
    "/facts?order=-probability",
    "/claims",
    "/rules",
    "/rule/currency",
    "/edit",
    "/predicates",
    "/predicate/uses_currency/2",
    "/entity?name=Norway",
    "/search",
    "/search?words=norw",
    "/map",
    "/ask",
    "/ask?goal=uses_currency(Country,%20Currency)",
    "/ask?goal=uses_currency(",
    f"/why?atom={quote(NORWAY)}",
    "/why?atom=uses_currency('Norway',euro)",
    "/runs",
    "/judge",
    "/judge?voter=ann",
)
DRINKERS = {"milk": 120, "cocoa": 100, "water": 50}
"""Facts about a drink; a page has 50."""
SQL = re.compile(r"<pre class=\"rule-text\"><code>(SELECT.*?;)</code></pre>", re.DOTALL)


@pytest.fixture(scope="module")
def judged(searched: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the searched world that takes votes."""
    return copied(searched, tmp_path_factory.mktemp("judged") / "kb.db")


@pytest.fixture(scope="module")
def served(judged: Path) -> Iterator[Served]:
    with serving(judged, "--judge") as served:
        yield served


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of given facts with strange values, numbers and many rows."""
    folder = tmp_path_factory.mktemp("facts")
    (folder / "rooms.rules").write_text("given likes(Person, Drink)\ngiven has_rooms(House, Count)\n", "utf-8")
    rows: list[dict[str, Any]] = [{"predicate": "likes", "arguments": [HOSTILE, "tea"]}]
    for drink, count in DRINKERS.items():
        rows += [{"predicate": "likes", "arguments": [f"person {number}", drink]} for number in range(count)]
    rows += [
        {"predicate": "likes", "arguments": [name, "=1+1"]} for name in ("=cmd|' /C calc'!A0", "@SUM(1)", "\x1b[31mred")
    ]
    rooms = {"inn": 5, "hotel": 15, "flat": "5", "5 stars": 3, "loft": "5 or 6", "hut": 10**20}
    rows += [{"predicate": "has_rooms", "arguments": [name, count]} for name, count in rooms.items()]
    (folder / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run("import", folder / "facts.jsonl", "--rules", folder / "rooms.rules", "--db", folder / "kb.db")
    return folder / "kb.db"


@pytest.fixture(scope="module")
def served_facts(facts: Path) -> Iterator[Served]:
    with serving(facts) as served:
        yield served


def shown(served: Served, place: str) -> str:
    """The visible text of a page, which has to be valid HTML."""
    answer = served.ask(place)
    assert answer.status == 200, answer.text
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    return " ".join("".join(tree.find("body").itertext()).split())


def data(served: Served, place: str) -> Any:
    """A page as JSON."""
    return json.loads(served.ask(f"{place}{'&' if '?' in place else '?'}format=json").text)


def table(served: Served, place: str) -> list[list[str]]:
    """The rows of a page as CSV, without the heading."""
    return list(csv.reader(io.StringIO(served.ask(f"{place}{'&' if '?' in place else '?'}format=csv").text)))[1:]


def votes_of(database: Path, voter: str) -> list[tuple[str, str, str]]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return [(vote.question, vote.answer, vote.comment) for vote in kb.votes() if vote.voter == voter]


def answered(served: Served, voter: str, kind: str, answer: str = "") -> int:
    """Answer all questions of a sheet, with the first choice unless an answer is given; their number."""
    pages = 0
    fields = r'name="(?:item|question|answer)" value="([^"]+)"'
    while found := re.findall(fields, served.ask(f"/judge?voter={voter}&kind={kind}").text):
        form = {"voter": voter, "kind": kind, "item": found[0], "question": found[1], "answer": answer or found[2]}
        assert served.send("/judge", form).status == 200
        pages += 1
    return pages


def test_every_page_is_valid_and_every_link_leads_somewhere(served: Served) -> None:
    """Each page is valid HTML, has no script of its own text and allows no foreign sources; its links are answered."""
    links: set[str] = set()
    for place in PAGES:
        shown(served, place)
        answer = served.ask(place)
        assert "<script>" not in answer.text
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        links |= set(re.findall(r'(?:href|src)="(/[^"]*)"', answer.text))

    assert [link for link in links if served.ask(quote(html.unescape(link), safe="/?&=%+")).status != 200] == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/entity?name=Norway", ["Norwegian krone", "Country", "can pay with the Norwegian krone", "eurocritic0.10"]),
        ("/rule/currency", ["lives_in(Person X, City A)", "Account of each step", "Head If PersonX", "Long tail If PersonX"]),
        ("/search?words=KRONE%20norwegian", ["Norwegian krone"]),
        ("/ask?goal=uses_currency('Norway',X)", ["1 answer", "Norway uses the Norwegian krone from a model"]),
        ("/ask", ["[1] uses the [2]", "uses_currency('", ", Currency)"]),
        ("/ask?goal=shell(ls)", ["HPX070"]),
        ("/why?atom=uses_currency('Norway',euro)", ["euro", "critic gate"]),
    ],
)  # fmt: skip
def test_a_page_shows_what_is_known_of_its_subject(served: Served, place: str, words: list[str]) -> None:
    """Facts, statements, rejected claims with their score, answers and reasons stand on the page."""
    text = shown(served, place)

    assert [word for word in words if word not in text] == []


def test_rules_are_checked_as_they_are_edited_and_downloaded(served: Served, judged: Path) -> None:
    """The page has the kept rules, names each fault of an edited text with its line, stores nothing, and gives a file."""
    kept = html.unescape(served.ask("/edit").text)
    before = judged.read_bytes()
    faulty = "given sells(Shop, Good)\n\nsells(Shop S, Good G) -> "
    checked = served.send("/edit", {"file": "shop.rules", "text": faulty})
    file = served.send("/edit", {"file": "shop.rules", "text": faulty, "form": "file"})

    assert "uses_currency(" in kept
    assert [part for part in ("line 3", "HPX004", faulty) if part not in html.unescape(checked.text)] == []
    assert "No faults" in served.send("/edit", {"file": "shop.rules", "text": "sells(ann, tea)."}).text
    assert file.text == faulty
    assert "shop.rules" in str(file.headers["Content-Disposition"])
    assert judged.read_bytes() == before


def test_a_statement_unfolds_to_prompt_score_and_threshold(served: Served) -> None:
    """Its page shows the proof down to a call and a gate."""
    found = data(served, "/statements?words=Norwegian")[0]
    text = shown(served, f"/statement/{found['id']}")

    assert [word for word in ("[by rule currency]", "call", "threshold", "No promise") if word not in text] == []


@pytest.mark.parametrize(
    ("place", "column", "values"),
    [
        ("/statements?predicate=uses_currency", "rule", {"currency"}),
        ("/statements?judge=nobody&end=head", "end", {"head"}),
        ("/statements?least=0.9", "rule", {"currency"}),
        ("/statements?words=nothing+of+it", "rule", set()),
        ("/facts?predicate=uses_currency", "predicate", {"uses_currency"}),
        ("/facts?source=model&words=DALASI", "predicate", {"uses_currency"}),
        ("/claims?verdict=rejected", "value", {"euro"}),
        ("/claims?gate=type", "verdict", {"accepted"}),
        ("/claims?gate=critic&most=0.2", "value", {"euro"}),
        ("/claims?gate=critic&about=Norway&least=0.9", "value", {"Norway", "Norwegian krone"}),
    ],
)
def test_tables_are_chosen_by_facets(served: Served, place: str, column: str, values: set[str]) -> None:
    """Statements, facts and claims by predicate, end, source, gate, verdict, judge, probability and words."""
    assert {row[column] for row in data(served, place)} == values
    assert served.ask(place).status == 200


COUNTED = re.compile(r'<li><a href="(/[^"]*)">(?:<span[^>]*>)?([^<]*)(?:</span>)?</a> <span class="count">([0-9,]+)<')


@pytest.mark.parametrize("place", ["/statements", "/statements?end=head", "/facts?words=norway", "/claims"])
def test_a_facet_counts_the_rows_that_its_choice_shows(served: Served, place: str) -> None:
    """Each choice that a list offers has the number of its rows, under the conditions that are already chosen."""
    while "Counting the rows" in (text := served.ask(place).text):
        pass
    choices = COUNTED.findall(text)

    assert choices
    for link, value, count in choices:
        assert len(data(served, quote(html.unescape(link), safe="/?&=%+"))) == int(count), value


def test_the_least_expected_statements_come_first(served: Served) -> None:
    """Without another order a list of statements begins with the lowest likelihood; derived ones follow."""
    scores = [row["log-likelihood"] for row in data(served, "/statements") if row["log-likelihood"] is not None]

    assert scores == sorted(scores)


def test_pages_are_data_too(served: Served, judged: Path) -> None:
    """JSON and CSV have all tables of a page, the SQL that it names runs, and words that are searched are no operators."""
    identity = data(served, "/statements")[0]["id"]
    run_id = data(served, "/runs")[0]["id"]
    places = {
        "/entity?name=Norway": {"facts", "head", "long_tail", "derived", "rejected", "types"},
        f"/statement/{identity}": {"statement", "proof", "facts", "votes"},
        "/rule/currency": {"head", "long_tail", "derived"},
        "/map": {"links"},
        f"/why?atom={quote(NORWAY)}": {"lines"},
        f"/run/{run_id}": {"gates", "costs"},
        "/search?words=norw": {"values", "statements"},
    }
    for place, names in places.items():
        found = data(served, place)
        assert names <= found.keys()
        for name in names - {"values"}:
            rows = table(served, f"{place}{'&' if '?' in place else '?'}table={name}")
            assert len(rows) == len(found[name]), (place, name)
        with closing(sqlite3.connect(judged)) as connection:
            for sql in SQL.findall(served.ask(place).text):
                connection.execute(html.unescape(sql))
    assert served.ask("/map?format=csv&table=other").status == 400
    assert data(served, "/ask?goal=uses_currency('Norway',X)")["answers"] == [{"X": "Norwegian krone"}]
    assert data(served, "/search?words=norw")["values"] == ["Norway", "Norwegian krone"]
    for words in ("nothing of it", '"', "krone OR norw", "NEAR(", "text:krone", "*", "\x00", "\ud800"):
        assert served.ask(f"/search?{urlencode({'words': words}, errors='surrogatepass')}").status == 200


@pytest.mark.parametrize("drink", DRINKERS)
@pytest.mark.parametrize("order", ["", "-stored", "probability", "-probability"])
def test_pages_follow_each_other_without_a_gap_or_a_repeat(drink: str, order: str, served_facts: Served) -> None:
    """Each row is on exactly one page in any order, and the last page has no next one, also where it is full."""
    count = DRINKERS[drink]
    places = [f"/facts?words={drink}&page={number}&order={order}" for number in range(1, -(-count // 50) + 1)]
    pages = [served_facts.ask(place).text for place in places]
    listed = [name for page in pages for name in re.findall(r">(person \d+)</a>", page)]

    assert sorted(listed) == sorted(f"person {number}" for number in range(count))
    assert ["Next page" in page for page in pages] == [True] * (len(pages) - 1) + [False]


def test_a_withdrawn_fact_leaves_the_pages_at_once(facts: Path, tmp_path: Path) -> None:
    """Neither tables, entities nor answers of a running server have it after it was withdrawn."""
    database = copied(facts, tmp_path / "kb.db")
    with serving(database) as served:
        before = data(served, "/facts?predicate=has_rooms")
        run("data", "retract", "has_rooms(inn, 5)", "--db", database, "--reason", "it burnt down")
        after = data(served, "/facts?predicate=has_rooms")
        entity = served.ask("/entity?name=inn&format=json")
        answers = data(served, "/ask?goal=has_rooms(inn,X)")["answers"]

    assert len(before) == len(after) + 1
    assert entity.status == 404 or json.loads(entity.text)["facts"] == []
    assert answers == []


def test_statements_leave_every_page_with_a_fact_of_theirs(database: Path) -> None:
    """No page that listed statements lists those that rest on a fact after it was withdrawn; they return with it."""
    places = ("/statements", "/rule/currency", "/entity?name=Oslo", "/search?words=norwegian", "/search?words=oslo")
    with serving(database) as served:
        names = {row["id"] for row in data(served, "/statements?words=Norwegian")}

        def listing() -> list[bool]:
            texts = [served.ask(place).text for place in places]
            return [any(f"/statement/{name}" in text for name in names) for text in texts]

        def counted() -> tuple[int, int]:
            """The statements by rule, and those of the list."""
            return sum(row["statements"] for row in data(served, "/rules")), len(data(served, "/statements"))

        before, stood = listing(), counted()
        run("data", "retract", NORWAY, "--db", database, "--reason", "it joined the euro")
        after, left = listing(), counted()
        run("data", "retract", "--undo", NORWAY, "--db", database)
        again = listing()

    assert before == again == [True] * len(places)
    assert after == [False] * len(places)
    assert stood[0] == stood[1] > left[0] == left[1]


def test_hostile_values_are_shown_and_never_run(served_facts: Served) -> None:
    """Markup in values is text, hidden characters are named, links to such values work, and a CSV has no formulas."""
    for place in (
        "/facts?words=tea",
        f"/entity?name={quote(HOSTILE, safe='')}",
        "/predicate/likes/2",
        "/ask?goal=likes(X,tea)",
    ):
        text = shown(served_facts, place)
        assert "<script>alert(1)</script>" in text, place
        assert "U+202E" in text, place
        assert "<script>alert" not in served_facts.ask(place).text
    for page in ("ask?goal", "why?atom", "search?words", "entity?name", "facts?words"):
        assert "<script>alert" not in served_facts.ask(f"/{page}={quote(HOSTILE, safe='')}").text
    text = served_facts.ask("/facts?predicate=likes&format=csv").text
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any("calc" in cell for cell in cells)
    assert [cell for cell in cells if cell[:1] in ("=", "@", "+", "-")] == []
    assert not re.search("[\\x00-\\x09\\x0b-\\x1f]", text)


@pytest.mark.parametrize(
    ("place", "status"),
    [
        *((place, 404) for place in ("/nothing", "/rule/nothing", "/statement/nothing", "/entity?name=nothing")),
        ("/predicate/nothing/2", 404),
        *((f"/statements?{wrong}", 400) for wrong in ("page=0", "page=x", "end=x", "order=x")),
        ("/facts?least=nan", 400),
        ("/judge?voter=ann&kind=tables", 400),
    ],
)
def test_what_is_not_there_and_what_is_wrong_is_told_on_a_page(served: Served, place: str, status: int) -> None:
    """An unknown subject is a 404 and a wrong parameter a 400, both with words."""
    answer = served.ask(place)

    assert answer.status == status
    assert 'role="alert"' in answer.text


SPOILED = {
    "rules.text": "this is (not a rule",
    "predicates.kind": "x",
    "fact_origins.types": "x",
    "statements.substitution": "x",
    "runs.summary": "[1]",
    "questions.patterns": "x",
    "calls.request": "x",
    "decisions.assessment_ids": "x",
    **dict.fromkeys(("statements.premise", "statements.conclusion", "rules.domain", "runs.status"), HOSTILE),
}
"""Cells, and what another program writes into them: what no row of Hapax has, or a hostile text."""


def test_what_another_program_writes_breaks_no_page(searched: Path, tmp_path: Path) -> None:
    """Every page is shown without the rows that it spoiled, some page names each of them, and its texts never run."""
    database, unnamed = copied(searched, tmp_path / "kb.db"), []
    places = ["/", "/statements", "/facts", "/claims", "/rule/currency", "/entity?name=Norway", "/runs"]
    places += ["/judge?voter=ann", "/predicate/uses_currency/2", f"/why?atom={quote(NORWAY)}"]
    with serving(database, "--judge") as served:
        places.append(f"/statement/{data(served, '/statements')[-1]['id']}")
        for cell, value in SPOILED.items():
            name, _, column = cell.partition(".")
            rows = "WHERE rowid = 1" if name in ("predicates", "statements") else ""
            rows = "WHERE ref IN (SELECT ref FROM _relation_1)" if name == "fact_origins" else rows
            with closing(sqlite3.connect(database)) as connection, connection:
                before = connection.execute(f"SELECT {column}, rowid FROM {name} {rows}").fetchall()  # noqa: S608
                connection.execute(f"UPDATE {name} SET {column} = ? {rows}", [value])  # noqa: S608
            answers = [served.ask(place) for place in places]
            assert [answer.status for answer in answers] == [200] * len(answers), cell
            assert not any("<script>alert" in answer.text for answer in answers), cell
            words = ("U+202E",) if value == HOSTILE else (cell, column, "cannot be read")
            unnamed += [] if any(word in answer.text for answer in answers for word in words) else [cell]
            with closing(sqlite3.connect(database)) as connection, connection:
                connection.executemany(f"UPDATE {name} SET {column} = ? WHERE rowid = ?", before)  # noqa: S608

    assert unnamed == []


def test_votes_are_stored_at_once_and_each_item_comes_once(served: Served, judged: Path) -> None:
    """A voter meets each question of a sheet once, and each answer is a vote; another wording is its own sheet."""
    pages = {kind: answered(served, f"kim-{kind}", kind) for kind in ("statements", "predicates", "wording")}

    assert all(pages.values())
    for kind, count in pages.items():
        assert len(votes_of(judged, f"kim-{kind}")) == count


def test_another_answer_replaces_the_vote_and_keeps_its_comment(served: Served, judged: Path) -> None:
    """The page says what was replaced; an empty comment takes nothing back; the mark beside a question is a vote."""
    identity = data(served, "/statements")[0]["id"]
    item = {"voter": "uma", "item": f"statement:{identity}"}
    first = served.send("/judge", {**item, "answer": "yes", "comment": "clear"})
    second = served.send("/judge", {**item, "answer": "unsure", "comment": ""})
    form = {"voter": "lea", "kind": "statements", "item": item["item"], "question": "entailment", "answer": "yes"}
    served.send("/judge", {**form, "marked": "harmful"})

    assert [vote[1:] for vote in votes_of(judged, "uma")] == [("unsure", "clear")]
    assert ("in place of" in first.text, "in place of" in second.text) == (False, True)
    assert {vote[:2] for vote in votes_of(judged, "lea")} == {("entailment", "yes"), ("harmful", "yes")}


def test_a_vote_that_is_not_on_the_sheet_or_comes_from_elsewhere_is_refused(served: Served, judged: Path) -> None:
    """An unknown statement and an unknown answer are errors with a remedy; nothing is stored."""
    identity = data(served, "/statements")[0]["id"]
    unknown = served.send("/judge", {"voter": "eve", "item": "statement:0", "answer": "yes"})
    answer = served.send("/judge", {"voter": "eve", "item": f"statement:{identity}", "answer": "perhaps"})
    foreign = served.ask(
        "/judge", "POST", f"voter=eve&item=statement:{identity}&answer=yes", Origin="http://evil.example"
    )

    assert (unknown.status, answer.status, foreign.status) == (400, 400, 403)
    assert "Choose one of" in answer.text
    assert votes_of(judged, "eve") == []


def test_items_are_chosen_by_rule_end_predicate_and_doubt(served: Served) -> None:
    """The page for judging asks about chosen items alone, and refuses conditions that no such item has."""
    ids = {end: {row["id"] for row in data(served, f"/statements?end={end}")} for end in ("head", "long_tail")}
    for chosen in ("end=head", "end=long_tail", "end=head&rule=currency", "end=long_tail&predicate=lives_in&most=0.96"):
        found = re.search(r'name="item" value="statement:([^"]+)"', served.ask(f"/judge?voter=flo&{chosen}").text)
        assert found is not None, chosen
        assert found[1] in ids["head" if "head" in chosen else "long_tail"]

    for empty in ("rule=other", "predicate=other", "most=0.1", "end=derived"):
        assert "Nothing is left" in shown(served, f"/judge?voter=flo&{empty}")
    assert served.ask("/judge?voter=flo&kind=predicates&end=head").status == 400


def test_two_voters_look_at_different_items(served: Served) -> None:
    """An item that one voter looks at is left to that voter, and comes back on a reload."""
    items = [
        re.findall(r'name="item" value="([^"]+)"', served.ask(f"/judge?voter={voter}&kind=wording").text)
        for voter in ("tim", "tom", "tim")
    ]

    assert items[0] == items[2] != items[1]


def test_a_struck_fact_is_a_vote_that_can_be_taken_back(database: Path) -> None:
    """A fact beside a statement is denied with it; struck no more, the denial is gone; what the votes come to is told."""
    with serving(database, "--judge") as served:
        page = served.ask("/judge?voter=ivy").text
        item, fact = (re.findall(rf'name="{name}" value="([^"]+)"', page)[0] for name in ("item", "fact"))
        form = {"voter": "ivy", "item": item, "answer": "facts", "fact": fact}
        told = served.send("/judge", {**form, "struck": fact}).text
        struck = votes_of(database, "ivy")
        served.send("/judge", form)
        foreign = served.send("/judge", {**form, "struck": "other"})

    assert ("false by majority" in told, "Datasets leave it out" in told) == (True, True)
    assert {vote[:2] for vote in struck} == {("soundness", "facts"), ("audit Q3", "no")}
    assert [vote[:2] for vote in votes_of(database, "ivy")] == [("soundness", "facts")]
    assert foreign.status == 400


def test_nothing_is_written_or_asked_without_permission(facts: Path, served_facts: Served) -> None:
    """Without --judge and --ask votes and questions are refused with the option, and pages change no byte."""
    before = facts.read_bytes()
    asked = served_facts.send("/ask", {"goal": "likes(X, Y)"})
    for place in PAGES[:-2]:
        served_facts.ask(place)

    assert served_facts.ask("/judge?voter=ann").status == 404
    assert (asked.status, "--ask" in asked.text) == (404, True)
    assert facts.read_bytes() == before


def test_a_goal_asks_models_after_a_forecast(tmp_path: Path) -> None:
    """The page says what would be asked and what the budget leaves; the button asks, and the facts are stored."""
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(WORLD), "utf-8")
    (tmp_path / "facts.csv").write_text("lives_in,ann,Oslo\n", "utf-8")
    run("import", tmp_path / "facts.csv", "--rules", tmp_path / "money.rules", "--db", tmp_path / "kb.db")
    asking = ("--ask", "-m", f"scripted:{tmp_path / 'script.json'}", "--max-calls", "30")
    goal = "uses_currency('Norway', Currency)"
    with serving(tmp_path / "kb.db", "--rules", str(tmp_path / "money.rules"), *asking) as served:
        before = shown(served, f"/ask?{urlencode({'goal': goal})}")
        foreign = served.ask("/ask", "POST", urlencode({"goal": goal}), Origin="http://evil.example")
        none = data(served, "/facts?source=model")
        asked = served.send("/ask", {"goal": goal})
        after = shown(served, f"/ask?{urlencode({'goal': goal})}")

    assert (foreign.status, none) == (403, [])
    assert [
        word for word in ("at most 4 calls", "leaves 30 calls", 'uses_currency("Norway", ?)') if word not in before
    ] == []
    assert "Norwegian krone" in asked.text
    assert "1 answer" in after
    assert "Nothing is left to ask" in after


def test_a_taken_port_and_a_missing_file_are_told(facts: Path, tmp_path: Path) -> None:
    """The command says which port is taken or which file cannot be opened, and ends."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        blocked = invoke("serve", "--db", facts, "--port", taken.getsockname()[1])
    absent = invoke("serve", "--db", tmp_path / "absent.db", "--port", 0)

    assert (blocked.exit_code, absent.exit_code) == (1, 1)
    assert "--port" in blocked.stderr
    assert "absent.db" in absent.stderr


PLACES = ("/", "/facts", "/facts?format=json", "/ask?goal=likes(X,tea)", "/style.css", "/script.js", "/nothing")
NUMBERS = ("9" * 5000, "-1", "0", "1e400", "\u0663", "nan", "%00")


@pytest.fixture(scope="module")
def serving_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of one fact."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "facts.csv").write_text("likes,ann,tea\n", "utf-8")
    (folder / "likes.rules").write_text("given likes(Person, Drink)\n", "utf-8")
    run("import", folder / "facts.csv", "--rules", folder / "likes.rules", "--db", folder / "kb.db")
    return folder / "kb.db"


@pytest.fixture(scope="module")
def serving_served(serving_database: Path) -> Iterator[Served]:
    """A server that stores votes."""
    with serving(serving_database, "--judge") as serving_served:
        yield serving_served


def test_the_printed_link_logs_in(serving_served: Served) -> None:
    """It sets a cookie that no script reads and no other site sends, and leads to the same page without the token."""
    answer = serving_served.ask_without_token(f"/facts?order=arguments&token={serving_served.token}&page=1")
    cookie, *rules = answer.headers["Set-Cookie"].split("; ")

    assert (answer.status, answer.headers["Location"]) == (303, "/facts?order=arguments&page=1")
    assert {"httponly", "samesite=strict"} <= {rule.lower() for rule in rules}
    assert str(serving_served.port) in cookie.partition("=")[0]
    for place in PLACES[:-1]:
        page = serving_served.ask_without_token(place, Cookie=cookie)
        assert page.status == 200
        assert serving_served.token not in page.text


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_shown_without_the_token(serving_served: Served, place: str) -> None:
    """Every page, file and table is refused to others on the machine, too, with the way to log in."""
    wrong = f"{place}{'&' if '?' in place else '?'}token=wrong"
    for answer in (
        serving_served.ask_without_token(place),
        serving_served.ask_without_token(wrong),
        serving_served.ask_without_token(place, Cookie=f"hapax-{serving_served.port}=\xe9"),
        serving_served.ask_without_token(place, "POST", Origin=f"http://127.0.0.1:{serving_served.port}"),
    ):
        assert answer.status == 401
        assert "hapax serve" in answer.text
        assert "ann" not in answer.text


def test_a_token_holds_for_its_server_alone(serving_served: Served, serving_database: Path) -> None:
    """Another server of the same file has another token, and another cookie, so that both can be open."""
    with serving(serving_database) as other:
        assert other.token != serving_served.token
        assert serving_served.ask("/", Authorization=f"Bearer {other.token}").status == 401
        cookies = "; ".join(f"hapax-{server.port}={server.token}" for server in (serving_served, other))
        assert {server.ask_without_token("/", Cookie=cookies).status for server in (serving_served, other)} == {200}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gets_nothing(serving_served: Served, site: str) -> None:
    """Requests of other sites and ports are refused, whatever they bring, except the printed link as a page."""
    for place in PLACES:
        for kind in ("image", "document", "iframe"):
            assert serving_served.ask(place, Sec_Fetch_Site=site, Sec_Fetch_Dest=kind).status == 403
    link = f"/facts?token={serving_served.token}"
    assert serving_served.ask_without_token(link, Sec_Fetch_Site=site, Sec_Fetch_Dest="iframe").status == 403

    login = serving_served.ask_without_token(link, Sec_Fetch_Site=site, Sec_Fetch_Dest="document")

    # A browser would not send the cookie while another site redirects it.
    assert (login.status, login.headers["Refresh"]) == (200, "0; url=/facts")
    assert serving_served.token in login.headers["Set-Cookie"]


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://[", "http://127.0.0.1:1"])
def test_a_form_comes_from_the_own_pages(serving_served: Served, origin: str) -> None:
    """A form with another origin, or none, is refused even with the token."""
    headers = {"Origin": origin} if origin else {}

    assert serving_served.ask("/judge", "POST", "voter=eve&item=x&answer=yes", **headers).status == 403


def test_no_address_leaves_with_a_link(serving_served: Served) -> None:
    """No other site learns the address of a page, which may have been opened with the token."""
    for answer in (
        serving_served.ask("/"),
        serving_served.ask_without_token("/"),
        serving_served.ask_without_token(f"/?token={serving_served.token}"),
    ):
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "testserver", "127.0.0.1.evil.example", "[::1", "", "localhost@evil"])
def test_a_server_of_this_machine_has_no_other_name(serving_served: Served, host: str) -> None:
    """A name that somebody else can lead to this machine is refused, also with the token."""
    assert serving_served.ask("/", Host=host).status == 400


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:80", "127.1.2.3"])
def test_names_of_this_machine_are_answered(serving_served: Served, host: str) -> None:
    """Its own addresses and `localhost` lead to it from no other place."""
    assert serving_served.ask("/", Host=host).status == 200


@pytest.mark.parametrize("number", NUMBERS)
def test_a_strange_number_is_an_error_of_the_request(serving_served: Served, number: str) -> None:
    """Huge, negative, foreign and broken numbers in any address are no fault of the server."""
    text = quote(number, safe="%")
    places = [f"/predicate/likes/{text}", f"/predicate/likes/{text}?format=csv", f"/predicate/{text}/2"]
    places += [f"/{page}/{text}" for page in ("statement", "rule", "run")]
    places += [f"/entity?name={text}", f"/facts?predicate=likes/{text}", f"/search?words={text}", f"/why?atom={text}"]
    places += [f"/ask?goal=likes(X,{text})", f"/judge?voter=ann&skip={text}", f"/judge?voter={text}"]
    for table in ("statements", "facts", "claims"):
        places += [f"/{table}?{name}={text}" for name in ("page", "order", "format", "words", "about")]
        places += [f"/{table}?{name}={text}" for name in ("least", "most", "rare", "common", "judge", "source", "end")]
        places += [f"/{table}?page={text}&format=json", f"/{table}?page={text}&order=rule"]
    for place in places:
        assert serving_served.ask(place).status in (200, 303, 400, 404, 503), place
    if number != "0":
        assert serving_served.ask(f"/predicate/likes/{text}").status == 404
        assert serving_served.ask(f"/facts?page={text}").status == 400
