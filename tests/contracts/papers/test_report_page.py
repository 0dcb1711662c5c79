"""`report`: one HTML page of a run, with every figure as the other commands tell it and everything hostile escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest
from cli_fixture import EVERY_END, invoke, run
from papers_fixture import SCRIPT, bring, fault, judge, search, told

import hapax

ROOT = Path(__file__).parents[3]
HOSTILE = "<script>alert(1)</script>'&amp;</style></td>\u202etxt.exe"
LONG = "long " * 2_000
UNHIDDEN = "hidden-character"
PLOTS = (ROOT / "api" / "browser" / "static" / "observable-plot.js").read_text("utf-8")
"""The plot library, which names the namespaces of SVG and XML; no browser opens them."""


def parsed(text: str) -> Element:
    """The page's tree; raises at the first thing that HTML does not allow."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def words(element: Element) -> str:
    return "".join(element.itertext())


def of_class(tree: Element, name: str, tag: str = "*") -> list[Element]:
    return [
        element for element in tree.iter() if name in element.get("class", "").split() and tag in ("*", element.tag)
    ]


def figures(tree: Element) -> dict[str, str]:
    """The summary's figures by name, as programs read them."""
    data = of_class(tree, "value", "data")
    return {element.get("id", "").removeprefix("figure-"): element.get("value", "") for element in data}


def table(tree: Element, label: str) -> list[dict[str, str]]:
    """The rows of the table with this label, by its columns."""
    region = next(element for element in tree.iter() if element.get("aria-label") == label)
    columns = [words(cell) for cell in next(region.iter("thead")).iter("th")]
    rows = []
    for row in next(region.iter("tbody")).iter("tr"):
        rows.append(dict(zip(columns, (words(cell).strip() for cell in row), strict=True)))
    return rows


def story_lines(statement: Element) -> Iterator[str]:
    """The exact lines of the stories of a statement, in full where they are cut."""
    for story in of_class(statement, "story"):
        lines: list[str] = []
        for line in story.iter():
            if line.get("class", "") in ("line", "exact"):
                parts = line.iter("span")
                cut = [part for part in parts if part.get("title") and UNHIDDEN not in part.get("class", "")]
                # The exact line of a step stands behind its words.
                del lines[len(lines) - (line.get("class") == "exact") :]
                lines.append(cut[0].get("title", "") if cut else words(line))
        yield from lines


def reported(database: Path, *options: object) -> tuple[str, Element]:
    """The page that the command writes, and its tree."""
    target = database.with_suffix(".html")
    run("report", "-o", target, "--db", database, *options)
    text = target.read_text("utf-8")
    return text, parsed(text)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A search of two rules by a script that also evaluates, and what `search --json` said."""
    database = tmp_path_factory.mktemp("searched") / "kb.db"
    return database, search(database)


@pytest.fixture(scope="module")
def page(searched: tuple[Path, dict[str, Any]]) -> tuple[str, Element]:
    return reported(searched[0], "--rules", searched[0].parent / "money.rules")


@pytest.fixture
def own(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    """A copy of the search's knowledge base."""
    return Path(shutil.copy(searched[0], tmp_path / "kb.db"))


def test_figures_are_those_of_search_and_stats(
    searched: tuple[Path, dict[str, Any]], page: tuple[str, Element]
) -> None:
    """Statements, delta, facts, calls, tokens and money of the page are what the other commands print, of each role,
    too."""
    database, said = searched
    stats, shown, calls = told("data", "stats", "--db", database), figures(page[1]), said["calls"]

    assert {name: int(shown[name]) for name in said["statements"]} == said["statements"]
    assert said["statements"]["head"] > 0
    assert float(shown["mean_delta"]) == said["mean_delta"]
    assert int(shown["facts"]) == stats["facts"]
    assert int(shown["calls"]) == sum(counts["calls"] for counts in calls.values()) == stats["calls"]
    assert int(shown["hits"]) == sum(counts["hits"] for counts in calls.values())
    tokens = sum(counts["prompt_tokens"] + counts["completion_tokens"] for counts in calls.values())
    assert int(shown["tokens"]) == tokens
    assert float(shown["money"]) == sum(counts["cost"] for counts in calls.values())
    assert f"<h1>Run {said['run']}</h1>" in page[0]
    for row in table(page[1], "Cost"):
        counts = calls[row["role"]]
        assert [int(row[name]) for name in ("calls sent", "answered by the journal")] == [
            counts["calls"],
            counts["hits"],
        ]
        assert [int(row[f"{kind} tokens"]) for kind in ("prompt", "answer")] == [
            counts["prompt_tokens"],
            counts["completion_tokens"],
        ]


def test_the_table_of_rules_is_the_closing_table(
    searched: tuple[Path, dict[str, Any]], page: tuple[str, Element]
) -> None:
    """Each rule stands with its statements, delta, calls and hits, and the shares of its own gates."""
    rows = {row["rule"]: row for row in table(page[1], "Rules")}

    assert list(rows) == ["currency", "neighbour"]
    for line in searched[1]["rules"]:
        row = rows[line["rule"]]
        assert [int(row[name]) for name in ("head", "long tail", "in both")] == [
            line[name] for name in ("head", "long_tail", "in_both")
        ]
        assert row["delta"].replace("\u2212", "-") == ("" if line["delta"] is None else f"{line['delta']:.2f}")
        for gate in ("critic", "likelihood"):
            assert row[gate] == f"{line['gates'][gate]['accepted'] / line['gates'][gate]['judged']:.2f}"
        assert [int(row[name]) for name in ("calls", "hits")] == [line["calls"], line["hits"]]


def test_a_statement_unfolds_to_what_why_tells(
    searched: tuple[Path, dict[str, Any]], page: tuple[str, Element]
) -> None:
    """The lines under a statement are those of `hapax why`, down to prompt, P(yes) and threshold; a value that the
    critic rejected stands with its question, P(yes) and the threshold."""
    database = searched[0]
    shown = {str(part.get("id")): list(story_lines(part)) for part in of_class(page[1], "statement")[:2]}
    (euro,) = [row for row in table(page[1], "Rejected values") if row["value"] == "euro" and row["score"] == "0.10"]

    assert shown
    for anchor, lines in shown.items():
        identity = anchor.removeprefix("statement-")
        story = run("why", identity, "--rules", database.parent / "money.rules", "--db", database).stdout
        # The page has the statement as its heading, and the proof before what ranked it.
        heading = "How its values were chosen and ranked"
        assert sorted(line for line in lines if line != heading) == sorted(
            line.strip() for line in story.splitlines()[1:]
        )
        assert any("Give me" in line for line in lines)
        assert any("critic gate: accepted, score 0.950, threshold 0.850" in line for line in lines)
    assert (euro["asked"], euro["threshold"]) == ("uses_currency(Norway, ?)", "0.85")
    assert "threshold" in euro["reason"]


def test_a_circular_delta_is_marked_in_the_closing_line_and_on_the_page(own: Path, page: tuple[str, Element]) -> None:
    """The script ranks and judges itself, so its delta proves nothing; word frequency is an independent judge of it."""
    circular, third = search(own.parent / "other.db"), own.parent / "third.db"
    model = f"scripted:{own.parent / 'script.json'}"
    said = run("search", own.parent / "money.rules", "-m", model, "--no-progress", *EVERY_END, "--db", third).stdout

    assert circular["circular"] is True
    assert "proves nothing" in page[0]
    assert "by frequency" in said
    assert "proves nothing" not in reported(third)[0]


def test_the_page_stands_alone(own: Path, page: tuple[str, Element]) -> None:
    """HTML without a fault, no address outside, and a policy that knows the page's own script and style alone; no clock
    and no order of sets is in it. It can be used without eyes and without script."""
    text, tree = page
    metas = {element.get("http-equiv"): element.get("content", "") for element in tree.iter("meta")}
    policy = metas["Content-Security-Policy"]
    parts = [(name, words(element)) for name in ("style", "script") for element in tree.iter(name)]
    named = {element.get("id") for element in tree.iter() if element.get("id")}

    assert policy.startswith("default-src 'none'; ")
    for name, content in parts:
        assert f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
    outside = set(re.findall(r"\w+://[^\s\"'<>)]+", text)) - set(re.findall(r"\w+://[^\s\"'<>)]+", PLOTS))
    assert outside == set()
    assert not [e.tag for e in tree.iter() if any(e.get(name) for name in ("src", "style", "onclick"))]
    links = [element.get("href", "#") for element in tree.iter("a")]
    assert all(link.startswith("#") and link[1:] in named for link in links)
    assert reported(own)[0] == reported(own)[0]
    assert tree.find("head/..").get("lang") == "en"  # type: ignore[union-attr]
    assert {element.get("scope") for element in tree.iter("th")} == {"col", "row"}
    for figure in tree.iter("figure"):
        assert figure.get("data-title")
        assert figure.get("data-desc")
        assert words(next(figure.iter("figcaption"))).strip()
    assert all(element[0].tag == "summary" and words(element[0]).strip() for element in tree.iter("details"))
    assert all(element.get("hidden") is not None for element in of_class(tree, "tools"))


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    """Markup, quotes and turned lines of values, comments and rejected answers are shown and do nothing, cut where long."""
    database = bring(tmp_path / "kb.db", {("allergy", "head"): [("milk", HOSTILE), ("milk", LONG.strip())]})
    asked = judge(database, "ann", {(("alert"), "entailment"): "no"})
    text, tree = reported(database)
    script = {**SCRIPT, "generate": {**SCRIPT["generate"], "'Norway uses the [B]'": [HOSTILE]}}  # type: ignore[dict-item]
    search(tmp_path / "other.db", {**script, "critic": {}, "defaults": {**script["defaults"], "critic": 0.3}})  # type: ignore[dict-item]
    other, other_tree = reported(tmp_path / "other.db")

    assert asked
    for shown, parts in ((text, tree), (other, other_tree)):
        assert len(list(parts.iter("script"))) == len(list(parts.iter("style"))) == 1
        assert "\u202e" not in shown
    assert "U+202E" in {words(element) for element in of_class(tree, UNHIDDEN)}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert LONG.strip() in {words(element) for element in of_class(tree, "full")} or LONG.strip() in words(tree)
    assert max(len(words(element)) for element in of_class(tree, "line")) < len(LONG)


def test_runs_are_named_by_the_beginnings_of_their_ids(own: Path) -> None:
    """An unknown run is an error that names those there, and writes no file; an ambiguous one, too."""
    target = own.parent / "none.html"
    with hapax.KnowledgeBase(own, read_only=True) as kb:
        (run_id,) = [record.id for record in kb.runs()]
    said = fault("report", "-o", target, "--db", own, "--run", "nobody")

    assert run_id in said
    assert not target.exists()
    assert run_id in reported(own, "--run", run_id[:8])[0]
    search(own, {**SCRIPT, "critic": {}}, "--beam", 3)
    fault("report", "-o", target, "--db", own, "--run", "")
    assert not target.exists()


def test_without_runs_statements_or_rules_the_page_or_the_error_says_so(tmp_path: Path, own: Path) -> None:
    """An empty knowledge base names the search; a search without statements has a page; an unknown rule is named;
    figures of a search that a budget ended are counted from what is stored."""
    hapax.KnowledgeBase(tmp_path / "empty.db").close()
    silent = {"defaults": {"critic": 0.0, "likelihood": -1.0, "generate": []}}
    search(tmp_path / "silent.db", silent)
    text, tree = reported(tmp_path / "silent.db")

    assert "hapax search" in fault("report", "-o", tmp_path / "none.html", "--db", tmp_path / "empty.db")
    assert (figures(tree)["head"], figures(tree)["mean_delta"]) == ("0", "")
    assert ["Raise" in row["note"] for row in table(tree, "Rules")] == [True, True]
    assert "nothing" in fault("report", "-o", "-", "--db", own, "--rule", "nothing")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    command = ("search", tmp_path / "money.rules", "-m", f"scripted:{tmp_path / 'script.json'}", "--no-progress")
    assert invoke(*command, "--max-calls", 10, "--db", tmp_path / "cut.db").exit_code == 3
    text, tree = reported(tmp_path / "cut.db")
    assert "budget" in text.lower()
    assert int(figures(tree)["calls"]) == told("data", "stats", "--db", tmp_path / "cut.db")["calls"] <= 10


def test_chosen_rules_and_fewer_statements(own: Path) -> None:
    """--rule leaves the others out, --statements limits, and the page names the options for the rest."""
    text, tree = reported(own, "--rule", "currency", "--statements", 1, "--rejected", 0)

    assert [element.get("id") for element in of_class(tree, "page")] == ["run", "rule-currency"]
    assert "1 of the 2 rules of this run are shown." in text
    assert len(of_class(tree, "statement")) == 2
    assert all(f"and more: <code>{option}</code>" in text for option in ("--statements", "--rejected"))


def test_the_plot_library_evaluates_no_text_and_names_its_licences() -> None:
    """It needs no `unsafe-eval`, can stand inside a script element, and begins with its version and its notices."""
    notices, _, code = PLOTS.partition("*/")
    locked = json.loads((ROOT / "tools" / "plots" / "package-lock.json").read_text("utf-8"))["packages"]

    assert not re.search(r"\bnew Function\b|\beval\(|</script|<!--", code)
    assert f"Observable Plot {locked['node_modules/@observablehq/plot']['version']} " in notices
    assert "Permission to use, copy, modify" in notices
