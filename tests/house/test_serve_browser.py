"""`hapax serve` in a real browser: Debian's Chromium, driven by Playwright. Opt-in.

With HAPAX_SCREENSHOTS=1 the pictures of docs/how-to/serve.md are made anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cli_fixture import EVERY_END, run
from money_fixture import RULES, WORLD

import hapax

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed"),
]

PICTURES = Path(__file__).parents[2] / "docs" / "serve"
MOST_BYTES = 300_000
"""Size of a picture."""
SHEETS_SHOWN = ("soundness", "wording", "statements", "predicates")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1100, "height": 800}
Look = tuple[dict[str, int], str]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
UNKNOWN = "is_a_city_in('Oslo', Country), uses_currency(Country, Currency)"
"""A goal that lacks facts where nothing was searched."""
UNFOLDED = """
document.querySelectorAll('details').forEach((part) => { part.open = true; });
document.querySelectorAll('[type=checkbox]').forEach((box) => { box.checked = true; });
document.querySelectorAll('[hidden]').forEach((part) => { part.hidden = false; });
"""
SERIOUS = ("serious", "critical")
LINKS: dict[str, str] = {}
"""The links that log in, by the addresses of servers."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search of a small world with a hostile fact, which is in a statement."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    with hapax.KnowledgeBase(folder / "kb.db") as kb:
        hapax.add_facts(kb, "is_a_city_in", [(HOSTILE, "Norway")], hapax.parse_rules(RULES))
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency")
    run("search", folder / "money.rules", *models, "--db", folder / "kb.db", "--no-progress", *EVERY_END)
    return folder / "kb.db"


@pytest.fixture(scope="module")
def address(database: Path) -> Iterator[str]:
    """The address of a running server, which allows everything."""
    with listening(database) as address:
        yield address


def logged_in(chromium: Any, address: str, **look: Any) -> Any:
    """A context of the browser that has opened the link of the server at this address."""
    context = chromium.new_context(**look)
    page = context.new_page()
    page.goto(LINKS[address])
    assert "token" not in page.url
    page.close()
    return context


@contextmanager
def opened(chromium: Any, place: str, size: dict[str, int], **look: Any) -> Iterator[Any]:
    """A page of a server, logged in."""
    context = logged_in(chromium, "/".join(place.split("/", 3)[:3]), viewport=size, **look)
    page = context.new_page()
    page.goto(place)
    yield page
    context.close()


@contextmanager
def listening(database: Path) -> Iterator[str]:
    """The address of a server that judges and asks the scripted models."""
    rules, script = (database.with_name(name) for name in ("money.rules", "script.json"))
    asking = ("--ask", "-m", f"scripted:{script}", "--max-calls", "30")
    with serving(database, "--rules", str(rules), *asking) as address:
        yield address


@pytest.fixture(scope="module")
def addresses(database: Path) -> tuple[str, ...]:
    """A page of each kind, and those of the hostile texts."""
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        ids = {HOSTILE in statement.premise: statement.id for statement in kb.statements()}
        identity = kb.runs()[0].id
    asked = ("uses_currency('Norway', X)", quote(UNKNOWN))
    return (
        *(f"/{name}" for name in ("", "statements", "facts", "claims", f"statement/{ids[False]}", "rules", "edit")),
        *(f"/{name}" for name in ("rule/currency", "predicates", "predicate/is_a_city_in/2", "entity?name=Norway")),
        *(f"/{name}" for name in ("search?words=norw", "map", "runs", f"run/{identity}", "judge", "nothing")),
        *(f"/ask?goal={goal}" for goal in asked),
        "/why?atom=uses_currency('Norway', euro)",
        *("/ask?question=Which+currencies+are+used%3F", "/ask?goal=uses_currency(", "/facts?least=x", "/judge?kind=x"),
        *(f"/judge?voter=ann&kind={kind}" for kind in SHEETS_SHOWN),
        "/statements?order=-log-likelihood",
        *(f"/statement/{ids[True]}", f"/entity?name={quote(HOSTILE, safe='')}"),
    )


@pytest.fixture(scope="module")
def proof(addresses: tuple[str, ...]) -> str:
    """The page of a statement of the search."""
    return next(place for place in addresses if place.startswith("/statement/"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, a checker of accessibility."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "pack", "axe-core@4.14.1"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        script = package.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode("utf-8")


@pytest.mark.parametrize("look", [(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")], ids=str)
def test_pages_are_clean_in_a_browser(
    chromium: Any, address: str, addresses: tuple[str, ...], axe: str, look: Look
) -> None:
    """No page logs an error, asks another server, runs a hostile text, or has a serious fault of accessibility."""
    faults = faults_of(chromium, [address + place for place in addresses], axe, *look)

    assert [fault for fault in faults if not re.search(r"status of 40[04]", fault)] == []


def faults_of(chromium: Any, addresses: Sequence[str], axe: str, size: dict[str, int], scheme: str) -> list[str]:
    """Errors, requests to other places, and serious faults of accessibility of these pages."""
    server = "/".join(addresses[0].split("/", 3)[:3])
    look = {"color_scheme": scheme, "viewport": size}
    context = logged_in(chromium, server, **look) if server in LINKS else chromium.new_context(**look)
    page = context.new_page()
    faults: list[str] = []
    origin = addresses[0].split("/", 3)[:3]
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}") or dialog.dismiss())
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith("data:") or asked.url.split("/", 3)[:3] == origin else faults.append(asked.url)
        ),
    )
    for place in addresses:
        page.goto(place)
        page.evaluate(axe)
        # Folded, and with all that unfolds and all boxes ticked.
        for state in ("", UNFOLDED):
            page.evaluate(f"() => {{{state}}}")
            violations = page.evaluate("() => axe.run()")["violations"]
            for violation in violations:
                if violation["impact"] in SERIOUS:
                    faults.append(f"{place}: {violation['id']} {violation['nodes'][0]['html']}")
    context.close()
    return faults


@pytest.fixture(scope="module")
def report(database: Path) -> Path:
    """The report of the same knowledge base."""
    target = database.with_suffix(".html")
    run("report", "-o", target, "--db", database)
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_clean_in_a_browser(chromium: Any, report: Path, axe: str, scheme: str) -> None:
    """The report obeys its own policy, which allows no other page, script or style, and has no serious fault."""
    assert faults_of(chromium, [report.as_uri()], axe, DESK, scheme) == []


def test_plots_are_drawn_with_titles_in_both_colour_schemes(
    chromium: Any, address: str, addresses: tuple[str, ...], report: Path
) -> None:
    """Each figure has a drawing with a title and a description, whose colours are those of the light or dark page."""
    run_page = next(place for place in addresses if place.startswith("/run/"))
    inks = {}
    for scheme in ("light", "dark"):
        with opened(chromium, f"{address}/", PHONE, color_scheme=scheme) as page:
            for place, forms in (
                (report.as_uri(), {"graph", "histogram", "funnel"}),
                (f"{address}/rule/currency", {"graph", "histogram", "dots"}),
                (f"{address}/map", {"graph"}),
                (address + run_page, {"funnel"}),
            ):
                page.goto(place)
                drawn = page.evaluate(DRAWN)
                assert {form for form, *_ in drawn} == forms, place
                assert all(title and words and marks for _, title, words, marks in drawn), place
                assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"], place
            inks[scheme] = page.evaluate("() => getComputedStyle(document.querySelector('.drawn rect')).fill")

    assert inks["light"] != inks["dark"]


DRAWN = """() => Array.from(document.querySelectorAll("[data-plot]"), figure => {
  const drawing = figure.querySelector("svg");
  const named = name => document.getElementById(drawing.getAttribute(name)).textContent;
  const marks = drawing.querySelectorAll("rect, circle, path").length;
  return [JSON.parse(figure.dataset.plot).form, named("aria-labelledby"), named("aria-describedby"), marks];
})"""
"""The form, title, description and number of shapes of each figure of a page."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(
    chromium: Any, address: str, addresses: tuple[str, ...], scheme: str
) -> None:
    """At 390 pixels every page is as wide as the screen, also unfolded; wide tables scroll by themselves."""
    wide = []
    with opened(chromium, f"{address}/", PHONE, color_scheme=scheme) as page:
        for place in addresses:
            page.goto(address + place)
            page.evaluate("() => document.querySelectorAll('details').forEach(part => { part.open = true; })")
            width = page.evaluate("() => document.documentElement.scrollWidth")
            if width > PHONE["width"]:
                wide.append((place, width))

    assert wide == []


def test_the_forecast_of_a_goal_is_read_before_models_are_asked(chromium: Any, database: Path, tmp_path: Path) -> None:
    """The goal box shows what would be asked and at which cost; the button asks, and the answers have their facts."""
    for name in ("money.rules", "script.json"):
        shutil.copy(database.with_name(name), tmp_path)
    database = tmp_path / "kb.db"
    hapax.KnowledgeBase(database).close()
    with listening(database) as address, opened(chromium, f"{address}/ask", PHONE) as page:
        page.get_by_label("Goal", exact=True).fill(UNKNOWN)
        page.get_by_role("button", name="Ask", exact=True).click()
        forecast = page.get_by_role("region", name="Ask models")
        told = forecast.inner_text()
        page.get_by_text("First questions and claims").click()
        questions = forecast.locator("li").all_inner_texts()
        with hapax.KnowledgeBase(database, read_only=True) as kb:
            facts_before = kb.facts()
        page.get_by_role("button", name="Ask the models").click()
        page.get_by_text("Nothing is left to ask").wait_for()
        answers = page.get_by_role("region", name="Answers").inner_text()

    assert "The budget leaves 30 calls in all" in told
    assert "expected" in told
    assert questions == ['is_a_city_in("Oslo", ?)']
    assert facts_before == []
    assert "Norwegian krone" in answers


def test_a_statement_is_judged_by_a_key(chromium: Any, address: str, database: Path) -> None:
    """Keys answer and pass over, typing a comment does not, and each vote is stored when the next statement appears."""
    with opened(chromium, f"{address}/judge", DESK) as page:
        page.get_by_label("Your name or number").fill("zoe")
        page.get_by_role("button", name="Begin").click()
        first = page.locator(".sentence").inner_text()
        page.get_by_label("Comment").fill("1 of 2")
        assert page.locator(".sentence").inner_text() == first
        for key in "15":
            shown = page.locator(".sentence").inner_text()
            press(page, key)
            assert page.locator(".sentence").inner_text() != shown

    with hapax.KnowledgeBase(database, read_only=True) as kb:
        assert [(vote.answer, vote.comment) for vote in kb.votes() if vote.voter == "zoe"] == [("yes", "1 of 2")]


def test_votes_of_two_tabs_and_their_agreement_are_seen_at_once(chromium: Any, database: Path, tmp_path: Path) -> None:
    """Two tabs of a voter lose no vote, another voter looks at another item, and sees the agreement without a reload."""
    copy = copied(database, tmp_path)
    with serving(copy) as address:
        contexts = [logged_in(chromium, address, viewport=DESK) for _ in range(2)]
        mine, others = contexts
        first, second, other = mine.new_page(), mine.new_page(), others.new_page()
        for page, voter in ((first, "ann"), (second, "ann"), (other, "ben")):
            page.goto(f"{address}/judge?voter={voter}")
        item, seen_by_other = (page.locator(".sentence").inner_text() for page in (first, other))
        count = int(first.locator("progress").get_attribute("max"))
        assert "No item has two votes yet" in other.locator("#agreement").inner_text()
        press(first, "1")
        assert second.locator(".sentence").inner_text() == item
        press(second, "3")
        told = second.locator("main").inner_text()
        judge_all(other, "3")
        first.wait_for_function(AGREED, arg="100 %")
        judge_all(first, "1")
        other.goto(f"{address}/judge?voter=ben")
        judge_all(other, "3")
        share = f"{round(100 / count)} %"
        first.wait_for_function(AGREED, arg=share)
        for context in contexts:
            context.close()

    assert seen_by_other != item
    assert "in place of “Yes”" in told
    with hapax.KnowledgeBase(copy, read_only=True) as kb:
        answers = [(vote.voter, vote.answer) for vote in kb.votes()]
    assert sorted(answers) == sorted([("ann", "rule"), *[("ann", "yes")] * (count - 1), *[("ben", "rule")] * count])


def judge_all(page: Any, key: str) -> None:
    """Give one answer until nothing is left."""
    while page.locator(".sentence").count():
        press(page, key)


def test_fifty_statements_are_judged_by_keyboard_alone(chromium: Any, tmp_path: Path) -> None:
    """Name, answers, struck facts and the way back need no mouse, and every answer is stored."""
    (tmp_path / "tea.rules").write_text(
        'given drinks(Person, Tea): "[1] drinks [2]"\ngiven wakes(Person, Tea): "[1] is woken by [2]"\n'
        "@name waking\n@generic none\ndrinks(Person X, Tea T) -> wakes(Person X, Tea T)\n",
        "utf-8",
    )
    rows = "".join(f"drinks,person {number},tea {number}\n" for number in range(50))
    (tmp_path / "facts.csv").write_text(rows, "utf-8")
    database = tmp_path / "kb.db"
    run("import", tmp_path / "facts.csv", "--rules", tmp_path / "tea.rules", "--db", database)
    run("derive", tmp_path / "tea.rules", "--db", database)
    with (
        serving(database, "--rules", str(tmp_path / "tea.rules")) as address,
        opened(chromium, f"{address}/judge", DESK) as page,
    ):
        while page.evaluate("() => document.activeElement.name") != "voter":
            page.keyboard.press("Tab")
        page.keyboard.type("ann")
        # Keys are heard once the page is loaded, not when its sentence is there.
        with page.expect_navigation():
            page.keyboard.press("Enter")
        for number in range(50):
            key = "1234"[number % 4]
            if key == "2":
                page.keyboard.press("a")
            with page.expect_navigation():
                page.keyboard.press(key)
        with page.expect_navigation():
            page.keyboard.press("6")
        struck = page.locator(".strikes :checked").count()
        page.keyboard.press("a")
        with page.expect_navigation():
            page.keyboard.press("1")
        end = page.locator("main").inner_text()

    with hapax.KnowledgeBase(database, read_only=True) as kb:
        votes = [(vote.question, vote.answer) for vote in kb.votes()]
    assert struck == 1
    assert "Nothing is left" in end
    assert Counter(votes) == {
        ("soundness", "yes"): 14,
        ("soundness", "facts"): 12,
        ("soundness", "rule"): 12,
        ("soundness", "unsure"): 12,
        ("audit Q3", "no"): 12,
    }


def test_a_reload_or_a_killed_server_loses_nothing(chromium: Any, database: Path, tmp_path: Path) -> None:
    """The comment in the making outlives a reload and a kill; the vote without a server stays on the page till it is stored."""
    copy = copied(database, tmp_path)
    server, address = started(copy, 0)
    context = logged_in(chromium, address, viewport=DESK)
    page = context.new_page()
    page.goto(f"{address}/judge?voter=ann")
    press(page, "1")
    page.get_by_label("Comment").fill("which Norway?")
    page.reload()
    assert page.get_by_label("Comment").input_value() == "which Norway?"
    item = page.locator(".sentence").inner_text()
    server.kill()
    server.wait()
    page.locator("h1").click()
    page.keyboard.press("2")
    page.locator("#unstored").wait_for(state="visible")
    assert page.locator(".sentence").inner_text() == item
    server, _ = started(copy, int(address.rpartition(":")[2]))
    # The new server has a new token.
    context.new_page().goto(LINKS[address])
    page.reload()
    assert page.get_by_label("Comment").input_value() == "which Norway?"
    press(page, "2")
    server.kill()
    server.wait()
    context.close()

    with hapax.KnowledgeBase(copy, read_only=True) as kb:
        assert [(vote.answer, vote.comment) for vote in kb.votes()] == [("yes", ""), ("facts", "which Norway?")]


def test_the_last_answer_is_taken_back_by_a_key(chromium: Any, database: Path, tmp_path: Path) -> None:
    """The key that goes back shows the item again, and its new answer stands in place of the old one."""
    copy = copied(database, tmp_path)
    with serving(copy) as address:
        context = logged_in(chromium, address, viewport=DESK)
        page = context.new_page()
        page.goto(f"{address}/judge?voter=ann")
        item = page.locator(".sentence").inner_text()
        press(page, "1")
        assert page.locator(".sentence").inner_text() != item
        page.locator("h1").click()
        page.keyboard.press("6")
        page.wait_for_function("text => document.querySelector('.sentence').innerText === text", arg=item)
        press(page, "3")
        context.close()

    with hapax.KnowledgeBase(copy, read_only=True) as kb:
        assert [vote.answer for vote in kb.votes()] == ["rule"]


AGREED = "text => document.querySelector('#agreement').innerText.includes(text)"


def copied(database: Path, folder: Path) -> Path:
    """A copy of the knowledge base without votes."""
    copy = folder / "kb.db"
    shutil.copy(database, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("DELETE FROM votes")
        connection.commit()
    return copy


def press(page: Any, key: str) -> None:
    """Press a key on the page for judging, and wait for the next page."""
    page.locator("h1").click()
    with page.expect_navigation():
        page.keyboard.press(key)


@contextmanager
def serving(database: Path, *options: str) -> Iterator[str]:
    """The address of a server, which is killed at the end."""
    server, address = started(database, 0, *options)
    try:
        yield address
    finally:
        server.kill()
        server.wait()


def started(database: Path, port: int, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A process of `hapax serve --judge` with its address."""
    where = ("--db", str(database), "--port", str(port))
    command = [sys.executable, "-m", "hapax.cli", "serve", *where, "--judge", *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"(http://[\d.:]+)/\?token=\S+", line):
            LINKS[found[1]] = found[0]
            return server, found[1]
    raise AssertionError("the server did not start")


def test_rules_are_checked_while_one_writes(chromium: Any, address: str) -> None:
    """Without a click the faults of the text come and go, and the link of one leads to its place."""
    with opened(chromium, f"{address}/edit", DESK) as page:
        checks = page.locator("#checks")
        page.locator("textarea").fill("sells(Shop S, Good G) ->\n")
        checks.get_by_text("HPX004").wait_for()
        checks.get_by_role("link").first.click()
        assert page.evaluate("document.activeElement.id") == "text"
        page.locator("textarea").fill("sells(ann, tea).\n")
        checks.get_by_text("No faults").wait_for()


def test_a_proof_unfolds_by_keyboard(chromium: Any, address: str, proof: str) -> None:
    """A line of a proof is reached and unfolded without a mouse, and shows the prompt behind it."""
    with opened(chromium, address + proof, DESK) as page:
        folded = page.locator(".story details:not([open]) > summary").first
        folded.focus()
        page.keyboard.press("Enter")
        text = page.locator(".story").first.inner_text()

    assert "threshold" in text
    assert "Give me" in text


CAPITALS = {
    "Oslo": ("Norway", "Norwegian krone"),
    "Bern": ("Switzerland", "Swiss franc"),
    "Tokyo": ("Japan", "yen"),
    "Thimphu": ("Bhutan", "ngultrum"),
    "Banjul": ("The Gambia", "dalasi"),
    "Maseru": ("Lesotho", "loti"),
    "Lima": ("Peru", "sol"),
    "Warsaw": ("Poland", "zloty"),
    "Apia": ("Samoa", "tala"),
    "Delhi": ("India", "rupee"),
    "Ulaanbaatar": ("Mongolia", "tugrik"),
    "Yerevan": ("Armenia", "dram"),
}
"""The countries and currencies of some cities, for the pictures."""


@pytest.mark.skipif("HAPAX_SCREENSHOTS" not in os.environ, reason="HAPAX_SCREENSHOTS is not set")
def test_the_pictures_of_the_page_are_made(chromium: Any, tmp_path: Path) -> None:
    """docs/how-to/serve.md shows the pages as they are."""
    values = {"'[A] is a city in [B]'": list(CAPITALS)}
    for city, (country, currency) in CAPITALS.items():
        values |= {f"'{city} is a city in [B]'": [country], f"'{country} uses the [B]'": [currency, "euro"]}
    critic = {f"{country} uses the euro.": 0.1 for country, _ in CAPITALS.values()}
    defaults = {"critic": 0.95, "likelihood": -10.0, "generate": []}
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(
        json.dumps({"generate": values, "critic": critic, "defaults": defaults}), "utf-8"
    )
    models = ("-m", f"scripted:{tmp_path / 'script.json'}", "--likelihood", "frequency", "--evaluator", "frequency")
    run("search", tmp_path / "money.rules", *models, "--db", tmp_path / "kb.db", "--no-progress", *EVERY_END)
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        identity = min((statement.premise, statement.id) for statement in kb.statements())[1]
    with listening(tmp_path / "kb.db") as address:
        for name, place, size in (
            ("statements", "/statements", DESK),
            ("rule", "/rule/currency", {**DESK, "height": 1060}),
            ("judge", "/judge?voter=ann", {**DESK, "height": 560}),
            ("ask", "/ask?goal=uses_currency(Country, Currency)", DESK),
            ("entity", "/entity?name=Norway", PHONE),
            ("statement", f"/statement/{identity}", PHONE),
        ):
            with opened(chromium, address + place, size) as page:
                if name == "statements":
                    page.locator(".facet").first.wait_for()
                page.screenshot(path=PICTURES / f"{name}.png")

    assert all(picture.stat().st_size < MOST_BYTES for picture in PICTURES.glob("*.png"))
