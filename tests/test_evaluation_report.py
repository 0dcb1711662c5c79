"""`report`: one HTML page of a run, with every figure as the other commands tell it and everything hostile escaped."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest
from cli_fixture import EVERY_END, invoke
from hypothesis import given
from hypothesis import strategies as st
from money_fixture import RULES as MONEY_RULES
from money_fixture import SCRIPT as MONEY_SCRIPT
from money_fixture import VALUES

from hapax.engine.explain import Story
from hapax.engine.search.gates import ROSE, QuestionGates
from hapax.engine.search.job import SearchJob
from hapax.engine.search.search import search
from hapax.evaluation.report.build import ReportOptions, build
from hapax.evaluation.report.drawing import BINS, DOTS, LARGEST, evenly_spread, histogram
from hapax.evaluation.report.page import SHORT, page, pieces, plot_script, plotted
from hapax.evaluation.report.sections import MOST_DEPTH, MOST_LINES, nested
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import (
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    Question,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.scripted import ScriptedModel

RULES = f"""{MONEY_RULES}@name neighbour
@domain temporal
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & is_a_city_in(City B, Country C) & A \\= B -> could_move_to(Person X, City B)
"""
SCRIPT = {
    **MONEY_SCRIPT,
    "generate": {**VALUES, "'[A] is a city in Norway'": ["Bergen", "Oslo"], "'Bergen is a city in [B]'": ["Norway"]},
    "likelihood": {"Norway uses the Norwegian krone.": -12.0, "The Gambia uses the dalasi.": -20.0},
}
HOSTILE = "<script>alert(1)</script>\"'&amp;</style></td>\u202etxt.exe\x00\ufeff"
LONG = "long " * 2_000
HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL


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
    return {
        element.get("id", "").removeprefix("figure-"): element.get("value", "")
        for element in of_class(tree, "value", "data")
    }


def table(tree: Element, heading: str) -> list[list[str]]:
    """The body of the table under the heading of this id."""
    section = next(element for element in tree.iter("section") if element.get("aria-labelledby") == heading)
    return [[words(cell) for cell in row] for row in next(section.iter("tbody")).iter("tr")]


def story_lines(statement: Element) -> Iterator[str]:
    """The lines of a story, in full where they are cut."""
    for line in next(iter(of_class(statement, "story"))).iter():
        kind = line.get("class", "")
        if kind == "line":
            cut = [
                element
                for element in line.iter("span")
                if element.get("title") and "hidden-character" not in element.get("class", "")
            ]
            yield cut[0].get("title", "") if cut else words(line)


def searched(tmp_path: Path, script: object = SCRIPT, *options: str | Path) -> tuple[Path, Path, dict[str, object]]:
    """A search by the script: its rules, its knowledge base, and what `search --json` said."""
    rules, said, database = tmp_path / "money.rules", tmp_path / "script.json", tmp_path / "kb.db"
    rules.write_text(RULES, encoding="utf-8")
    said.write_text(json.dumps(script), encoding="utf-8")
    result = invoke(
        "search",
        rules,
        "-m",
        f"scripted:{said}",
        "--evaluator",
        f"scripted:{said}",
        "--no-progress",
        "--json",
        "--db",
        database,
        *EVERY_END,
        *options,
    )
    assert result.exit_code == 0, result.output
    return rules, database, json.loads(result.stdout)


def reported(database: Path, *options: str | Path) -> tuple[str, Element]:
    """The page that the command writes, and its tree."""
    target = database.with_suffix(".html")
    result = invoke("report", "-o", target, "--db", database, *options)
    assert result.exit_code == 0, result.output
    text = target.read_text(encoding="utf-8")
    return text, parsed(text)


@pytest.fixture
def hostile(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """A run in which every text is hostile, and one value is long."""
    run = RunRecord(
        HOSTILE, HOSTILE, {"models": [HOSTILE] * 4, HOSTILE: HOSTILE, "rules": [HOSTILE]}, "f", HOSTILE, status=HOSTILE
    )
    fresh_kb.start_run(run)
    fresh_kb.add_rules([RuleRecord(HOSTILE, f"{HOSTILE}\n{LONG}", HOSTILE, HOSTILE, HOSTILE)])
    question = Question((AtomPattern("likes", (None, HOSTILE)),), HOSTILE)
    call = CallRecord("call", HOSTILE, HOSTILE, {"prompt": HOSTILE}, {"text": HOSTILE})
    fresh_kb.record_calls([call])
    fresh_kb.add_questions([question])
    proposed = [Candidate(question.id, text, text, "call", place) for place, text in enumerate((HOSTILE, LONG, "so"))]
    fresh_kb.add_candidates(proposed)
    verdicts = [Decision(run.id, "critic", candidate.id, False, 0.1, 0.85, HOSTILE) for candidate in proposed]
    beam = Decision(run.id, HOSTILE, HOSTILE, False, None, None, LONG, HOSTILE, HEAD, 0)
    fresh_kb.add_decisions([*verdicts, beam])
    fresh_kb.add_facts(
        [FactRecord("likes", (HOSTILE, LONG), ("Person", "Thing"), Source.MODEL, 0.9, proposed[0].id, run.id)]
    )
    proof = {"steps": [{"goal": {"predicate": "likes", "arguments": [HOSTILE, LONG]}, "by": "fact"}]}
    statements = [
        StatementRecord(HOSTILE, end, run.id, (("A", value),), value, HOSTILE, value, proof, score)
        for end, value, score in ((HEAD, HOSTILE, -1.0), (HEAD, LONG, float("-inf")), (TAIL, LONG, 1e300))
    ]
    fresh_kb.add_statements(statements)
    fresh_kb.add_votes(
        [VoteRecord(statements[0].id, HOSTILE, "ann", HOSTILE), VoteRecord(statements[1].id, LONG, "ann", LONG)]
    )
    return fresh_kb


def test_figures_are_those_of_search_and_stats(tmp_path: Path) -> None:
    """Statements, delta, facts, calls, tokens and money of the page are what the other commands print."""
    _, database, summary = searched(tmp_path)
    stats = json.loads(invoke("stats", "--json", "--db", database).stdout)
    text, tree = reported(database)

    shown = figures(tree)
    calls = summary["calls"]
    assert {name: int(shown[name]) for name in summary["statements"]} == summary["statements"]
    assert summary["statements"]["head"] > 0
    assert float(shown["mean_delta"]) == summary["mean_delta"]
    assert int(shown["facts"]) == stats["facts"]
    assert int(shown["calls"]) == sum(counts["calls"] for counts in calls.values()) == stats["calls"]
    assert int(shown["hits"]) == sum(counts["hits"] for counts in calls.values())
    assert int(shown["tokens"]) == sum(
        counts["prompt_tokens"] + counts["completion_tokens"] for counts in calls.values()
    )
    assert float(shown["money"]) == sum(counts["cost"] for counts in calls.values())
    assert f"Run <code>{summary['run']}</code>" in text


def test_every_role_is_told_with_its_calls(tmp_path: Path) -> None:
    """The cost tables hold each role's calls, hits and tokens, of this run and of all."""
    _, database, summary = searched(tmp_path)
    by_role = json.loads(invoke("stats", "--json", "--db", database).stdout)["calls_by_role"]
    _, tree = reported(database)

    rows = [element for element in tree.iter("tr") if element.get("data-role")]
    numbers = [(row.get("data-role"), *(cell.get("data-sort") for cell in of_class(row, "number"))) for row in rows]
    of_run = [
        (role, *(str(counts[name]) for name in ("calls", "hits", "prompt_tokens", "completion_tokens", "cost")))
        for role, counts in summary["calls"].items()
    ]
    assert sorted(numbers[: len(of_run)]) == sorted(of_run)
    assert {role: int(calls) for role, calls, *_ in numbers[len(of_run) :]} == by_role


def test_the_table_of_rules_is_the_closing_table(tmp_path: Path) -> None:
    """Each rule stands with its statements, delta, calls and hits, and the shares of its own gates."""
    _, database, summary = searched(tmp_path)
    _, tree = reported(database)

    rows = {words(row[0]): row for row in tree.iter("tr") if row.get("data-rule")}
    assert list(rows) == ["currency", "neighbour"]
    for line in summary["rules"]:
        cells = [cell.get("data-sort") for cell in of_class(rows[line["rule"]], "number")]
        critic, likelihood = line["gates"]["critic"], line["gates"]["likelihood"]
        assert [int(cell) for cell in cells[:3]] == [line["head"], line["long_tail"], line["in_both"]]
        assert float(cells[3]) == pytest.approx(line["delta"])
        assert float(cells[4]) == critic["accepted"] / critic["judged"]
        assert float(cells[5]) == likelihood["accepted"] / likelihood["judged"]
        assert [int(cell) for cell in cells[6:]] == [line["calls"], line["hits"]]


def test_a_statement_unfolds_to_what_why_tells(tmp_path: Path) -> None:
    """The lines under a statement are those of `hapax why`, down to prompt, P(yes) and threshold."""
    rules, database, _ = searched(tmp_path, SCRIPT, "--distribution", "head")
    _, tree = reported(database, "--rules", rules)

    statements = of_class(tree, "statement")
    assert statements
    for statement in statements:
        lines = list(story_lines(statement))
        result = invoke("why", re.search("statement ([0-9a-f]{32})", lines[0])[1], "--rules", rules, "--db", database)
        assert lines == [line.strip() for line in result.stdout.splitlines()]
    assert any("Give me" in line for line in lines)
    assert any("critic gate: accepted, score 0.950, threshold 0.850" in line for line in lines)


def test_a_circular_delta_is_marked_in_the_closing_line_and_on_the_page(tmp_path: Path) -> None:
    """The script ranks and judges itself, so its delta is no evidence; word frequency is an independent judge of it."""
    rules, database, summary = searched(tmp_path)
    text, _ = reported(database)
    command = ("search", rules, "-m", f"scripted:{tmp_path / 'script.json'}", "--db", tmp_path / "other.db", *EVERY_END)
    mine = invoke(*command, "--no-progress", "--evaluator", f"scripted:{tmp_path / 'script.json'}").stdout
    independent = invoke(*command, "--no-progress").stdout
    page, _ = reported(tmp_path / "other.db")

    assert summary["circular"] is True
    assert "by scripted/script.json, which also ranked or taught the ranker: no evidence" in text
    assert "by scripted/script.json, which also ranked or taught the ranker: no evidence" in mine
    assert "mean delta" in independent
    assert "by frequency\n" in independent
    assert "no evidence" not in page


def test_the_page_stands_alone(tmp_path: Path) -> None:
    """HTML without a fault, no address outside, and a policy that knows the page's own script and style alone."""
    _, database, _ = searched(tmp_path)
    text, tree = reported(database)

    policy = next(
        element.get("content", "")
        for element in tree.iter("meta")
        if element.get("http-equiv") == "Content-Security-Policy"
    )
    hashes = {
        name: base64.b64encode(hashlib.sha256(words(element).encode()).digest()).decode()
        for name in ("style", "script")
        for element in tree.iter(name)
    }
    assert policy.startswith("default-src 'none'; ")
    assert all(f"{name}-src 'sha256-{digest}'" in policy for name, digest in hashes.items())
    # The plot library names the namespaces of SVG and XML, which no browser opens.
    assert "://" not in text.replace(plot_script(), "")
    assert [
        element.tag for element in tree.iter() if any(element.get(name) for name in ("src", "style", "onclick"))
    ] == []
    assert all(element.get("href", "#").startswith("#") for element in tree.iter("a"))
    named = {element.get("id") for element in tree.iter() if element.get("id")}
    assert all(element.get("href", "")[1:] in named for element in tree.iter("a"))


def test_the_page_can_be_used_without_eyes_and_without_script(tmp_path: Path) -> None:
    """Headers have a scope, plots a title and words, folded things a summary, and tools that need the script are hidden."""
    _, database, _ = searched(tmp_path)
    _, tree = reported(database)

    assert tree.find("head/..").get("lang") == "en"
    assert {element.get("scope") for element in tree.iter("th")} == {"col", "row"}
    assert all(
        element.get("data-title") and element.get("data-desc") and words(next(element.iter("figcaption"))).strip()
        for element in tree.iter("figure")
    )
    assert all(element[0].tag == "summary" and words(element[0]).strip() for element in tree.iter("details"))
    assert all(element.get("hidden") is not None for element in of_class(tree, "tools"))


def test_the_same_knowledge_base_gives_the_same_bytes(tmp_path: Path) -> None:
    """No clock and no order of sets is in the page."""
    _, database, _ = searched(tmp_path)

    assert reported(database)[0] == reported(database)[0]


def test_hostile_texts_stay_texts(hostile: KnowledgeBase) -> None:
    """Markup, quotes and turned lines in any place of a run are shown and do nothing; what nobody sees is named."""
    text = page(build(hostile, Library(), ReportOptions(HOSTILE)))
    tree = parsed(text)

    assert len(list(tree.iter("script"))) == len(list(tree.iter("style"))) == 1
    assert not any(character in text for character in "\u202e\x00\ufeff")
    assert {"U+202E", "U+0000", "U+FEFF"} <= {words(element) for element in of_class(tree, "hidden-character")}
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20
    assert all(
        name in ("", "hidden-character") or name.isascii()
        for name in (element.get("class", "") for element in tree.iter())
    )


def test_long_texts_are_cut_and_stand_in_full_below(hostile: KnowledgeBase) -> None:
    """A value of 10 kB is cut where it first stands; unfolded it is whole."""
    tree = parsed(page(build(hostile, Library(), ReportOptions("kb.db"))))

    whole = [words(element) for element in of_class(tree, "full")]
    assert LONG in whole
    assert max(len(words(element)) for element in of_class(tree, "line")) <= SHORT
    assert max(len(words(element)) for element in of_class(tree, "sentence")) <= max(map(len, whole))


def test_scores_beyond_the_axis_are_counted(hostile: KnowledgeBase) -> None:
    """A log-likelihood of minus infinity, or of 1e300, is left out of the drawing, and the page says so."""
    tree = parsed(page(build(hostile, Library(), ReportOptions("kb.db"))))

    assert any("2 beyond the axis" in words(element) for element in tree.iter("figcaption"))


def test_rejected_values_come_with_score_threshold_and_reason(tmp_path: Path) -> None:
    """A value that the critic rejected stands with the question, P(yes) and the threshold."""
    _, database, _ = searched(tmp_path)
    _, tree = reported(database)

    rows = [[words(cell) for cell in row] for row in tree.iter("tr")]
    assert [
        "2. euro.",
        "Norway uses the [B], as Currency",
        "0.100",
        "0.850",
        "P(true) 0.100 is below the threshold 0.85",
    ] in rows


def test_gates_count_what_the_verdicts_say(tmp_path: Path) -> None:
    """Accepted and stopped values of the critic are the decisions of the knowledge base; thresholds are replayed."""
    _, database, _ = searched(tmp_path)
    with KnowledgeBase(database, read_only=True) as kb:
        report = build(kb, Library(), ReportOptions("kb.db"))
        judged = {fact.id for fact in kb.facts()} | {
            candidate_id for (candidate_id,) in kb.database.conn.execute("SELECT id FROM candidates")
        }
        critic = [
            decision for decision in kb.decisions(gate="critic") if decision.subject in judged and decision.rule is None
        ]
        last = {decision.subject: decision for decision in critic}
        questions = kb.counts()["questions"]

    line = next(line for line in report.gates.lines if (line.gate, line.judged) == ("critic", "values"))
    assert (line.came, line.stopped) == (len(last), sum(not decision.accepted for decision in last.values()))
    assert line.stopped == 1
    assert report.gates.thresholds.unknown == 0
    assert 0 < report.gates.thresholds.lines[0].questions <= questions
    assert set(report.gates.thresholds.values) <= {decision.threshold for decision in last.values()} | {0.85}


def test_values_rejected_in_retrospect_are_told_apart(fresh_kb: KnowledgeBase) -> None:
    """The gate's own words for a threshold that rose are those by which the page knows such a rejection."""
    question = Question((AtomPattern("likes", ("ann", None)),), "Thing")
    early = Candidate(question.id, "early", "early", "call 0", 0)
    late = Candidate(question.id, "late", "late", "call 1", 0)
    gates = QuestionGates()
    gates.add({early: {"type": 0.9, "critic": 0.86}})
    gates.add({late: {"type": 0.9, "critic": 0.95}})
    decisions = gates.decisions((early, late), "run")
    assert decisions[0].reason.endswith(ROSE)

    fresh_kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01"))
    fresh_kb.add_questions([question])
    fresh_kb.add_candidates([early, late])
    fresh_kb.add_decisions(decisions)
    report = build(fresh_kb, Library(), ReportOptions("kb.db"))

    assert [(rejection.kind, rejection.count) for rejection in report.gates.rejections] == [
        ("critic, in retrospect", 1)
    ]
    assert [line.at for line in report.gates.thresholds.lines] == [{0.85: 1}, {0.9: 1}]


def test_a_run_without_statements_has_a_page(tmp_path: Path) -> None:
    """Where nothing was found the page says so of each rule."""
    _, database, summary = searched(tmp_path, {"defaults": {"critic": 0.0, "likelihood": -1.0, "generate": []}})
    text, tree = reported(database)

    assert summary["statements"]["head"] == 0
    assert figures(tree)["head"] == "0"
    assert figures(tree)["mean_delta"] == ""
    assert text.count("No statement: no values for all its variables passed the gates.") == 2


def test_an_unknown_run_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    """Exit code 1, the ids that would do, and no file."""
    _, database, summary = searched(tmp_path)

    result = invoke("report", "-o", tmp_path / "none.html", "--db", database, "--run", "nobody")

    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert "holds no run whose id begins with 'nobody'. Choose one of the latest: " in said
    assert str(summary["run"]) in said
    assert not (tmp_path / "none.html").exists()


def test_the_beginning_of_an_id_names_a_run(tmp_path: Path) -> None:
    """As for the other commands; where several ids begin so, all are told and nothing is written."""
    _, database, summary = searched(tmp_path)
    page = tmp_path / "page.html"

    short = invoke("report", "-o", page, "--db", database, "--run", str(summary["run"])[:8])
    with KnowledgeBase(database) as kb:
        kb.start_run(replace(kb.runs()[0], id="another"))
    ambiguous = invoke("report", "-o", tmp_path / "none.html", "--db", database, "--run", "")

    assert short.exit_code == 0
    assert str(summary["run"]) in page.read_text("utf-8")
    assert ambiguous.exit_code == 1
    assert "holds several runs whose ids begin with ''" in " ".join(ambiguous.stderr.split())


def test_a_knowledge_base_without_runs_is_an_error(tmp_path: Path) -> None:
    """The message names the command that begins one."""
    KnowledgeBase(tmp_path / "empty.db").close()

    result = invoke("report", "-o", tmp_path / "none.html", "--db", tmp_path / "empty.db")

    assert result.exit_code == 1
    assert "holds no run to report. Start one with `hapax search`." in " ".join(result.stderr.split())


def test_an_unknown_rule_is_an_error(tmp_path: Path) -> None:
    """A rule that the run has not is named."""
    _, database, _ = searched(tmp_path)

    result = invoke("report", "-o", "-", "--db", database, "--rule", "nothing")

    assert result.exit_code == 1
    assert "has no rule nothing" in " ".join(result.stderr.split())


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    """Its figures are counted from what is stored, on the page and without a summary in the record."""
    _, database, summary = searched(tmp_path)
    with KnowledgeBase(database) as kb:
        kb.finish_run(str(summary["run"]), "interrupted")
    text, tree = reported(database)

    assert "This search was interrupted before its end." in text
    assert {name: int(figures(tree)[name]) for name in summary["statements"]} == summary["statements"]
    assert float(figures(tree)["mean_delta"]) == pytest.approx(summary["mean_delta"])
    assert "The calls of this run are not recorded." in text


def test_the_run_that_was_finished_last_is_taken(tmp_path: Path) -> None:
    """One that is going on is reported when it is named, or when no other is there."""
    _, database, summary = searched(tmp_path)
    with KnowledgeBase(database) as kb:
        kb.start_run(RunRecord("going-on", "search", {"rules": ["currency"]}, "g", "2999-01-01T00:00:00+00:00"))

    assert f"<code>{summary['run']}</code>" in reported(database)[0]
    assert "still running, or it was killed" in reported(database, "--run", "going-on")[0]


def test_statements_that_an_earlier_pass_left_are_told(tmp_path: Path) -> None:
    """Where more is stored under a run than it told of, the figures are the run's, and a line names the difference."""
    _, database, summary = searched(tmp_path)
    with KnowledgeBase(database) as kb:
        statement = kb.statements(distribution=HEAD)[0]
        kb.add_statements([replace(statement, substitution=(("A", "Bergen"),))])
    text, tree = reported(database)

    assert "1 statement more are stored under this run" in text
    assert int(figures(tree)["head"]) == summary["statements"]["head"]


def test_chosen_rules_and_fewer_statements(tmp_path: Path) -> None:
    """--rule leaves the others out, --statements limits, and the page names the command for the rest."""
    _, database, summary = searched(tmp_path)
    text, tree = reported(database, "--rule", "currency", "--statements", "1", "--rejected", "0")

    head = next(fault["head"] for fault in summary["rules"] if fault["rule"] == "currency")
    assert [words(row[0]) for row in tree.iter("tr") if row.get("data-rule")] == ["currency"]
    assert "1 of the 2 rules of this run are shown." in text
    assert len(of_class(tree, "statement")) == 2
    assert head > 1
    assert (
        f"{head - 1} more: <code>hapax report --db {database} --run {summary['run']} --rule currency --statements {head} -o more.html"
        in text
    )


def test_skipped_rules_say_what_they_lack(tmp_path: Path) -> None:
    """The model and the predicates that it does not know, with the remedy, as the search told them."""
    library = parse_library([("money.rules", RULES)])
    model = ScriptedModel(SCRIPT)
    model.identity = replace(model.identity, knows=frozenset({"is_a_city_in/2"}))
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        search(SearchJob(library, library.rules, kb, Models(model, model, model, model)))
    _, tree = reported(tmp_path / "kb.db")

    assert table(tree, "skipped") == [
        ["currency", "scripted", "uses_currency/2", "Choose a model that knows them with --knowledge and --critic."]
    ]
    assert figures(tree)["rules"] == "1"


def test_an_import_with_votes_has_a_page(tmp_path: Path) -> None:
    """An import has no gates and no cost; votes are counted, in all and by statement."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("import", "evaluate lint", {"folder": "lint"}, "f", "2026-01-01T00:00:00+00:00"))
        statement = StatementRecord(
            "rule2",
            HEAD,
            "import",
            (("A", "tea"),),
            "X drinks tea",
            "X is awake",
            "",
            {"steps": [{"goal": {"predicate": "p", "arguments": ["tea"]}, "by": "given"}]},
        )
        kb.add_statements([statement])
        kb.add_votes(
            [
                VoteRecord(statement.id, "entailment", voter, answer)
                for voter, answer in (("ann", "no"), ("bob", "no"), ("eve", "yes"))
            ]
        )
        kb.finish_run("import", summary={"statements": 1, "labels_turned": 1})
    text, tree = reported(tmp_path / "kb.db")

    assert figures(tree)["head"] == "1"
    assert "3 votes on 1 statement of this run, 0 of which have a value of a wrong type." in text
    assert "3 people have judged 1 statement: by majority 0 true, 1 false, 0 undecided." in text
    assert table(tree, "votes") == [["entailment", "no", "2"], ["entailment", "yes", "1"]]
    assert "Votes: entailment, no: 2; entailment, yes: 1" in text
    assert "No verdict is stored for this run." in text


def test_a_summary_that_hapax_did_not_write_is_an_error(tmp_path: Path) -> None:
    """A record that another program changed is named, without a traceback."""
    _, database, summary = searched(tmp_path)
    with KnowledgeBase(database) as kb:
        kb.finish_run(str(summary["run"]), "done", {"statements": ["many"]})

    result = invoke("report", "-o", "-", "--db", database)

    assert result.exit_code == 1
    assert "was not written by Hapax" in " ".join(result.stderr.split())


SECTIONS = """
from html import escape

from hapax.evaluation.report.extensions import AddedSection


def longest(source):
    statements = source.kb.statements(run_id=source.run.id)
    texts = sorted({record.text for record in statements}, key=len)
    return AddedSection("Longest <statement>", ("characters", "statement"), [(len(texts[-1]), texts[-1])])


def rules(source):
    names = "".join(f"<li>{escape(rule.name)}</li>" for rule in source.library.rules)
    return AddedSection("Names", html=f"<ul>{names}</ul>")


def nothing(source):
    return None


def broken(source):
    raise ZeroDivisionError("no sun")


def wrong(source):
    return "text"
"""


def install_sections(folder: Path, monkeypatch: pytest.MonkeyPatch, **functions: str) -> None:
    """Install a package with these entry points, by hand: a module and its metadata on the import path."""
    metadata = folder / "site" / "more_sections-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "site" / "more_sections.py").write_text(SECTIONS, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: more-sections\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"{name} = more_sections:{function}" for name, function in functions.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[hapax.report_sections]", *lines]), encoding="utf-8")
    monkeypatch.syspath_prepend(folder / "site")
    monkeypatch.delitem(sys.modules, "more_sections", raising=False)


def test_another_package_adds_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are escaped, HTML is kept, None adds nothing; sections stand in the order of their names."""
    rules, database, _ = searched(tmp_path)
    before = reported(database, "--rules", rules)[0]
    install_sections(tmp_path, monkeypatch, b_longest="longest", a_names="rules", c_nothing="nothing")
    text, tree = reported(database, "--rules", rules)

    titles = [words(heading) for heading in tree.iter("h2")]
    ((length, statement),) = table(tree, "added-2")
    assert titles[-2:] == ["Names", "Longest <statement>"]
    assert int(length) == len(statement)
    assert "<ul><li>currency</li><li>neighbour</li></ul>" in text
    assert "Longest &lt;statement&gt;" in text
    assert "added-" not in before


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("broken", "failed with ZeroDivisionError('no sun')."),
        ("wrong", "returned str instead of an AddedSection or None."),
        ("absent", "failed with AttributeError"),
    ],
)
def test_a_broken_section_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, message: str
) -> None:
    """The message says which package to update, and an older page is not overwritten."""
    _, database, _ = searched(tmp_path)
    install_sections(tmp_path, monkeypatch, mine=function)
    page = tmp_path / "page.html"
    page.write_text("older", encoding="utf-8")

    result = invoke("report", "-o", page, "--db", database)

    said = " ".join(result.stderr.split())
    assert result.exit_code == 1
    assert f"The report section 'mine' of more-sections (more_sections:{function}) {message}" in said
    assert "Update or uninstall that package." in said
    assert page.read_text("utf-8") == "older"


def test_the_example_of_the_page_is_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code in docs/report.md works as it is printed there."""
    doc = (Path(__file__).parent.parent / "docs" / "report.md").read_text("utf-8")
    (code,) = re.findall("```python\n(.*?)```", doc, re.DOTALL)
    _, database, _ = searched(tmp_path)
    install_sections(tmp_path, monkeypatch, mine="section")
    (tmp_path / "site" / "more_sections.py").write_text(code, encoding="utf-8")
    _, tree = reported(database)

    assert "Sources of facts" in [words(heading) for heading in tree.iter("h2")]
    assert [row[0] for row in table(tree, "added-1")] == ["model"]


def tree_of(depths: list[int]) -> Story:
    """A story whose lines have these depths, each at most one below the line before."""
    stack: list[tuple[str, list]] = [("root", [])]
    for number, depth in enumerate(depths):
        del stack[max(1, min(depth, len(stack))) :]
        node: tuple[str, list] = (f"line {number}", [])
        stack[-1][1].append(node)
        stack.append(node)

    def made(node: tuple[str, list]) -> Story:
        return Story(node[0], "goal", tuple(map(made, node[1])))

    return made(stack[0])


@given(st.lists(st.integers(1, 60), max_size=120))
def test_every_list_that_opens_closes(depths: list[int]) -> None:
    """Whatever the shape of a story, its lines come in order and its lists are balanced and not too deep."""
    story = tree_of(depths)
    lines, depth = nested(story), 0
    for line in lines:
        assert not (line.opens and line.closes)
        depth += line.opens - line.closes
        assert 0 <= depth <= MOST_DEPTH

    assert depth == 0
    assert [line.text for line in lines] == [part.text for _, part in story.lines()]


def test_a_proof_deeper_than_the_stack_is_told() -> None:
    """Ten thousand rules on top of each other give as many lines as a page tells, none of them by recursion."""
    story = Story("fact", "fact")
    for number in range(10_000):
        story = Story(f"goal {number}", "goal", (story,))

    lines = nested(story)

    assert len(lines) == MOST_LINES
    assert sum(line.opens for line in lines) == sum(line.closes for line in lines) == MOST_DEPTH


@given(st.text())
def test_hidden_characters_are_named_and_all_others_stay(text: str) -> None:
    """The parts of a text are the text, but for characters that nobody sees."""
    parts = list(pieces(text))
    again = "".join(chr(int(part[2:], 16)) if hidden else part for part, hidden in parts)

    assert again == text
    assert not any(
        character in part
        for part, hidden in parts
        if not hidden
        for character in "\u202e\u2066\u200b\x00\x07\ufeff\ud800"
    )


@given(st.lists(st.floats(allow_nan=False), max_size=30), st.lists(st.floats(-50, 0), max_size=30))
def test_a_histogram_holds_every_value_once(head: list[float], long_tail: list[float]) -> None:
    """The bars of a series count its values, and those beyond the axis are counted apart."""
    drawn = histogram({"head": head, "long_tail": long_tail}, {"head": "head", "long_tail": "long tail"})
    inside = [value for value in (*head, *long_tail) if abs(value) <= LARGEST]

    assert (drawn is None) == (not inside)
    if drawn is not None:
        assert sum(series.count for series in drawn.series) + drawn.left_out == len(head) + len(long_tail)
        assert all(len(series.counts) in (0, BINS) for series in drawn.series)
        assert all(sum(series.counts) == series.count for series in drawn.series)
        assert drawn.low < drawn.high


def test_dots_are_spread_over_the_ranks() -> None:
    """Of many ranked statements the first, the last and some between are drawn; of few, all."""
    drawn = evenly_spread(range(5 * DOTS))

    assert len(drawn) == DOTS
    assert (drawn[0], drawn[-1]) == (0, 5 * DOTS - 1)
    assert {later - earlier for earlier, later in itertools.pairwise(drawn)} == {5, 6}
    assert [evenly_spread(range(count)) for count in (0, 1, 3)] == [[], [0], [0, 1, 2]]


def test_a_plot_shows_hidden_characters_by_name(hostile: KnowledgeBase) -> None:
    """Texts in a plot's values are those of the page: nothing invisible and no end of a tag."""
    tree = parsed(page(build(hostile, Library(), ReportOptions("kb.db"))))

    plots = [json.loads(element.get("data-plot")) for element in tree.iter("figure")]
    assert {plot["form"] for plot in plots} == {"histogram"}
    assert plotted({"text": HOSTILE}).count("[U+202E]") == 1
    assert not {"<", ">", "'"} & {*plotted({"text": HOSTILE})}
