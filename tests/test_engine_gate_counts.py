"""The order, names and counts of the gates, from one search to its table, report and dataset."""

import json
from pathlib import Path

import pytest
from cli_fixture import run
from click.testing import Result

from hapax.engine.search import gates
from hapax.engine.search.gates import (
    CONSISTENCY,
    CRITIC,
    GATES,
    TYPE,
    Gate,
    LastVerdicts,
    QuestionGates,
    Subject,
    Wording,
    gates_in_order,
)
from hapax.evaluation.report.build import ReportOptions, build
from hapax.evaluation.report.gates import GateLine
from hapax.grammar.rules import Library
from hapax.kb.records import Candidate, Decision
from hapax.kb.store import KnowledgeBase

RULE = """
functional is_a_city_in(City, Country): "[1] is a city in [2]" / "[1] is not a city in [2]" / "is [1] a city in [2]?"
oracle uses_currency(Country, Currency): "[1] uses the [2]" / "[1] does not use the [2]" / "does [1] use the [2]?"
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_pay_with(Person, Currency): "[1] can pay with the [2]" / "[1] cannot pay with the [2]" / "?"
@name currency
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> can_pay_with(Person X, Currency B)
"""
SCRIPT = {
    "generate": {
        "'[A] is a city in [B]'": ["Oslo", "Lyon", "Banjul"],
        "'Oslo is a city in [B]'": ["Norway"],
        "'Lyon is a city in [B]'": ["France"],
        "'Banjul is a city in [B]'": ["The Gambia"],
        "'Norway uses the [B]'": ["Norwegian krone", "euro", "fish", "skilling"],
        "'France uses the [B]'": ["euro", "franc"],
        "'The Gambia uses the [B]'": ["dalasi"],
        # LINK begins with the conclusion.
        "PersonX can pay with the [B]": ["Norwegian krone", "euro", "dalasi"],
        "[A] uses the Norwegian krone": ["Norway"],
        "[A] uses the euro": ["France", "Norway", "Fish", "Europe"],
        "[A] uses the dalasi": ["The Gambia"],
        "[B] is a city in Norway": ["Oslo"],
        "[B] is a city in France": ["Lyon"],
        "[B] is a city in The Gambia": ["Banjul"],
        # LINK prints predicates.
        "can_pay_with(PersonX, B)": ["Norwegian krone", "euro", "dalasi"],
        "uses_currency(A, Norwegian krone)": ["Norway"],
        "uses_currency(A, euro)": ["France", "Norway", "Fish", "Europe"],
        "uses_currency(A, dalasi)": ["The Gambia"],
        "is_a_city_in(B, Norway)": ["Oslo"],
        "is_a_city_in(B, France)": ["Lyon"],
        "is_a_city_in(B, The Gambia)": ["Banjul"],
        # Its released code takes the rule's own variables, here premise first.
        "lives_in(PersonX, A)": ["Oslo", "Lyon", "Banjul", "Bergen"],
        "is_a_city_in(Oslo, C)": ["Norway", "Fish"],
        "is_a_city_in(Bergen, C)": ["Norway"],
        "is_a_city_in(Lyon, C)": ["France", "Europe"],
        "is_a_city_in(Banjul, C)": ["The Gambia"],
        "uses_currency(Norway, B)": ["Norwegian krone", "euro", "fish", "skilling"],
        "uses_currency(France, B)": ["euro", "franc"],
        "uses_currency(The Gambia, B)": ["dalasi"],
    },
    "critic": {
        # For each order of variables: a fact that is false, a wrong type, and a value that is wrong in both ways.
        "Norway uses the euro.": 0.1,
        "Skilling is a currency.": 0.2,
        "Europe is a country.": 0.2,
        "Norway uses the fish.": 0.1,
        "Fish is a currency.": 0.1,
        # Norway's second beam has lower scores than its first, so that a value of it fails in one beam alone.
        "Bergen is a city.": 0.86,
        "Bergen is a city in Norway.": 0.86,
        "Norwegian krone is a currency.": 0.72,
        "Oslo is a city in Fish.": 0.1,
        "Fish uses the euro.": 0.1,
        "Fish is a country.": 0.1,
    },
    "likelihood": {},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}


def searched(folder: Path, *options: str) -> Result:
    """A search of the rule; its knowledge base is `kb.db` in the folder."""
    # In LINK's released code no critic judges a variable with one right value.
    rule = RULE.replace("functional ", "oracle ") if "released" in options else RULE
    (folder / "test.rules").write_text(rule, "utf-8")
    (folder / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    model = f"scripted:{folder / 'script.json'}"
    return run("search", folder / "test.rules", "--db", folder / "kb.db", "-m", model, "--evaluator", model, *options)


def value_lines(folder: Path) -> dict[str, GateLine]:
    """The report's lines about values, by gate."""
    with KnowledgeBase(folder / "kb.db", read_only=True) as kb:
        lines = build(kb, Library(), ReportOptions("kb.db")).gates.lines
    return {line.gate: line for line in lines if line.judged == Subject.VALUES}


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        # Of 13 values the critic is not asked about the 3 cities of the open question and the 2 of a wrong type.
        (None, [("type", 13, 2), ("critic", 8, 1)]),
        ("paper", [("type", 10, 3), ("critic", 5, 1)]),
        # Norway is asked about in two beams, whose values count once, by the last verdict.
        ("released", [("critic", 17, 3), ("type", 14, 3)]),
    ],
)
def test_search_report_and_dataset_count_alike(
    tmp_path: Path, compat: str | None, expected: list[tuple[str, int, int]]
) -> None:
    """In each order of the gates, all three say how many values came to a gate and how many it rejected."""
    options = ["--compat", compat] if compat else []
    printed = json.loads(searched(tmp_path, "--json", *options).stdout)
    lines = value_lines(tmp_path)
    run("dataset", tmp_path / "out", "--db", tmp_path / "kb.db", "--format", "jsonl", "--in-both", "keep")
    card = {line["gate"]: line for line in json.loads((tmp_path / "out" / "metadata.json").read_text("utf-8"))["gates"]}

    (rule,) = printed["rules"]
    for gate in (TYPE.name, CRITIC.name):
        counted = rule["gates"][gate]
        assert (lines[gate].passed, lines[gate].came) == (counted["accepted"], counted["judged"])
        assert card[gate]["judged"] == counted["judged"]
        assert card[gate]["refused"] == pytest.approx(1 - counted["accepted"] / counted["judged"])
    assert [(gate, line.came, line.stopped) for gate, line in lines.items() if gate in card] == expected


def test_a_value_that_fails_twice_is_rejected_by_the_gate_that_comes_first(tmp_path: Path) -> None:
    """Norway does not use fish, which is no currency: the released code asks for the fact first."""
    searched(tmp_path, "--compat", "released")
    with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        rejected = {
            kb.candidate(decision.subject).value: decision.gate  # type: ignore[union-attr]  # it is there
            for decision in kb.decisions()
            if not decision.accepted and decision.gate in (TYPE.name, CRITIC.name)
        }

    assert {value: rejected[value] for value in ("fish", "Fish", "Europe", "skilling")} == {
        "fish": "critic",
        "Fish": "critic",
        "Europe": "type",
        "skilling": "type",
    }


def test_orders_have_the_same_gates() -> None:
    """`--compat` changes places and knows no declarations; no other gate is lost, and none asked twice."""
    assert gates_in_order() == GATES
    assert gates_in_order("paper") == tuple(gate for gate in GATES if gate is not CONSISTENCY)
    assert gates_in_order("released") != GATES
    assert sorted(gate.name for gate in gates_in_order("released")) == sorted(
        gate.name for gate in gates_in_order("paper")
    )


def _too_long(candidate: Candidate, _: QuestionGates) -> str | None:
    return "has more than one word" if " " in str(candidate.value) else None


def test_a_new_gate_is_a_function_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that is put into the tuple is in the counts, the closing table, the report and the dataset's summary."""
    short = Gate("short", {Subject.VALUES: Wording("is it one word?", rejection="It is longer.")}, objection=_too_long)
    monkeypatch.setattr(gates, "GATES", (*GATES[:4], short, *GATES[4:]))

    shown = searched(tmp_path, "--no-progress").stdout
    printed = json.loads(searched(tmp_path, "--json").stdout)
    (line,) = printed["rules"]
    count = line["gates"]["short"]
    run("dataset", tmp_path / "out", "--db", tmp_path / "kb.db", "--format", "jsonl", "--in-both", "keep")
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text("utf-8"))
    page = run("report", "--db", tmp_path / "kb.db", "-o", tmp_path / "page.html")

    assert count == {"accepted": 7, "judged": 9}  # without "Norwegian krone" and "The Gambia"
    assert "short" in next(row for row in shown.splitlines() if row.startswith("rule")).split()
    assert (value_lines(tmp_path)["short"].came, value_lines(tmp_path)["short"].stopped) == (count["judged"], 2)
    assert next(gate for gate in metadata["gates"] if gate["gate"] == "short")["judged"] == count["judged"]
    text = (tmp_path / "page.html").read_text("utf-8")
    assert page.exit_code == 0
    for words in ("short passed", "is it one word?", "It is longer.", "has more than one word"):
        assert words in text


def test_the_last_verdict_is_the_last_one_that_is_stored() -> None:
    """A verdict that a value has had before is not stored again: the one between stays the last."""

    def verdict(subject: str, accepted: bool, gate: str = "critic") -> Decision:
        return Decision("run", gate, subject, accepted, 0.5, 0.6, "")

    last = LastVerdicts()
    assert last.by_gate(gates_in_order()) == {}
    last.add([verdict("a", True), verdict("b", True), verdict("a", False)])
    last.add([verdict("a", True), verdict("c", False, "type")])
    counts = last.by_gate(gates_in_order())

    assert (counts["type"].accepted, counts["type"].judged) == (2, 3)
    assert (counts["critic"].accepted, counts["critic"].judged) == (1, 2)
