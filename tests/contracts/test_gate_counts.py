"""Gates of a search: their counts in its JSON and in a dataset's card, by each order of the gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run

import hapax

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


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        # Of 13 values the critic is not asked about the 3 cities of the open question and the 2 of a wrong type.
        (None, {"type": (13, 2), "critic": (8, 1)}),
        ("paper", {"type": (10, 3), "critic": (5, 1)}),
        # Norway is asked about in two beams, whose values count once, by the last verdict.
        ("released", {"critic": (17, 3), "type": (14, 3)}),
    ],
)
def test_search_and_dataset_count_alike(
    tmp_path: Path, compat: str | None, expected: dict[str, tuple[int, int]]
) -> None:
    """In each order of the gates both say how many values came to a gate and how many it rejected, and why-not which."""
    # In LINK's released code no critic judges a variable with one right value.
    (tmp_path / "test.rules").write_text(
        RULE.replace("functional ", "oracle ") if compat == "released" else RULE, "utf-8"
    )
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    database, model = tmp_path / "kb.db", f"scripted:{tmp_path / 'script.json'}"
    options = ("--db", database, "-m", model, "--evaluator", model, "--json", *(("--compat", compat) if compat else ()))
    (rule,) = json.loads(run("search", tmp_path / "test.rules", *options).stdout)["rules"]
    run("dataset", tmp_path / "out", "--db", database, "--format", "jsonl", "--in-both", "keep")
    card = {line["gate"]: line for line in json.loads((tmp_path / "out" / "metadata.json").read_text("utf-8"))["gates"]}
    gates = {name: rule["gates"][name] for name in expected}

    assert {name: (gate["judged"], gate["judged"] - gate["accepted"]) for name, gate in gates.items()} == expected
    for name, gate in gates.items():
        assert card[name]["judged"] == gate["judged"]
        assert card[name]["refused"] == pytest.approx(1 - gate["accepted"] / gate["judged"])


def test_a_value_that_fails_twice_is_rejected_by_the_gate_that_comes_first(tmp_path: Path) -> None:
    """Norway does not use fish, which is no currency: Hapax asks for the type first, the released code for the fact."""
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    rules = hapax.parse_rules(RULE.replace("functional ", "oracle "))
    models = hapax.open_models(f"scripted:{tmp_path / 'script.json'}")
    gates = {}
    for compat in (None, "released"):
        with hapax.KnowledgeBase() as kb:
            hapax.search(rules, kb, models, hapax.SearchSettings(compat=compat, plan="premise-first"))  # type: ignore[arg-type]
            candidates = [
                found for every in kb.candidates_of([q.id for q in kb.questions()]).values() for found in every
            ]
            (fish,) = {found.id for found in candidates if found.value == "fish"}
            gates[compat] = {item.gate for item in kb.decisions() if item.subject == fish and not item.accepted}

    assert gates == {None: {"type"}, "released": {"critic"}}
